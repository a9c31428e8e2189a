"""Where GPU time went and GPU use over time, as pictures with their own labels and figures."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from gpureport.report.charts import canvas
from gpureport.report.charts.palette import BUSY, GRID, INK, MUTED
from gpureport.report.charts.vector.class_patterns import find_fill
from gpureport.report.model.head import Change
from gpureport.report.model.pictures import ClassName, SpentBar, Tick, TimeSegment, TimeSpent, UseOverTime
from gpureport.report.wording import display

_SMALL, _TEXT = 10.0, 11.0
_RIGHT = 260.0
_LABEL = 26
_ROW, _BOTTOM, _LEGEND = 36.0, 24.0, 24.0
_HATCH = (0.08, 0.09, 0.11, 0.4)
_LETTER = 7.0
"""Points that a bold letter in a bar takes."""


def build_spent_figure(spent: TimeSpent, *, above: float) -> Figure:
    """Return the bars of GPU time with totals and changes; `above` is points for a heading."""
    with canvas.chart_settings():
        figure, axes, points = _new_rows([bar.label for bar in spent.bars], spent.end, above + _LEGEND)
        for place, bar in enumerate(spent.bars):
            _draw_bar(axes, place, bar, points)
            _write_beside(axes, place - 0.2, bar.total, _describe_change(bar.change), bar.note)
            _write_beside(axes, place + 0.2, bar.beside, _describe_change(bar.beside_change))
        _label_axis(axes, spent.ticks)
        _draw_legend(axes, spent.legend)
    return figure


def build_use_figure(use: UseOverTime, *, above: float) -> Figure:
    """Return utilisation over time with its classes; `above` is points for a heading."""
    with canvas.chart_settings():
        labels = [f"{row.label}, {row.small}" if row.small else row.label for row in use.rows]
        figure, axes, _ = _new_rows(labels, use.seconds, above)
        for place, row in enumerate(use.rows):
            edges = np.arange(len(row.mean) + 1) * row.bucket_seconds
            heights = place + 0.22 - 0.62 * np.nan_to_num(row.mean)
            axes.stairs(heights, edges, baseline=place + 0.22, fill=True, color=BUSY.stand_in, linewidth=0)
            for part in row.band:
                axes.add_artist(
                    _rectangle(part.key, part.start, place + 0.27, part.end - part.start, 0.14, hatched=False)
                )
            _write_beside(axes, place - 0.2, row.total)
            _write_beside(axes, place + 0.2, row.text)
        _label_axis(axes, use.ticks)
    return figure


def _new_rows(labels: Sequence[str], end: float, above: float) -> tuple[Figure, Axes, float]:
    """Return a figure with one row a label, its axes, and the points that a unit across takes."""
    shown = [display.shorten_middle(label, _LABEL) for label in labels]
    left = canvas.label_margin(shown)
    figure = canvas.new_figure(canvas.WIDTH, above + _ROW * len(shown) + _BOTTOM)
    axes = canvas.new_axes(figure, sides=(left, _RIGHT), top=above, bottom=_BOTTOM, pad=5)
    axes.set(xlim=(0, end), ylim=(len(shown) - 0.5, -0.5))
    axes.set_yticks(range(len(shown)), shown, fontsize=_TEXT, color=INK.stand_in)
    axes.grid(axis="x", color=GRID.stand_in, linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes, (canvas.WIDTH - left - _RIGHT) / end


def _draw_bar(axes: Axes, place: int, bar: SpentBar, points: float) -> None:
    start = 0.0
    for part in bar.segments:
        axes.add_artist(_rectangle(part.key, start, place - 0.36, part.value, 0.56))
        _write_inside(axes, place, part, start, points)
        start += part.value
    if bar.interval:
        low, high = bar.interval
        axes.plot(
            [low, high], [place + 0.34, place + 0.34], color=INK.stand_in, linewidth=1.2, marker="|", markersize=6
        )


def _rectangle(key: str, left: float, top: float, width: float, height: float, *, hatched: bool = True) -> Rectangle:  # noqa: PLR0913 - a place and a size
    fill = find_fill(key)
    shape = Rectangle((left, top), width, height, facecolor=fill.colour, linewidth=0)
    shape.set(hatch=(fill.hatch or None) if hatched else None, edgecolor=_HATCH)
    return shape


def _write_inside(axes: Axes, place: int, part: TimeSegment, start: float, points: float) -> None:
    """Write the name and the length of a segment, or its length alone, where that fits."""
    texts = (f"{part.label} {part.text}", part.text)
    text = next((text for text in texts if len(text) * _LETTER + 6 <= part.value * points), "")
    if text:
        fill = find_fill(part.key)
        box = {"boxstyle": "square,pad=0.15", "facecolor": fill.colour, "linewidth": 0} if fill.hatch else None
        drawn = axes.text(start + part.value / 2, place - 0.08, text, ha="center", va="center", bbox=box)
        drawn.set(fontsize=_SMALL, color=fill.text, fontweight="bold")


def _describe_change(change: Change | None) -> str:
    return f"{change.text} {change.verdict}".rstrip() if change else ""


def _write_beside(axes: Axes, place: float, *texts: str) -> None:
    shown = display.shorten("   ".join(filter(None, texts)), 48)
    drawn = axes.text(1.015, place, shown, va="center", transform=axes.get_yaxis_transform())
    drawn.set(fontsize=_SMALL, color=INK.stand_in)


def _label_axis(axes: Axes, ticks: Sequence[Tick]) -> None:
    texts = [tick.text for tick in ticks]
    axes.set_xticks([tick.at for tick in ticks], texts, fontsize=_SMALL, color=MUTED.stand_in)


def _draw_legend(axes: Axes, classes: Sequence[ClassName]) -> None:
    fills = [find_fill(each.key) for each in classes]
    handles = [Patch(facecolor=fill.colour, hatch=fill.hatch or None, edgecolor=_HATCH, linewidth=0) for fill in fills]
    axes.legend(
        handles,
        [each.label for each in classes],
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=max(len(classes), 1),
        frameon=False,
        fontsize=_SMALL,
        handlelength=1.3,
        columnspacing=1.3,
        handletextpad=0.5,
        borderpad=0,
        borderaxespad=0.6,
    )
