"""That runs of a comparison used the same GPUs at the same time, in one sentence."""

from collections.abc import Iterable

from gpureport.comparison.chain.concurrent_runs import find_concurrent_runs
from gpureport.recording import Run
from gpureport.report.wording import display


def describe_concurrent_runs(runs: Iterable[Run]) -> str:
    """Return which two runs are not comparable since they shared GPUs; empty where none are known to have."""
    found = find_concurrent_runs(runs)
    if found is None:
        return ""
    names = display.join_words([display.clean(name) for name in found.names])
    if found.node:
        node = display.clean(found.node)
        return f"{names} ran at the same time on {node}: if they shared GPUs, they are not comparable."
    gpus = "the same GPU" if found.gpus == 1 else f"the same {display.plural(found.gpus, 'GPU')}"
    return f"{names} ran at the same time on {gpus}, so they are not comparable."
