"""The series of one device with the stretch of time each sample speaks for."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from gpureport import columns, sampling_rate
from gpureport.analysis.series import implausible_power, intervals, refresh_interval
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.series.refresh_interval import Refresh
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.findings import Interval
from gpureport.metrics import BY_NAME
from gpureport.quality import gap_seconds
from gpureport.recording import Device, Recording
from gpureport.sampling_rate import SamplingRate

T = TypeVar("T")

WINDOW_SHIFT_SECONDS = 0.5
"""Half of the window of up to 1 s before the reading that a utilisation value averages (NVML)."""

_LONGEST_SIDE_INTERVALS = 1.25
_NEAR_EDGE_INTERVALS = 1.5
_LONE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceSeries:
    """Samples of one device, each with the time nearest to it; equal to itself alone.

    A sample owns the time half-way to its neighbours, at most 1.25 intervals a side, half an interval beside a
    log gap and at both ends; where the log changes its pace, by the interval of that stretch. Samples with equal
    stamps share one cell. Where all stamps are equal, as with a single sample, no distance between samples is known
    and cells have no width.

    Attributes:
        device: the device.
        table: its rows.
        times: stamps in microseconds, never decreasing, equal ones possible.
        sampling_rate: how far apart different stamps are; 1 s with fewer than two.
        start: beginning of each cell in microseconds, for values read at a moment.
        end: end of each cell.
        gap_rows: rows that follow a log gap.
        pause_rows: rows that follow a distance too short for a log gap and too long for two samples to own all of it.
        window: from first to last sample of the run.
    """

    device: Device
    table: pa.Table
    times: IntArray
    sampling_rate: SamplingRate
    start: IntArray
    end: IntArray
    gap_rows: IntArray
    pause_rows: IntArray
    window: Interval
    _values: dict[str, FloatArray] = field(default_factory=dict, repr=False, compare=False)
    _recorded: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    _whole: dict[str, bool] = field(default_factory=dict, repr=False, compare=False)
    _widths: list[FloatArray] = field(default_factory=list, repr=False, compare=False)
    _refreshes: dict[str, Refresh] = field(default_factory=dict, repr=False, compare=False)
    _periods: dict[str, float | None] = field(default_factory=dict, repr=False, compare=False)
    _shares: dict[str, FloatArray] = field(default_factory=dict, repr=False, compare=False)
    _kept: dict[Hashable, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        """Return the number of samples."""
        return len(self.times)

    @property
    def interval(self) -> float:
        """Median seconds between different stamps, where the log changes its pace those of most of the time."""
        return self.sampling_rate.interval

    def memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what is made of this device alone, the same that was made for a key before; not to be written to."""
        if key not in self._kept:
            made = make()
            for array in made if isinstance(made, tuple) else (made,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
            self._kept[key] = made
        found: T = self._kept[key]
        return found

    @property
    def seconds(self) -> FloatArray:
        """Width of each cell; not to be written to."""
        if not self._widths:
            widths = (self.end - self.start) / 1e6
            widths.flags.writeable = False
            self._widths.append(widths)
        return self._widths[0]

    @property
    def seconds_in_run(self) -> FloatArray:
        """Width of the part of each cell that lies in the run; not to be written to.

        The first and last sample of a run own half an interval beyond it, which weighs them as the others but is no
        time of the run.
        """

        def cut() -> FloatArray:
            first = int(np.searchsorted(self.start, self.window.start, side="left"))
            last = int(np.searchsorted(self.end, self.window.end, side="right"))
            over = np.r_[0:first, last : len(self)]
            widths = self.seconds.copy()
            inside = np.minimum(self.end[over], self.window.end) - np.maximum(self.start[over], self.window.start)
            widths[over] = np.maximum(inside, 0) / 1e6
            return widths

        return self.memoize("within", cut)

    @property
    def gaps(self) -> tuple[Interval, ...]:
        """Stretches without samples that are too long to be jitter."""
        return tuple(Interval(int(self.times[row - 1]), int(self.times[row])) for row in self.gap_rows)

    @property
    def shift(self) -> int:
        """Microseconds by which the middle of what an averaged value covers precedes its stamp."""
        seconds = self.interval / 2 if self.device.index is None else WINDOW_SHIFT_SECONDS
        return round(seconds * 1e6)

    def is_complete(self, metric: str) -> bool:
        """Whether every row holds a value of the metric; without a row there is none that does not."""
        if metric not in self._whole:
            values = self.values(metric)
            # the least of values with NaN among them is NaN
            least = values[:1] if columns.is_constant(values) else values.min(initial=np.inf)
            self._whole[metric] = not np.isnan(least).any()
        return self._whole[metric]

    def known_rows(self, metric: str) -> BoolArray:
        """Return the rows that hold a value of the metric; not to be written to."""
        if self.is_complete(metric):
            return columns.all_valid(len(self))
        return self.memoize(("known", metric), lambda: ~np.isnan(self.values(metric)))

    def is_recorded(self, metric: str) -> bool:
        """Whether the metric holds any value for this device."""
        if metric not in self._recorded:
            known = metric in self.table.column_names and self.table.column(metric).null_count < len(self)
            known = known and not self.explain_implausibility(metric)
            # most hold a value from the first row on
            self._recorded[metric] = known and not (
                np.isnan(self.values(metric)[0]) and not self.known_rows(metric).any()
            )
        return self._recorded[metric]

    def values(self, metric: str) -> FloatArray:
        """Return a column as float64, NaN where it is null, all NaN when it was not recorded or cannot be right."""
        if metric not in self._values:
            held = self._recorded_values(metric)
            self._values[metric] = (
                columns.repeat_value(np.nan, len(self.times)) if self.explain_implausibility(metric) else held
            )
        return self._values[metric]

    def _recorded_values(self, metric: str) -> FloatArray:
        """Return a column as it was recorded."""
        known = metric in self.table.column_names
        return columns.floats(self.table.column(metric)) if known else columns.repeat_value(np.nan, len(self.times))

    def explain_implausibility(self, metric: str) -> str:
        """Return why readings of a metric cannot be right, as words on them; empty where nothing speaks against them.

        What is doubted counts as not recorded.
        """
        if metric not in implausible_power.POWER_METRICS or metric not in self.table.column_names:
            return ""
        return self.memoize(
            ("doubt", metric), lambda: implausible_power.explain_implausible_power(self, self._recorded_values(metric))
        )

    def refresh(self, metric: str) -> Refresh:
        """Return how often the metric was read anew."""
        if metric not in self._refreshes:
            self._refreshes[metric] = refresh_interval.measure_refresh(
                BY_NAME[metric], self.times, self.values(metric), self.interval, self.known_rows(metric)
            )
        return self._refreshes[metric]

    def measured_refresh_period(self, metric: str) -> float | None:
        """Return the refresh period, by what is read in the same moment where its own changes do not tell."""
        others = sorted(refresh_interval.find_metrics_read_together(metric) - {metric})
        return next((seconds for name in (metric, *others) if (seconds := self.refresh(name).seconds)), None)

    def refresh_period(self, metric: str) -> float | None:
        """Return the seconds from one reading of the metric to the next, at least; None when they are not known.

        As measured, and where the changes do not tell, as NVIDIA documents it.
        """
        if metric not in self._periods:
            self._periods[metric] = self.measured_refresh_period(metric) or refresh_interval.look_up_documented_period(
                metric, self.device.model
            )
        return self._periods[metric]

    def resolution(self, metric: str) -> float:
        """Return the seconds below which nothing can be told apart: the interval, or the period where it is longer."""
        return max(self.interval, self.refresh_period(metric) or 0.0)

    def count_readings(self, metric: str, rows: BoolArray | IntArray | slice) -> int:
        """Return how many readings of the metric the rows hold at most; repeated ones count once."""
        if metric not in self._shares:
            self._shares[metric] = refresh_interval.count_readings_per_row(self.seconds, self.refresh_period(metric))
        shares = self._shares[metric][rows]
        return max(round(float(shares.sum())), min(len(shares), 1))

    def averaging_windows(self, window: Interval) -> tuple[IntArray, IntArray]:
        """Return start and end of what each averaged value covers, within a window of the run.

        The first and last sample reach the ends of the window where these are near. Not to be written to.
        """
        return self.memoize(("tiles", window), lambda: self._averaging_windows(window))

    def _averaging_windows(self, window: Interval) -> tuple[IntArray, IntArray]:
        start, end = self.start - self.shift, self.end - self.shift
        if len(start):
            near = round(_NEAR_EDGE_INTERVALS * self.interval * 1e6) + self.shift
            if self.times[0] - window.start <= near:
                start[0] = window.start
            if window.end - self.times[-1] <= near:
                end[-1] = window.end
        return np.clip(start, window.start, window.end), np.clip(end, window.start, window.end)

    def rows_between(self, start: int, end: int) -> slice:
        """Return the rows with start <= stamp < end."""
        first, stop = np.searchsorted(self.times, [start, end], side="left")
        return slice(int(first), int(stop))


def measure_owned_time(
    times: IntArray, pace: SamplingRate, *, bridged: bool = False
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the microseconds before and after each sample that it owns, the rows after gaps and those after pauses.

    Args:
        times: stamps in microseconds, never decreasing.
        pace: how far apart they are.
        bridged: whether samples own all the time between them that is no log gap, however far it is.
    """
    steps = np.diff(times)
    widths = np.full(len(steps), pace.interval)
    longest = np.full(len(steps), gap_seconds(pace.interval) * 1e6)
    for stretch in pace.slow:
        rows = sampling_rate.distances_inside(times, stretch)
        widths[rows], longest[rows] = stretch.interval, gap_seconds(stretch.interval) * 1e6
    edge, cap = (np.rint(widths * share * 1e6).astype(np.int64) for share in (0.5, _LONGEST_SIDE_INTERVALS))
    far = np.flatnonzero(steps > 2 * cap)
    wide = steps[far] > longest[far]
    gaps, pauses = far[wide], far[~wide]
    half = steps >> 1
    left, right = np.append(edge[:1], steps - half), np.append(half, edge[-1:])
    if not bridged:
        right[pauses] = left[pauses + 1] = cap[pauses]
    right[gaps] = left[gaps + 1] = edge[gaps]
    return left, right, gaps + 1, pauses + 1


def build_device_series(recording: Recording, device: Device) -> DeviceSeries:
    """Return the cells of one device of a recording."""
    return _build_series(device, recording.of(device.id), Interval(recording.run.started, recording.run.ended))


def _build_series(device: Device, series: pa.Table, window: Interval) -> DeviceSeries:
    times = columns.integers(series.column("timestamp"))
    pace = sampling_rate.measure_sampling_rate(times)
    if pace is None:
        left = right = np.zeros(len(times), dtype=np.int64)
        gap_rows = pause_rows = np.zeros(0, dtype=np.int64)
    else:
        left, right, gap_rows, pause_rows = measure_owned_time(times, pace)
    return DeviceSeries(
        device=device,
        table=series,
        times=times,
        sampling_rate=pace or SamplingRate(_LONE_SECONDS),
        start=times - left,
        end=times + right,
        gap_rows=gap_rows,
        pause_rows=pause_rows,
        window=window,
    )


def remove_stretches(series: DeviceSeries, stretches: Spans) -> DeviceSeries:
    """Return the cells of a device without the samples of some stretches, as though nobody had recorded them."""
    # the last sample of a run lies at its end
    left = ~intervals.contains(stretches, np.minimum(series.times, series.window.end - 1))
    return _build_series(series.device, series.table.filter(columns.array(left, pa.bool_())), series.window)


def series_by_device(recording: Recording) -> dict[str, DeviceSeries]:
    """Return the cells of every device, keyed by device id, in the order of the run."""
    rows = recording.by_device()
    none = recording.series.slice(0, 0)
    window = Interval(recording.run.started, recording.run.ended)
    return {device.id: _build_series(device, rows.get(device.id, none), window) for device in recording.run.devices}
