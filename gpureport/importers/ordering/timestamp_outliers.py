"""Rows whose date is damaged, found as a log is read: their stamps lie a day or more off all that stands around."""

import numpy as np

from gpureport.columns import BoolArray, IntArray, present

_DAY = 86_400 * 1_000_000
LONGEST_STEP = _DAY
"""A clock is set by less; a stamp that far off for one row is a digit of its date gone wrong."""
_BEAT = 60 * 1_000_000
"""Intervals up to a minute tell a damaged date from a pause of days: the time of day goes on to the interval, which a
pause does by a chance of 1 in 700 at the most. Jobs that log by the hour or the day always begin on it."""


def find_outliers(stamps: IntArray, devices: IntArray) -> BoolArray:
    """Return which rows have a damaged date.

    A row between two of its device is judged by both. The first row is judged by the two after it, and the last by
    the two before it: its date is damaged when the time of day goes on, and the date does not.

    Args:
        stamps: stamps of the rows, in microseconds; the last rows of the section before come first.
        devices: device of each, negative for rows to leave out.
    """
    outliers = np.zeros(len(stamps), dtype=np.bool_)
    for device in present(devices):
        rows = np.flatnonzero(devices == device)
        outliers[rows] = _outliers_of_device(stamps[rows])
    return outliers


def _outliers_of_device(stamps: IntArray) -> BoolArray:
    outliers = np.zeros(len(stamps), dtype=np.bool_)
    steps = np.diff(stamps)
    far = np.abs(steps) > LONGEST_STEP
    outliers[1:-1] = far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) < LONGEST_STEP)
    if len(steps) > 1:
        outliers[0] = _off_date(-int(steps[0]), -int(steps[1]))
        outliers[-1] = _off_date(int(steps[-1]), int(steps[-2]))
    return outliers


def _off_date(leap: int, step: int) -> bool:
    """Return whether a leap is one of whole days from where the step beside it leads."""
    days, rest = divmod(leap - step + _DAY // 2, _DAY)
    return abs(leap) > LONGEST_STEP and abs(step) <= _BEAT and days != 0 and abs(rest - _DAY // 2) <= abs(step)
