"""The figures of the table of steps: a title with the unit, and a value in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.pictures.spent_units import choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display, work_scale
from gpureport.report.wording.differences.difference_wording import WHOLE_RUN_UTILISATION
from gpureport.report.wording.terms import name_figure

_GIBIBYTE = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class StepColumn:
    """A figure of every step: its metric, its name, its unit where values do not say it, and what prints a value."""

    metric: str
    name: str
    format: Callable[[float], str]
    unit: str = ""

    @property
    def title(self) -> str:
        """The name with the unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def build_step_columns(comparison: Comparison) -> Iterator[StepColumn]:
    """Yield the figures that some step has, in the order shown; per unit of work where that is known."""
    known = bool(_values(comparison, PER_WORK))
    yield from _per_work_columns(comparison) if known else _per_run_columns(comparison)
    if _values(comparison, SECONDS_TO_TARGET):
        yield StepColumn(metric=SECONDS_TO_TARGET, name=name_figure(SECONDS_TO_TARGET), format=display.duration)
    if _values(comparison, "gpu_memory_used_bytes"):
        yield StepColumn(
            metric="gpu_memory_used_bytes",
            name=name_figure("gpu_memory_used_bytes"),
            unit="GiB",
            format=lambda value: f"{value / _GIBIBYTE:.1f}",
        )


def _per_work_columns(comparison: Comparison) -> Iterator[StepColumn]:
    work = display.shorten(display.clean(comparison.steps[-1].work_unit or "units of work"), 24)
    spent = choose_unit_per_work(comparison)
    yield StepColumn(
        metric=PER_WORK, name=spent.name, unit=spent.unit, format=lambda value: display.number(value / spent.size)
    )
    if _values(comparison, COST_PER_WORK):
        cost = figure_formats.choose_cost_scale(comparison)
        currency = spending.currency([analysis for step in comparison.steps for analysis in step.analyses])
        yield StepColumn(
            metric=COST_PER_WORK,
            name=name_figure(COST_PER_WORK, cost.per),
            format=lambda value: display.money(value * cost.factor, currency),
        )
    if _values(comparison, ENERGY_PER_WORK):
        scale = figure_formats.choose_energy_scale(comparison)
        yield StepColumn(
            metric=ENERGY_PER_WORK,
            name=name_figure(ENERGY_PER_WORK, scale.per),
            unit=scale.unit,
            format=lambda value: display.number(value / scale.size),
        )
    for metric in (WORK_RATE, TRAINING_RATE):
        if _values(comparison, metric):
            yield StepColumn(metric=metric, name=name_figure(metric), unit=f"{work}/s", format=display.number)


def _per_run_columns(comparison: Comparison) -> Iterator[StepColumn]:
    if seconds := _values(comparison, "gpu_seconds"):
        spent = choose_unit_per_run(max(seconds))
        yield StepColumn(
            metric="gpu_seconds",
            name=spent.name,
            unit=spent.unit,
            format=lambda value: display.number(value / spent.size),
        )
    if energies := _values(comparison, "energy_joules"):
        unit, size = work_scale.choose_energy_unit(energies)
        yield StepColumn(
            metric="energy_joules",
            name=name_figure("energy_joules"),
            unit=unit,
            format=lambda value: display.number(value / size),
        )
    if _values(comparison, "gpu_utilization_ratio"):
        yield StepColumn(metric="gpu_utilization_ratio", name=WHOLE_RUN_UTILISATION, format=display.percent)
    if _values(comparison, "gpu_power_watts"):
        name = name_figure("gpu_power_watts")
        yield StepColumn(metric="gpu_power_watts", name=name, unit="W", format=display.number)


def _values(comparison: Comparison, metric: str) -> list[float]:
    return [value for step in comparison.steps if (value := step.value(metric)) is not None]
