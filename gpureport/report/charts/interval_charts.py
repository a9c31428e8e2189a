"""Figures of every step with their intervals, as dots or bars under its name, with a dot per run.

The figures are narrow: two are side by side on a wide page, else below each other.
"""

from math import ceil, floor, inf, log10

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse, Rectangle

from gpureport.columns import FloatArray
from gpureport.number_format import MINUS
from gpureport.report.charts import canvas
from gpureport.report.charts.palette import BAR, BUSY, GRID, INK, MUTED, PAPER, TRACK
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow
from gpureport.report.wording import display

WIDTH = 400.0
_SIDE, _BOTTOM, _TOP = 20.0, 24.0, 4.0
_ROW = 46.0
"""Height of a row: the name above, dot or bar below, and below that the dots of its runs."""

_MEAN, _RUNS = 27.0, 38.0
"""Where in a row the mean and the runs are drawn."""

_LEVELS = (0.0, 4.0, 8.0)
"""How far runs that would hide each other are moved down."""

_SMALL, _TEXT = 11.0, 12.0
_LABEL = 28
_RADIUS, _RUN_RADIUS = 4.5, 2.8
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_TICKS = 5
_NARROWEST = 0.05
"""Least width of an axis of shares, and of others as a part of their largest value."""

_MARGIN = 0.06


def draw_interval_chart(chart: IntervalChart, prefix: str) -> str:
    """Return a chart as an SVG element.

    Args:
        chart: the figure of every step.
        prefix: begins every id, unlike that of any other figure of the page.
    """
    return canvas.to_svg(build_interval_figure(chart), prefix, describe_chart(chart))


def describe_chart(chart: IntervalChart) -> str:
    """Return all that a chart shows, in words."""
    return f"{chart.title}: {'; '.join(f'{row.label} {row.sentence}' for row in chart.rows)}"


def build_interval_figure(
    chart: IntervalChart, width: float = WIDTH, *, above: float = 0.0, below: float = 0.0
) -> Figure:
    """Return a chart, drawn.

    Args:
        chart: the figure of every step.
        width: of the figure in points.
        above: room for a heading.
        below: room for a legend.
    """
    low, high = _axis_ends(chart)
    top, bottom = _TOP + above, _BOTTOM + below
    with canvas.chart_settings():
        drawn = canvas.new_figure(width, top + _ROW * len(chart.rows) + bottom)
        axes = canvas.new_axes(drawn, sides=(_SIDE, _SIDE), top=top, bottom=bottom, pad=4)
        axes.set(xlim=(low, high), ylim=(_ROW * len(chart.rows), 0))
        _draw_axis(axes, chart, low, high)
        for position, row in enumerate(chart.rows):
            _draw_row(axes, position * _ROW, row, chart, unit=(high - low) / (width - 2 * _SIDE))
        _draw_reference(axes, chart)
    return drawn


def _row_values(row: IntervalRow) -> list[float]:
    """Return every value that is drawn of a row."""
    mean = [] if row.value is None else [row.value, *(row.interval or ())]
    return [*mean, *(dot.value for dot in row.runs)]


def _axis_ends(chart: IntervalChart) -> tuple[float, float]:
    """Return the ends of the axis: bars begin at zero, dots too where that is not far away."""
    ends = [value for row in chart.rows for value in _row_values(row)]
    low, high = min(ends), max([*ends, chart.end or 0.0])
    if chart.form == "bars" or low < high / 2:
        return 0.0, (1.0 if chart.share and chart.form == "bars" else high * (1 + _MARGIN)) or 1.0
    least = _NARROWEST * (1.0 if chart.share else high)
    room = max((least - (high - low)) / 2, (high - low) * _MARGIN)
    low, high = low - room, high + room
    return (low, high) if not chart.share or high <= 1 else (low - (high - 1), 1.0)


def _draw_axis(axes: Axes, chart: IntervalChart, low: float, high: float) -> None:
    ticks = _round_ticks(low, high)
    labels = [_format_tick(float(tick), share=chart.share) for tick in ticks]
    axes.set_xticks(ticks, labels, fontsize=_SMALL, color=MUTED.stand_in)
    axes.set_yticks([])
    axes.grid(axis="x", color=GRID.stand_in, linewidth=0.6)
    axes.set_axisbelow(True)


