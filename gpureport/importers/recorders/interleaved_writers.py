"""Two processes that write to one log at once, taken apart.

Each holds its rows back until a block of some kilobytes is full, so that runs of rows of the one and the other
alternate, and a line is torn wherever a block ends inside it.
"""

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.importers.timebase.row_order import RowOrder, split_at
from gpureport.importers.timebase.time_index import CoveredTime

_OVERLAP = 0.1
"""Share of the rows after the first reversal that lie in time already covered: about a third in a genuine log of two
writers, half in theory; what a time server sets back is far less (pragmatic)."""
_MANY = 4
"""Reversals with such an overlap that need no torn lines to be believed (pragmatic)."""
_SCATTERED = 5_000
"""Stretches of time beyond which rows are shuffled, and looking further would take for ever (pragmatic)."""
_TORN = 0.25
"""Where fewer changes of the writer have a damaged line, the writers do not write in blocks (pragmatic)."""
_WITHOUT = 3
"""Intervals after which a writer goes on when the other is done: one, and a line or two lost there (pragmatic)."""
_GO_ON = 0.5
"""Share of the changes at which it does, all of them in theory; a clock set back goes on with no row but the one before
it, and taken for two writers each would lack the rows of the other (pragmatic)."""
_STRAY = 0.01
"""A stream of fewer rows than this share of the longest is late rows of a writer, not one more (pragmatic)."""


def are_interleaved(track: RowOrder, cuts: IntArray, pace: int) -> bool:
    """Return whether the log was written by several processes at once.

    Args:
        track: rows at their times.
        cuts: rows before which they run back.
        pace: interval of the log, in microseconds.
    """
    believed = len(cuts) >= _MANY or _mostly_torn(track, cuts)
    return believed and _overlap(track, cuts, pace) >= _OVERLAP


def _mostly_torn(track: RowOrder, cuts: IntArray) -> bool:
    return 2 * int(track.after_line_gaps()[cuts].sum()) >= len(cuts)


def is_plausible(track: RowOrder, cuts: IntArray, numbers: IntArray) -> bool:
    """Return whether streams go on where they stopped, as those of writers do; torn lines at most cuts say so too.

    Args:
        track: rows at their times.
        cuts: rows before which they run back.
        numbers: stream of each row, -1 for a torn stamp.
    """
    changes = near = 0
    for number in np.unique(numbers[numbers >= 0]).tolist():
        rows = np.flatnonzero(numbers == number)
        own = track.select(rows)
        late = np.diff(own.stamps)[np.diff(rows) > 1]
        changes += len(late)
        near += int((late <= _WITHOUT * own.pace()).sum())
    return _mostly_torn(track, cuts) or near >= _GO_ON * changes


def _overlap(track: RowOrder, cuts: IntArray, pace: int) -> float:
    """Return the share of the rows after the first reversal that lie in time that earlier segments cover."""
    limit = gap_seconds(pace / 1e6) * 1e6
    covered = CoveredTime()
    inside = 0
    for start, end in split_at(cuts, len(track)):
        times = np.sort(track.stamps[start:end])
        if len(covered) > _SCATTERED:
            return 0.0
        inside += covered.count_within(times)
        gaps = np.flatnonzero(np.diff(times) > limit) + 1
        for first, last in split_at(gaps, len(times)):
            covered.add(int(times[first]), int(times[last - 1]))
    return inside / (len(track) - int(cuts[0]))


def number_writers(track: RowOrder, numbers: IntArray) -> IntArray:
    """Return the writer of each row, from 1, -1 where the stamp is torn.

    Streams that share no time can be one writer's, started again.

    Args:
        track: rows at their times.
        numbers: stream of each row.
    """
    counts = np.bincount(numbers[numbers >= 0])
    of_stream = np.ones(len(counts), dtype=np.int64)
    whole = np.flatnonzero(counts >= min(_STRAY * counts.max(), counts.max()))
    extents = [(track.stamps[numbers == number], number) for number in whole.tolist()]
    ends: list[int] = []
    for start, end, number in sorted((int(times.min()), int(times.max()), number) for times, number in extents):
        free = [writer for writer, last in enumerate(ends) if last < start]
        writer = max(free, key=lambda writer: ends[writer], default=len(ends))
        ends[writer:] = [end, *ends[writer + 1 :]]
        of_stream[number] = writer + 1
    return np.where(numbers >= 0, of_stream[numbers], -1)


def find_torn_rows(track: RowOrder, numbers: IntArray) -> tuple[BoolArray, int]:
    """Return the rows torn where the writer changes, and how many other lines are damaged there.

    Where a block ends inside a line, the line begins with the stamp of the one writer and ends with the values of
    the other. Mostly it is no row at all; where it still looks like one, it is the last one before the change.

    Args:
        track: rows with their lines.
        numbers: writer of each row.
    """
    rows = numbers < 0
    sound = np.flatnonzero(~rows)
    after = sound[1:][np.diff(numbers[sound]) != 0]
    changes = sound[np.searchsorted(sound, after) - 1]
    damaged = track.lines[after] - track.lines[changes] - 1
    whole = changes[damaged == 0]
    if len(changes) - len(whole) >= _TORN * len(changes):
        rows[whole] = True
    return rows, int(damaged.sum() + rows[changes].sum())
