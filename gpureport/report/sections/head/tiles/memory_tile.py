"""The peak memory of one run, or of the first and the last step, with how much is installed."""

from collections.abc import Iterator

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import SAME_MEMORY
from gpureport.comparison.steps import Step
from gpureport.report.model.head import Tile
from gpureport.report.wording import display
from gpureport.report.wording.differences.changes import build_plain_change
from gpureport.report.wording.scales import split_common_unit

_METRIC, _LABEL = "gpu_memory_used_bytes", "Peak memory"


def build_memory_tile(comparison: Comparison) -> Tile:
    """Return the highest memory use of one GPU; its change is neither better nor worse."""
    first, last = comparison.steps[0], comparison.steps[-1]
    peak = last.value(_METRIC)
    before = None if first is last else first.value(_METRIC)
    if peak is None:
        return Tile(label=_LABEL, value=display.NOT_RECORDED, context="Memory was not recorded")
    (shown, value), unit = split_common_unit(["" if each is None else display.memory(each) for each in (before, peak)])
    change, context = build_plain_change(before, peak), _describe_installed(last, peak)
    return Tile(label=_LABEL, before=shown, value=value, unit=unit, change=change, context=context)


def _describe_installed(step: Step, peak: float) -> str:
    """Return how much memory a GPU has, and how much of it was never used: of what a job can get where that is less.

    A total that a tracker's share of memory tells differs from GPU to GPU by a little: these are of one size.
    """
    sizes = [each for analysis in step.analyses for each in _list_memory(analysis)]
    totals, reserved = [total for total, _ in sizes if total], {kept for _, kept in sizes}
    if not totals or len(totals) < len(sizes):
        return "Installed memory not recorded"
    total = min(totals)
    if max(totals) > SAME_MEMORY * total:
        return "GPUs of several sizes"
    if any(gpu.mig for analysis in step.analyses for gpu in analysis.run.gpus):
        return f"Of {display.memory(total)}, in MIG instances"
    if len(reserved) == 1 and (kept := reserved.pop()):
        usable, unit = total - kept, f"{display.GAP}GiB"
        left, installed = (display.memory(each).removesuffix(unit) for each in (max(0.0, usable - peak), total))
        return f"{left} of {display.memory(usable)} usable left; {installed} installed"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"


def _list_memory(analysis: Analysis) -> Iterator[tuple[int | None, float]]:
    """Yield the memory of each GPU and how much of it the driver keeps, in bytes."""
    found = {each.device: each.metric("gpu_memory_reserved_bytes") for each in analysis.statistics}
    for gpu in analysis.run.gpus:
        total, stated, logged = gpu.memory_total_bytes, gpu.memory_reserved_bytes, found.get(gpu.id)
        kept = logged.max if stated is None and logged is not None else stated
        yield total, kept if kept and total and kept < total else 0.0
