"""The figures of a report, drawn once for every format that shows them; each is an SVG element.

Sizes are in points of the figure, which are its SVG units. Text from logs is drawn as it is, never read as
mathematics.
"""

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch, Rectangle
from matplotlib.path import Path

from gpureport.columns import FloatArray
from gpureport.report.charts import event_marks, svg
from gpureport.report.charts.palette import BUSY, CLASSES, GRID, INK, MUTED, OTHER_CLASS, SEVERITY, TRACK
from gpureport.report.model.time_charts import FindingMark, TimeBar, Timeline, TimelineStrip
from gpureport.report.runs import gpu_time
from gpureport.report.wording import display

WIDTH = 900.0
_LEFT, _LETTER = (70.0, 190.0), 6.5
"""Least and most room for labels, and what a letter of one takes."""

_RIGHT = 62.0
_SMALL, _TEXT = 10.0, 11.0
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpureport",
    "text.parse_math": False,
    "path.simplify": False,
    "hatch.linewidth": 0.7,
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "text.color": INK.stand_in,
}
"""Settings of matplotlib that every figure is drawn with."""

_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MOST_TICKS = 8
_LABEL = 26
_ROWS = ((4, 32.0), (8, 24.0), (16, 16.0), (sys.maxsize, 10.0))
"""Height of a strip for at most so many GPUs."""

_LABEL_FITS = 0.05
_HATCH = (0.08, 0.09, 0.11, 0.28)
_NAMED_MARKS = 3


def draw_time_bars(bars: Sequence[TimeBar], prefix: str, width: float = WIDTH) -> str:
    """Return the bars of GPU time, one above the other, each 100 % wide; a page takes a narrower figure."""
    return to_svg(build_time_bars_figure(bars, width), prefix, describe_time_bars(bars))


def build_time_bars_figure(bars: Sequence[TimeBar], width: float = WIDTH) -> Figure:
    """Return the bars of GPU time, drawn as wide as said, in points."""
    rows = _legend_rows(bars, width)
    top, row, bottom = 14.0 + 16.0 * rows, 30.0, 24.0
    height = top + row * len(bars) + bottom
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]  # the stubs know each setting's name as a literal only
        labels = [display.shorten_middle(bar.label, _LABEL) for bar in bars]
        figure, axes = _new_figure(height, top, bottom, labels, width)
        axes.set(xlim=(0, 1), ylim=(len(bars) - 0.5, -0.5))
        for position, bar in enumerate(bars):
            _draw_bar(axes, position, bar, _LABEL_FITS * WIDTH / width)
        axes.set_yticks(range(len(bars)), labels, fontsize=_TEXT, color=INK.stand_in)
        shares = [0, 0.2, 0.4, 0.6, 0.8, 1]
        axes.set_xticks(shares, [f"{share * 100:.0f} %" for share in shares], fontsize=_SMALL, color=MUTED.stand_in)
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
    axes.text(1.008, position, bar.total.split(display.GAP)[0], va="center", fontsize=_SMALL, color=MUTED.stand_in)


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
    return int(sum(_SMALL * 0.57 * len(name) + 34 for name in names) / (width - _LEFT[1] - _RIGHT)) + 1


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


def draw_timeline(run: Timeline, prefix: str, width: float = WIDTH) -> str:
    """Return the strips of one run: utilisation as height, hatch without samples, a line under what findings mark."""
    label = f"GPU utilisation over time, {run.label}, {len(run.strips)} GPUs{event_marks.describe_events(run)}"
    return to_svg(build_timeline_figure(run, width=width), prefix, label)


def build_timeline_figure(run: Timeline, *, width: float = WIDTH, above: float = 0.0, below: float = 0.0) -> Figure:
    """Return the strips of one run, drawn.

    Args:
        run: the run, with at least one strip.
        width: of the figure, in points.
        above: room over the strips for what a picture alone has to say, in points.
        below: the same below the axis.
    """
    row = next(height for most, height in _ROWS if len(run.strips) <= most)
    top, bottom = (event_marks.HEIGHT if event_marks.timed_events(run) else 6.0) + above, 36.0 + below
    with mpl.rc_context(STYLE):  # type: ignore[arg-type]  # as above
        labels = [display.shorten_middle(strip.label, _LABEL) for strip in run.strips]
        figure, axes = _new_figure(top + row * len(run.strips) + bottom, top, bottom, labels, width)
        axes.set(xlim=(0, max(run.axis_seconds, 1e-3)), ylim=(len(run.strips), 0))
        shared = Counter(card for strip in run.strips for card in {mark.card for mark in strip.marks})
        for position, strip in enumerate(run.strips):
            _draw_strip(axes, position, strip, run, shared)
            _write_card_ids(axes, position, strip, shared, _SMALL if row > 10 else row * 0.75)  # noqa: PLR2004 - points
        size = _TEXT if row > 12 else row * 0.78  # noqa: PLR2004 - points
        axes.set_yticks(np.arange(len(labels)) + 0.5, labels, fontsize=size, color=INK.stand_in)
        ticks = _time_ticks(run.axis_seconds)
        axes.set_xticks(ticks, [display.elapsed(tick) for tick in ticks], fontsize=_SMALL, color=MUTED.stand_in)
        axes.set_xlabel("since the first sample, h:min:s", fontsize=_SMALL, color=MUTED.stand_in, labelpad=3)
        axes.grid(axis="x", color=GRID.stand_in, linewidth=0.6)
        axes.set_axisbelow(True)
        event_marks.draw_event_marks(axes, run, row=row, points=run.axis_seconds / (axes.get_position().width * width))
    return figure


