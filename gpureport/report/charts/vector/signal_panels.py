"""Signals of a GPU over time, the others in grey, with limits and stretches of a finding."""

from collections.abc import Iterator

import numpy as np

from gpureport.columns import FloatArray
from gpureport.report.charts.palette import ALERT, BUSY, GRID, HOST, MUTED, SPAN
from gpureport.report.charts.vector.vector_elements import (
    HorizontalScale,
    Plot,
    draw_axis,
    draw_grid,
    paint,
    write_document,
)
from gpureport.report.model.pictures import SignalHistory, SignalPanel

_HEIGHT, _FOOT = 52.0, 3.0
"""Height of a panel, and of the room below it."""


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
    panel, height = history.panels[place], _HEIGHT + _FOOT
    return write_document(
        [
            *_draw_spans(history, scale, height),
            draw_grid(history.ticks, scale, height),
            *_draw_lines(panel, scale),
            *_draw_limit(panel, scale),
        ],
        width=scale.width,
        height=height,
        label=": ".join(filter(None, (panel.label, panel.note))) or panel.label,
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
        plot = Plot(buckets=max(len(line.mean), 1), top=1, height=_HEIGHT - 1, width=scale.width)
        shares = _scale(line.mean, panel)
        if line.is_main and panel.is_filled:
            yield plot.wrap(f'<path d="{plot.steps(shares)}" {paint("fill", main)} shape-rendering="crispEdges"/>')
            continue
        colour, thickness = (main, 2.0) if line.is_main else (MUTED, 0.8)
        attributes = f'{paint("stroke", colour)} stroke-width="{thickness:g}" stroke-linejoin="round"'
        opacity = "" if line.is_main else ' stroke-opacity=".7"'
        drawn = f'<path d="{plot.line(shares)}" {attributes}{opacity} vector-effect="non-scaling-stroke"/>'
        yield plot.wrap(drawn)
    yield f'<line x1="0" x2="{_across(scale)}" y1="{_HEIGHT:g}" y2="{_HEIGHT:g}" {paint("stroke", GRID)}/>'


def _draw_limit(panel: SignalPanel, scale: HorizontalScale) -> Iterator[str]:
    """Yield the limit as a dashed line: grey unless it was reached and is what went wrong."""
    if panel.limit is None or not panel.low <= panel.limit <= panel.high:
        return
    share = float(_scale(np.array([panel.limit]), panel)[0])
    y = 1 + (1 - share) * (_HEIGHT - 1)
    colour = ALERT if panel.is_alert and panel.is_limit_reached else MUTED
    stroke = f'{paint("stroke", colour)} stroke-dasharray="5 3"'
    yield f'<line x1="0" x2="{_across(scale)}" y1="{y:g}" y2="{y:g}" {stroke}/>'


def _scale(values: FloatArray, panel: SignalPanel) -> FloatArray:
    shares: FloatArray = (values - panel.low) / (panel.high - panel.low or 1.0)
    return shares


def _across(scale: HorizontalScale) -> str:
    return (
        scale.position(scale.end) if scale.end > scale.start else "100%" if scale.width is None else f"{scale.width:g}"
    )
