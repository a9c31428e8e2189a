"""Utilisation strips (one per GPU), charts of steps, and a list of all figures in a report."""

from collections import Counter
from collections.abc import Iterator, Sequence
from math import ceil, floor, inf
from typing import Any

from gpureport.names import group_pairs
from gpureport.number_format import MINUS
from gpureport.report.charts import elements as svg
from gpureport.report.charts.palette import COLOURS
from gpureport.report.charts.rows import draw_signal_panels, draw_spent_bars, draw_use_rows
from gpureport.report.model.blocks import IntervalChart, IntervalRow
from gpureport.report.model.pictures import FindingMark, LogEventLine, Timeline, TimelineStrip, TimeSpent
from gpureport.report.model.report_content import Report
from gpureport.report.wording import display

WIDTH = 900.0
# height of a strip by the number of GPUs
_STRIPS = ((4, 32.0), (8, 24.0), (16, 16.0), (inf, 10.0))
_LABEL, _LETTER, _RIGHT = 26, 6.5, 62.0
_SMALL, _TEXT, _EVENTS, _NAMED = 10.0, 11.0, 22.0, 3
PANEL = 400.0  # width of a chart of steps; a wide page has two side by side
_ROW, _SIDE, _MEAN, _RUNS = 46.0, 20.0, 27.0, 38.0
_LEVELS = (0.0, 4.0, 8.0)  # vertical offset of overlapping runs
_RADIUS, _RUN_RADIUS = 4.5, 2.8
_NARROWEST, _MARGIN = 0.05, 0.06
"""Minimum span of an axis relative to its largest value (for shares, to 1), and margin."""


def draw_timeline(run: Timeline, prefix: str, width: float = WIDTH) -> str:
    row = next(height for most, height in _STRIPS if len(run.strips) <= most)
    labels = [display.shorten_middle(strip.label, _LABEL) for strip in run.strips]
    events = [event for event in run.events if event.at is not None]
    left = min(max(_LETTER * max(map(len, labels)) + 16, 70.0), 190.0)
    top = _EVENTS if events else 6.0
    inner, bottom = width - left - _RIGHT, row * len(run.strips)
    scale = svg.HorizontalScale(start=0.0, end=max(run.axis_seconds, 1e-3), width=inner)
    ticks = svg.place_time_ticks(0.0, run.axis_seconds)
    shared = Counter(card for strip in run.strips for card in {mark.card for mark in strip.marks})
    classes = [part.key for strip in run.strips for part in strip.band]
    body = [svg.define_patterns(["no_samples", *classes], prefix), svg.draw_grid(ticks, scale, bottom)]
    for tick in ticks:
        x = scale.share(tick.at) * inner
        body.append(svg.text(x, bottom + 14, display.elapsed(tick.at), "muted", size=_SMALL, anchor="middle"))
    for place, (label, strip) in enumerate(zip(labels, run.strips, strict=True)):
        y, size = place * row, _TEXT if row > 12 else row * 0.78  # noqa: PLR2004 - points
        marks = group_pairs(
            (mark.card, mark) for mark in sorted(strip.marks, key=lambda mark: (shared[mark.card], int(mark.card[1:])))
        )
        named = " ".join(list(marks)[:_NAMED]) + (" …" if len(marks) > _NAMED else "")
        body.append(svg.text(-5, y + row / 2 + size * 0.36, label, size=size, anchor="end"))
        body.append(svg.text(inner + 7, y + row / 2 + 3, named, "muted", size=min(size, _SMALL) - 1) if named else "")
        body.append(f'<g transform="translate(0 {y:g})">')
        body += [*_draw_strip(run, strip, scale, row, prefix), *_draw_marks(marks, scale, row, prefix, place), "</g>"]
    body += _draw_events(events, scale, bottom)
    said = "; ".join(f"{event.id} {event.name} at {event.when}" for event in events)
    words = f"GPU utilisation over time, {run.label}, {len(run.strips)} GPUs"
    words += f"; events in the log: {said}" if said else ""
    moved = f'<g transform="translate({svg.shorten_number(left)} {top:g})">{"".join(body)}</g>'
    return svg.write_document([moved], width=width, height=top + bottom + 22, label=words)


