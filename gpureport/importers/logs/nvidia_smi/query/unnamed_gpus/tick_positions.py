"""The position of each row in its tick, over a log that is read section by section; each position is one GPU."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_size import Ticks

LEFT_OUT = -1
"""Position of a row in a tick of an unusual size, where no position stands for a GPU."""

_Section = TypeVar("_Section")
_NONE = np.zeros(0, dtype=np.int64)


class TickPositions:
    """Gives each row its place in its tick, from 0, or LEFT_OUT.

    A tick is judged when the next one begins, so the rows of the last one are held back until then. Where the
    stamps do not show the ticks, a row's place is its number modulo the size.

    Attributes:
        fitting: ticks so far that hold the usual number of rows.
    """

    def __init__(self, ticks: Ticks) -> None:
        self._size, self._gap = ticks.size, ticks.gap
        self._last: int | None = None
        self._pending = 0
        self._too_long = False
        self._rows = 0
        self.fitting = 0

    @property
    def pending(self) -> int:
        """Number of rows whose positions are not known yet; never more than a tick holds."""
        return self._pending

    def assign(self, times: IntArray) -> IntArray:
        """Return the positions of the rows held back, and of the next ones as far as they are known.

        Args:
            times: stamps of the next rows as written, in microseconds.
        """
        if not len(times):
            return _NONE
        if self._gap is None:
            return self._counted(len(times))
        known = times[:1] if self._last is None else np.array([self._last], dtype=np.int64)
        gaps = np.abs(np.diff(np.concatenate([known, times])))
        self._last = int(times[-1])
        starts = self._pending + np.flatnonzero(gaps > self._gap)
        borders = np.unique(np.concatenate([[0], starts, [self._pending + len(times)]]))
        return self._judged(np.diff(borders), follows=self._pending == 0 and len(starts) > 0 and starts[0] == 0)

    def finish(self) -> IntArray:
        """Return the positions of the rows still held back, when no row follows."""
        if self._gap is None:
            return _NONE
        sizes = np.array([self._pending] if self._pending else [], dtype=np.int64)
        self._pending = 0
        self._close()
        return self._positions(sizes)

    def _counted(self, rows: int) -> IntArray:
        """Return positions by the number of the row alone."""
        positions = (self._rows + np.arange(rows, dtype=np.int64)) % self._size
        self.fitting += (self._rows + rows) // self._size - self._rows // self._size
        self._rows += rows
        return positions

    def _judged(self, sizes: IntArray, *, follows: bool) -> IntArray:
        """Return the positions of all ticks but the last, which stays open; the first continues the open one.

        Args:
            sizes: rows of the ticks, from the first row held back on.
            follows: whether the open tick ended with the rows before, all of them judged.
        """
        leading = 0
        if self._too_long and not follows:
            # rows of a tick that is known to be too long already
            leading, sizes = int(sizes[0]), sizes[1:]
            if not len(sizes):
                return np.full(leading, LEFT_OUT, dtype=np.int64)
        self._close()
        self._pending = int(sizes[-1])
        positions = [np.full(leading, LEFT_OUT, dtype=np.int64), self._positions(sizes[:-1])]
        if self._pending > self._size:
            positions.append(np.full(self._pending, LEFT_OUT, dtype=np.int64))
            self._pending, self._too_long = 0, True
        return np.concatenate(positions)

    def _close(self) -> None:
        """Count the open tick if its rows were left out before it ended."""
        self._too_long = False

    def _positions(self, sizes: IntArray) -> IntArray:
        """Return the positions of the rows of complete ticks, and count these."""
        fits = sizes == self._size
        self.fitting += int(fits.sum())
        places = np.arange(int(sizes.sum()), dtype=np.int64) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return np.where(np.repeat(fits, sizes), places, LEFT_OUT)


def assign_positions(
    positions: TickPositions, sections: Iterable[_Section], times: Callable[[_Section], IntArray]
) -> Iterator[tuple[_Section, IntArray]]:
    """Yield each section with the positions of its rows, as soon as all of them are known.

    Args:
        positions: the log's, before its first row.
        sections: sections of rows in the order of the log; one is held back, more where they are shorter than a tick.
        times: what returns the stamps of a section's rows.
    """
    waiting: deque[tuple[_Section, int]] = deque()
    known = _NONE
    for section in sections:
        stamps = times(section)
        waiting.append((section, len(stamps)))
        known = np.concatenate([known, positions.assign(stamps)])
        while waiting and waiting[0][1] <= len(known):
            first, rows = waiting.popleft()
            yield first, known[:rows]
            known = known[rows:]
    known = np.concatenate([known, positions.finish()])
    for section, rows in waiting:
        yield section, known[:rows]
        known = known[rows:]
