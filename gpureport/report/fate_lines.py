"""What became of findings from one step to the next, in words."""

from collections.abc import Iterator, Sequence

from gpureport.comparison.fates import Fate, FindingFate, Side
from gpureport.report import display, terms
from gpureport.report.inputs import RunInput
from gpureport.report.parts import Fact

_FATES = {
    Fate.NEW: "New",
    Fate.PERSISTING: "Persisting",
    Fate.RESOLVED: "Resolved",
    Fate.CANNOT_TELL: "Cannot tell",
}


def lines(fates: Sequence[FindingFate], inputs: Sequence[RunInput]) -> Iterator[Fact]:
    """Yield what became of findings, those of one fate, kind and cause together; the fate is the name.

    Args:
        fates: of one link.
        inputs: the runs, for the names of their devices.
    """
    gathered: dict[tuple[Fate, str, str | None, str], list[FindingFate]] = {}
    for entry in fates:
        gathered.setdefault((entry.fate, entry.kind, entry.cause, entry.reason), []).append(entry)
    for (fate, kind, cause, reason), entries in gathered.items():
        whose = next(run for run in inputs if run.step == display.clean(_step(entries[0])))
        devices = [device for entry in entries for device in entry.devices]
        title = terms.kind(display.clean(kind), cause)
        where = f", {whose.devices(devices)}" if devices else ""
        named = f" (cause: {display.clean(cause)})" if cause and cause not in terms.CAUSES else ""
        why = f"; {display.clean(reason)}" if reason else ""
        yield Fact(name=_FATES[fate], text=f"{title}{where}{named}: {_became(entries)}{why}")


def _step(entry: FindingFate) -> str:
    return entry.step if entry.after else entry.base


def _became(entries: Sequence[FindingFate]) -> str:
    before = [entry.before for entry in entries if entry.before]
    after = [entry.after for entry in entries if entry.after]
    if before and after:
        return f"{_said(before)}, then {_said(after)}"
    return _said(before or after) if after else f"was {_said(before)}"


def _said(sides: Sequence[Side]) -> str:
    """Return how many findings there were, and what they cost."""
    count = display.plural(sum(side.findings for side in sides), "finding")
    runs = max(side.runs for side in sides)
    count += f" in {runs} runs" if runs > 1 else ""
    lost = [side.lost_gpu_seconds for side in sides if side.lost_gpu_seconds is not None]
    return f"{count}, up to {display.gpu_hours(sum(lost))}" if lost else count
