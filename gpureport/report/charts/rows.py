"""Figures in rows, and then one of their axis: bars of GPU time, utilisation with its classes, signals of a GPU.

Each takes the width of a figure in points, or None for that of its surroundings; a `prefix` begins the ids of a figure
and is unlike that of any other on the page.
"""

from collections.abc import Iterator
from html import escape

from gpureport.columns import FloatArray
from gpureport.report.charts.elements import (
    NARROW,
    TEXT,
    WIDE_ONLY,
    HorizontalScale,
    Plot,
    define_patterns,
    draw_axis,
    draw_grid,
    find_fill,
    measure_text,
    paint,
    paint_shape,
    shorten_number,
    write_document,
)
from gpureport.report.charts.palette import ALERT, BUSY, GRID, HOST, INK, MUTED, PAPER, SPAN
from gpureport.report.model.pictures import (
    ClassStretch,
    SignalHistory,
    SignalPanel,
    SpentBar,
    TimeSegment,
    TimeSpent,
    UseOverTime,
    UseRow,
)

_THICK, _WHISKER, _CAP = 22.0, 28.0, 3.0
"""Thickness of a bar, where the line of its interval lies, and half the height of its ends."""

_CURVE, _BAND_TOP, _BAND = 32.0, 34.0, 7.0
_PANEL, _FOOT = 52.0, 3.0
"""Height of a panel, and of the room below it."""


