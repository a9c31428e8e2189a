"""Figures of steps as they are printed: a title, a value, a change."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison
from gpureport.comparison.evidence import Reason, WholeRecordingFigure
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.steps import Step, TrainingBasis
from gpureport.comparison.verdict import Delta
from gpureport.comparison.work import STEP_COUNTER
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display, scales, terms, work_scale
from gpureport.report.wording.differences.difference_wording import FigureFormat

_HOUR = 3600.0
_BRIEF = 36.0
"""GPU-seconds below which hours have more zeros than digits: a hundredth of an hour."""
LABEL = 24
"""Most characters of a name in a table for a terminal."""


_SCALES = {
    PER_WORK: scales.GPU_HOURS,
    SECONDS_TO_TARGET: scales.TIMES,
    "gpu_seconds": scales.GPU_HOURS,
    "energy_joules": scales.ENERGY,
    "idle_ratio": scales.POINTS,
    "gpu_utilization_ratio": scales.POINTS,
    "gpu_power_watts": scales.POWER,
    "gpu_sm_clock_hertz": scales.CLOCK,
    "gpu_graphics_clock_hertz": scales.CLOCK,
    "gpu_memory_used_bytes": scales.MEMORY,
}
"""Of figures whose units do not depend on the work or on prices."""
_RATES = {WORK_RATE, TRAINING_RATE}
_PER_WORK = {PER_WORK, COST_PER_WORK, ENERGY_PER_WORK}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkUnits:
    """What decides in which units a report prints figures per unit of work, the same in all its parts.

    Attributes:
        in_seconds: whether GPU time is printed in seconds.
        costs: what 1,000 units of work cost in each step.
        energies: how many joules they took.
    """

    in_seconds: bool = False
    costs: tuple[float | None, ...] = ()
    energies: tuple[float | None, ...] = ()


def gather_work_units(comparison: Comparison) -> WorkUnits:
    """Return the figures of all steps that decide."""
    return WorkUnits(
        in_seconds=_uses_seconds(comparison),
        costs=tuple(step.value(COST_PER_WORK) for step in comparison.steps),
        energies=tuple(step.value(ENERGY_PER_WORK) for step in comparison.steps),
    )


def choose_cost_scale(comparison: Comparison) -> work_scale.WorkScale:
    """Return the batch of work that a report gives costs of."""
    return work_scale.choose_work_scale(gather_work_units(comparison).costs, comparison.steps[-1].work_unit)


def choose_energy_scale(comparison: Comparison) -> work_scale.EnergyScale:
    """Return the batch of work that a report gives energies of, and their unit."""
    return work_scale.choose_energy_scale(gather_work_units(comparison).energies, comparison.steps[-1].work_unit)


def _uses_seconds(comparison: Comparison) -> bool:
    """Return whether GPU time per unit of work is printed in seconds: where that of every step is short for hours."""
    deltas = [delta for delta in comparison.deltas if delta.metric == PER_WORK]
    values = [
        *(step.value(PER_WORK) for step in comparison.steps),
        *(value for delta in deltas for value in (delta.before, delta.after)),
    ]
    known = [value for value in values if value is not None]
    return bool(known) and max(known) < _BRIEF


def convert_gpu_time(seconds: float, *, in_seconds: bool) -> float:
    """Return GPU time per unit of work in the unit in which it is printed."""
    return seconds if in_seconds else seconds / _HOUR


def choose_format(
    metric: str,
    unit: str | None,
    currency: str = "",
    *,
    units: WorkUnits = WorkUnits(),
) -> FigureFormat:
    """Return how a figure is printed.

    Args:
        metric: its name.
        unit: what work is counted in; None when not known.
        currency: what prices are stated in; empty when not known.
        units: those of the report; without any a batch of work is a million.
    """
    per, scale = terms.per_batch(unit), _SCALES.get(metric, scales.NUMBERS)
    if metric == COST_PER_WORK:
        batch = work_scale.choose_work_scale(units.costs, unit)
        per, scale = batch.per, scales.Scale(units=((display.clean(currency), 1 / batch.factor),))
    elif metric == ENERGY_PER_WORK:
        energy = work_scale.choose_energy_scale(units.energies, unit)
        per, scale = energy.per, scales.Scale(units=((energy.unit, energy.size),))
    elif metric == PER_WORK and units.in_seconds:
        scale = scales.GPU_SECONDS
    elif metric in _RATES:
        scale = scales.Scale(units=((f"{work_scale.name_work(unit or 'units')}/s", 1.0),))
    return FigureFormat(
        title=terms.name_figure(metric, per),
        scale=scale,
        percent=display.percent if scale is scales.POINTS else None,
        absent="none" if metric == SECONDS_TO_TARGET else display.NOT_RECORDED,
        per=per if metric in _PER_WORK else "",
    )


def describe_training_source(steps: Sequence[Step]) -> str:
    """Return what the training rates of some steps rest on; empty where they have none."""
    sources = [step.training_source for step in steps if step.training_source is not None]
    if not sources:
        return ""
    if sources[0].basis is TrainingBasis.STEADY_PHASE:
        return "Training alone: by work over the steady phase of the GPU log."
    names = sorted({"the step counter" if name == STEP_COUNTER else name for each in sources for name in each.names})
    return f"Training alone: by {display.join_words([display.clean(name) for name in names])} of the training loop."


PAIR_FIGURES = {WORK_RATE, "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"}
"""Figures that only the tables of a pair of steps have room for."""


def select_formats(
    steps: Sequence[Step], pair_figures: Collection[str] = (), *, units: WorkUnits
) -> dict[str, FigureFormat]:
    """Return how each figure that a table of steps shows is printed, by its name.

    Args:
        steps: the steps of the table.
        pair_figures: those of `PAIR_FIGURES` to show as well.
        units: those of the report.
    """
    known = any(step.work_unit for step in steps)
    left_out = {"energy_joules"} if known else {PER_WORK, ENERGY_PER_WORK, COST_PER_WORK, WORK_RATE}
    if all(step.training_source is None for step in steps):
        left_out.add(TRAINING_RATE)
    if all(run.gpu_hour_price is None for step in steps for run in step.runs):
        left_out.add(COST_PER_WORK)
    if not any(SECONDS_TO_TARGET in step.values for step in steps):
        left_out.add(SECONDS_TO_TARGET)
    metrics = [
        name
        for name in terms.FIGURE_NAMES
        if name not in left_out and (name not in PAIR_FIGURES or name in pair_figures)
    ]
    return _choose_formats(steps, metrics, units)


def _choose_formats(steps: Sequence[Step], metrics: Iterable[str], units: WorkUnits) -> dict[str, FigureFormat]:
    """Return how some figures of some steps are printed, by name."""
    names = {step.work_unit for step in steps if step.work_unit}
    unit = next(iter(names)) if len(names) == 1 else None
    currency = spending.currency(_analyses(steps))
    return {metric: choose_format(metric, unit, currency, units=units) for metric in metrics}


def note_prices(steps: Sequence[Step], figures: Iterable[str]) -> str:
    """Return when the prices held that figures rest on; empty where none is a cost."""
    return spending.price_note(_analyses(steps)) if COST_PER_WORK in figures else ""


def join_notes(*notes: str) -> tuple[str, ...]:
    """Return the notes that say something."""
    return tuple(filter(None, notes))


def _analyses(steps: Sequence[Step]) -> list[Analysis]:
    return [analysis for step in steps for analysis in step.analyses]


def format_difference(shown: FigureFormat, plain: Delta | WholeRecordingFigure) -> str:
    """Return a difference in words; empty where there is none to tell."""
    if plain.difference is None:
        return ""
    return shown.format_change(plain.difference, plain.before, plain.after) if plain.difference else "none"


def list_pair_reasons(
    name: str, before: Delta | None, first: Delta | None, name_since_first: str
) -> Iterator[tuple[Reason | None, str]]:
    """Yield what holds a verdict back, and the one since the first step where that is held back by something else."""
    near, far = (delta.reason and delta.reason.of_any_run if delta else None for delta in (before, first))
    yield near, name
    if far != near:
        yield far, name_since_first