def _marks_by_card(strip: TimelineStrip, shared: Counter[str]) -> dict[str, list[FindingMark]]:
    """Return the marks of each card, cards that speak of few GPUs first."""
    by_card: dict[str, list[FindingMark]] = {}
    for mark in sorted(strip.marks, key=lambda mark: (shared[mark.card], int(mark.card[1:]))):
        by_card.setdefault(mark.card, []).append(mark)
    return by_card


def _write_card_ids(axes: Axes, position: int, strip: TimelineStrip, shared: Counter[str], size: float) -> None:
    """Write the cards that mark a strip beside it."""
    cards = list(_marks_by_card(strip, shared))
    axes.text(
        1.008,
        position + 0.5,
        " ".join(cards[:_NAMED_MARKS]) + (" …" if len(cards) > _NAMED_MARKS else ""),
        va="center",
        fontsize=size - 1,
        color=MUTED.stand_in,
        transform=axes.get_yaxis_transform(),
    )


def _draw_strip(axes: Axes, position: int, strip: TimelineStrip, run: Timeline, shared: Counter[str]) -> None:
    floor, height = position + 0.80, 0.68
    axes.add_artist(Rectangle((0, floor - height), run.seconds, height, facecolor=TRACK.stand_in, linewidth=0))
    if area := _utilisation_path(strip.mean, run.bucket_seconds, floor, height):
        axes.add_artist(PathPatch(area, facecolor=BUSY.stand_in, linewidth=0))
    for start, end in strip.gaps:
        gap = Rectangle((start, floor - height), end - start, height, facecolor=TRACK.stand_in, linewidth=0)
        gap.set(hatch="////", edgecolor=MUTED.stand_in)
        axes.add_artist(gap)
    shortest = run.axis_seconds / WIDTH * 2
    for card, marks in _marks_by_card(strip, shared).items():
        top, thickness = (floor + 0.155, 0.045) if marks[0].whole else (floor + 0.03, 0.11)
        shape = PathPatch(_mark_path(marks, top, thickness, shortest), linewidth=0)
        shape.set(facecolor=SEVERITY[marks[0].severity].stand_in, gid=f"mark-{card}-{position}")
        axes.add_artist(shape)


def _utilisation_path(means: FloatArray, bucket: float, floor: float, height: float) -> Path | None:
    """Return the steps of the means as a closed path, one piece for each stretch with samples."""
    known = np.flatnonzero(~np.isnan(means))
    if not len(known):
        return None
    pieces = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1)
    return Path.make_compound_path(
        *(_step_path(means[piece], piece[0] * bucket, bucket, floor, height) for piece in pieces)
    )


def _step_path(means: FloatArray, start: float, bucket: float, floor: float, height: float) -> Path:
    x = start + np.repeat(np.arange(len(means) + 1), 2) * bucket
    y = np.concatenate([[floor], np.repeat(floor - means * height, 2), [floor]])
    vertices = np.column_stack([x, y])
    return Path(np.vstack([vertices, vertices[:1]]), closed=True)


def _mark_path(marks: Sequence[FindingMark], top: float, height: float, shortest: float) -> Path:
    """Return one rectangle a mark, wide enough to be seen."""
    return Path.make_compound_path(*_mark_rectangles(marks, top, height, shortest))


def _mark_rectangles(marks: Sequence[FindingMark], top: float, height: float, shortest: float) -> Iterator[Path]:
    for mark in marks:
        end = max(mark.end, mark.start + shortest)
        corners = [(mark.start, top), (end, top), (end, top + height), (mark.start, top + height), (mark.start, top)]
        yield Path(np.array(corners), closed=True)


def _time_ticks(seconds: float) -> FloatArray:
    """Return positions of round times, few enough to be read."""
    days = int(seconds / _TICKS[-1] / _MOST_TICKS) + 1
    step = next((tick for tick in _TICKS if seconds / tick <= _MOST_TICKS), _TICKS[-1] * days)
    ticks: FloatArray = np.arange(0.0, seconds + 1e-9, step)
    return ticks


def _new_figure(height: float, top: float, bottom: float, labels: Sequence[str], width: float) -> tuple[Figure, Axes]:
    """Return a figure with one plain axes, its margins from the labels, so that no layout has to be computed."""
    left = min(max(_LETTER * max(len(label) for label in labels) + 16, _LEFT[0]), _LEFT[1])
    figure = Figure(figsize=(width / 72, height / 72))
    FigureCanvasSVG(figure)
    figure.patch.set_visible(False)
    inner = (left / width, bottom / height, (width - left - _RIGHT) / width, (height - top - bottom) / height)
    axes = figure.add_axes(inner)
    axes.patch.set_visible(False)
    axes.spines[:].set_visible(False)
    axes.tick_params(left=False, bottom=False, pad=5)
    return figure, axes


def to_svg(figure: Figure, prefix: str, label: str) -> str:
    """Return a figure as an SVG element; `svg.slim_svg` says what the other arguments mean."""
    stream = StringIO()
    with warnings.catch_warnings(), mpl.rc_context(STYLE):  # type: ignore[arg-type]  # as above
        # A font without a glyph only makes the measure of a label inexact: the reader's own font draws it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format="svg", metadata={"Date": None, "Creator": None})
    return svg.slim_svg(stream.getvalue(), prefix=prefix, label=label)
