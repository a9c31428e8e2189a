"""Figures of steps as they are printed: a title, a unit and a value, the same in all parts of a report."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from gpureport.analysis.results import Analysis
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.run import GRAPHICS_CLOCK, SM_CLOCK, UTILISATION
from gpureport.comparison.steps import Step, TrainingBasis
from gpureport.comparison.verdict import Delta
from gpureport.comparison.work import STEP_COUNTER
from gpureport.report.model.shapes import Cell
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.pictures.time_spent import choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display, scales, terms
from gpureport.report.wording.differences import WHOLE_RUN_UTILISATION, FigureFormat
from gpureport.report.wording.terms import name_figure

MEMORY, ENERGY, POWER, GPU_SECONDS = "gpu_memory_used_bytes", "energy_joules", "gpu_power_watts", "gpu_seconds"
_BRIEF = 36.0
"""GPU-seconds below which hours have more zeros than digits: a hundredth of an hour."""
_SCALES = {
    PER_WORK: scales.GPU_HOURS,
    SECONDS_TO_TARGET: scales.TIMES,
    GPU_SECONDS: scales.GPU_HOURS,
    ENERGY: scales.ENERGY,
    "idle_ratio": scales.POINTS,
    UTILISATION: scales.POINTS,
    POWER: scales.POWER,
    SM_CLOCK: scales.CLOCK,
    GRAPHICS_CLOCK: scales.CLOCK,
    MEMORY: scales.MEMORY,
}
"""Of figures whose units do not depend on the work or on prices."""
_PER_WORK = (PER_WORK, COST_PER_WORK, ENERGY_PER_WORK, WORK_RATE, TRAINING_RATE, SECONDS_TO_TARGET, MEMORY)
_PER_RUN = (GPU_SECONDS, ENERGY, UTILISATION, POWER, SECONDS_TO_TARGET, MEMORY)
"""Columns of a table of steps in the order shown, per unit of work where that is known."""
_LEAST = (POWER, WORK_RATE, ENERGY, UTILISATION, MEMORY, ENERGY_PER_WORK, COST_PER_WORK)
"""Which of them go first where there is no room for all."""


class Line(NamedTuple):
    """A figure of two steps in words; `why` is what its verdict rests on."""

    metric: str
    title: str
    before: str
    after: str
    change: Cell
    verdict: Cell
    why: str = ""


@dataclass(frozen=True)
class Figures:
    comparison: Comparison

    def values(self, metric: str) -> list[float]:
        return [value for step in self.comparison.steps if (value := step.value(metric)) is not None]

    def ends(self, metric: str) -> tuple[float | None, float | None]:
        """Return a figure of the first and the last step, None for the first of a single one."""
        first, last = self.comparison.steps[0], self.comparison.steps[-1]
        return None if first is last else first.value(metric), last.value(metric)

    def delta(self, metric: str) -> Delta | None:
        ends = self.comparison.steps[0].label, self.comparison.steps[-1].label
        return next((delta for delta in self.comparison.between(*ends) if delta.metric == metric), None)

    @cached_property
    def currency(self) -> str:
        """What all prices are stated in; empty where not known."""
        return spending.currency(list_analyses(self.comparison.steps))

    @cached_property
    def in_seconds(self) -> bool:
        """Whether GPU time per unit of work is printed in seconds: where that of every step is short for hours."""
        sides = [
            end for delta in self.comparison.deltas if delta.metric == PER_WORK for end in (delta.before, delta.after)
        ]
        known = [each for each in (*self.values(PER_WORK), *sides) if each is not None]
        return bool(known) and max(known) < _BRIEF

    @cached_property
    def cost(self) -> scales.WorkScale:
        return scales.choose_work_scale(self.values(COST_PER_WORK), self.comparison.steps[-1].work_unit)

    def format(self, metric: str, steps: Sequence[Step] = ()) -> FigureFormat:
        """Return how a figure of some steps, otherwise of all, is printed, with its unit."""
        steps = steps or self.comparison.steps
        units = {step.work_unit for step in steps if step.work_unit}
        unit = units.pop() if len(units) == 1 else None
        per, scale = terms.per_batch(unit), _SCALES.get(metric, scales.NUMBERS)
        if metric == COST_PER_WORK:
            batch = scales.choose_work_scale(self.values(COST_PER_WORK), unit)
            currency = spending.currency(list_analyses(steps))
            per, scale = batch.per, scales.Scale(units=((display.clean(currency), 1 / batch.factor),))
        elif metric == ENERGY_PER_WORK:
            energy = scales.choose_energy_scale(self.values(ENERGY_PER_WORK), unit)
            per, scale = energy.per, scales.Scale(units=((energy.unit, energy.size),))
        elif metric == PER_WORK and self.in_seconds:
            scale = scales.GPU_SECONDS
        elif metric in {WORK_RATE, TRAINING_RATE}:
            scale = scales.Scale(units=((f"{scales.name_work(unit or 'units')}/s", 1.0),))
        return FigureFormat(
            title=name_figure(metric, per),
            scale=scale,
            percent=display.percent if scale is scales.POINTS else None,
            absent="none" if metric == SECONDS_TO_TARGET else display.NOT_RECORDED,
            per=per if metric in {PER_WORK, COST_PER_WORK, ENERGY_PER_WORK} else "",
        )

    def list_pair(self, sides: tuple[Step, Step], deltas: Sequence[Delta]) -> list[tuple[FigureFormat, Delta]]:
        """Return the figures of two steps in the order shown: per unit of work where that is known, recorded clocks."""
        found = {delta.metric: delta for delta in deltas}
        has_work = any(side.work_unit for side in sides)
        left_out = {ENERGY} if has_work else {PER_WORK, ENERGY_PER_WORK, COST_PER_WORK, WORK_RATE}
        if all(side.training_source is None for side in sides):
            left_out.add(TRAINING_RATE)
        if all(run.gpu_hour_price is None for side in sides for run in side.runs):
            left_out.add(COST_PER_WORK)
        if not any(SECONDS_TO_TARGET in side.values for side in sides):
            left_out.add(SECONDS_TO_TARGET)
        for metric in (WORK_RATE, SM_CLOCK, GRAPHICS_CLOCK):
            if found[metric].whole.difference is None and not found[metric].interval:
                left_out.add(metric)
        return [(self.format(each, sides), found[each]) for each in terms.FIGURE_NAMES if each not in left_out]

    def choose_columns(self, room: int) -> list[str]:
        metrics = [each for each in (_PER_WORK if self.values(PER_WORK) else _PER_RUN) if self.values(each)]
        for least in _LEAST:
            if least in metrics and len(metrics) > room:
                metrics.remove(least)
        return metrics

    def column(self, metric: str) -> tuple[str, Callable[[float], str]]:
        """Return the title of a column that all steps share, with the unit, and what prints a value without it."""
        if metric == COST_PER_WORK:
            name, factor = name_figure(metric, self.cost.per), self.cost.factor
            return name, lambda value: display.money(value * factor, self.currency)
        if metric == SECONDS_TO_TARGET:
            return name_figure(metric), display.duration
        if metric == UTILISATION:
            return WHOLE_RUN_UTILISATION, display.percent
        name, unit, size = self.unit(metric)
        show = "{:.1f}".format if metric == MEMORY else display.number
        return f"{name}, {unit}", lambda value: show(value / size)

    def unit(self, metric: str) -> tuple[str, str, float]:
        """Return the name of a figure, and the unit that fits it in all steps with its size."""
        work = self.comparison.steps[-1].work_unit
        if metric in {PER_WORK, GPU_SECONDS}:
            is_work = metric == PER_WORK
            spent = choose_unit_per_work(self.comparison) if is_work else choose_unit_per_run(max(self.values(metric)))
            return spent.name, spent.unit, spent.size
        if metric == ENERGY_PER_WORK:
            energy = scales.choose_energy_scale(self.values(metric), work)
            return name_figure(metric, energy.per), energy.unit, energy.size
        if metric == ENERGY:
            return name_figure(metric), *scales.choose_energy_unit(self.values(metric))
        units = {MEMORY: ("GiB", 2.0**30), POWER: ("W", 1.0)}
        return name_figure(metric), *units.get(metric, (f"{scales.name_work(work)}/s", 1.0))


def describe_training_source(steps: Sequence[Step]) -> str:
    """Return what the training rates of some steps rest on; empty where they have none."""
    sources = [step.training_source for step in steps if step.training_source is not None]
    if not sources:
        return ""
    if sources[0].basis is TrainingBasis.STEADY_PHASE:
        return "Training alone: by work over the steady phase of the GPU log."
    found = {name for source in sources for name in source.names}
    names = sorted("the step counter" if name == STEP_COUNTER else display.clean(name) for name in found)
    return f"Training alone: by {display.join_words(names)} of the training loop."


def list_analyses(steps: Sequence[Step]) -> list[Analysis]:
    return [analysis for step in steps for analysis in step.analyses]


def describe_prices(steps: Sequence[Step], metrics: Iterable[str]) -> str:
    """Return when the prices held that figures rest on; empty where none is a cost, or that is not stated."""
    return spending.price_note(list_analyses(steps)) if COST_PER_WORK in metrics else ""
