"""When and why a GPU's clock was lowered, and its power as a share of the limit."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from gpureport import columns
from gpureport.analysis.results import ClockEventTotal, Effect
from gpureport.analysis.series import POWER, TEMPERATURE, UTILISATION, intervals, statistics
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.columns import BoolArray, FloatArray
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS, find_gpu

CLOCKS = ("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz")
LIMIT, DEFAULT_LIMIT = "gpu_power_limit_watts", "gpu_power_limit_default_watts"
HEAT = ("sw_thermal_slowdown", "hw_thermal_slowdown")
BRAKE, SLOWDOWN, CAP = "hw_power_brake_slowdown", "hw_slowdown", "sw_power_cap"
CHOSEN = ("applications_clocks_setting", "display_clock_setting")

BUSY = 0.2  # utilisation above which a GPU is busy; stray kernels reach 12%
_COUNTED_SHARE = 0.1  # share of a row's time; if a counter covers more, the clock is not a reference
_COUNTED_FULL = 0.9  # share of a row's time; if a counter covers it, the row's clock is lowered
_LEAST = 1e-4  # seconds; a smaller rise of a counter is rounding
_EFFECTS = {
    **dict.fromkeys(("gpu_idle", CAP, *CHOSEN), Effect.BENIGN),
    **dict.fromkeys((SLOWDOWN, BRAKE, *HEAT), Effect.HARMFUL),
}
_IDLE_QUANTILE = 0.02  # quantile of idle power; the lowest reading may be an outlier
_IDLE_SHARE = 0.12  # share of the limit: maximum idle power of an unlisted GPU
_HELD_SECONDS = 30.0  # total time at or above the power that stands in for the limit
_AT_WORK = 0.4  # share of the range from idle to the limit; an idle L4 at high clocks reaches 0.34


class ClockSignals(NamedTuple):
    busy: BoolArray
    clock: FloatArray
    clock_max: float
    temperature: FloatArray
    temperature_limit: float
    temperature_limit_source: str
    power: FloatArray
    power_limit: FloatArray


@memoized
def gather_signals(series: DeviceSeries) -> ClockSignals:
    temperature, known = series.values(TEMPERATURE), find_gpu(series.device.model)
    limit = median(temperature + series.values("gpu_temperature_margin_celsius"))
    source = "temperature plus margin, as logged"
    if np.isnan(limit):
        cell = known.temperature_max_operating_celsius if known else None
        limit, source = (cell.value, f"{known.model}: {cell.source}") if known and cell else (limit, "")
    busy = (series.values(UTILISATION) > BUSY) | (not series.is_recorded(UTILISATION))
    power = series.values(POWER), read_power_limit(series)
    return ClockSignals(busy, *read_clocks(series), temperature, limit, source, *power)


def read_clocks(series: DeviceSeries) -> tuple[FloatArray, float]:
    clock = next((series.values(name) for name in CLOCKS if series.is_recorded(name)), series.values(CLOCKS[0]))
    # a recorder may write 0 if it does not know the highest clock
    highest = float(series.known_values("gpu_sm_clock_max_hertz").max(initial=0.0))
    known = find_gpu(series.device.model)
    if highest <= 0 and known and known.sm_clock_max_hertz:
        highest = known.sm_clock_max_hertz.value
    return clock, highest if highest > 0 else np.nan


def read_power_limit(series: DeviceSeries) -> FloatArray:
    name = LIMIT if series.is_recorded(LIMIT) else "gpu_power_limit_requested_watts"
    if not series.is_recorded(name) and series.device.power_limit_watts:
        return np.full(len(series), series.device.power_limit_watts)
    limit = series.values(name)
    return np.where(limit > 0, limit, np.nan) if (limit <= 0).any() else limit


def find_default_limit(series: DeviceSeries) -> tuple[float, str]:
    """Return a GPU's default power limit (or NaN) and its source: the log or the GPU table."""
    logged = series.device.power_limit_default_watts
    if series.is_recorded(DEFAULT_LIMIT):
        logged = float(series.known_values(DEFAULT_LIMIT).max())
    if logged is not None:
        return logged, "as logged"
    known = find_gpu(series.device.model)
    cell = known.power_limit_default_watts if known else None
    return (cell.value, f"of {known.model}: {cell.source}") if known and cell else (np.nan, "")


