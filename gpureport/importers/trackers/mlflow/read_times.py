"""When the values that MLflow logged were read.

MLflow's monitor reads a value, waits for its interval, and then logs the value with the time of logging. So every
system metric is late by the interval, which is stored nowhere. A value was read when the one before it was logged,
the first one when the run started. If the one before is much older than usual, the monitor did not run in between,
and the usual interval is used.
"""

import numpy as np

from gpureport.columns import IntArray

_LONGEST_INTERVAL = 1.5
"""Between timestamps more than this many medians apart, no monitor ran (pragmatic)."""


def assign_monitors(times: IntArray, steps: IntArray) -> IntArray:
    """Return the number of the monitor that logged each tick, from 0.

    Every monitor counts its ticks as steps. If several monitors log the same names, steps repeat. A tick belongs to
    the monitor whose last step is the one before, else to one with a lower step; of several, to the one that waited
    longest.

    Args:
        times: times of the ticks, rising.
        steps: steps of the ticks.
    """
    found = np.zeros(len(times), dtype=np.int64)
    if len(np.unique(steps)) == len(steps):
        return found
    last: list[int] = []
    latest: list[int] = []
    for place, step in enumerate(steps.tolist()):
        waiting = [writer for writer, known in enumerate(last) if known == step - 1]
        waiting = waiting or [writer for writer, known in enumerate(last) if known < step]
        writer = min(waiting, key=latest.__getitem__, default=len(last))
        if writer == len(last):
            last.append(step)
            latest.append(place)
        last[writer], latest[writer] = step, place
        found[place] = writer
    return found


def estimate_read_times(times: IntArray, started: int | None) -> IntArray:
    """Return when the values of each tick were read.

    Args:
        times: when the ticks of one monitor were logged, in milliseconds, rising.
        started: when the run started, in milliseconds; None where not recorded.
    """
    usual = int(np.median(np.diff(times))) if len(times) > 1 else 0
    first = int(times[0]) - usual if started is None else min(started, int(times[0]))
    before = np.concatenate([[first], times[:-1]])
    if not usual:
        return before
    read: IntArray = np.where(times - before > _LONGEST_INTERVAL * usual, times - usual, before)
    return read
