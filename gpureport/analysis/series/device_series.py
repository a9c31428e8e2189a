"""The samples of one device, each with the time that it covers."""

from collections.abc import Callable, Hashable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from gpureport import columns, rates
from gpureport.analysis.series import MEMORY, POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.series.intervals import Spans, contains, drop_shorter, find_runs, overlap_seconds, row_spans
from gpureport.columns import BoolArray, FloatArray, IntArray
from gpureport.data_quality import gap_seconds
from gpureport.findings import Interval
from gpureport.metrics import Scope, find_gpu
from gpureport.rates import SamplingRate
from gpureport.recording import Device, DeviceRows, Recording, SeriesRows

P = ParamSpec("P")
T = TypeVar("T")

_WINDOW_SHIFT = 0.5  # seconds: half of the window before a reading that utilisation averages (NVML)
_SHORTEST_PERIOD = 1 / 6  # minimum seconds that a utilisation value covers (NVML)
_AVERAGED = (UTILISATION, "gpu_memory_controller_ratio")
_NEAR_EDGE_INTERVALS = 1.5
_LONGEST_SIDE_INTERVALS = 1.25
_LONE_SECONDS = 1.0
_MOST_KEPT_ROWS = 1_000_000

POWER_METRICS = (POWER, "gpu_power_instant_watts")  # checked for implausible readings
CAPPED = (*POWER_METRICS, MEMORY)  # single readings that no board reaches are left out
HIGHEST_POWER = 2000.0
"""A power in watts that no board reaches: twice the limit of a B200."""
_MOST_MEMORY = 2.0**41  # bytes, which no board has
_LOWEST = 0.5  # watts; even a laptop's GPU draws more at rest
_UNCHANGED = 120.0  # seconds; sensors update several times per second
_WARMED = 5.0  # degrees Celsius; rounding or the room may cause a smaller change
_MANY = 20  # readings; fewer equal ones, or ones at work, may be chance
_AT_REST, _AT_WORK = 0.02, 0.5  # utilisation
_SWING = 0.5
"""If utilisation varies this much (p90 minus p10), power must vary too."""

_LATEST: WeakKeyDictionary[SeriesRows, dict[Hashable, Any]] = WeakKeyDictionary()


def memoize_latest(rows: SeriesRows, key: Hashable, make: Callable[[], T]) -> T:
    """Return the result of `make`, cached for the latest recording. It must not use `rows`."""
    if len(rows) > _MOST_KEPT_ROWS:
        return make()
    if rows not in _LATEST:
        _LATEST.clear()
    kept = _LATEST.setdefault(rows, {})
    if key not in kept:
        kept[key] = make()
    found: T = kept[key]
    return found


class Memo:
    """Caches results of a series or context. The key must contain all other inputs."""

    made: dict[Hashable, Any]

    def memoize(self, key: Hashable, make: Callable[[], T]) -> T:
        if key not in self.made:
            made = self.made[key] = make()
            for array in made if isinstance(made, tuple) else (made,):
                if isinstance(array, np.ndarray):
                    array.flags.writeable = False
        found: T = self.made[key]
        return found


def memoized(make: Callable[P, T]) -> Callable[P, T]:
    """Cache a function's results per series or context, and arguments."""

    @wraps(make)
    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        owner: Any = args[0]
        made: T = owner.memoize((make, *args[1:]), lambda: make(*args, **kwargs))
        return made

    return call


