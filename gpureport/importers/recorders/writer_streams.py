"""Rows of several writers to streams: each run of rows goes to the writer whose interval it continues."""

from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.timebase.row_order import RowOrder, split_at

_OFF_BEAT = 0.07
"""A row this share of an interval off the beat of its stream may be another writer's (pragmatic)."""
_PAUSE = 3
"""A row that many intervals after the one before may be another writer's as well (pragmatic)."""
_STAY = 0.05
"""What speaks for the same writer where no line is torn, in shares of an interval (pragmatic)."""
_FAR, _FAR_MOST = 0.01, 0.3
"""What speaks against a stream that stopped earlier, for each interval since, in shares of an interval (pragmatic)."""
_MOST = 50
"""Streams beyond which rows are shuffled, and looking further would take for ever (pragmatic)."""
_OTHER_PACE = 1.5
"""Runs whose intervals differ by more than this factor are rather two writers' (pragmatic)."""
_AHEAD = 0.2
"""What speaks against a stream whose last row would have to be a torn one, in shares of an interval (pragmatic)."""
_FEW_ROWS = 8
"""Rows of one device that show the interval of a run."""


@dataclass(slots=True)
class _Stream:
    """Rows of one writer so far: the last stamp, also by device, and its own interval.

    Attributes:
        lone: the last row when it came alone: row, device, and the stamps before it. Where it turns out to lie ahead
            of all that follows, its stamp was torn, and it is taken back.
    """

    pace: int
    last: int = 0
    by_device: dict[int, int] = field(default_factory=dict)
    lone: tuple[int, int, int, int] | None = None

    def off(self, device: int, stamp: int, pace: int) -> float | None:
        """Return how badly a row of a run with an interval goes on with the stream, None when it would run back."""
        gap, ahead = stamp - self.by_device.get(device, self.last), 0.0
        if 2 * gap < -self.pace and self.lone is not None:
            gap, ahead = stamp - (self.lone[2] if device == self.lone[1] else self.lone[3]), _AHEAD
        if 2 * gap < -self.pace:
            return None
        beats = max(round(gap / self.pace), 1)
        other = max(pace, self.pace) > _OTHER_PACE * min(pace, self.pace)
        return abs(gap / self.pace - beats) + min(_FAR * (beats - 1), _FAR_MOST) + other * _FAR_MOST + ahead

    def take(self, track: RowOrder, start: int, end: int) -> int | None:
        """Add rows; return the row that is taken back for it."""
        devices, stamps = track.devices[start:end], track.stamps[start:end]
        device, first = int(devices[0]), int(stamps[0])
        back = None
        if self.lone is not None and 2 * (first - self.by_device.get(device, self.last)) < -self.pace:
            back, own, self.by_device[own], self.last = self.lone[0], *self.lone[1:]
        known = self.by_device.get(device, self.last)
        self.lone = (start, device, known, self.last) if end - start == 1 and self.by_device else None
        self.by_device.update(zip(devices.tolist(), stamps.tolist(), strict=True))
        self.last = int(stamps[-1])
        return back


def split_streams(track: RowOrder, cuts: IntArray, pace: int) -> "IntArray | None":
    """Return the number of the stream each row belongs to, -1 for a torn stamp; None when the rows make no streams.

    A run of rows goes to the stream whose beat it keeps and that stopped the shortest time before.

    Args:
        track: rows at their times.
        cuts: rows before which they run back.
        pace: interval of the log, in microseconds.
    """
    run_starts = track.after_line_gaps()
    run_starts[cuts] = True
    paces = _run_intervals(track, np.flatnonzero(run_starts), pace)
    numbers = np.zeros(len(track), dtype=np.int64)
    known: list[_Stream] = []
    current = 0
    breaks = np.flatnonzero(run_starts | _off_beat(track, paces))
    for start, end in split_at(breaks[breaks > 0], len(track)):
        current = _closest_stream(known, track, start, int(paces[start]), None if run_starts[start] else current)
        if current == len(known):
            known.append(_Stream(int(paces[start])))
        if len(known) > _MOST:
            return None
        numbers[start:end] = current
        back = known[current].take(track, start, end)
        if back is not None:
            numbers[back] = -1
    return numbers


def _run_intervals(track: RowOrder, run_starts: IntArray, pace: int) -> IntArray:
    """Return the interval of the run between run_starts that each row lies in, that of the log where a run is short."""
    paces = np.full(len(track), pace, dtype=np.int64)
    for start, end in split_at(run_starts[run_starts > 0], len(track)):
        run = track.between(start, end)
        differences = run.differences()
        if (differences > 0).sum() >= _FEW_ROWS:
            paces[start:end] = np.median(differences[differences > 0])
    return paces


def _off_beat(track: RowOrder, paces: IntArray) -> BoolArray:
    """Return the rows that do not lie one or two intervals after the row before of their device."""
    beats = track.differences() / paces
    off: BoolArray = np.abs(beats - np.maximum(np.round(beats), 1)) > _OFF_BEAT
    return (off | (beats >= _PAUSE - _OFF_BEAT)) & (track.previous_rows() >= 0)


def _closest_stream(known: list[_Stream], track: RowOrder, row: int, pace: int, stay: int | None) -> int:
    """Return the stream a row goes on with best, a new number when it goes on with none."""
    costs = {}
    for number, stream in enumerate(known):
        off = stream.off(int(track.devices[row]), int(track.stamps[row]), pace)
        if off is not None:
            costs[number] = off - (_STAY if number == stay else 0)
    return min(costs, key=lambda number: costs[number], default=len(known))
