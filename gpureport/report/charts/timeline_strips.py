"""Strips of utilisation over time, one a GPU, with the stretches that findings and events mark."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from gpureport.columns import FloatArray
from gpureport.report.charts import canvas, event_marks
from gpureport.report.charts.palette import BUSY, GRID, INK, MUTED, SEVERITY, TRACK
from gpureport.report.charts.vector.class_patterns import find_fill
from gpureport.report.model.pictures import ClassStretch
from gpureport.report.model.time_charts import FindingMark, Timeline, TimelineStrip
from gpureport.report.wording import display

_RIGHT = 62.0
_SMALL, _TEXT = 10.0, 11.0
_TICKS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_MOST_TICKS = 8
_LABEL = 26
_ROWS = ((4, 32.0), (8, 24.0), (16, 16.0), (sys.maxsize, 10.0))
"""Height of a strip for at most so many GPUs."""

_NAMED_MARKS = 3


def draw_timeline(run: Timeline, prefix: str, width: float = canvas.WIDTH) -> str:
    """Return the strips of one run: utilisation, hatched without samples, above classes and findings."""
    label = f"GPU utilisation over time, {run.label}, {len(run.strips)} GPUs{event_marks.describe_events(run)}"
    return canvas.to_svg(build_timeline_figure(run, width=width), prefix, label)


def build_timeline_figure(
    run: Timeline, *, width: float = canvas.WIDTH, above: float = 0.0, below: float = 0.0
) -> Figure:
    """Return the strips of one run, drawn.

    Args:
        run: the run, with at least one strip.
        width: of the figure, in points.
        above: room over the strips for what a picture alone has to say, in points.
        below: the same below the axis.
    """
    row = next(height for most, height in _ROWS if len(run.strips) <= most)
    top, bottom = (event_marks.HEIGHT if event_marks.timed_events(run) else 6.0) + above, 36.0 + below
    with canvas.chart_settings():
        labels = [display.shorten_middle(strip.label, _LABEL) for strip in run.strips]
        figure = canvas.new_figure(width, top + row * len(run.strips) + bottom)
        sides = (canvas.label_margin(labels), _RIGHT)
        axes = canvas.new_axes(figure, sides=sides, top=top, bottom=bottom, pad=5)
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
    floor, height = position + 0.72, 0.60
    axes.add_artist(Rectangle((0, floor - height), run.seconds, height, facecolor=TRACK.stand_in, linewidth=0))
    if area := _utilisation_path(strip.mean, run.bucket_seconds, floor, height):
        axes.add_artist(PathPatch(area, facecolor=BUSY.stand_in, linewidth=0))
    for start, end in strip.gaps:
        gap = Rectangle((start, floor - height), end - start, height, facecolor=TRACK.stand_in, linewidth=0)
        gap.set(hatch="////", edgecolor=MUTED.stand_in)
        axes.add_artist(gap)
    for key, path in _band_paths(strip.band, floor + 0.01, 0.08).items():
        axes.add_artist(PathPatch(path, facecolor=find_fill(key).colour, linewidth=0))
    shortest = run.axis_seconds / canvas.WIDTH * 2
    for card, marks in _marks_by_card(strip, shared).items():
        top, thickness = (floor + 0.235, 0.045) if marks[0].whole else (floor + 0.12, 0.1)
        shape = PathPatch(_mark_path(marks, top, thickness, shortest), linewidth=0)
        shape.set(facecolor=SEVERITY[marks[0].severity].stand_in, gid=f"mark-{card}-{position}")
        axes.add_artist(shape)


def _band_paths(band: Sequence[ClassStretch], top: float, height: float) -> dict[str, Path]:
    """Return the stretches of each class as one path; stripes this thin show colours, no hatches."""
    stretches: dict[str, list[Path]] = {}
    for part in band:
        corners = [(part.start, top), (part.end, top), (part.end, top + height), (part.start, top + height)]
        stretches.setdefault(part.key, []).append(Path(np.array([*corners, corners[0]]), closed=True))
    return {key: Path.make_compound_path(*paths) for key, paths in stretches.items()}


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
    days = int(seconds / _TICKS[-1] / _MOST_TICKS) + 1
    step = next((tick for tick in _TICKS if seconds / tick <= _MOST_TICKS), _TICKS[-1] * days)
    ticks: FloatArray = np.arange(0.0, seconds + 1e-9, step)
    return ticks
