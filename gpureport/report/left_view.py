"""What is still lost in the last step, in words."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.remaining import LargestFinding, Remaining
from gpureport.report import display, terms
from gpureport.report.inputs import RunInput
from gpureport.report.parts import Fact

_NOTABLE = 0.0005
"""Share below which a class would print as 0.0 %."""


def facts(left: Remaining, runs: Sequence[RunInput]) -> Iterator[Fact]:
    """Yield how much is still lost, to what, and the largest finding; nothing where no GPU time was held.

    Args:
        left: what is still lost.
        runs: the runs of the last step, for the names of their devices.
    """
    held = left.held_gpu_seconds
    if held <= 0:
        return
    yield Fact(name="Lost", text=_lost(left))
    if left.largest is not None and runs:
        yield Fact(name="Largest", text=_largest(left.largest, held, runs[0]))


def _lost(left: Remaining) -> str:
    held = left.held_gpu_seconds
    shares = [
        f"{display.percent(amount / held)} {terms.CLASSES.get(name, name.replace('_', ' '))}"
        for name, amount in left.lost_gpu_seconds
        if amount >= _NOTABLE * held
    ]
    if left.unseen_gpu_seconds >= (1 - _NOTABLE) * held:
        return f"not known: none of {display.gpu_hours(held)} holds a utilisation"
    if not shares:
        return f"nothing that could be seen, of {display.gpu_hours(held)} a run"
    total = f"{display.gpu_hours(left.lost)} of {display.gpu_hours(held)} a run"
    return f"{total}: {display.listing(shares)}"


def _largest(left: LargestFinding, held: float, run: RunInput) -> str:
    kind = terms.kind(display.clean(left.kind), left.cause)
    where = f", {run.devices(left.devices)}" if left.devices else ""
    share = display.percent(left.lost_gpu_seconds / held)
    count = display.plural(left.findings, "finding")
    return (
        f"{kind}{where}: {count}, up to {display.gpu_hours(left.lost_gpu_seconds)} ({share}) a run. "
        f"{display.sentence(left.summary)}"
    )
