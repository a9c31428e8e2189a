"""Figures of steps as they are printed: a title, a unit and a value, the same in all parts of a report."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

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
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.pictures.spent_units import choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display, scales, terms, work_scale
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
PAIR_FIGURES = (WORK_RATE, SM_CLOCK, GRAPHICS_CLOCK)
"""Figures that only the tables of a pair of steps have room for, where they were recorded."""


@dataclass(frozen=True)
class Figures:
    """The figures of a comparison."""

    comparison: Comparison

    def values(self, metric: str) -> list[float]:
        """Return a figure of each step that has it."""
        return [value for step in self.comparison.steps if (value := step.value(metric)) is not None]

    def ends(self, metric: str) -> tuple[float | None, float | None]:
        """Return a figure of the first and the last step, None for the first of a single one."""
        first, last = self.comparison.steps[0], self.comparison.steps[-1]
        return None if first is last else first.value(metric), last.value(metric)

    def delta(self, metric: str) -> Delta | None:
        """Return the difference of a figure between the first and the last step."""
        ends = self.comparison.steps[0].label, self.comparison.steps[-1].label
        return next((delta for delta in self.comparison.between(*ends) if delta.metric == metric), None)

    @cached_property
    def analyses(self) -> list[Analysis]:
        """Those of all steps."""
        return list_analyses(self.comparison.steps)

    @cached_property
    def currency(self) -> str:
        """What all prices are stated in; empty where not known."""
        return spending.currency(self.analyses)

    @cached_property
    def in_seconds(self) -> bool:
        """Whether GPU time per unit of work is printed in seconds: where that of every step is short for hours."""
        sides = [
            each for delta in self.comparison.deltas if delta.metric == PER_WORK for each in (delta.before, delta.after)
        ]
        known = [each for each in (*self.values(PER_WORK), *sides) if each is not None]
        return bool(known) and max(known) < _BRIEF

    @cached_property
    def cost(self) -> work_scale.WorkScale:
        """The batch of work that costs are given of."""
        return work_scale.choose_work_scale(self.values(COST_PER_WORK), self.comparison.steps[-1].work_unit)

    @cached_property
    def energy(self) -> work_scale.EnergyScale:
        """The batch of work that energies are given of, and their unit."""
        return work_scale.choose_energy_scale(self.values(ENERGY_PER_WORK), self.comparison.steps[-1].work_unit)

    def format(self, metric: str, steps: Sequence[Step] = ()) -> FigureFormat:
        """Return how a figure of some steps, otherwise of all, is printed, with its unit."""
        steps = steps or self.comparison.steps
        units = {step.work_unit for step in steps if step.work_unit}
        unit = units.pop() if len(units) == 1 else None
        per, scale = terms.per_batch(unit), _SCALES.get(metric, scales.NUMBERS)
        if metric == COST_PER_WORK:
            batch = work_scale.choose_work_scale(self.values(COST_PER_WORK), unit)
            currency = display.clean(spending.currency(list_analyses(steps)))
            per, scale = batch.per, scales.Scale(units=((currency, 1 / batch.factor),))
        elif metric == ENERGY_PER_WORK:
            energy = work_scale.choose_energy_scale(self.values(ENERGY_PER_WORK), unit)
            per, scale = energy.per, scales.Scale(units=((energy.unit, energy.size),))
        elif metric == PER_WORK and self.in_seconds:
            scale = scales.GPU_SECONDS
        elif metric in {WORK_RATE, TRAINING_RATE}:
            scale = scales.Scale(units=((f"{work_scale.name_work(unit or 'units')}/s", 1.0),))
        return FigureFormat(
            title=name_figure(metric, per),
            scale=scale,
            percent=display.percent if scale is scales.POINTS else None,
            absent="none" if metric == SECONDS_TO_TARGET else display.NOT_RECORDED,
            per=per if metric in {PER_WORK, COST_PER_WORK, ENERGY_PER_WORK} else "",
        )

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
        if metric in {PER_WORK, GPU_SECONDS}:
            spent = (
                choose_unit_per_work(self.comparison)
                if metric == PER_WORK
                else choose_unit_per_run(max(self.values(metric)))
            )
            return spent.name, spent.unit, spent.size
        if metric == ENERGY_PER_WORK:
            return name_figure(metric, self.energy.per), self.energy.unit, self.energy.size
        units = {
            WORK_RATE: (f"{work_scale.name_work(self.comparison.steps[-1].work_unit)}/s", 1.0),
            TRAINING_RATE: (f"{work_scale.name_work(self.comparison.steps[-1].work_unit)}/s", 1.0),
            MEMORY: ("GiB", 2.0**30),
            POWER: ("W", 1.0),
        }
        return name_figure(metric), *(units.get(metric) or work_scale.choose_energy_unit(self.values(metric)))


def list_analyses(steps: Sequence[Step]) -> list[Analysis]:
    """Return the analyses of all runs of some steps."""
    return [analysis for step in steps for analysis in step.analyses]


def describe_training_source(steps: Sequence[Step]) -> str:
    """Return what the training rates of some steps rest on; empty where they have none."""
    source = next((step.training_source for step in steps if step.training_source is not None), None)
    if source is None:
        return ""
    if source.basis is TrainingBasis.STEADY_PHASE:
        return "Training alone: by work over the steady phase of the GPU log."
    found = {name for step in steps if step.training_source for name in step.training_source.names}
    names = sorted("the step counter" if name == STEP_COUNTER else display.clean(name) for name in found)
    return f"Training alone: by {display.join_words(names)} of the training loop."


def list_price_notes(steps: Sequence[Step], metrics: Sequence[str]) -> Iterator[str]:
    """Yield when the prices held that figures rest on, where one is a cost and that is stated."""
    if COST_PER_WORK in metrics and (note := spending.price_note(list_analyses(steps))):
        yield note