def _draw_strip(
    run: Timeline, strip: TimelineStrip, scale: svg.HorizontalScale, row: float, prefix: str
) -> Iterator[str]:
    top, height, span = 0.1 * row, 0.52 * row, scale.share(run.seconds)
    at = f'y="{top:g}" height="{height:g}"'
    yield f'<rect x="0" width="{scale.length(run.seconds)}" {at} {svg.paint("fill", "track")}/>'
    yield svg.draw_plot(strip.mean, scale, top, height, svg.paint("fill", "busy"), span=span, filled=True)
    for start, end in strip.gaps:
        gap = f'rect x="{scale.position(start)}" width="{scale.length(end - start)}" {at}'
        yield svg.paint_shape("no_samples", prefix, gap)
    stacked = svg.stack_classes(strip.band, strip.band_seconds)
    yield from svg.draw_band(stacked, scale, prefix, 0.64 * row, 0.16 * row, span=span)


def _draw_marks(
    marks: dict[str, list[FindingMark]], scale: svg.HorizontalScale, row: float, prefix: str, place: int
) -> Iterator[str]:
    for card, each in marks.items():
        top, thick = (0.93, 0.045) if each[0].whole else (0.82, 0.1)
        ends = ((scale.share(end) * (scale.width or WIDTH) for end in (mark.start, mark.end)) for mark in each)
        path = "".join(
            f"M{left:.1f} {top * row:g}h{max(right - left, 2):.1f}v{thick * row:g}H{left:.1f}z" for left, right in ends
        )
        yield f'<path id="{prefix}-mark-{card}-{place}" d="{path}" {svg.paint("fill", each[0].severity)}/>'


def _draw_events(events: Sequence[LogEventLine], scale: svg.HorizontalScale, bottom: float) -> Iterator[str]:
    end = -inf
    for at, name in sorted((event.at, event.id) for event in events if event.at is not None):
        x = at * scale.share(1.0) * (scale.width or WIDTH)
        # a background keeps the line visible on a busy strip
        yield svg.line(x, 0, x, bottom, f'{svg.paint("stroke", "paper")} stroke-width="2.5"')
        yield svg.line(x, 0, x, bottom, f'{svg.paint("stroke", "event")} stroke-dasharray="3 2"')
        yield f'<path d="M{svg.shorten_number(x - 3, 1)} -5h6l-3 5z" {svg.paint("fill", "event")}/>'
        if x >= end:
            yield svg.text(x - 3, -7, name, "event", size=9)
            end = x + 6 * len(name) + 8


def draw_interval_chart(chart: IntervalChart, width: float = PANEL) -> str:
    low, high = _find_ends(chart)
    scale, bottom = (width - 2 * _SIDE) / (high - low), 4 + _ROW * len(chart.rows)
    body = []
    step = svg.find_round_step(high - low)
    for at in range(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1):
        tick = at * step
        x = _SIDE + (tick - low) * scale
        words = f"{tick * 100:.6g}%" if chart.share else f"{tick:,.6g}".replace("-", MINUS)
        body.append(svg.line(x, 4, x, bottom, f'{svg.paint("stroke", "grid")} stroke-width=".6"'))
        body.append(svg.text(x, bottom + 15, words, "muted", anchor="middle"))
    first = chart.rows[0].value
    if chart.form == "dots" and first is not None:
        x = _SIDE + (first - low) * scale
        look = f'{svg.paint("stroke", "muted")} stroke-width=".9" stroke-dasharray="3 3"'
        # draw lines beside the dots, not across the names
        body += [svg.line(x, 21 + at * _ROW, x, 47 + at * _ROW, look) for at in range(1, len(chart.rows))]
    for place, row in enumerate(chart.rows):
        body += _draw_row(row, chart, 4 + place * _ROW, width, (low, scale))
    words = f"{chart.title}: {'; '.join(f'{row.label} {row.sentence}' for row in chart.rows)}"
    return svg.write_document(body, width=width, height=bottom + 24, label=words)


