"""Signals of a GPU over time: the GPU it is about, the others in grey, limits, and the stretches of a finding."""

from collections.abc import Iterator
from html import escape

import numpy as np

from gpureport.columns import FloatArray
from gpureport.report.charts.palette import ALERT, BUSY, GRID, HOST, MUTED, PAPER, SPAN
from gpureport.report.charts.vector_elements import (
    TEXT,
    HorizontalScale,
    Plot,
    draw_axis,
    draw_grid,
    paint,
    write_document,
)
from gpureport.report.model.pictures import SignalHistory, SignalPanel

_HEIGHT, _HEAD, _FOOT = 52.0, 15.0, 3.0
"""Height of a panel, of the room over the first for the name of what is shaded, and of the room below each."""


def draw_signal_panels(history: SignalHistory, prefix: str, width: float | None = None) -> tuple[str, ...]:
    """Return one figure a panel, then one of the axis.

    Args:
        history: the panels.
        prefix: begins every id, unlike that of any other figure of the page; no panel needs one yet.
        width: of a figure in points; that of its surroundings when None.
    """
    del prefix
    scale = HorizontalScale(start=history.start, end=history.end, width=width)
    panels = (_draw_panel(history, place, scale) for place in range(len(history.panels)))
    return (*panels, draw_axis(history.ticks, scale))


def _draw_panel(history: SignalHistory, place: int, scale: HorizontalScale) -> str:
    panel, head = history.panels[place], 0.0 if place or not history.span_text else _HEAD
    height = head + _HEIGHT + _FOOT
    return write_document(
        [
            *_draw_spans(history, scale, height, is_named=not place),
            draw_grid(history.ticks, scale, height),
            *_draw_lines(panel, scale, head),
            *_draw_limit(panel, scale, head),
        ],
        width=scale.width,
        height=height,
        label=": ".join(filter(None, (panel.label, panel.note))) or panel.label,
    )


def _draw_spans(history: SignalHistory, scale: HorizontalScale, height: float, *, is_named: bool) -> Iterator[str]:
    """Yield the shaded stretches; the first panel names them at the first."""
    for start, end in history.spans:
        first, last = max(start, history.start), min(end, history.end)
        if last > first:
            length = scale.length(last - first)
            yield f'<rect x="{scale.position(first)}" width="{length}" height="{height:g}" {paint("fill", SPAN)}/>'
    if is_named and history.spans and history.span_text:
        start = max(history.spans[0][0], history.start)
        is_late = scale.share(start) > 0.5  # noqa: PLR2004 - in the right half text runs to the left
        anchor = "end" if is_late else "start"
        at = scale.position(min(history.spans[-1][1], history.end) if is_late else start)
        yield (
            f'<text x="{at}" y="{TEXT:g}" text-anchor="{anchor}" font-weight="600" {paint("fill", ALERT)}>'
            f"{escape(history.span_text)}</text>"
        )


def _draw_lines(panel: SignalPanel, scale: HorizontalScale, top: float) -> Iterator[str]:
    """Yield the other GPUs in grey, then the one that the panel is about: a line, or the area below it."""
    main = HOST if panel.is_of_host else ALERT if panel.is_alert else BUSY
    for line in sorted(panel.lines, key=lambda line: line.is_main):
        plot = Plot(buckets=max(len(line.mean), 1), top=top + 1, height=_HEIGHT - 1, width=scale.width)
        shares = _scale(line.mean, panel)
        if line.is_main and panel.is_filled:
            yield plot.wrap(f'<path d="{plot.steps(shares)}" {paint("fill", main)} shape-rendering="crispEdges"/>')
            continue
        colour, thickness = (main, 2.0) if line.is_main else (MUTED, 0.8)
        attributes = f'{paint("stroke", colour)} stroke-width="{thickness:g}" stroke-linejoin="round"'
        opacity = "" if line.is_main else ' stroke-opacity=".7"'
        drawn = f'<path d="{plot.line(shares)}" {attributes}{opacity} vector-effect="non-scaling-stroke"/>'
        yield plot.wrap(drawn)
    base = top + _HEIGHT
    yield f'<line x1="0" x2="{_across(scale)}" y1="{base:g}" y2="{base:g}" {paint("stroke", GRID)}/>'


def _draw_limit(panel: SignalPanel, scale: HorizontalScale, top: float) -> Iterator[str]:
    """Yield the limit as a dashed line, its name where the main line is farthest from it."""
    if panel.limit is None or not panel.low <= panel.limit <= panel.high:
        return
    share = float(_scale(np.array([panel.limit]), panel)[0])
    y = top + 1 + (1 - share) * (_HEIGHT - 1)
    stroke = f'{paint("stroke", ALERT)} stroke-dasharray="5 3"'
    yield f'<line x1="0" x2="{_across(scale)}" y1="{y:g}" y2="{y:g}" {stroke}/>'
    if not panel.limit_text:
        return
    is_left = _is_limit_clearer_at_start(panel)
    x, anchor = ("0", "start") if is_left else (_across(scale), "end")
    below = y + TEXT + 1
    baseline = below if below < top + _HEIGHT or y < TEXT + 2 else y - 4
    halo = f'stroke="{PAPER.fixed}" class="s-{PAPER.css} f-{ALERT.css}" stroke-width="3" paint-order="stroke"'
    yield (
        f'<text x="{x}" y="{baseline:g}" text-anchor="{anchor}" fill="{ALERT.fixed}" {halo}>'
        f"{escape(panel.limit_text)}</text>"
    )


def _is_limit_clearer_at_start(panel: SignalPanel) -> bool:
    """Return whether the lines lie farther from the limit in the first fifth of the panel than in the last."""
    limit = panel.limit or 0.0
    lines = [line.mean for line in panel.lines if line.is_main and len(line.mean)]
    fifth = max(len(lines[0]) // 5, 1) if lines else 1
    first, last = (
        [abs(part[~np.isnan(part)] - limit).min(initial=np.inf) for part in parts]
        for parts in ([mean[:fifth] for mean in lines], [mean[-fifth:] for mean in lines])
    )
    return min(first, default=0.0) >= min(last, default=0.0)


def _scale(values: FloatArray, panel: SignalPanel) -> FloatArray:
    shares: FloatArray = (values - panel.low) / (panel.high - panel.low or 1.0)
    return shares


def _across(scale: HorizontalScale) -> str:
    return (
        scale.position(scale.end) if scale.end > scale.start else "100%" if scale.width is None else f"{scale.width:g}"
    )