def _format_tick(value: float, *, share: bool) -> str:
    if share:
        return f"{value * 100:.6g}%"
    return f"{value:,.6g}".replace("-", MINUS)


def _round_ticks(low: float, high: float) -> FloatArray:
    """Return round values within the axis, few enough for their labels."""
    rough = (high - low) / _TICKS
    power = 10.0 ** floor(log10(rough))
    step = next(each * power for each in _STEPS if each * power >= rough * (1 - 1e-9))
    ticks = np.arange(ceil(low / step - 1e-9), floor(high / step + 1e-9) + 1) * step
    return ticks.astype(np.float64)


def _draw_row(axes: Axes, top: float, row: IntervalRow, chart: IntervalChart, *, unit: float) -> None:
    """Draw a step: name and figure above its dot or bar; `unit` is what a point means."""
    across = axes.get_yaxis_transform()
    name = display.shorten_middle(row.label, _LABEL)
    axes.text(0, top + 13, name, transform=across, fontsize=_TEXT, color=INK.stand_in)
    axes.text(1, top + 13, row.text, transform=across, ha="right", fontsize=_SMALL, color=MUTED.stand_in)
    middle, (low, high) = top + _MEAN, axes.get_xlim()
    axes.add_artist(Rectangle((low, middle - 0.5), high - low, 1, facecolor=TRACK.stand_in, linewidth=0))
    if len(row.runs) > 1 or chart.form == "bars":
        _draw_runs(axes, row, top + _RUNS, unit)
    if row.value is None:
        return
    if chart.form == "bars":
        axes.add_artist(Rectangle((0, middle - 7), row.value, 14, facecolor=BAR.stand_in, linewidth=0))
    if row.interval:
        _draw_interval(axes, row.interval, middle)
    if chart.form == "dots":
        _draw_dot(axes, (row.value, middle), unit, _RADIUS, known=row.interval is not None)


def _draw_interval(axes: Axes, ends: tuple[float, float], middle: float) -> None:
    low, high = ends
    for x, y in (((low, high), (middle, middle)), *(((end, end), (middle - 5, middle + 5)) for end in ends)):
        axes.plot(x, y, color=INK.stand_in, linewidth=1.8, solid_capstyle="butt", clip_on=False)


def _draw_runs(axes: Axes, row: IntervalRow, top: float, unit: float) -> None:
    """Draw the runs of a step below its mean; those as good as equal stand below each other."""
    last: dict[float, float] = {}
    for dot in sorted(row.runs, key=lambda each: each.value):
        free = [level for level in _LEVELS if dot.value - last.get(level, -inf) >= 2 * _RUN_RADIUS * unit]
        level = free[0] if free else min(last, key=last.__getitem__)
        last[level] = dot.value
        _draw_run(axes, (dot.value, top + level), unit, counted=dot.counted, known=row.interval is not None)


def _draw_run(axes: Axes, place: tuple[float, float], unit: float, *, counted: bool, known: bool) -> None:
    """Draw a run below the mean: a dot, or a cross where the mean leaves it out."""
    if counted:
        _draw_dot(axes, place, unit, _RUN_RADIUS, known=known)
        return
    (x, y), across = place, _RUN_RADIUS * unit
    for way in (-1, 1):
        ends = (x - across, x + across), (y - way * _RUN_RADIUS, y + way * _RUN_RADIUS)
        axes.plot(*ends, color=MUTED.stand_in, linewidth=1.4, clip_on=False)


def _draw_dot(axes: Axes, place: tuple[float, float], unit: float, radius: float, *, known: bool) -> None:
    dot = Ellipse(place, 2 * radius * unit, 2 * radius, linewidth=1.6 if radius == _RADIUS else 1.2, clip_on=False)
    dot.set(facecolor=(BUSY if known else PAPER).stand_in, edgecolor=BUSY.stand_in)
    axes.add_artist(dot)


def _draw_reference(axes: Axes, chart: IntervalChart) -> None:
    """Draw a line at the figure of the first step, beside the dots and not through the names."""
    value = chart.rows[0].value
    if chart.form == "dots" and value is not None:
        for position in range(1, len(chart.rows)):
            ends = [position * _ROW + 17, position * _ROW + 43]
            axes.plot([value, value], ends, color=MUTED.stand_in, linewidth=0.9, linestyle=(0, (3, 3)), zorder=0.5)
