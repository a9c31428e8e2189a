"""The peak memory of one run, or of the first and the last step, with how much is installed."""

from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.report.model.head import Tile
from gpureport.report.wording import display
from gpureport.report.wording.changes import build_plain_change

_METRIC = "gpu_memory_used_bytes"
LABEL = "Peak memory"


def build_memory_tile(comparison: Comparison) -> Tile:
    """Return the highest memory use of one GPU; its change is neither better nor worse."""
    first, last = comparison.steps[0], comparison.steps[-1]
    peak = last.value(_METRIC)
    before = None if first is last else first.value(_METRIC)
    if peak is None:
        return Tile(label=LABEL, value=display.NOT_RECORDED, context="Memory was not recorded")
    texts = ["" if value is None else display.memory(value) for value in (before, peak)]
    units = {text.partition(display.GAP)[2] for text in texts if text}
    unit = units.pop() if len(units) == 1 else ""
    texts = [text.removesuffix(f"{display.GAP}{unit}") if unit else text for text in texts]
    return Tile(
        label=LABEL,
        before=texts[0],
        value=texts[1],
        unit=unit,
        change=build_plain_change(before, peak),
        context=_describe_installed(last, peak),
    )


def _describe_installed(step: Step, peak: float) -> str:
    """Return how much memory a GPU has, and how much of it was never used."""
    installed = {gpu.memory_total_bytes for analysis in step.analyses for gpu in analysis.run.gpus}
    if len(installed) != 1 or not (total := installed.pop()):
        return "GPUs of several sizes" if len(installed) > 1 else "Installed memory not recorded"
    return f"Of {display.memory(total)} installed: {display.percent(max(0.0, 1 - peak / total))} free"
