"""The peak memory of one run, or of the first and the last step, with how much is installed."""

from gpureport.comparison.chain import Comparison
from gpureport.comparison.comparable import SAME_MEMORY
from gpureport.comparison.steps import Step
from gpureport.report.model.head import Tile
from gpureport.report.wording import display
from gpureport.report.wording.differences import build_plain_change
from gpureport.report.wording.scales import split_common_unit

_METRIC, _LABEL, _GIB = "gpu_memory_used_bytes", "Peak memory", f"{display.GAP}GiB"


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
    totals, reserved, is_shared = list[int | None](), set[float](), False
    for analysis in step.analyses:
        found = {each.device: each.metric("gpu_memory_reserved_bytes") for each in analysis.statistics}
        for gpu in analysis.run.gpus:
            logged, total = found.get(gpu.id), gpu.memory_total_bytes
            kept = logged.max if logged and gpu.memory_reserved_bytes is None else gpu.memory_reserved_bytes
            totals.append(total)
            reserved.add(kept if kept and total and kept < total else 0.0)
            is_shared |= bool(gpu.mig)
    known = [total for total in totals if total]
    if not known or len(known) < len(totals):
        return "Installed memory not recorded"
    total, kept = min(known), reserved.pop() if len(reserved) == 1 else 0.0
    if max(known) > SAME_MEMORY * total:
        return "GPUs of several sizes"
    if is_shared:
        return f"Of {display.memory(total)}, in MIG instances"
    if kept:
        left, installed = (display.memory(each).removesuffix(_GIB) for each in (max(0.0, total - kept - peak), total))
        return f"{left} of {display.memory(total - kept)} usable left; {installed} installed"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"
