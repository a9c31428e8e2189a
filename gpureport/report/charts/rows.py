"""Figures whose rows share an axis: bars of GPU time, utilisation over time, and the signals of a GPU."""

from collections.abc import Iterator
from html import escape

from gpureport.report.charts import elements as svg
from gpureport.report.model.pictures import SignalHistory, SignalPanel, SpentBar, TimeSegment, TimeSpent, UseOverTime

_THICK, _WHISKER, _CAP = 22.0, 28.0, 3.0
"""Height of a bar, y of its interval line, and half the height of end caps."""
_CURVE, _BAND_TOP, _BAND = 32.0, 34.0, 10.0
_PANEL, _PAPER_PANEL, _HEAD, _FOOT = 96.0, 66.0, 14.0, 3.0
_SMALL, _AFTER_END, _AT_START, _LEFT = 10.0, 44.0, 0.05, 0.3


def draw_spent_bars(spent: TimeSpent, prefix: str, width: float | None = None) -> tuple[str, ...]:
    scale, bars = svg.HorizontalScale(start=0.0, end=spent.end, width=width), []
    height = _WHISKER + _CAP + 2 if any(bar.interval for bar in spent.bars) else _THICK
    for place, bar in enumerate(spent.bars):
        own = f"{prefix}{place}"
        body = [
            svg.define_patterns([part.key for part in bar.segments], own),
            svg.draw_grid(spent.ticks, scale, height),
        ]
        body += [*_draw_segments(bar, scale, own), _draw_interval(bar, scale) if bar.interval else ""]
        total = f" {bar.total} {spent.columns[0]}".rstrip() if bar.total else ""
        interval = f", 95% interval {bar.interval_text}" if bar.interval_text else ""
        parts = ", ".join(f"{part.label} {part.text}" for part in bar.segments if part.text) or bar.note
        label = f"{bar.label}:{total}{interval}{';' if total else ''} {parts}"
        bars.append(svg.write_document(body, width=width, height=height, label=label))
    return (*bars, svg.draw_axis(spent.ticks, scale))


def _draw_segments(bar: SpentBar, scale: svg.HorizontalScale, prefix: str) -> Iterator[str]:
    start = 0.0
    for place, part in enumerate(bar.segments):
        at, length = scale.position(start), scale.length(part.value)
        yield svg.paint_shape(part.key, prefix, f'rect x="{at}" width="{length}" height="{_THICK:g}"')
        if place:
            yield f'<line x1="{at}" x2="{at}" y1="0" y2="{_THICK:g}" {svg.paint("stroke", "paper")}/>'
        yield from _write_texts(part, start, scale)
        start += part.value


def _write_texts(part: TimeSegment, start: float, scale: svg.HorizontalScale) -> Iterator[str]:
    texts = (f"{part.label} {part.text}", part.text) if part.text else ()
    fill = svg.find_fill(part.key)
    wide, narrow = (
        next((each for each in texts if scale.holds_text(each, part.value, width)), "") for width in (None, svg.NARROW)
    )
    shown = [(wide, svg.WIDE_ONLY), (narrow, ' class="narrow-only" display="none"')]
    for words, attributes in [(wide, "")] if scale.width is not None or wide == narrow else shown:
        half = svg.measure_text(words) / 2 + 2
        ground = f'<rect x="{-half:g}" y="3" width="{2 * half:g}" height="{_THICK - 6:g}" fill="{fill.colour}"/>'
        look = f'y="{_THICK / 2 + svg.TEXT * 0.36:g}" text-anchor="middle" font-weight="600" fill="{fill.text}"'
        written = f"{ground if fill.hatch else ''}<text {look}>{escape(words)}</text>"
        yield scale.place(start + part.value / 2, written, attributes) if words else ""


def _draw_interval(bar: SpentBar, scale: svg.HorizontalScale) -> str:
    ends = bar.interval or ()
    first, last = (scale.position(min(max(end, scale.start), scale.end)) for end in ends)
    caps = [scale.position(end) for end in ends if scale.start <= end <= scale.end]
    lines = [f'<line x1="{first}" x2="{last}" y1="{_WHISKER:g}" y2="{_WHISKER:g}"/>']
    lines += [f'<line x1="{at}" x2="{at}" y1="{_WHISKER - _CAP:g}" y2="{_WHISKER + _CAP:g}"/>' for at in caps]
    return f'<g {svg.paint("stroke", "ink")} stroke-width="1.4">{"".join(lines)}</g>'


