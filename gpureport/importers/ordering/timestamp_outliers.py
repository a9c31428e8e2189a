"""Rows whose date is damaged, found as a log is read: their stamps lie a day or more off all that stands around."""

import numpy as np

from gpureport.columns import BoolArray, IntArray, present

_DAY = 86_400 * 1_000_000
_LIMIT = _DAY
"""A clock is set by less; a stamp that far off for one row is a digit of its date gone wrong."""
_KEPT = 64
"""Rows remembered from section to section: the last two of each of up to 32 GPUs."""
_BEAT = 60 * 1_000_000
"""Intervals up to a minute tell a damaged date from a pause of days: the time of day goes on to the interval, which a
pause does by a chance of 1 in 700 at the most. Jobs that log by the hour or the day always begin on it."""


class Strays:
    """Finds damaged dates, section by section; no row is held back.

    A row between two of its device is judged by both. The first row is judged by the two after it, and the last of a
    section by the two before it: its date is damaged when the time of day goes on, and the date does not.
    """

    def __init__(self) -> None:
        """Start before the first row."""
        self._stamps: IntArray = np.zeros(0, dtype=np.int64)
        self._devices: IntArray = np.zeros(0, dtype=np.int64)

    def found(self, stamps: IntArray, devices: IntArray) -> BoolArray:
        """Return which rows of the next section are stray.

        Args:
            stamps: their stamps, in microseconds.
            devices: device of each, negative for rows to leave out.
        """
        known = len(self._stamps)
        before = np.concatenate([self._stamps, stamps[:_KEPT]])
        stray = np.zeros(len(stamps), dtype=np.bool_)
        if _leaps(before) or _leaps(stamps):
            stray = _strays(np.concatenate([self._stamps, stamps]), np.concatenate([self._devices, devices]))[known:]
        self._remember(stamps, devices)
        return stray

    def _remember(self, stamps: IntArray, devices: IntArray) -> None:
        """Keep the last rows of a section for the next one, stray or not: a leap that lasts is no damage."""
        stamps, devices = stamps[-_KEPT:], devices[-_KEPT:]
        named = devices >= 0
        self._stamps = np.concatenate([self._stamps, stamps[named]])[-_KEPT:]
        self._devices = np.concatenate([self._devices, devices[named]])[-_KEPT:]


def _leaps(stamps: IntArray) -> bool:
    """Return whether neighbours lie far apart anywhere."""
    if not len(stamps) or stamps.max() - stamps.min() <= _LIMIT:
        return False
    steps = np.diff(stamps)
    return bool(steps.max() > _LIMIT or steps.min() < -_LIMIT)


def _strays(stamps: IntArray, devices: IntArray) -> BoolArray:
    """Return the stray rows of all devices."""
    stray = np.zeros(len(stamps), dtype=np.bool_)
    for device in present(devices):
        rows = np.flatnonzero(devices == device)
        stray[rows] = _own(stamps[rows])
    return stray


def _own(stamps: IntArray) -> BoolArray:
    """Return the stray rows of one device."""
    stray = np.zeros(len(stamps), dtype=np.bool_)
    steps = np.diff(stamps)
    far = np.abs(steps) > _LIMIT
    stray[1:-1] = far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) < _LIMIT)
    if len(steps) > 1:
        stray[0] = _off_date(-int(steps[0]), -int(steps[1]))
        stray[-1] = _off_date(int(steps[-1]), int(steps[-2]))
    return stray


def _off_date(leap: int, step: int) -> bool:
    """Return whether a leap is one of whole days from where the step beside it leads."""
    days, rest = divmod(leap - step + _DAY // 2, _DAY)
    return abs(leap) > _LIMIT and abs(step) <= _BEAT and days != 0 and abs(rest - _DAY // 2) <= abs(step)
