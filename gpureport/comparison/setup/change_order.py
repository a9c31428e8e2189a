"""In which order changes of the set-up are told: first what bears on the GPU's time."""

from collections.abc import Collection

from gpureport.analysis.advice.facts import read_setup
from gpureport.comparison.setup.command_lines import COMMAND, normalize_name

_SETTINGS = (
    *("workers", "precision", "batch", "accumulation", "pin_memory", "non_blocking", "persistent_workers"),
    *("prefetch_factor", "prefetch", "compiled", "cuda_graphs", "cudnn_benchmark", "pretrained"),
    "asynchronous_checkpoints",
)
"""What the advice speaks of, by names of `JobParams`; cores are of the machine."""


def rank_change(kind: str, key: str, texts: Collection[str | None], options: Collection[str]) -> tuple[int, int]:
    """Return the place of a change among others: settings that advice knows, options, hardware, the rest, the command.

    Args:
        kind: `param`, `tag` or `hardware`.
        key: what changed.
        texts: its values, None where it was not given.
        options: names of options on the command lines of both steps.
    """
    if kind == "hardware":
        return 2, 0
    setups = [read_setup([(key, text)]) for text in texts if text is not None]
    known = (place for place, name in enumerate(_SETTINGS) if any(getattr(one, name) is not None for one in setups))
    place = next(known, None)
    if place is not None:
        return 0, place
    if kind == "tag":
        return (5 if key == COMMAND else 4), 0
    return (1 if normalize_name(key) in options else 3), 0