def counter_name(reason: str) -> str:
    return f"clock_event_{reason}_seconds_total"


def are_events_recorded(series: DeviceSeries, *reasons: str) -> bool:
    return any(series.is_recorded(name) for each in reasons for name in (f"clock_event_{each}", counter_name(each)))


class HeldClock(NamedTuple):
    share: FloatArray  # of each row's time; 1 if a bit is set without a counter
    lowered: BoolArray  # rows with a lowered clock
    rows: BoolArray  # rows that show this without a counter
    steps: intervals.Spans = intervals.NO_SPANS  # between rows in which a counter rose
    counted: float = 0.0  # seconds
    in_gaps: float = 0.0  # of these, seconds in log gaps
    is_direct: bool = True  # whether the driver reports this; otherwise it is inferred


def hold_clock(rows: BoolArray, *, is_direct: bool = True) -> HeldClock:
    return HeldClock(share=rows.astype(np.float64), lowered=rows, rows=rows, is_direct=is_direct)


def add_counters(series: DeviceSeries, bits: BoolArray, *reasons: str) -> HeldClock:
    """Return when bits or counters show a lowered clock. Rising counters override bits."""
    names = [counter_name(reason) for reason in reasons if series.is_recorded(counter_name(reason))]
    steps = statistics.measure_increments(series, names, 1.0) if names else None
    if steps is None:
        return hold_clock(bits)
    rows, amounts, in_gap, reading = steps
    times, risen, beside = series.times[rows], amounts > _LEAST, np.zeros(len(series), dtype=np.bool_)
    beside[rows[:-1]] |= risen
    beside[rows[1:]] |= risen
    so_far = np.concatenate([[0.0], np.cumsum(np.where(in_gap, 0.0, amounts))])
    inside = np.interp(series.end, times, so_far) - np.interp(series.start, times, so_far)
    share = np.maximum(bits & ~beside, np.clip(inside / np.maximum(series.seconds, 1e-6), 0, 1))
    return HeldClock(
        share=share,
        lowered=bits | (share >= _COUNTED_FULL),
        rows=bits & ~beside,
        steps=intervals.union(np.column_stack([times[:-1], times[1:]])[risen & ~in_gap]),
        counted=reading.total,
        in_gaps=reading.in_gaps,
    )


@memoized
def hold_clock_by_events(series: DeviceSeries, *reasons: str) -> HeldClock:
    """Return when any of the reasons lowered the clock. Missing bits count as not set."""
    bits = np.any([series.values(f"clock_event_{reason}") > 0 for reason in reasons], axis=0)
    return add_counters(series, bits, *reasons)


def find_event_rows(series: DeviceSeries, *reasons: str) -> BoolArray:
    return hold_clock_by_events(series, *reasons).share >= _COUNTED_SHARE


def mean(values: FloatArray | BoolArray) -> float:
    return float(values.mean()) if len(values) else np.nan


def median(values: FloatArray) -> float:
    return high_quantile(values, ~np.isnan(values), 0.5)


def high_quantile(values: FloatArray, rows: BoolArray, quantile: float = 0.95) -> float:
    chosen = values[rows & ~np.isnan(values)]
    return float(np.quantile(chosen, quantile)) if len(chosen) else np.nan


def choose_reference_clock(signals: ClockSignals, slowed: FloatArray) -> tuple[float, str]:
    """Return the reference clock and its name: the p95 of other busy rows, or the highest."""
    if np.isnan(signals.clock).all():
        return np.nan, ""
    usual = high_quantile(signals.clock, signals.busy & (slowed < _COUNTED_SHARE))
    return (usual, "that of other busy samples") if usual > 0 else (signals.clock_max, "the highest clock")


