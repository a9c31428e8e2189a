"""What part of a run samples speak for, and what lies between them without being a log gap."""

from collections.abc import Iterable, Sequence
from math import fsum

import numpy as np

from gpureport.analysis.results import Pauses
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series.device_series import DeviceSeries


def measure_coverage(context: Context) -> float | None:
    """Return the time of the run that samples own, as a share of its time, over all GPUs; hosts where there are none.

    None where the run has no length, its log no time stamps, or no device a second sample.
    """
    run = context.recording.run
    devices: Sequence[object] = run.gpus or run.hosts
    whole = (run.ended - run.started) / 1e6 * len(devices)
    if whole <= 0 or run.quality.synthetic_time:
        return None
    devices_seen = context.gpus() if run.gpus else context.hosts()
    owned = fsum(float(context.full_series(name).seconds_in_run.sum()) for name in devices_seen)
    return min(owned / whole, 1.0) if owned else None


def summarise_pauses(several: Iterable[DeviceSeries]) -> Pauses | None:
    """Return the pauses of some devices; None without any."""
    paused = [series for series in several if len(series.pause_rows)]
    if not paused:
        return None
    steps = [series.times[series.pause_rows] - series.times[series.pause_rows - 1] for series in paused]
    unowned = [series.start[series.pause_rows] - series.end[series.pause_rows - 1] for series in paused]
    return Pauses(
        count=max(len(series.pause_rows) for series in paused),
        longest_seconds=float(max(np.max(each) for each in steps)) / 1e6,
        seconds=float(max(each.sum() for each in unowned)) / 1e6,
    )
