"""The figures of the table of steps: a title with the unit, and a value in it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.steps.steps import Comparison
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.pictures.spent_units import choose_unit_per_run, choose_unit_per_work
from gpureport.report.wording import display, work_scale
from gpureport.report.wording.difference_wording import WHOLE_RUN_UTILISATION

_GIBIBYTE = 2.0**30


@dataclass(frozen=True, slots=True, kw_only=True)
class StepColumn:
    """A figure of every step: its metric, its title with the unit, and what prints a value of it."""

    metric: str
    title: str
    format: Callable[[float], str]


def build_step_columns(comparison: Comparison) -> Iterator[StepColumn]:
    """Yield the figures that some step has, in the order shown; per unit of work where that is known."""
    known = bool(_values(comparison, PER_WORK))
    yield from _per_work_columns(comparison) if known else _per_run_columns(comparison)
    if _values(comparison, SECONDS_TO_TARGET):
        yield StepColumn(metric=SECONDS_TO_TARGET, title="Time to target", format=display.duration)
    if _values(comparison, "gpu_memory_used_bytes"):
        yield StepColumn(
            metric="gpu_memory_used_bytes",
            title="Peak memory, GiB",
            format=lambda value: f"{value / _GIBIBYTE:.1f}",
        )


def _per_work_columns(comparison: Comparison) -> Iterator[StepColumn]:
    work = display.shorten(display.clean(comparison.steps[-1].work_unit or "units of work"), 24)
    spent = choose_unit_per_work(comparison)
    yield StepColumn(metric=PER_WORK, title=spent.title, format=lambda value: display.number(value / spent.size))
    if costs := _values(comparison, COST_PER_WORK):
        cost = work_scale.choose_work_scale(costs, comparison.steps[-1].work_unit)
        currency = spending.currency([analysis for step in comparison.steps for analysis in step.analyses])
        yield StepColumn(
            metric=COST_PER_WORK,
            title=f"Cost {cost.per}",
            format=lambda value: display.money(value * cost.factor, currency),
        )
    if energies := _values(comparison, ENERGY_PER_WORK):
        scale = work_scale.choose_work_scale([joules / 3600 for joules in energies], comparison.steps[-1].work_unit)
        unit, size = work_scale.choose_energy_unit([joules * scale.factor for joules in energies])
        yield StepColumn(
            metric=ENERGY_PER_WORK,
            title=f"{unit} {scale.per}",
            format=lambda value: display.number(value * scale.factor / size),
        )
    for metric, what in ((WORK_RATE, "whole job"), (TRAINING_RATE, "training")):
        if _values(comparison, metric):
            title = f"{work[:1].upper()}{work[1:]}/s, {what}"
            yield StepColumn(metric=metric, title=title, format=display.number)


def _per_run_columns(comparison: Comparison) -> Iterator[StepColumn]:
    if seconds := _values(comparison, "gpu_seconds"):
        spent = choose_unit_per_run(max(seconds))
        yield StepColumn(
            metric="gpu_seconds", title=spent.title, format=lambda value: display.number(value / spent.size)
        )
    if energies := _values(comparison, "energy_joules"):
        unit, size = work_scale.choose_energy_unit(energies)
        yield StepColumn(
            metric="energy_joules", title=f"{unit} a run", format=lambda value: display.number(value / size)
        )
    if _values(comparison, "gpu_utilization_ratio"):
        yield StepColumn(metric="gpu_utilization_ratio", title=WHOLE_RUN_UTILISATION, format=display.percent)
    if _values(comparison, "gpu_power_watts"):
        yield StepColumn(metric="gpu_power_watts", title="Power of a GPU, W", format=display.number)


def _values(comparison: Comparison, metric: str) -> list[float]:
    return [value for step in comparison.steps if (value := step.value(metric)) is not None]
