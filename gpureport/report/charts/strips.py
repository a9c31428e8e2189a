"""Figures for reference: strips of utilisation over time, a GPU each, and figures of steps with their intervals."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil, floor, inf, log10

import numpy as np

from gpureport.columns import FloatArray
from gpureport.number_format import MINUS
from gpureport.report.charts.elements import (
    box,
    boxes,
    define_patterns,
    find_fill,
    find_known_runs,
    line,
    paint,
    paint_shape,
    place_time_ticks,
    rect,
    shorten_number,
    text,
    write_document,
)
from gpureport.report.charts.palette import BAR, BUSY, EVENT, GRID, INK, MUTED, PAPER, SEVERITY, TRACK
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow
from gpureport.report.model.time_charts import FindingMark, LogEventLine, Timeline, TimelineStrip
from gpureport.report.runs import log_events
from gpureport.report.wording import display

WIDTH = 900.0
_Frame = tuple[float, float, float, float]
"""Left and upper end of a strip, its height, and the points of a second."""

_STRIPS = ((4, 32.0), (8, 24.0), (16, 16.0), (inf, 10.0))
"""Height of a strip for at most so many GPUs."""

_LABEL, _LETTER, _RIGHT = 26, 6.5, 62.0
"""Most letters of a GPU's name, points that a letter takes, and points right of the strips for names of findings."""

_SMALL, _TEXT = 10.0, 11.0
_EVENTS = 22.0
"""Points above the strips that the numbers of events take."""

_NAMED = 3
"""Findings named beside a strip."""

PANEL = 400.0
"""Width of a figure of steps: two are side by side on a wide page."""

_ROW, _SIDE = 46.0, 20.0
_MEAN, _RUNS = 27.0, 38.0
"""Where in the row of a step its mean and its runs are drawn."""

_LEVELS = (0.0, 4.0, 8.0)
"""How far runs that would hide each other are moved down."""

_RADIUS, _RUN_RADIUS = 4.5, 2.8
_NARROWEST, _MARGIN = 0.05, 0.06
"""Least width of an axis of shares, or of others as a part of their largest value; and what it is longer by."""


def draw_timeline(run: Timeline, prefix: str, width: float = WIDTH) -> str:
    """Return the strips of a run: utilisation as height, hatched without samples, classes and findings below."""
    row = next(height for most, height in _STRIPS if len(run.strips) <= most)
    labels = [display.shorten_middle(strip.label, _LABEL) for strip in run.strips]
    events = [event for event in run.events if event.at is not None]
    left, top = min(max(_LETTER * max(map(len, labels)) + 16, 70.0), 190.0), _EVENTS if events else 6.0
    bottom = top + row * len(run.strips)
    scale = (width - left - _RIGHT) / max(run.axis_seconds, 1e-3)
    shared = Counter(card for strip in run.strips for card in {mark.card for mark in strip.marks})
    body = [define_patterns(["no_samples"], prefix)]
    for tick in place_time_ticks(0.0, run.axis_seconds):
        x = left + tick.at * scale
        body.append(line(x, top, x, bottom, f'{paint("stroke", GRID)} stroke-width=".6"'))
        body.append(text(x, bottom + 14, display.elapsed(tick.at), MUTED, size=_SMALL, anchor="middle"))
    middle = (left + width - _RIGHT) / 2
    body.append(text(middle, bottom + 29, "since the first sample, h:min:s", MUTED, size=_SMALL, anchor="middle"))
    for place, (label, strip) in enumerate(zip(labels, run.strips, strict=True)):
        y, size = top + place * row, _TEXT if row > 12 else row * 0.78  # noqa: PLR2004 - points
        body.append(text(left - 5, y + row / 2 + size * 0.36, label, size=size, anchor="end"))
        marks = _group_marks(strip, shared)
        body += _draw_strip(run, strip, marks, (left, y, row, scale), (prefix, place))
        named = " ".join(list(marks)[:_NAMED]) + (" …" if len(marks) > _NAMED else "")
        if named:
            body.append(text(width - _RIGHT + 7, y + row / 2 + 3, named, MUTED, size=min(size, _SMALL) - 1))
    body += _draw_events(events, left, scale, top, bottom)
    said = "; ".join(f"{event.id} {event.name} at {event.when}" for event in events)
    words = f"GPU utilisation over time, {run.label}, {len(run.strips)} GPUs"
    words += f"; events of the log: {said}" if said else ""
    return write_document(body, width=width, height=bottom + 36, label=words)


