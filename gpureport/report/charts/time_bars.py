"""Bars of GPU time by class, each 100% wide."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from gpureport.report.charts import canvas
from gpureport.report.charts.palette import CLASSES, INK, MUTED, OTHER_CLASS
from gpureport.report.model.time_charts import TimeBar
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display

_RIGHT = 62.0
_SMALL, _TEXT = 10.0, 11.0
_LABEL = 26
_LABEL_FITS = 0.05
_HATCH = (0.08, 0.09, 0.11, 0.28)


def draw_time_bars(bars: Sequence[TimeBar], prefix: str, width: float = canvas.WIDTH) -> str:
    """Return the bars of GPU time, one above the other, each 100% wide; a page takes a narrower figure."""
    return canvas.to_svg(build_time_bars_figure(bars, width), prefix, describe_time_bars(bars))


def build_time_bars_figure(bars: Sequence[TimeBar], width: float = canvas.WIDTH) -> Figure:
    """Return the bars of GPU time, drawn as wide as said, in points."""
    rows = _legend_rows(bars, width)
    top, row, bottom = 14.0 + 16.0 * rows, 30.0, 24.0
    height = top + row * len(bars) + bottom
    with canvas.chart_settings():
        labels = [display.shorten_middle(bar.label, _LABEL) for bar in bars]
        figure = canvas.new_figure(width, height)
        sides = (canvas.label_margin(labels), _RIGHT)
        axes = canvas.new_axes(figure, sides=sides, top=top, bottom=bottom, pad=5)
        axes.set(xlim=(0, 1), ylim=(len(bars) - 0.5, -0.5))
        for position, bar in enumerate(bars):
            _draw_bar(axes, position, bar, _LABEL_FITS * canvas.WIDTH / width)
        axes.set_yticks(range(len(bars)), labels, fontsize=_TEXT, color=INK.stand_in)
        shares = [0, 0.2, 0.4, 0.6, 0.8, 1]
        axes.set_xticks(shares, [f"{share * 100:.0f}%" for share in shares], fontsize=_SMALL, color=MUTED.stand_in)
        _draw_legend(axes, bars, rows)
    return figure


def _draw_bar(axes: Axes, position: int, bar: TimeBar, fits: float) -> None:
    left = 0.0
    for part in bar.parts:
        axes.add_artist(class_rectangle(part.key, (left, position - 0.36), part.ratio, 0.72))
        # by what is printed, so that bars with the same shares have the same labels
        if round(part.ratio, 3) >= fits:
            write_share(axes, (left + part.ratio / 2, position), part.text, part.key)
        left += part.ratio
    axes.text(1.008, position, bar.total, va="center", fontsize=_SMALL, color=MUTED.stand_in)


def class_rectangle(key: str, corner: tuple[float, float], width: float, height: float) -> Rectangle:
    """Return a rectangle with the fill of a class of GPU time."""
    fill = CLASSES.get(key, OTHER_CLASS)
    shape = Rectangle(corner, width, height, facecolor=fill.colour, linewidth=0)
    shape.set(hatch=fill.hatch or None, edgecolor=_HATCH)
    return shape


def write_share(axes: Axes, place: tuple[float, float], text: str, key: str, size: float = _SMALL) -> None:
    """Write a share onto its part; on a hatch, on a plain ground, so that lines do not cross the figures."""
    fill = CLASSES.get(key, OTHER_CLASS)
    box = {"boxstyle": "square,pad=0.15", "facecolor": fill.colour, "linewidth": 0} if fill.hatch else None
    axes.text(*place, text, ha="center", va="center", fontsize=size, color=fill.text, fontweight="bold", bbox=box)


def _legend_rows(bars: Sequence[TimeBar], width: float) -> int:
    """Return how many rows the legend needs, by the length of its names."""
    names = gpu_time.class_labels(bars).values()
    return int(sum(_SMALL * 0.57 * len(name) + 34 for name in names) / (width - canvas.WIDEST_LABELS - _RIGHT)) + 1


def _draw_legend(axes: Axes, bars: Sequence[TimeBar], rows: int) -> None:
    labels = gpu_time.class_labels(bars)
    columns = -(-len(labels) // rows)
    # A legend is filled column by column, and read row by row.
    keys = [key for column in range(columns) for key in list(labels)[column::columns]]
    fills = [CLASSES.get(key, OTHER_CLASS) for key in keys]
    handles = [Patch(facecolor=fill.colour, hatch=fill.hatch or None, edgecolor=_HATCH, linewidth=0) for fill in fills]
    axes.legend(
        handles,
        [labels[key] for key in keys],
        loc="lower left",
        bbox_to_anchor=(0, 1.0),
        ncols=max(columns, 1),
        frameon=False,
        fontsize=_SMALL,
        handlelength=1.3,
        columnspacing=1.3,
        handletextpad=0.5,
        borderpad=0,
        borderaxespad=0.7,
    )


def describe_time_bars(bars: Sequence[TimeBar]) -> str:
    """Return what bars of GPU time show, for those who cannot see them."""
    return f"Share of GPU time by class: {'; '.join(_describe_bar(bar) for bar in bars)}"


def _describe_bar(bar: TimeBar) -> str:
    return f"{bar.label} " + ", ".join(f"{part.label} {part.text}" for part in bar.parts)
