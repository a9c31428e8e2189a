"""In which bins of a grid a GPU reports to be busy and hardly does anything."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rulebook import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import Grid, build_grid, rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_signals import find_event_rows, read_clocks
from gpureport.analysis.signals.power_of_limit import PowerOfLimit
from gpureport.analysis.thresholds import literature
from gpureport.columns import BoolArray, FloatArray

SM = "gpu_sm_active_ratio"
DRAM = "gpu_dram_active_ratio"
EXPLAINING_KINDS = ("thermal_throttle", "hw_throttle", "idle_gap", "startup_idle", "tail_idle")
"""Kinds that account for low power, or for no work, on their own."""


STILL = 0.15  # hung collectives reported at full utilisation and 18 to 70 W (NVIDIA/nccl issues 968 and 2213)
"""Power above idle, of what the limit leaves, below which nothing is done, whatever the multiprocessors claim."""
ACTIVE = literature(
    0.5, "1", "NVIDIA DCGM: multiprocessor activity below 0.5 likely means that the GPU is not used well"
)
"""Activity of the multiprocessors below which most stand still."""
BUSY_DRAM = 0.4  # half of what memory can do; such work draws little power
"""Memory activity from which low power is that of work bound by memory."""
LOW_CLOCK = 0.75  # of the highest clock; power falls with its square and faster
"""Clock below which low power is that of the clock."""
AT_IDLE = 0.05  # kernels at work draw more at any clock
"""Power above idle, of what the limit leaves, that no clock explains with kernels at work."""
MEAN_SECONDS = 15.0  # s; averages over training steps, and over sensors that see part of the time
MEAN_ROWS = 11.0  # rows; fewer samples of power do not make a mean
"""Time and samples that means are taken over, at least."""
SHORTEST_ROWS = 5.0  # rows; fewer samples do not show a state
"""Sampling intervals an episode lasts, at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings by which work counts as hollow, in ratios and seconds.

    Attributes:
        busy: utilisation from which a sample claims work.
        busy_share: share of the samples that must.
        power: power above idle, of what the limit leaves, below which little is done.
        shortest: seconds an episode lasts, at least.
    """

    busy: float
    busy_share: float
    power: float
    shortest: float

    def shortest_seconds(self, series: DeviceSeries) -> float:
        """Return how long an episode of a GPU lasts, at least."""
        return max(self.shortest, SHORTEST_ROWS * series.interval)


def find_job_episodes(context: Context, series: DeviceSeries, scale: PowerOfLimit | None, limits: Limits) -> Spans:
    """Return the episodes of one GPU inside the job, without those in which its utilisation was never read.

    The end of the job may cut an episode short, and utilisation may be absent for longer than one lasts.
    """
    if context.window is None:
        return intervals.NO_SPANS
    episodes = find_episodes(context, build_grid(context.window, [series]), series, scale, limits)
    episodes = intervals.intersection(episodes, context.work)
    reading_times = (series.times - series.shift)[series.known_rows(UTILISATION)]
    has_readings = np.searchsorted(reading_times, episodes[:, 1]) > np.searchsorted(reading_times, episodes[:, 0])
    return intervals.drop_shorter(episodes[has_readings], limits.shortest_seconds(series))


def find_episodes(
    context: Context, bins: Grid, series: DeviceSeries, scale: PowerOfLimit | None, limits: Limits
) -> Spans:
    """Return when one GPU was busy in name only, without log gaps and time that other kinds explain."""
    used = bins.average_metric(series, UTILISATION)
    explained = _find_explained_rows(series, scale)
    if explained.any():
        used = np.where(bins.average_values(series, explained.astype(np.float64)) > 0, 0.0, used)
    length = max(round(MEAN_SECONDS / bins.width), round(MEAN_ROWS))
    is_full = used >= limits.busy
    if np.isnan(used).any():
        is_full = np.where(np.isnan(used), np.nan, is_full)
    is_busy = rolling_mean(is_full, length) >= limits.busy_share
    if not is_busy.any():
        return intervals.NO_SPANS
    share, active, dram = _average_per_bin(bins, series, scale)
    low = _is_little_done(
        _bound_rolling_mean(share, length), _bound_rolling_mean(active, length), rolling_mean(dram, length), limits
    )
    if not (is_busy & low).any():
        return intervals.NO_SPANS
    is_near = rolling_mean(is_busy & low, length) > 0
    is_hollow = is_near & ~(used < limits.busy) & (_is_little_done(share, active, dram, limits) | np.isnan(used))
    shortest = limits.shortest_seconds(series)
    spans = bins.mask_to_spans(is_hollow, max(MEAN_SECONDS, 2 * bins.width), shortest)
    device = series.device.id
    spans = intervals.difference(
        spans, intervals.collect_finding_spans(context.findings_on(device), device, EXPLAINING_KINDS)
    )
    return intervals.drop_shorter(intervals.difference(spans, intervals.to_spans(series.gaps)), shortest)


def _average_per_bin(
    bins: Grid, series: DeviceSeries, scale: PowerOfLimit | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    share = np.full(bins.count, np.nan) if scale is None else bins.average_values(series, scale.share)
    return share, bins.average_metric(series, SM), bins.average_metric(series, DRAM)


def _bound_rolling_mean(values: FloatArray, length: int) -> FloatArray:
    """Return rolling means with twice their error added.

    Where a sensor sees a moment of each step, power comes in two levels, and a few samples of them make no mean.
    """
    known = ~np.isnan(values)
    if not known.any():
        return values
    mean = rolling_mean(values, length)
    spread = np.maximum(rolling_mean(np.square(values), length) - np.square(mean), 0.0)
    number = rolling_mean(known, length) * length
    return np.asarray(mean + 2 * np.sqrt(spread / np.maximum(number - 1, 1)), dtype=np.float64)


def _is_little_done(share: FloatArray, active: FloatArray, dram: FloatArray, limits: Limits) -> BoolArray:
    """Return where little is done; the multiprocessors decide where DCGM counted them, else power.

    Multiprocessors that all spin are active and draw next to nothing.
    """
    idling = share < np.where(np.isnan(active), limits.power, STILL)
    return np.asarray((active < ACTIVE.value) | (idling & ~(dram >= BUSY_DRAM)), dtype=np.bool_)


def _find_explained_rows(series: DeviceSeries, scale: PowerOfLimit | None) -> BoolArray:
    """Return the rows on which the power cap acts or a lowered clock accounts for low power."""
    clock, highest = read_clocks(series)
    capped = find_event_rows(series, "sw_power_cap")
    if scale is None:
        return capped
    slow = clock < LOW_CLOCK * highest
    return capped | (slow & (scale.share >= AT_IDLE))
