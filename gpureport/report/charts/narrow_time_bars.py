"""Bars of GPU time for a narrow page: each label stands above its bar, which takes the whole width."""

from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from gpureport.report.charts import canvas, time_bars
from gpureport.report.charts.palette import INK, MUTED
from gpureport.report.model.time_charts import TimeBar
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display

WIDTH = 360.0
_SMALL, _TEXT = 11.0, 12.0
_ROW, _THICK = 42.0, 18.0
"""Height of a row, the name above and the bar below; and of the bar."""

_TOP, _LINE, _SWATCH, _GAP = 6.0, 18.0, 14.0, 14.0
"""Room above, height of a line of the legend, width of the sample of a fill, and what lies between two names."""

_LETTER = 0.58
"""Mean width of a letter, as a part of its size."""

_LABEL = 36
_FITS = 36.0
"""Least length of a part that its share is written on."""


def draw_narrow_time_bars(bars: Sequence[TimeBar], prefix: str) -> str:
    """Return the bars as an SVG element; `prefix` begins every id, unlike that of any other figure of the page."""
    return canvas.to_svg(build_narrow_figure(bars), prefix, time_bars.describe_time_bars(bars))


def build_narrow_figure(bars: Sequence[TimeBar]) -> Figure:
    """Return the bars, drawn."""
    names = list(_legend_places(gpu_time.class_labels(bars)))
    top = _TOP + _LINE * (names[-1][2] + 1) + 4
    height = top + _ROW * len(bars)
    with canvas.chart_settings():
        drawn, axes = _new_figure(height)
        for key, label, line, left in names:
            _draw_legend_entry(axes, key, label, (left, _TOP + line * _LINE))
        for position, bar in enumerate(bars):
            _draw_bar(axes, top + position * _ROW, bar)
    return drawn


def _new_figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure and axes over all of it, both in points from the upper left."""
    drawn = canvas.new_figure(WIDTH, height)
    axes = drawn.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set(xlim=(0, WIDTH), ylim=(height, 0))
    return drawn, axes


def _legend_places(labels: dict[str, str]) -> Iterator[tuple[str, str, int, float]]:
    """Yield class, name, line and left edge of every entry of the legend, as many on a line as it has room for."""
    line, left = 0, 0.0
    for key, label in labels.items():
        wide = _SWATCH + 5 + _LETTER * _SMALL * len(label)
        if left and left + wide > WIDTH:
            line, left = line + 1, 0.0
        yield key, label, line, left
        left += wide + _GAP


def _draw_legend_entry(axes: Axes, key: str, label: str, place: tuple[float, float]) -> None:
    left, top = place
    axes.add_artist(time_bars.class_rectangle(key, (left, top + 3), _SWATCH, 9))
    axes.text(left + _SWATCH + 5, top + 11.5, label, fontsize=_SMALL, color=INK.stand_in)


def _draw_bar(axes: Axes, top: float, bar: TimeBar) -> None:
    axes.text(0, top + 14, display.shorten_middle(bar.label, _LABEL), fontsize=_TEXT, color=INK.stand_in)
    axes.text(WIDTH, top + 14, bar.total, ha="right", fontsize=_SMALL, color=MUTED.stand_in)
    left = 0.0
    for part in bar.parts:
        wide = part.ratio * WIDTH
        axes.add_artist(time_bars.class_rectangle(part.key, (left, top + 20), wide, _THICK))
        if wide >= _FITS:
            time_bars.write_share(axes, (left + wide / 2, top + 20 + _THICK / 2), part.text, part.key, _SMALL)
        left += wide
