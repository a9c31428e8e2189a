"""Times of day without a date, as `-o T` of nvidia-smi's monitors writes them."""

from dataclasses import dataclass

import numpy as np

from gpureport.columns import IntArray

_DAY = 86_400_000_000
_HALF = _DAY // 2
NOTE = "The log has times of day and no date (-o T): days are counted from 1970-01-01. -o DT writes both."


def of_day(text: str) -> int | None:
    """Return microseconds since midnight of `HH:MM:SS`, None when the text is no time of day."""
    parts = text.split(":")
    if [len(part) for part in parts] != [2, 2, 2] or not all(part.isascii() and part.isdigit() for part in parts):
        return None
    hours, minutes, seconds = map(int, parts)
    if hours >= 24 or minutes >= 60 or seconds > 60:  # noqa: PLR2004 - the clock, with a leap second
        return None
    return (hours * 3600 + minutes * 60 + seconds) * 1_000_000


@dataclass(slots=True)
class DayClock:
    """Counts the midnights that times of day pass."""

    _last: int | None = None
    _days: int = 0

    def times(self, clocks: IntArray) -> IntArray:
        """Return microseconds since the first midnight; a clock that falls by half a day passed midnight.

        Args:
            clocks: microseconds since midnight, in the order of the log.
        """
        if not len(clocks):
            return clocks
        before = np.append(clocks[0] if self._last is None else self._last, clocks[:-1])
        steps = np.where(clocks - before < -_HALF, 1, np.where(clocks - before > _HALF, -1, 0))
        days = self._days + np.cumsum(steps)
        self._last, self._days = int(clocks[-1]), int(days[-1])
        times: IntArray = clocks + days * _DAY
        return times