def _group_marks(strip: TimelineStrip, shared: Counter[str]) -> dict[str, list[FindingMark]]:
    """Return the marks of each finding, findings that speak of few GPUs first."""
    by_card: dict[str, list[FindingMark]] = {}
    for mark in sorted(strip.marks, key=lambda mark: (shared[mark.card], int(mark.card[1:]))):
        by_card.setdefault(mark.card, []).append(mark)
    return by_card


def _draw_strip(
    run: Timeline, strip: TimelineStrip, marks: dict[str, list[FindingMark]], frame: _Frame, names: tuple[str, int]
) -> Iterator[str]:
    (left, y, row, scale), (prefix, place) = frame, names
    ground, height = y + 0.72 * row, 0.60 * row
    yield rect(left, ground - height, run.seconds * scale, height, paint("fill", TRACK))
    if area := _draw_area(strip.mean * height, left, run.bucket_seconds * scale, ground):
        yield f'<path d="{area}" {paint("fill", BUSY)}/>'
    for start, end in strip.gaps:
        yield paint_shape(
            "no_samples", prefix, box(left + start * scale, ground - height, (end - start) * scale, height)
        )
    for key in dict.fromkeys(part.key for part in strip.band):
        spans = [(left + part.start * scale, left + part.end * scale) for part in strip.band if part.key == key]
        # stripes this thin show colours, no hatches
        yield f'<path d="{boxes(spans, ground + 0.01 * row, 0.08 * row)}" fill="{find_fill(key).colour}"/>'
    for card, each in marks.items():
        top, thick = (0.235, 0.045) if each[0].whole else (0.12, 0.1)
        spans = [(left + mark.start * scale, left + max(mark.end * scale, mark.start * scale + 2)) for mark in each]
        path = boxes(spans, ground + top * row, thick * row)
        yield f'<path id="{prefix}-mark-{card}-{place}" d="{path}" {paint("fill", SEVERITY[each[0].severity])}/>'


def _draw_area(heights: FloatArray, left: float, bucket: float, ground: float) -> str:
    """Return the path of an area under steps; NaN leaves it out. Points are rounded first, so that no error adds up."""
    x, y = np.rint((left + np.arange(len(heights) + 1) * bucket) * 10), np.rint(np.nan_to_num(heights) * 10)
    parts = []
    for first, stop in find_known_runs(heights):
        parts.append(f"M{shorten_number(x[first] / 10, 1)} {shorten_number(ground, 1)}")
        for at in range(first, stop):
            up = y[at] - (y[at - 1] if at > first else 0)
            parts.append(f"v{shorten_number(-up / 10, 1)}" if up else "")
            parts.append(f"h{shorten_number((x[at + 1] - x[at]) / 10, 1)}")
        parts.append(f"V{shorten_number(ground, 1)}z")
    return "".join(parts)


def _draw_events(events: Sequence[LogEventLine], left: float, scale: float, top: float, bottom: float) -> Iterator[str]:
    """Yield a line and a wedge at each event, and its number; events whose numbers would overlap share one."""
    groups = log_events.group_close_events(
        events, lambda group: (len(log_events.format_numbers(group)) * 6 + 8) / scale
    )
    for group in groups:
        places = [left + (event.at or 0.0) * scale for event in group]
        for x in places:
            # on a ground of its own, so that it shows on a busy strip as well
            yield line(x, top, x, bottom, f'{paint("stroke", PAPER)} stroke-width="2.5"')
            yield line(x, top, x, bottom, f'{paint("stroke", EVENT)} stroke-dasharray="3 2"')
            wedge = f"M{shorten_number(x - 3, 1)} {shorten_number(top - 5, 1)}h6l-3 5z"
            yield f'<path d="{wedge}" {paint("fill", EVENT)}/>'
        yield text(places[0] - 3, top - 7, log_events.format_numbers(group), EVENT, size=9)