class DeviceSeries(Memo):
    """The samples of one device, each with the time that it covers, from `start` to `end`.

    A sample covers half the time to each neighbour, but at most 1.25 (local) intervals per side, and
    half an interval next to a log gap and at both ends of the log.

    `times` are in microseconds in ascending order, possibly with duplicates. `gap_rows` follow a
    log gap. `pause_rows` follow a shorter pause that is longer than its two samples cover.
    `interval` is the usual number of seconds between samples.
    """

    def __init__(self, device: Device, rows: DeviceRows, window: Interval) -> None:
        self.device, self.rows, self.window = device, rows, window
        self.made, self.column_names = {}, frozenset(rows.column_names)
        self.times = columns.integers(rows.column("timestamp"))
        self.sampling_rate = rates.measure_sampling_rate(self.times) or SamplingRate(_LONE_SECONDS)
        self.interval = self.sampling_rate.interval
        left, right, self.gap_rows, self.pause_rows = measure_sample_extents(self.times, self.sampling_rate)
        self.start, self.end = self.times - left, self.times + right
        self.seconds: FloatArray = (self.end - self.start) / 1e6
        self.observed_seconds = float(self.seconds.sum())
        for each in (self.times, self.start, self.end, self.seconds):
            each.flags.writeable = False
        # microseconds from the middle of the averaging window of a value to its timestamp
        self.shift = round((self.interval / 2 if device.index is None else _WINDOW_SHIFT) * 1e6)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def seconds_in_run(self) -> FloatArray:
        """Seconds that each sample covers within the run."""
        inside = np.minimum(self.end, self.window.end) - np.maximum(self.start, self.window.start)
        return np.asarray(np.maximum(inside, 0) / 1e6, dtype=np.float64)

    @property
    def gaps(self) -> tuple[Interval, ...]:
        return tuple(Interval(int(self.times[row - 1]), int(self.times[row])) for row in self.gap_rows)

    def is_beside(self, other: "DeviceSeries") -> bool:
        return self.device.node in {None, other.device.node}

    @memoized
    def known_rows(self, metric: str) -> BoolArray:
        return np.asarray(~np.isnan(self.values(metric)), dtype=np.bool_)

    def find_known_rows(self, metric: str) -> IntArray:
        return np.flatnonzero(self.known_rows(metric))

    def count_values(self, metric: str) -> int:
        return int(np.count_nonzero(self.known_rows(metric)))

    def is_recorded(self, metric: str) -> bool:
        return metric in self.column_names and self.count_values(metric) > 0

    @memoized
    def values(self, metric: str) -> FloatArray:
        if metric not in self.column_names or self.explain_implausibility(metric):
            return columns.repeat_value(np.nan, len(self))
        logged = columns.floats(self.rows.column(metric))
        ceiling = self.find_ceiling(metric) if metric in CAPPED else np.inf
        too_high = logged > ceiling
        if metric in POWER_METRICS:
            used = self.values(UTILISATION)
            working = logged[(used >= _AT_WORK) & (logged <= ceiling)]
            if len(working) >= _MANY:  # no GPU draws more at rest than at work
                too_high |= (used < _AT_REST) & (logged > 2 * working.max())
        return np.where(too_high, np.nan, logged) if too_high.any() else logged

    def find_ceiling(self, metric: str) -> float:
        """Return a value that no board of this model reaches."""
        limit = getattr(find_gpu(self.device.model), "power_limit_default_watts", None)
        return _MOST_MEMORY if metric == MEMORY else 2 * float(limit.value) if limit else HIGHEST_POWER

    def known_values(self, metric: str) -> FloatArray:
        return self.values(metric)[self.find_known_rows(metric)]

    def find_values(self, metric: str, spans: Spans) -> FloatArray:
        bounds = np.searchsorted(self.times, spans + self.shift).tolist()
        inside: FloatArray = np.concatenate([np.zeros(0), *(self.values(metric)[start:end] for start, end in bounds)])
        return inside[~np.isnan(inside)]

    def explain_implausibility(self, metric: str) -> str:
        """Return why a metric's readings are implausible, worded to follow its name, or ""."""
        is_checked = metric in POWER_METRICS and metric in self.column_names
        return self.memoize(("implausible", metric), lambda: self._doubt_power(metric)) if is_checked else ""

    def _doubt_power(self, metric: str) -> str:
        power = columns.floats(self.rows.column(metric))
        known = ~np.isnan(power)
        if not known.any():
            return ""
        weights = self.seconds[known]
        mean = float(np.average(power[known], weights=weights if weights.sum() > 0 else None))
        degrees, used = (self.known_values(name) for name in (TEMPERATURE, UTILISATION))
        low, high = np.quantile(used, [0.1, 0.9]) if len(used) else (0.0, 0.0)
        first, warmed = power[known][0], float(np.ptp(degrees)) if len(degrees) else 0.0
        # at rest or at its limit, power may keep a whole number of watts as temperature changes
        moves = high - low >= _SWING or (warmed >= _WARMED and first % 1)
        if moves and (power[known] == first).all() and weights.sum() >= _UNCHANGED:
            what = f"temperature changes by {warmed:.0f} °C" if warmed >= _WARMED else "utilisation changes"
            return f"stays at {first:.4g} W while {what}"
        if mean > self.find_ceiling(metric):
            return f"averages {mean:,.0f} W, more than such a board can draw"
        return f"averages {mean:.2g} W, less than any GPU draws" if mean < _LOWEST else ""

    def refresh_period(self, metric: str) -> float | None:
        """Return the shortest refresh period of a metric in seconds, or None if unknown."""
        known = find_gpu(self.device.model)
        window = known.utilisation_window_seconds if known else None
        return None if metric not in _AVERAGED else window.value if window else _SHORTEST_PERIOD

    def resolution(self, metric: str) -> float:
        return max(self.interval, self.refresh_period(metric) or 0.0)

    def count_readings(self, metric: str, rows: BoolArray | IntArray | slice) -> int:
        seconds, period = self.seconds[rows], self.refresh_period(metric)
        if period is None or self.observed_seconds <= 0:
            return len(seconds)
        return max(round(float(np.minimum(seconds / period, 1.0).sum())), min(len(seconds), 1))

    @memoized
    def averaging_windows(self, window: Interval) -> tuple[IntArray, IntArray]:
        """Return each row's averaging time within `window`; the first and last rows reach its ends if near them."""
        start, end = self.start - self.shift, self.end - self.shift
        near = round(_NEAR_EDGE_INTERVALS * self.interval * 1e6) + self.shift
        start[:1][self.times[:1] - window.start <= near] = window.start
        end[-1:][window.end - self.times[-1:] <= near] = window.end
        return np.clip(start, window.start, window.end), np.clip(end, window.start, window.end)

    def find_seen(self, window: Interval) -> Spans:
        return row_spans(*self.averaging_windows(window), self.known_rows(UTILISATION))

    def seconds_inside(self, spans: Spans, window: Interval) -> FloatArray:
        return overlap_seconds(*self.averaging_windows(window), spans)

    def find_owned(self, rows: BoolArray) -> Spans:
        return row_spans(self.start, self.end, rows)

    def rows_between(self, start: int, end: int) -> slice:
        return slice(*np.searchsorted(self.times, [start, end], side="left").tolist())


