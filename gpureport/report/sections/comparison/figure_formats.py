"""Figures of steps as they are printed: a title, a value, a change."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_BATCH,
    WORK_RATE,
)
from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.comparison.steps.throughput import STEP_COUNTER
from gpureport.comparison.steps.training_rate import TrainingBasis
from gpureport.report.wording import display, scales
from gpureport.report.wording.difference_wording import FigureFormat

_HOUR = 3600.0
_BRIEF = 36.0
"""GPU-seconds below which hours have more zeros than digits: a hundredth of an hour."""
LABEL = 24
"""Most characters of a name in a table for a terminal."""


SHOWN: dict[str, FigureFormat] = {
    WORK_RATE: FigureFormat(title="{unit} a second, whole job"),
    TRAINING_RATE: FigureFormat(title="{unit} a second, training alone"),
    PER_WORK: FigureFormat(title="GPU-hours per {batch}", scale=scales.GPU_HOURS),
    COST_PER_WORK: FigureFormat(title="Cost per {batch}"),
    SECONDS_TO_TARGET: FigureFormat(title="Time to target", scale=scales.TIMES, absent="none"),
    "gpu_seconds": FigureFormat(title="GPU-hours", scale=scales.GPU_HOURS),
    ENERGY_PER_WORK: FigureFormat(title="Energy per {batch}", scale=scales.ENERGY),
    "energy_joules": FigureFormat(title="Energy", scale=scales.ENERGY),
    "idle_ratio": FigureFormat(title="Idle share", scale=scales.POINTS, percent=display.percent),
    "gpu_utilization_ratio": FigureFormat(title="GPU utilisation", scale=scales.POINTS, percent=display.percent),
    "gpu_power_watts": FigureFormat(title="Power of a GPU", scale=scales.POWER),
    "gpu_sm_clock_hertz": FigureFormat(title="SM clock", scale=scales.CLOCK),
    "gpu_graphics_clock_hertz": FigureFormat(title="Graphics clock", scale=scales.CLOCK),
    "gpu_memory_used_bytes": FigureFormat(title="Peak memory", scale=scales.MEMORY),
}
"""By metric, in the order of columns."""


_SECONDS = FigureFormat(title="GPU-seconds per {batch}")
"""GPU time per unit of work where all of it is brief."""


def uses_seconds(comparison: Comparison) -> bool:
    """Return whether GPU time per unit of work is printed in seconds: where that of every step is short for hours."""
    deltas = [delta for delta in comparison.deltas if delta.metric == PER_WORK]
    values = [
        *(step.value(PER_WORK) for step in comparison.steps),
        *(value for delta in deltas for value in (delta.before, delta.after)),
    ]
    known = [value for value in values if value is not None]
    return bool(known) and max(known) < _BRIEF


def per_work(seconds: float, *, in_seconds: bool) -> float:
    """Return GPU time per unit of work in the unit in which it is printed."""
    return seconds if in_seconds else seconds / _HOUR


def choose_format(metric: str, unit: str | None, currency: str = "", *, in_seconds: bool = False) -> FigureFormat:
    """Return how a figure is printed.

    Args:
        metric: its name.
        unit: what work is counted in; None when not known.
        currency: what prices are stated in; empty when not known.
        in_seconds: whether GPU time per unit of work is printed in seconds, see `uses_seconds`.
    """
    units = {unit} if unit else set()
    found = _SECONDS if in_seconds and metric == PER_WORK else SHOWN[metric]
    if metric == COST_PER_WORK:
        found = replace(found, scale=scales.Scale(units=((display.clean(currency), 1.0),)))
    counted = _unit(unit).capitalize() if unit else "Work"
    return replace(found, title=found.title.format(batch=batch(units), unit=counted))


def _unit(name: str) -> str:
    return display.shorten(display.clean(name), LABEL)


def batch(units: set[str]) -> str:
    """Return the batch of work that GPU-hours are set in relation to: `1000 steps`, or units in general."""
    return f"{WORK_BATCH} {_unit(units.copy().pop())}" if len(units) == 1 else f"{WORK_BATCH} units of work"


def describe_training_source(steps: Sequence[Step]) -> str:
    """Return what the training rates of some steps rest on; empty where they have none."""
    sources = [step.training_source for step in steps if step.training_source is not None]
    if not sources:
        return ""
    if sources[0].basis is TrainingBasis.STEADY_PHASE:
        return "Training alone: by work over the steady phase of the GPU log."
    names = sorted({"the step counter" if name == STEP_COUNTER else name for each in sources for name in each.names})
    return f"Training alone: by {display.join_words([display.clean(name) for name in names])} of the training loop."
