"""The course of a figure as a small drawing: coordinates for a template, nothing is drawn here."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from gpureport.nightly.changes.change_events import EventVerdicts
from gpureport.nightly.changes.trend import Point, Trend
from gpureport.nightly.site.night_wording import describe_absence

WIDE, HIGH = 720, 200
"""Size of the drawing of one figure."""

SMALL_WIDE, SMALL_HIGH = 180, 28
"""Size of the drawing beside others."""

SMALL_NIGHTS = 90
"""The newest nights in the drawing beside others."""

_MARGIN = 4
_LEAST_RANGE = 0.1
"""Least height of a curve as a share of its largest value: without it noise of one per cent looks like a jump."""

_TICKS, _SHORTEST_MONTH = 8, 28


def draw_curve(trend: Trend, verdicts: EventVerdicts) -> dict[str, Any]:
    """Return the drawing of all nights; `verdicts` are those of the events of its changes."""
    return _draw(trend, trend.points, verdicts, WIDE, HIGH)


def draw_small_curve(trend: Trend, verdicts: EventVerdicts) -> dict[str, Any]:
    """Return the drawing of the newest nights."""
    return _draw(trend, trend.points[-SMALL_NIGHTS:], verdicts, SMALL_WIDE, SMALL_HIGH)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Where a night and a value lie."""

    width: int
    height: int
    first: int
    days: int
    bottom: float
    top: float

    def x(self, night: str) -> str:
        share = (date.fromisoformat(night).toordinal() - self.first) / self.days if self.days else 0.5
        return _format_coordinate(_MARGIN + share * (self.width - 2 * _MARGIN))

    def y(self, value: float) -> str:
        share = (value - self.bottom) / (self.top - self.bottom)
        return _format_coordinate(self.height - _MARGIN - share * (self.height - 2 * _MARGIN))


def _format_coordinate(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _draw(trend: Trend, points: Sequence[Point], verdicts: EventVerdicts, width: int, height: int) -> dict[str, Any]:
    """Return lines, dots, levels, marks of changes and dates as coordinates, and the values at the edges."""
    values = [point.value for point in points if point.value is not None]
    first, last = (date.fromisoformat(point.date) for point in (points[0], points[-1]))
    bottom, top = _value_range(values, 1.0 if trend.kind.unit == "1" else math.inf)
    days = (last - first).days
    scale = _Scale(width=width, height=height, first=first.toordinal(), days=days, bottom=bottom, top=top)
    stretches = list(_unbroken_stretches(points, scale))
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
        "levels": list(_levels(trend, points, scale)),
        "marks": [
            {"x": scale.x(change.date), "number": number, "verdict": verdicts.of(trend, change)}
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


def _unbroken_stretches(points: Sequence[Point], scale: _Scale) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield the values of nights that follow each other without one that has none, as x and y."""
    held: list[tuple[str, str]] = []
    for point in points:
        if point.value is not None:
            held.append((scale.x(point.date), scale.y(point.value)))
        elif held:
            yield tuple(held)
            held = []
    if held:
        yield tuple(held)


def _levels(trend: Trend, points: Sequence[Point], scale: _Scale) -> Iterator[tuple[str, str, str]]:
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