def draw_interval_chart(chart: IntervalChart, width: float = PANEL) -> str:
    """Return a figure of every step, as dots or bars with their interval under its name, and a small dot a run."""
    low, high = _find_ends(chart)
    scale, bottom = (width - 2 * _SIDE) / (high - low), 4 + _ROW * len(chart.rows)
    body = []
    for tick in _place_round_ticks(low, high):
        x = _SIDE + (tick - low) * scale
        words = f"{tick * 100:.6g}%" if chart.share else f"{tick:,.6g}".replace("-", MINUS)
        body.append(line(x, 4, x, bottom, f'{paint("stroke", GRID)} stroke-width=".6"'))
        body.append(text(x, bottom + 15, words, MUTED, anchor="middle"))
    first = chart.rows[0].value
    if chart.form == "dots" and first is not None:
        x, look = _SIDE + (first - low) * scale, f'{paint("stroke", MUTED)} stroke-width=".9" stroke-dasharray="3 3"'
        # beside the dots and not through the names
        body += [line(x, 21 + at * _ROW, x, 47 + at * _ROW, look) for at in range(1, len(chart.rows))]
    for place, row in enumerate(chart.rows):
        body += _draw_row(row, chart, 4 + place * _ROW, width, (low, scale))
    words = f"{chart.title}: {'; '.join(f'{row.label} {row.sentence}' for row in chart.rows)}"
    return write_document(body, width=width, height=bottom + 24, label=words)


def _find_ends(chart: IntervalChart) -> tuple[float, float]:
    """Return the ends of the axis: bars begin at zero, dots too where that is not far away."""
    ends = [end for row in chart.rows if row.value is not None for end in (row.value, *(row.interval or ()))]
    ends += [run.value for row in chart.rows for run in row.runs]
    low, high = min(ends), max([*ends, chart.end or 0.0])
    if chart.form == "bars" or low < high / 2:
        return 0.0, (1.0 if chart.share and chart.form == "bars" else high * (1 + _MARGIN)) or 1.0
    least = _NARROWEST * (1.0 if chart.share else high)
    room = max((least - (high - low)) / 2, (high - low) * _MARGIN)
    low, high = low - room, high + room
    return (low, high) if not chart.share or high <= 1 else (low - (high - 1), 1.0)


def _place_round_ticks(low: float, high: float) -> list[float]:
    rough = (high - low) / 5
    power = 10.0 ** floor(log10(rough))
    step = next(size * power for size in (1.0, 2.0, 2.5, 5.0, 10.0) if size * power >= rough * (1 - 1e-9))
    return [at * step for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1)]


def _draw_row(
    row: IntervalRow, chart: IntervalChart, top: float, width: float, axis: tuple[float, float]
) -> Iterator[str]:
    (low, scale), middle, known = axis, top + _MEAN, row.interval is not None
    yield text(_SIDE, top + 13, display.shorten_middle(row.label, 28), size=12)
    yield text(width - _SIDE, top + 13, row.text, MUTED, anchor="end")
    yield rect(_SIDE, middle - 0.5, width - 2 * _SIDE, 1, paint("fill", TRACK))
    last: dict[float, float] = {}
    for run in sorted(row.runs, key=lambda each: each.value) if len(row.runs) > 1 or chart.form == "bars" else ():
        x = _SIDE + (run.value - low) * scale
        free = [level for level in _LEVELS if x - last.get(level, -inf) >= 2 * _RUN_RADIUS]
        level = free[0] if free else min(last, key=last.__getitem__)
        last[level] = x
        y = top + _RUNS + level
        yield _draw_dot(x, y, _RUN_RADIUS, known=known) if run.counted else _draw_cross(x, y)
    if row.value is None:
        return
    at = _SIDE + (row.value - low) * scale
    if chart.form == "bars":
        yield rect(_SIDE, middle - 7, at - _SIDE, 14, paint("fill", BAR))
    if row.interval:
        ends, look = [_SIDE + (end - low) * scale for end in row.interval], f'{paint("stroke", INK)} stroke-width="1.8"'
        yield line(ends[0], middle, ends[1], middle, look)
        yield from (line(end, middle - 5, end, middle + 5, look) for end in ends)
    if chart.form == "dots":
        yield _draw_dot(at, middle, _RADIUS, known=known)


def _draw_dot(x: float, y: float, radius: float, *, known: bool) -> str:
    """Return a dot, filled where the interval is known."""
    thick = 1.6 if radius == _RADIUS else 1.2
    inside = BUSY if known else PAPER
    look = f'fill="{inside.fixed}" stroke="{BUSY.fixed}" class="f-{inside.css} s-{BUSY.css}" stroke-width="{thick}"'
    return f'<circle cx="{shorten_number(x, 1)}" cy="{shorten_number(y, 1)}" r="{radius}" {look}/>'


def _draw_cross(x: float, y: float) -> str:
    """Return a cross, for a run that the mean leaves out."""
    corner = f"{shorten_number(x - _RUN_RADIUS, 1)} {shorten_number(y - _RUN_RADIUS, 1)}"
    return f'<path d="M{corner}l5.6 5.6m0-5.6l-5.6 5.6" {paint("stroke", MUTED)} stroke-width="1.4"/>'