def compute_loss(series: DeviceSeries, held: HeldClock, slowed: FloatArray) -> FloatArray | None:
    """Return the share of each row's time lost to a lowered clock, or None if no clock was recorded.

    A row that a counter covers only in part gets the median loss, since its clock may not show its own loss.
    """
    signals = gather_signals(series)
    reference, _ = choose_reference_clock(signals, slowed)
    shortfall = np.clip(1 - signals.clock / reference, 0, 1)
    rows = (held.share > 0) & signals.busy
    if (rows & ~held.lowered).any():
        shortfall = np.where(held.lowered, shortfall, median(shortfall[held.lowered & signals.busy]))
    if np.isnan(reference) or (rows.any() and np.isnan(shortfall[rows]).all()):
        return None
    return np.where(
        rows & ~np.isnan(shortfall),
        held.share * np.fmin(shortfall, series.values(UTILISATION)),
        0.0,
    )


@memoized
def scale_power(series: DeviceSeries, at_least: bool = False) -> tuple[FloatArray, bool]:
    """Return power as a share of the range from idle to the limit, and whether the limit was logged.

    With `at_least`, the power sustained for half a minute is used if the limit is unknown.
    """
    power, known, limit = series.values(POWER), series.known_values(POWER), read_power_limit(series)
    is_logged, unknown = not np.isnan(limit).all(), (np.full(len(series), np.nan), False)
    if not len(known):
        return unknown
    if not is_logged:
        watts = find_default_limit(series)[0]
        rows = round(_HELD_SECONDS / (series.interval or np.inf))
        limit = np.full(len(series), watts)
        if np.isnan(watts) and at_least and 0 < rows <= len(known):
            limit = np.full(len(series), np.sort(known)[-rows])
    usual, gpu = median(limit), find_gpu(series.device.model)
    most_idle = gpu.power_idle_watts.value if gpu and gpu.power_idle_watts else _IDLE_SHARE * usual
    idle = min(float(np.quantile(known, _IDLE_QUANTILE)), most_idle)
    room = np.where(np.isnan(limit), usual, limit) - idle
    # also false if no limit is known
    return ((power - idle) / room, is_logged) if (room > 0).all() else unknown


def draws_working_power(series: DeviceSeries, limit: float = _AT_WORK) -> bool:
    share = scale_power(series)[0]
    return not np.isnan(share).all() and float(np.nanmean(share)) > limit


def list_clock_events(series: DeviceSeries) -> Iterator[ClockEventTotal]:
    """Yield a total for each recorded clock event reason, in NVML's order, with unnamed bits last."""
    recorded = (reason for reason in CLOCK_EVENT_BITS if are_events_recorded(series, reason))
    signals = gather_signals(series)
    events = {reason: hold_clock_by_events(series, reason) for reason in recorded}
    if series.is_recorded("clock_event_unknown_bits"):
        masks = columns.integers(series.rows.column("clock_event_unknown_bits")).astype(np.uint64)
        every = int(np.bitwise_or.reduce(masks))
        for place in (place for place in range(64) if every >> place & 1):
            events[f"{1 << place:#x}"] = hold_clock(masks >> np.uint64(place) & np.uint64(1) == 1)
    slowed, free = np.zeros(len(series)), {"gpu_idle", *CHOSEN}
    for reason in events.keys() - free:
        slowed = np.maximum(slowed, events[reason].share)
    reference, description = choose_reference_clock(signals, slowed)
    busy_seconds = float(series.seconds[signals.busy].sum())
    for reason, held in events.items():
        name, lost = f"clock_event_{reason}", None
        if reason not in free and busy_seconds > 0 and not np.isnan(reference):
            loss = compute_loss(series, held, slowed) if held.share.any() else None
            if loss is not None:
                lost = float((loss * series.seconds).sum()) / busy_seconds
            # time counted only in log gaps has no recorded clock
            elif not held.share.any() and not held.counted:
                lost = 0.0
        has_bit = name not in BY_NAME or series.is_recorded(name)
        bits = series.values(name) > 0 if name in BY_NAME else held.rows
        clock = median(signals.clock[held.lowered & signals.busy])
        yield ClockEventTotal(
            device=series.device.id,
            reason=reason,
            effect=_EFFECTS.get(reason, Effect.UNCLASSIFIED),
            busy_seconds=float(series.seconds[bits & signals.busy].sum()) if has_bit else None,
            counted=statistics.read_counter(series, counter_name(reason), 1.0),
            clock_hertz=None if np.isnan(clock) else clock,
            reference_hertz=None if np.isnan(reference) else reference,
            reference=description,
            lost_ratio=lost,
        )
