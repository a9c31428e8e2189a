"""How often the driver gives a metric a new value, by when the values in a log change.

A log written faster than that repeats each reading, and a repeated row tells nothing new. A change is a new reading
for certain; a reading that happens to equal the one before cannot be seen, so changes are the fewest readings there
were. The refresh period is the regular spacing of the changes: while a value moves, most of them are one period
apart, others a multiple of it. Values that move at any time (temperatures, clocks, memory) have no such spacing.
"""

from dataclasses import dataclass

import numpy as np

from gpureport import columns, gpus
from gpureport.columns import FloatArray, IntArray
from gpureport.metrics import Metric, MetricKind, Scope

SHORTEST = 1 / 6  # s; NVML, nvmlDeviceGetUtilizationRates: the sample period is between 1/6 and 1 s
"""Shortest time that a utilisation value covers."""

LONGEST = 1.0  # s; the same; power of public logs has at most 0.55 s
"""Longest refresh period; changes further apart come from the job."""

RESOLVED = 1.8  # a reading seen twice, with room for jitter; below, rows may skip readings
"""Intervals between samples that a refresh period must span to be seen."""

FEWEST = 5.0  # changes; fewer can be regular by accident
"""Changes that must lie one period apart for a period to be found."""

REGULAR = 0.75  # utilisation and power of public millisecond logs reach 0.8 to 1, clocks at most 0.7
"""Share of the changes, of those up to 3.5 periods apart, that must lie near a multiple of the period."""

_SENSED = {"1", "W", "Cel", "Hz"}
_AVERAGED = ("gpu_utilization_ratio", "gpu_memory_controller_ratio")
_WIDTH = 1.25
_JITTER = 0.15
_REACH = 3.5
_FINE = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refresh:
    """How often one metric of one device changed.

    Attributes:
        rows: rows with a value.
        changes: rows whose value differs from that of the row before.
        seconds: the refresh period; None if the changes do not show one.
    """

    rows: int
    changes: int
    seconds: float | None

    @property
    def repeated_ratio(self) -> float | None:
        """Share of the rows, but for the first, that repeat the row before; None with fewer than two."""
        return None if self.rows < 2 else 1 - self.changes / (self.rows - 1)  # noqa: PLR2004 - one has none before


def measure_refresh(metric: Metric, times: IntArray, values: FloatArray, interval: float) -> Refresh:
    """Return how often one metric of one device was read anew.

    Args:
        metric: the metric; only values that a sensor of a GPU gives have a period.
        times: stamps of the rows with a value, in microseconds.
        values: the value of each.
        interval: seconds between samples.
    """
    if columns.is_constant(values):
        return Refresh(rows=len(values), changes=0, seconds=None)
    has_changed = values[1:] != values[:-1]
    seconds = None
    if (
        metric.kind is MetricKind.GAUGE
        and metric.scope is Scope.GPU
        and metric.unit in _SENSED
        and _is_sampled_finely(interval)
    ):
        seconds = find_refresh_period(np.diff(times[np.flatnonzero(has_changed) + 1]) / 1e6, interval)
    return Refresh(rows=len(values), changes=int(np.count_nonzero(has_changed)), seconds=seconds)


def _is_sampled_finely(interval: float) -> bool:
    """Whether samples so many seconds apart can show any period."""
    return RESOLVED * interval <= LONGEST * (1 + _JITTER)


def find_refresh_period(distances: FloatArray, interval: float) -> float | None:
    """Return the regular spacing of changes, None when there is none or sampling is too slow to show it.

    Args:
        distances: seconds from each change to the next.
        interval: seconds between samples.
    """
    if not _is_sampled_finely(interval):
        return None
    longest = LONGEST * (1 + _JITTER)
    commonest = _find_commonest_spacings(np.sort(distances[(distances > 0) & (distances <= longest)]))
    if len(commonest) < FEWEST:
        return None
    seconds = float(np.median(commonest))
    if seconds < RESOLVED * interval:
        return None
    near = distances[(distances > 0) & (distances <= _REACH * seconds)]
    # the spacing of two changes is off by up to one interval, whatever the driver does
    slack = max(_JITTER * seconds, interval if seconds >= _FINE * interval else interval / 2) + 1e-9
    regular = np.abs(near - np.maximum(np.rint(near / seconds), 1) * seconds) <= slack
    if regular.mean() < REGULAR:
        return None
    return float(near[regular & (near < 1.5 * seconds)].mean())


def _find_commonest_spacings(distances: FloatArray) -> FloatArray:
    """Return the lowest cluster of sorted spacings that holds at least half as many as the largest does."""
    if len(distances) == 0:
        return distances
    stop = np.searchsorted(distances, distances * _WIDTH, side="right")
    cluster_sizes = stop - np.arange(len(distances))
    lowest = int(np.argmax(2 * cluster_sizes >= cluster_sizes.max()))
    first = lowest + int(np.argmax(cluster_sizes[lowest : int(stop[lowest])]))
    return distances[first : int(stop[first])]


def list_metrics_read_together(metric: str) -> tuple[str, ...]:
    """Return the metrics the driver reads anew in the same moment, itself first.

    NVML gives both utilisations of one sample period; one that never changes has the period of the other.
    """
    return (metric, *(other for other in _AVERAGED if other != metric)) if metric in _AVERAGED else (metric,)


def look_up_documented_period(metric: str, model: str | None) -> float | None:
    """Return the shortest time that a value of a metric covers by NVIDIA's documents, None if they do not say.

    Args:
        metric: column name.
        model: name of the GPU.
    """
    if metric not in _AVERAGED:
        return None
    known = gpus.find_gpu(model)
    window = known.utilisation_window_seconds if known else None
    return window.value if window else SHORTEST
