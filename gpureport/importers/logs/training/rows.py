"""One row of a training log, whatever it is written in: its time, its step, and its metrics."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from gpureport.importers.logs.training.points import PointTime, parse_point_time, parse_step

_TIMES = (
    *("wall_time", "timestamp", "datetime", "time", "date", "created_at", "elapsed", "elapsed_s"),
    *("elapsed_seconds", "elapsed_time", "relative_time", "runtime"),
)
_STEPS = ("step", "global_step", "iteration", "iter", "steps", "current_steps")
_EMPTY = {"", "none", "null", "n/a", "-"}


@dataclass(frozen=True, slots=True)
class Row:
    """A row: when it was written, None where its time cannot be read; its step; its metrics."""

    when: PointTime | None
    step: int | None
    values: Mapping[str, float]


def normalise_name(name: str) -> str:
    """Return a heading as it is compared."""
    return name.strip().strip("_").lower().replace(" ", "_").replace("-", "_")


def find_time_and_step(names: Mapping[str, str]) -> tuple[str | None, str | None]:
    """Return the columns that tell the time and the step.

    Args:
        names: headings by what they are compared as.
    """
    time = next((names[name] for name in _TIMES if name in names), None)
    return time, next((names[name] for name in _STEPS if name in names), None)


def read_row(cells: Mapping[str, object]) -> Row:
    """Return what a row says; cells that hold no number are no metrics.

    Args:
        cells: what stands under each heading.
    """
    time, counted = find_time_and_step({normalise_name(name): name for name in cells})
    at = PointTime("none") if time is None else parse_point_time(str(cells[time]).strip())
    values = {
        name: value
        for name, cell in cells.items()
        if name not in {time, counted} and (value := _number(cell)) is not None
    }
    return Row(at, None if counted is None else parse_step(cells[counted]), values)


def _number(cell: object) -> float | None:
    """Return a number, NaN where a loss was none; None for anything else."""
    if isinstance(cell, bool) or not isinstance(cell, str | int | float):
        return None
    if isinstance(cell, str) and cell.strip().lower() in _EMPTY:
        return None
    try:
        value = float(cell)
    except (ValueError, OverflowError):
        return None
    return value if not math.isinf(value) else math.nan