def draw_spent_bars(spent: TimeSpent, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return bars whose length is GPU time, split by class, with the interval of the whole below their end."""
    scale = HorizontalScale(start=0.0, end=spent.end, width=width)
    height = _WHISKER + _CAP + 2 if any(bar.interval for bar in spent.bars) else _THICK
    bars = (
        write_document(
            [
                define_patterns([part.key for part in bar.segments], f"{prefix}{place}"),
                draw_grid(spent.ticks, scale, height),
                *_draw_segments(bar, scale, f"{prefix}{place}"),
                _draw_interval(bar, scale),
            ],
            width=width,
            height=height,
            label=_describe_bar(bar, spent.columns[0]),
        )
        for place, bar in enumerate(spent.bars)
    )
    return (*bars, draw_axis(spent.ticks, scale))


def _describe_bar(bar: SpentBar, unit: str) -> str:
    total = f" {bar.total} {unit}".rstrip() if bar.total else ""
    interval = f", 95% interval {bar.interval_text}" if bar.interval_text else ""
    parts = ", ".join(f"{part.label} {part.text}" for part in bar.segments if part.text) or bar.note
    return f"{bar.label}:{total}{interval}{';' if total else ''} {parts}"


def _draw_segments(bar: SpentBar, scale: HorizontalScale, prefix: str) -> Iterator[str]:
    start = 0.0
    for place, part in enumerate(bar.segments):
        at, length = scale.position(start), scale.length(part.value)
        yield paint_shape(part.key, prefix, f'rect x="{at}" width="{length}" height="{_THICK:g}"')
        if place:
            yield f'<line x1="{at}" x2="{at}" y1="0" y2="{_THICK:g}" {paint("stroke", PAPER)}/>'
        yield from _write_texts(part, start, scale)
        start += part.value


def _write_texts(part: TimeSegment, start: float, scale: HorizontalScale) -> Iterator[str]:
    """Yield the text of a segment, with its name if that fits; on a page also a short form."""
    texts = (f"{part.label} {part.text}", part.text) if part.text else ()
    wide, narrow = (
        next((text for text in texts if scale.holds_text(text, part.value, width)), "") for width in (None, NARROW)
    )
    same = scale.width is not None or wide == narrow
    if wide:
        yield _write_text(part, start, scale, wide, "" if same else WIDE_ONLY)
    if narrow and not same:
        yield _write_text(part, start, scale, narrow, ' class="narrow-only" display="none"')


def _write_text(part: TimeSegment, start: float, scale: HorizontalScale, text: str, attributes: str) -> str:
    """Return text in a segment, on a ground in the class's colour that covers the hatch."""
    fill = find_fill(part.key)
    half = measure_text(text) / 2 + 2
    ground = f'<rect x="{-half:g}" y="3" width="{2 * half:g}" height="{_THICK - 6:g}" fill="{fill.colour}"/>'
    written = (
        f'{ground if fill.hatch else ""}<text y="{_THICK / 2 + TEXT * 0.36:g}" text-anchor="middle" font-weight="600" '
        f'fill="{fill.text}">{escape(text)}</text>'
    )
    return scale.place(start + part.value / 2, written, attributes)


def _draw_interval(bar: SpentBar, scale: HorizontalScale) -> str:
    """Return the interval as a line; an end that lies outside the axis has no cap."""
    if bar.interval is None:
        return ""
    first, last = (scale.position(min(max(end, scale.start), scale.end)) for end in bar.interval)
    lines = [f'<line x1="{first}" x2="{last}" y1="{_WHISKER:g}" y2="{_WHISKER:g}"/>']
    lines += [
        f'<line x1="{(at := scale.position(end))}" x2="{at}" y1="{_WHISKER - _CAP:g}" y2="{_WHISKER + _CAP:g}"/>'
        for end in bar.interval
        if scale.start <= end <= scale.end
    ]
    return f'<g {paint("stroke", INK)} stroke-width="1.4">{"".join(lines)}</g>'


def draw_use_rows(use: UseOverTime, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return curves of GPU utilisation, with a band of classes below each."""
    scale = HorizontalScale(start=0.0, end=use.seconds, width=width)
    height = _BAND_TOP + _BAND
    rows = (
        write_document(
            [
                draw_grid(use.ticks, scale, height),
                _draw_curve(row, scale),
                *_draw_band(row.band, scale, f"{prefix}{place}"),
            ],
            width=width,
            height=height,
            label=f"GPU utilisation over time, {row.label}: {row.text}; {row.total}",
        )
        for place, row in enumerate(use.rows)
    )
    return (*rows, draw_axis(use.ticks, scale))


def _draw_curve(row: UseRow, scale: HorizontalScale) -> str:
    """Return the curve, and a dashed line at 100%, as long as the run."""
    length = len(row.mean) * row.bucket_seconds
    span = max(scale.share(length), 1e-6)
    plot = Plot(buckets=max(len(row.mean), 1), top=1, height=_CURVE - 1, width=scale.width, span=span)
    end = scale.position(max((stretch.end for stretch in row.band), default=length))
    full = f'<line x1="0" x2="{end}" y1="1" y2="1" {paint("stroke", GRID)} stroke-dasharray="2 3"/>'
    area = f'<path d="{plot.steps(row.mean)}" {paint("fill", BUSY)} shape-rendering="crispEdges"/>'
    return full + plot.wrap(area)


def _draw_band(band: tuple[ClassStretch, ...], scale: HorizontalScale, prefix: str) -> Iterator[str]:
    """Yield a band of classes; on a page each is one rectangle that a path cuts."""
    by_class: dict[str, list[ClassStretch]] = {}
    for stretch in band:
        by_class.setdefault(stretch.key, []).append(stretch)
    yield define_patterns(by_class, prefix)
    for key, stretches in by_class.items():
        if scale.width is not None:
            path = _write_path(stretches, scale, scale.width, _BAND_TOP, _BAND)
            yield paint_shape(key, prefix, f'path d="{path}" shape-rendering="crispEdges"')
            continue
        cut = f"{prefix}-cut-{key}"
        path = _write_path(stretches, scale, 1.0, 0.0, 1.0)
        yield f'<clipPath id="{cut}" clipPathUnits="objectBoundingBox"><path d="{path}"/></clipPath>'
        shape = f'rect y="{_BAND_TOP:g}" width="100%" height="{_BAND:g}" clip-path="url(#{cut})"'
        yield paint_shape(key, prefix, shape)


def _write_path(stretches: list[ClassStretch], scale: HorizontalScale, width: float, top: float, height: float) -> str:
    """Return the rectangles of stretches in units of which the figure is `width` wide."""
    decimals = 5 if width <= 1 else 2
    parts = []
    for stretch in stretches:
        left, right = (shorten_number(scale.share(at) * width, decimals) for at in (stretch.start, stretch.end))
        if left != right:
            parts.append(f"M{left} {top:g}H{right}V{top + height:g}H{left}z")
    return "".join(parts)


def draw_signal_panels(history: SignalHistory, width: float | None = None) -> tuple[str, ...]:
    """Return a panel a quantity: the GPU, the others in grey, the limit and the stretches of a finding."""
    scale = HorizontalScale(start=history.start, end=history.end, width=width)
    panels = (_draw_panel(history, panel, scale) for panel in history.panels)
    return (*panels, draw_axis(history.ticks, scale))


def _draw_panel(history: SignalHistory, panel: SignalPanel, scale: HorizontalScale) -> str:
    height = _PANEL + _FOOT
    return write_document(
        [
            *_draw_spans(history, scale, height),
            draw_grid(history.ticks, scale, height),
            *_draw_lines(panel, scale),
            *_draw_limit(panel, scale),
        ],
        width=scale.width,
        height=height,
        label=": ".join(filter(None, (panel.label, panel.note))),
    )


def _draw_spans(history: SignalHistory, scale: HorizontalScale, height: float) -> Iterator[str]:
    for start, end in history.spans:
        first, last = max(start, history.start), min(end, history.end)
        if last > first:
            length = scale.length(last - first)
            yield f'<rect x="{scale.position(first)}" width="{length}" height="{height:g}" {paint("fill", SPAN)}/>'


def _draw_lines(panel: SignalPanel, scale: HorizontalScale) -> Iterator[str]:
    """Yield the other GPUs in grey, then that of the panel: a line, or the area below it."""
    main = HOST if panel.is_of_host else ALERT if panel.is_alert and not panel.is_filled else BUSY
    for line in sorted(panel.lines, key=lambda line: line.is_main):
        plot = Plot(buckets=max(len(line.mean), 1), top=1, height=_PANEL - 1, width=scale.width)
        shares: FloatArray = (line.mean - panel.low) / (panel.high - panel.low or 1.0)
        if line.is_main and panel.is_filled:
            yield plot.wrap(f'<path d="{plot.steps(shares)}" {paint("fill", main)} shape-rendering="crispEdges"/>')
            continue
        colour, thickness = (main, 2.0) if line.is_main else (MUTED, 0.8)
        attributes = f'{paint("stroke", colour)} stroke-width="{thickness:g}" stroke-linejoin="round"'
        opacity = "" if line.is_main else ' stroke-opacity=".7"'
        yield plot.wrap(f'<path d="{plot.line(shares)}" {attributes}{opacity} vector-effect="non-scaling-stroke"/>')
    across = scale.position(scale.end)
    yield f'<line x1="0" x2="{across}" y1="{_PANEL:g}" y2="{_PANEL:g}" {paint("stroke", GRID)}/>'


def _draw_limit(panel: SignalPanel, scale: HorizontalScale) -> Iterator[str]:
    """Yield the limit as a dashed line: grey unless it was reached and is what went wrong."""
    if panel.limit is None or not panel.low <= panel.limit <= panel.high:
        return
    y = 1 + (1 - (panel.limit - panel.low) / (panel.high - panel.low or 1.0)) * (_PANEL - 1)
    colour = ALERT if panel.is_alert and panel.is_limit_reached else MUTED
    stroke = f'{paint("stroke", colour)} stroke-dasharray="5 3"'
    yield f'<line x1="0" x2="{scale.position(scale.end)}" y1="{y:g}" y2="{y:g}" {stroke}/>'
