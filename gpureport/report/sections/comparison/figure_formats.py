"""Figures of steps as they are printed: a title, a value, a change."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from gpureport.comparison.steps.step_figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, WORK_BATCH, WORK_RATE
from gpureport.comparison.steps.steps import Comparison
from gpureport.report.wording import display
from gpureport.report.wording.difference_wording import FigureFormat

_HOUR = 3600.0
_BRIEF = 36.0
"""GPU-seconds below which hours have more zeros than digits: a hundredth of an hour."""
LABEL = 24
"""Most characters of a name in a table for a terminal."""


def _hours(seconds: float) -> str:
    return display.precise_number(seconds / _HOUR)


def _hours_change(seconds: float) -> str:
    return display.signed_precise_number(seconds / _HOUR)


def _power_change(watts: float) -> str:
    return f"{display.signed(watts)}{display.GAP}W"


def _energy_change(joules: float) -> str:
    return f"{'-' if joules < 0 else '+'}{display.energy(abs(joules))}"


def _rate_change(rate: float) -> str:
    return display.signed_precise_number(rate)


def _clock_change(hertz: float) -> str:
    return f"{'-' if hertz < 0 else '+'}{display.clock(abs(hertz))}"


def _money(amount: float, text: Callable[[float], str], currency: str) -> str:
    """Return an amount as `text` prints it, in its currency where that is stated."""
    return f"{text(amount)}{display.GAP}{display.clean(currency)}" if currency else text(amount)


SHOWN: dict[str, FigureFormat] = {
    WORK_RATE: FigureFormat(title="{unit} a second", value=display.precise_number, change=_rate_change),
    PER_WORK: FigureFormat(title="GPU-hours per {batch}", value=_hours, change=_hours_change),
    COST_PER_WORK: FigureFormat(
        title="Cost per {batch}", value=display.precise_number, change=display.signed_precise_number
    ),
    "gpu_seconds": FigureFormat(title="GPU-hours", value=_hours, change=_hours_change),
    ENERGY_PER_WORK: FigureFormat(title="Energy per {batch}", value=display.energy, change=_energy_change),
    "energy_joules": FigureFormat(title="Energy", value=display.energy, change=_energy_change),
    "idle_ratio": FigureFormat(title="Idle share", value=display.percent, change=display.percentage_points),
    "gpu_utilization_ratio": FigureFormat(
        title="GPU utilisation", value=display.percent, change=display.percentage_points
    ),
    "gpu_power_watts": FigureFormat(title="Power of a GPU", value=display.power, change=_power_change),
    "gpu_sm_clock_hertz": FigureFormat(title="SM clock", value=display.clock, change=_clock_change),
    "gpu_graphics_clock_hertz": FigureFormat(title="Graphics clock", value=display.clock, change=_clock_change),
    "gpu_memory_used_bytes": FigureFormat(title="Peak memory", value=display.memory, change=display.memory_change),
}
"""By metric, in the order of columns."""


_SECONDS = FigureFormat(
    title="GPU-seconds per {batch}", value=display.precise_number, change=display.signed_precise_number
)
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


def shown(metric: str, unit: str | None, currency: str = "", *, in_seconds: bool = False) -> FigureFormat:
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
        value, change = (partial(_money, text=text, currency=currency) for text in (found.value, found.change))
        found = replace(found, value=value, change=change)
    counted = _unit(unit).capitalize() if unit else "Work"
    return replace(found, title=found.title.format(batch=batch(units), unit=counted))


def _unit(name: str) -> str:
    return display.shorten(display.clean(name), LABEL)


def batch(units: set[str]) -> str:
    """Return the batch of work that GPU-hours are set in relation to: `1000 steps`, or units in general."""
    return f"{WORK_BATCH} {_unit(units.copy().pop())}" if len(units) == 1 else f"{WORK_BATCH} units of work"
