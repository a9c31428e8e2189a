"""Marks of the events of the log over the strips of a timeline."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from gpureport.report.charts.palette import EVENT, PAPER
from gpureport.report.model.time_charts import LogEventLine, Timeline
from gpureport.report.runs import log_events

HEIGHT = 22.0
"""Points above the strips that the numbers of events take."""

_SIZE, _LETTER, _AROUND = 9.0, 6.0, 8.0
"""Points: size of a number, what a letter of it takes, and the room around it."""


def timed_events(run: Timeline) -> list[LogEventLine]:
    """Return the events that have a place on the axis."""
    return [event for event in run.events if event.at is not None]


def describe_events(run: Timeline) -> str:
    """Return the events as the end of a sentence, for those who cannot see the figure."""
    said = "; ".join(f"{event.id} {event.name} at {event.when}" for event in timed_events(run))
    return f"; events of the log: {said}" if said else ""


def draw_event_marks(axes: Axes, run: Timeline, *, row: float, points: float) -> None:
    """Draw a line and a wedge at each event, and its number; events whose numbers would overlap share one.

    Args:
        axes: where strips take one unit of height each.
        run: the strips.
        row: height of a strip in points.
        points: seconds that a point of width stands for.
    """

    def width_seconds(group: Sequence[LogEventLine]) -> float:
        return (len(log_events.format_numbers(group)) * _LETTER + _AROUND) * points

    for group in log_events.group_close_events(timed_events(run), width_seconds):
        for event in group:
            _draw_mark(axes, event.at or 0.0, len(run.strips), row, points)
        start = (group[0].at or 0.0) - 3 * points
        axes.text(start, -7 / row, log_events.format_numbers(group), fontsize=_SIZE, color=EVENT.stand_in)


def _draw_mark(axes: Axes, at: float, strips: int, row: float, points: float) -> None:
    line = Path(np.array([(at, 0), (at, strips)]))
    # on a ground of its own, so that it shows on a busy strip as well
    axes.add_artist(PathPatch(line, fill=False, edgecolor=PAPER.stand_in, linewidth=2.5))
    axes.add_artist(PathPatch(line, fill=False, edgecolor=EVENT.stand_in, linewidth=1.0, linestyle=(0, (3, 2))))
    corners = np.array([(at - 3 * points, -5 / row), (at + 3 * points, -5 / row), (at, 0), (at - 3 * points, -5 / row)])
    axes.add_artist(PathPatch(Path(corners, closed=True), facecolor=EVENT.stand_in, linewidth=0, clip_on=False))
