"""The hour that a zone has twice in autumn, in a log whose stamps never fall: which of the two its rows are of."""

from dataclasses import dataclass
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.note_text import format_count
from gpureport.importers.timebase import zones

_LAG = 3
"""Intervals between rows that follow each other: one, and a late one (pragmatic)."""


@dataclass(slots=True)
class RepeatedHour:
    """The rows of one device whose stamps a zone has twice.

    Rows that go on into the hour from before it are of the first. Those that begin within it may be of either, and
    those that go on behind it as well are of neither alone.
    """

    zone: ZoneInfo
    unsettled: int = 0
    _open: int = 0
    _entered: bool = False
    _last: int | None = None
    _pace: int = 0

    @property
    def rows(self) -> int:
        """Return how many rows may be of either hour."""
        return self.unsettled + (0 if self._entered else self._open)

    def take(self, stamps: IntArray) -> None:
        """Take further stamps as written, rising."""
        twice = zones.fold_size(stamps, self.zone) > 0
        steps = np.diff(stamps)
        self._pace = int(np.median(steps[steps > 0])) if (steps > 0).any() else self._pace
        if twice.any() or self._open:
            self._look(stamps, twice)
        self._last = int(stamps[-1])

    def _look(self, stamps: IntArray, twice: BoolArray) -> None:
        """Look at the stretches within the hour and outside of it."""
        bounds = [0, *(np.flatnonzero(twice[1:] != twice[:-1]) + 1).tolist(), len(stamps)]
        for start, end in pairwise(bounds):
            before = self._last if start == 0 else int(stamps[start - 1])
            near = before is not None and stamps[start] - before <= _LAG * self._pace
            if twice[start]:
                self._entered = self._entered if self._open else near
                self._open += end - start
            elif self._open:
                self.unsettled += 0 if self._entered and not near else self._open
                self._open, self._entered = 0, False


def fold_notes(rows: int, zone: ZoneInfo | None) -> tuple[str, ...]:
    """Return what a reader must know of so many rows that may be of either hour."""
    if not rows or zone is None:
        return ()
    lie = "lies" if rows == 1 else "lie"
    said = f"{format_count(rows, 'row')} {lie} in the hour that {zone.key} has twice in autumn"
    return (f"{said}, and nothing in the log tells in which of the two: the first is taken.",)
