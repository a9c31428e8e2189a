"""The course of a figure as a small drawing: coordinates for a template, nothing is drawn here."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from gpureport.nightly.trends import Point, Trend, Verdicts
from gpureport.nightly.wording import describe_absence

SMALL_NIGHTS = 90
"""The newest nights in the drawing beside others."""

_LARGE, _SMALL = (720, 200), (180, 28)
"""Width and height of the drawing of one figure, and of the one beside others."""

_MARGIN = 4
_LEAST_RANGE = 0.1
"""Least height of a curve as a share of its largest value: without it noise of one per cent looks like a jump."""

_TICKS, _SHORTEST_MONTH = 8, 28


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where a night and a value lie."""

    width: int
    height: int
    first: date
    days: int
    bottom: float
    top: float

    def x(self, night: str) -> str:
        share = (date.fromisoformat(night) - self.first).days / self.days if self.days else 0.5
        return f"{_MARGIN + share * (self.width - 2 * _MARGIN):.1f}".removesuffix(".0")

    def y(self, value: float) -> str:
        share = (value - self.bottom) / (self.top - self.bottom)
        return f"{self.height - _MARGIN - share * (self.height - 2 * _MARGIN):.1f}".removesuffix(".0")


def draw_curve(trend: Trend, verdicts: Verdicts, *, is_small: bool = False) -> dict[str, Any]:
    """Return the drawing of all nights, or of the newest ones where it is small.

    It has lines, dots, levels, marks of changes, with the verdicts of their events, and dates as coordinates, and the
    values at the edges.
    """
    points = trend.points[-SMALL_NIGHTS:] if is_small else trend.points
    values = [point.value for point in points if point.value is not None]
    first, last = (date.fromisoformat(point.date) for point in (points[0], points[-1]))
    bottom, top = _value_range(values, 1.0 if trend.kind.unit == "1" else math.inf)
    width, height = _SMALL if is_small else _LARGE
    scale = _Scale(width, height, first, (last - first).days, bottom, top)
    stretches = list(_list_stretches(points, scale))
    shown = {point.date for point in points}
    lacking = [point for point in points if point.value is None]
    return {
        "width": width,
        "height": height,
        # paths along nights that follow each other, broken where a night has no value
        "lines": ["M" + "L".join(f"{x} {y}" for x, y in held) for held in stretches if len(held) > 1],
        "dots": [dot for held in stretches for dot in held],
        # dots that no line reaches
        "lone": [held[0] for held in stretches if len(held) == 1],
        "levels": list(_list_levels(trend, points, scale)),
        "marks": [
            {
                "x": scale.x(change.date),
                "number": number,
                "verdict": verdicts[trend.group, trend.kind.name, change.date],
            }
            for number, change in enumerate(trend.changes, 1)
            if change.date in shown
        ],
        "absent": [scale.x(point.date) for point in lacking],
        "absences": list(dict.fromkeys(describe_absence(trend.kind, point) for point in lacking)),
        "ticks": [{"x": scale.x(day.isoformat()), "text": text} for day, text in choose_date_ticks(first, last)],
        "top": top,
        "bottom": bottom,
    }


def choose_date_ticks(first: date, last: date) -> list[tuple[date, str]]:
    """Return at most eight dates between two nights: round days apart, or first days of months."""
    days = (last - first).days
    apart = next((each for each in (1, 2, 7, 14) if days < _TICKS * each), 0)
    if apart:
        chosen = [first + timedelta(days=number) for number in range(0, days + 1, apart)]
        return [(day, f"{day.day} {day:%b}") for day in chosen]
    months = next(each for each in (1, 2, 3, 6, 12, 24, 60, 120, 1200) if days < _TICKS * _SHORTEST_MONTH * each)
    firsts = [date(year, month, 1) for year in range(first.year, last.year + 1) for month in range(1, 13)]
    chosen = [day for day in firsts[::months] if first <= day <= last]
    several = first.year != last.year
    return [(day, f"{day:%b}{f' {day.year}' if day.month == 1 and several else ''}") for day in chosen]


def _value_range(values: Sequence[float], most: float) -> tuple[float, float]:
    """Return a range, never empty, of all values, neither below nothing nor above `most`."""
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    missing = max(abs(low), abs(high)) * _LEAST_RANGE - (high - low)
    if missing <= 0 and high > low:
        return low, high
    room = missing / 2 or 1.0
    return (low - room if low < 0 else max(low - room, 0.0)), max(min(high + room, most), high)


def _list_stretches(points: Sequence[Point], scale: _Scale) -> Iterator[list[tuple[str, str]]]:
    """Yield the values of nights that follow each other without one that has none, as x and y."""
    held: list[tuple[str, str]] = []
    for point in points:
        if point.value is not None:
            held.append((scale.x(point.date), scale.y(point.value)))
        elif held:
            yield held
            held = []
    if held:
        yield held


def _list_levels(trend: Trend, points: Sequence[Point], scale: _Scale) -> Iterator[tuple[str, str, str]]:
    """Yield the levels before and after each change, as far as they are shown."""
    if not trend.changes:
        return
    starts = [trend.recorded_points[0].date, *(change.date for change in trend.changes)]
    ends = [*starts[1:], points[-1].date]
    values = [trend.changes[0].shift.before, *(change.shift.after for change in trend.changes)]
    for start, end, value in zip(starts, ends, values, strict=True):
        if end >= points[0].date:
            held = min(max(value, scale.bottom), scale.top)
            yield scale.x(max(start, points[0].date)), scale.y(held), scale.x(end)
