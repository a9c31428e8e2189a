"""Bars whose length is GPU time, split by class, with the interval of the whole below their end."""

from collections.abc import Iterator
from html import escape

from gpureport.report.charts.palette import INK, PAPER
from gpureport.report.charts.vector.class_patterns import define_patterns, find_fill, paint_shape
from gpureport.report.charts.vector.vector_elements import (
    NARROW,
    TEXT,
    WIDE_ONLY,
    HorizontalScale,
    draw_axis,
    draw_grid,
    measure_text,
    paint,
    write_document,
)
from gpureport.report.model.pictures import SpentBar, TimeSegment, TimeSpent

_THICK, _WHISKER, _CAP = 22.0, 28.0, 3.0
"""Thickness of a bar, where the line of its interval lies, and half the height of its ends."""


def draw_spent_bars(spent: TimeSpent, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return one figure a bar, then one of the axis.

    Args:
        spent: the bars.
        prefix: begins every id, unlike that of any other figure of the page.
        width: of a figure in points; that of its surroundings when None.
    """
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
            label=describe_bar(bar, spent.columns[0]),
        )
        for place, bar in enumerate(spent.bars)
    )
    return (*bars, draw_axis(spent.ticks, scale))


def describe_bar(bar: SpentBar, unit: str) -> str:
    """Return what a bar shows, for those who cannot see it."""
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
    fits_wide = next((text for text in texts if scale.holds_text(text, part.value)), "")
    fits_narrow = next((text for text in texts if scale.holds_text(text, part.value, NARROW)), "")
    same = scale.width is not None or fits_wide == fits_narrow
    if fits_wide:
        yield _write_text(part, start, scale, fits_wide, "" if same else WIDE_ONLY)
    if fits_narrow and not same:
        yield _write_text(part, start, scale, fits_narrow, ' class="narrow-only" display="none"')


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
    ends = [min(max(end, scale.start), scale.end) for end in bar.interval]
    top, bottom = _WHISKER - _CAP, _WHISKER + _CAP
    caps = (
        f'<line x1="{(at := scale.position(end))}" x2="{at}" y1="{top:g}" y2="{bottom:g}"/>'
        for end in bar.interval
        if scale.start <= end <= scale.end
    )
    across = (
        f'<line x1="{scale.position(ends[0])}" x2="{scale.position(ends[1])}" y1="{_WHISKER:g}" y2="{_WHISKER:g}"/>'
    )
    return f'<g {paint("stroke", INK)} stroke-width="1.4">{across}{"".join(caps)}</g>'