def draw_use_rows(use: UseOverTime, prefix: str, width: float | None = None) -> tuple[str, ...]:
    scale, height, rows = svg.HorizontalScale(start=0.0, end=use.seconds, width=width), _BAND_TOP + _BAND, []
    for place, row in enumerate(use.rows):
        length, own = len(row.mean) * row.bucket_seconds, f"{prefix}{place}"
        span = max(scale.share(length), 1e-6)
        stacked = svg.stack_classes(row.band, row.band_seconds)
        look = f'{svg.paint("stroke", "grid")} stroke-dasharray="2 3"'
        body = [
            svg.draw_grid(use.ticks, scale, height),
            f'<line x1="0" x2="{scale.length(length)}" y1="1" y2="1" {look}/>',
            svg.draw_plot(row.mean, scale, 1, _CURVE - 1, svg.paint("fill", "busy"), span=span, filled=True),
            svg.define_patterns(stacked, own),
            *svg.draw_band(stacked, scale, own, _BAND_TOP, _BAND, span=span),
        ]
        label = f"GPU utilisation over time, {row.label}: {row.text}; {row.total}"
        rows.append(svg.write_document(body, width=width, height=height, label=label))
    return (*rows, svg.draw_axis(use.ticks, scale))


def draw_signal_panels(history: SignalHistory, width: float | None = None) -> tuple[str, ...]:
    scale = svg.HorizontalScale(start=history.start, end=history.end, width=width)
    panels = [_draw_panel(history, panel, scale) for panel in history.panels]
    return (*panels, svg.draw_axis(history.ticks, scale))


def _draw_panel(history: SignalHistory, panel: SignalPanel, scale: svg.HorizontalScale) -> str:
    tall = _PANEL if scale.width is None else _PAPER_PANEL
    spans = [(max(start, history.start), min(end, history.end)) for start, end in history.spans]
    shaded = [(start, end) for start, end in spans if end > start]
    grounds = (
        f'<rect x="{scale.position(start)}" width="{scale.length(end - start)}" height="{tall + _FOOT:g}" '
        f"{svg.paint('fill', 'span')}/>"
        for start, end in shaded
    )
    behind, limit_name = _draw_limit(panel, scale, tall, shaded)
    ends = ((panel.high, _HEAD + 3), (panel.low, tall - 3))
    labels = [scale.place(scale.start, svg.text(2, y, f"{end:,.6g}", "muted", size=_SMALL)) for end, y in ends]
    labels.append(limit_name)
    if panel is history.panels[0] and len(shaded) == 1:
        (start, end), words = shaded[0], history.span_text
        fits = scale.width is not None or scale.holds_text(words, end - start, svg.NARROW)
        # avoid the label at the upper end of the axis
        written = svg.text(_AFTER_END if scale.share(start) < _AT_START else 6.0, 11, words, "alert", bold=True)
        if scale.holds_text(words, end - start):
            behind += scale.place(start, written, "" if fits else svg.WIDE_ONLY)
    # the lower label overlaps the curve, so it has a background
    ground = f'{svg.paint("stroke", "paper")} stroke-width="3" stroke-linejoin="round" paint-order="stroke"'
    return svg.write_document(
        [
            *grounds,
            svg.draw_grid(history.ticks, scale, tall + _FOOT),
            behind,
            *_draw_lines(panel, scale, tall),
            f"<g {ground}>{''.join(labels)}</g>",
        ],
        width=scale.width,
        height=tall + _FOOT,
        label=": ".join(filter(None, (panel.label, panel.note))),
    )


def _draw_lines(panel: SignalPanel, scale: svg.HorizontalScale, tall: float) -> Iterator[str]:
    main = "host" if panel.is_of_host else "alert" if panel.is_alert and not panel.is_filled else "busy"
    for line in sorted(panel.lines, key=lambda line: line.is_main):
        shares = (line.mean - panel.low) / (panel.high - panel.low or 1.0)
        filled = line.is_main and panel.is_filled
        thin = f'{svg.paint("stroke", "muted")} stroke-width="0.8" stroke-opacity=".7"'
        thick = svg.paint("fill", main) if filled else f'{svg.paint("stroke", main)} stroke-width="2"'
        look = (thick if line.is_main else thin) + ("" if filled else ' stroke-linejoin="round"')
        yield svg.draw_plot(shares, scale, _HEAD, tall - _HEAD, look, filled=filled)
    across = scale.position(scale.end)
    yield f'<line x1="0" x2="{across}" y1="{tall:g}" y2="{tall:g}" {svg.paint("stroke", "grid")}/>'


def _draw_limit(
    panel: SignalPanel, scale: svg.HorizontalScale, tall: float, shaded: list[tuple[float, float]]
) -> tuple[str, str]:
    if panel.limit is None or not panel.low <= panel.limit <= panel.high:
        return "", ""
    y = _HEAD + (1 - (panel.limit - panel.low) / (panel.high - panel.low or 1.0)) * (tall - _HEAD)
    colour = "alert" if panel.is_alert and panel.is_limit_reached else "muted"
    look = f'{svg.paint("stroke", colour)} stroke-dasharray="5 3"'
    is_right = bool(shaded) and scale.share(shaded[0][0]) < _LEFT
    x, where, anchor = (-4.0, scale.end, "end") if is_right else (_AFTER_END, scale.start, "")
    name = scale.place(where, svg.text(x, y - 4, panel.limit_text, colour, anchor=anchor))
    return f'<line x1="0" x2="{scale.position(scale.end)}" y1="{y:g}" y2="{y:g}" {look}/>', name