def _find_ends(chart: IntervalChart) -> tuple[float, float]:
    """Return the ends of an axis. A dot axis starts at zero only if zero is near."""
    ends = [end for row in chart.rows if row.value is not None for end in (row.value, *(row.interval or ()))]
    ends += [run.value for row in chart.rows for run in row.runs]
    low, high = min(ends), max([*ends, chart.end or 0.0])
    if chart.form == "bars" or low < high / 2:
        return 0.0, (1.0 if chart.share and chart.form == "bars" else high * (1 + _MARGIN)) or 1.0
    least, span = _NARROWEST * (1.0 if chart.share else high), high - low
    room = max((least - span) / 2, span * _MARGIN)
    low, high = low - room, high + room
    return (low, high) if not chart.share or high <= 1 else (low - (high - 1), 1.0)


def _draw_row(
    row: IntervalRow, chart: IntervalChart, top: float, width: float, axis: tuple[float, float]
) -> Iterator[str]:
    (low, scale), middle, known = axis, top + _MEAN, row.interval is not None
    yield svg.text(_SIDE, top + 13, display.shorten_middle(row.label, 28), size=12)
    yield svg.text(width - _SIDE, top + 13, row.text, "muted", anchor="end")
    yield _draw_box(_SIDE, middle - 0.5, width - 2 * _SIDE, 1, "track")
    last: dict[float, float] = {}
    for run in sorted(row.runs, key=lambda each: each.value) if len(row.runs) > 1 or chart.form == "bars" else ():
        x = _SIDE + (run.value - low) * scale
        free = [level for level in _LEVELS if x - last.get(level, -inf) >= 2 * _RUN_RADIUS]
        level = free[0] if free else min(last, key=last.__getitem__)
        last[level] = x
        y = top + _RUNS + level
        cross = f'<path d="M{x - _RUN_RADIUS:.1f} {y - _RUN_RADIUS:.1f}l5.6 5.6m0-5.6l-5.6 5.6" stroke-width="1.4" '
        yield _draw_dot(x, y, _RUN_RADIUS, known=known) if run.counted else f"{cross}{svg.paint('stroke', 'muted')}/>"
    if row.value is None:
        return
    at = _SIDE + (row.value - low) * scale
    if chart.form == "bars":
        yield _draw_box(_SIDE, middle - 7, at - _SIDE, 14, "bar")
    if row.interval:
        ends = [_SIDE + (end - low) * scale for end in row.interval]
        look = f'{svg.paint("stroke", "ink")} stroke-width="1.8"'
        yield svg.line(ends[0], middle, ends[1], middle, look)
        yield from (svg.line(end, middle - 5, end, middle + 5, look) for end in ends)
    if chart.form == "dots":
        yield _draw_dot(at, middle, _RADIUS, known=known)


def _draw_dot(x: float, y: float, radius: float, *, known: bool) -> str:
    thick = 1.6 if radius == _RADIUS else 1.2
    inside = "busy" if known else "paper"
    look = f'fill="{COLOURS[inside]}" stroke="{COLOURS["busy"]}" class="f-{inside} s-busy" stroke-width="{thick}"'
    return f'<circle cx="{svg.shorten_number(x, 1)}" cy="{svg.shorten_number(y, 1)}" r="{radius}" {look}/>'


def _draw_box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" {svg.paint("fill", colour)}/>'


def draw_report(
    report: Report, widths: tuple[float | None, float | None, float | None] = (None,) * 3, *, full: bool = True
) -> dict[str, Any]:
    """Return figures by the names that templates use. Figures in rows have their axis at the end."""
    row, page, box = widths
    histories = [(each.id, each.history) for each in report.rows if each.history]
    return {
        **draw_spent(report.spent, row),
        "use": draw_use_rows(report.use, "use", row) if report.use else (),
        "worst": draw_signal_panels(report.worst, page) if report.worst else (),
        "panels": tuple(map(draw_interval_chart, report.comparison.charts if report.comparison and full else ())),
        "histories": {name: draw_signal_panels(each, box) for name, each in histories[: None if full else 1]},
    }


def draw_spent(spent: TimeSpent | None, width: float | None = None) -> dict[str, Any]:
    swatches = (
        svg.draw_swatch(each.key, each.label, f"legend{at}") for at, each in enumerate(spent.legend if spent else ())
    )
    return {"spent": draw_spent_bars(spent, "spent", width) if spent else (), "legend": tuple(swatches)}