def build_device_series(recording: Recording, device: Device) -> DeviceSeries:
    window, rows = Interval(recording.run.started, recording.run.ended), recording.rows
    return memoize_latest(rows, (device, window), lambda: DeviceSeries(device, _drop_frozen(rows, device.id), window))


def _drop_frozen(series: SeriesRows, device: str) -> DeviceRows:
    """Return a device's rows, except those that repeat all readings for minutes."""
    rows = series.rows_of(device)
    if not {POWER, UTILISATION, TEMPERATURE} <= {*rows.column_names}:
        return rows
    power, used, degrees = (columns.floats(rows.column(name)) for name in (POWER, UTILISATION, TEMPERATURE))
    moves = np.any([np.diff(each, prepend=np.nan) for each in (power, used, degrees)], axis=0)
    first, stop = find_runs(~moves & (power % 1 != 0) & (used > _AT_REST))
    times = columns.integers(rows.column("timestamp"))
    runs = np.column_stack([times[first], times[stop - 1] + 1])[stop - first >= _MANY]
    frozen = contains(drop_shorter(runs, _UNCHANGED), times)
    return rows.filter(~frozen) if frozen.any() and moves[~frozen].sum() > max(_MANY, (~frozen).sum() / 2) else rows


def series_by_device(recording: Recording) -> dict[str, DeviceSeries]:
    return {device.id: build_device_series(recording, device) for device in recording.run.devices}


def pick(series: Mapping[str, DeviceSeries], scope: Scope) -> dict[str, DeviceSeries]:
    return {name: one for name, one in series.items() if one.device.scope is scope and len(one)}


def remove_stretches(series: DeviceSeries, stretches: Spans) -> DeviceSeries:
    # the last sample of a run lies at its end
    left = ~contains(stretches, np.minimum(series.times, series.window.end - 1))
    return DeviceSeries(series.device, series.rows.filter(left), series.window)


def measure_sample_extents(
    times: IntArray, rate: SamplingRate, *, bridged: bool = False
) -> tuple[IntArray, IntArray, IntArray, IntArray]:
    """Return the microseconds that each sample covers on each side, and the rows after gaps and pauses."""
    if not len(times) or times[0] == times[-1]:
        none, no_rows = np.zeros(len(times), dtype=np.int64), np.zeros(0, dtype=np.int64)
        return none, none, no_rows, no_rows
    steps = np.diff(times)
    edge, cap, longest = (np.full(len(steps), limit) for limit in _compute_limits(rate.interval))
    for stretch in rate.slow:
        rows = rates.distances_inside(times, stretch)
        edge[rows], cap[rows], longest[rows] = _compute_limits(stretch.interval)
    gaps = np.flatnonzero((steps > 2 * cap) & (steps > longest))
    pauses = np.flatnonzero((steps > 2 * cap) & (steps <= longest))
    half = steps >> 1
    left, right = np.append(edge[:1], steps - half), np.append(half, edge[-1:])
    if not bridged:
        right[pauses] = left[pauses + 1] = cap[pauses]
    right[gaps] = left[gaps + 1] = edge[gaps]
    return left, right, gaps + 1, pauses + 1


def _compute_limits(interval: float) -> tuple[np.int64, np.int64, np.float64]:
    edge, cap = (np.int64(np.rint(interval * share * 1e6)) for share in (0.5, _LONGEST_SIDE_INTERVALS))
    return edge, cap, np.float64(gap_seconds(interval) * 1e6)
