"""The peak memory of one run, or of the first and the last step, with how much is installed."""

from collections.abc import Iterator

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import SAME_MEMORY
from gpureport.comparison.steps import Step
from gpureport.report.model.head import Tile
from gpureport.report.wording import display
from gpureport.report.wording.differences import build_plain_change
from gpureport.report.wording.scales import split_common_unit

_METRIC = "gpu_memory_used_bytes"
LABEL = "Peak memory"


def build_memory_tile(comparison: Comparison) -> Tile:
    """Return the highest memory use of one GPU; its change is neither better nor worse."""
    first, last = comparison.steps[0], comparison.steps[-1]
    peak = last.value(_METRIC)
    before = None if first is last else first.value(_METRIC)
    if peak is None:
        return Tile(label=LABEL, value=display.NOT_RECORDED, context="Memory was not recorded")
    texts, unit = split_common_unit(["" if value is None else display.memory(value) for value in (before, peak)])
    return Tile(
        label=LABEL,
        before=texts[0],
        value=texts[1],
        unit=unit,
        change=build_plain_change(before, peak),
        context=_describe_installed(last, peak),
    )


def _describe_installed(step: Step, peak: float) -> str:
    """Return how much memory a GPU has, and how much of it was never used: of what a job can get where that is less.

    A total that a tracker's share of memory tells differs from GPU to GPU by a little: these are of one size.
    """
    found = {memory for analysis in step.analyses for memory in _list_memory(analysis)}
    totals = [total for total, _ in found if total]
    if not totals or len(totals) < len(found):
        return "Installed memory not recorded"
    total = min(totals)
    if max(totals) > SAME_MEMORY * total:
        return "GPUs of several sizes"
    if any(gpu.mig for analysis in step.analyses for gpu in analysis.run.gpus):
        return f"Of {display.memory(total)}, in MIG instances"
    reserved = {kept for _, kept in found}
    if len(reserved) == 1 and (kept := reserved.pop()):
        usable = total - kept
        left, installed = (
            display.memory(each).removesuffix(f"{display.GAP}GiB") for each in (max(0.0, usable - peak), total)
        )
        return f"{left} of {display.memory(usable)} usable left; {installed} installed"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"


def _list_memory(analysis: Analysis) -> Iterator[tuple[int | None, float]]:
    """Yield the memory of each GPU and how much of it the driver keeps, in bytes."""
    logged = {
        each.device: summary.max
        for each in analysis.statistics
        if (summary := each.metric("gpu_memory_reserved_bytes")) is not None
    }
    for gpu in analysis.run.gpus:
        total, stated = gpu.memory_total_bytes, gpu.memory_reserved_bytes
        kept = logged.get(gpu.id) if stated is None else stated
        yield total, kept if kept and total and kept < total else 0.0
