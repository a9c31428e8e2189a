"""What shows why a GPU's clock was lowered, by event bits and counters, clock, temperature and power; and its power."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpureport import columns
from gpureport.analysis.names import POWER, TEMPERATURE, UTILISATION
from gpureport.analysis.results import ClockEventTotal, Effect
from gpureport.analysis.series import statistics
from gpureport.analysis.series.device_series import DeviceSeries, memoized
from gpureport.columns import BoolArray, FloatArray
from gpureport.metrics import CLOCK_EVENT_BITS, find_gpu

CLOCKS = ("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz")
LIMIT, DEFAULT_LIMIT = "gpu_power_limit_watts", "gpu_power_limit_default_watts"
HEAT = ("sw_thermal_slowdown", "hw_thermal_slowdown")
BRAKE, SLOWDOWN, CAP = "hw_power_brake_slowdown", "hw_slowdown", "sw_power_cap"
CHOSEN = ("applications_clocks_setting", "display_clock_setting")

BUSY = 0.2  # utilisation above which a GPU is at work; stray kernels reach 12%
_COUNTED = 0.5  # of the time since the last row, by which a driver's counter must rise to mark a row alone
_EFFECTS = {
    **dict.fromkeys(("gpu_idle", CAP, *CHOSEN), Effect.BENIGN),
    **dict.fromkeys((SLOWDOWN, BRAKE, *HEAT), Effect.HARMFUL),
}
_IDLE_QUANTILE = 0.02  # of the run, taken for idle: a single lowest reading may be an accident
_IDLE_SHARE = 0.12  # of the limit, that idle power is at most where a run was never idle and the table knows no better
_HELD_SECONDS = 30.0  # seconds for which a power must be reached to stand for the limit: a spike shows no level
_AT_WORK = 0.4  # share of the way from idle power to the limit; an idle L4 kept at high clocks reaches 0.34


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSignals:
    """Series of one GPU, NaN if unknown; busy are rows above 20% utilisation, or all without it."""

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
    """Gather the series of one GPU; the log wins over the GPU table. Read-only."""
    clock, clock_max = read_clocks(series)
    temperature, known = series.values(TEMPERATURE), find_gpu(series.device.model)
    limit = median(temperature + series.values("gpu_temperature_margin_celsius"))
    source = "temperature plus margin, as logged"
    if np.isnan(limit):
        cell = known.temperature_max_operating_celsius if known else None
        limit, source = (cell.value, f"{known.model}: {cell.source}") if known and cell else (limit, "")
    return ClockSignals(
        busy=(series.values(UTILISATION) > BUSY) | (not series.is_recorded(UTILISATION)),
        clock=clock,
        clock_max=clock_max,
        temperature=temperature,
        temperature_limit=limit,
        temperature_limit_source=source,
        power=series.values(POWER),
        power_limit=read_power_limit(series),
    )


def read_clocks(series: DeviceSeries) -> tuple[FloatArray, float]:
    """Return the clock in Hz per row, and the highest possible; NaN if neither log nor GPU table has it."""
    clock = next((series.values(name) for name in CLOCKS if series.is_recorded(name)), series.values(CLOCKS[0]))
    # a recorder that knows no highest clock may write 0
    highest = float(series.known_values("gpu_sm_clock_max_hertz").max(initial=0.0))
    known = find_gpu(series.device.model)
    if highest <= 0 and known and known.sm_clock_max_hertz:
        highest = known.sm_clock_max_hertz.value
    return clock, highest if highest > 0 else float("nan")


def read_power_limit(series: DeviceSeries) -> FloatArray:
    """Return the power limit in force in W per row, NaN if unknown; 0 W is no limit."""
    name = LIMIT if series.is_recorded(LIMIT) else "gpu_power_limit_requested_watts"
    if not series.is_recorded(name) and series.device.power_limit_watts:
        return np.full(len(series), series.device.power_limit_watts)
    limit = series.values(name)
    return np.where(limit > 0, limit, np.nan) if (limit <= 0).any() else limit


def find_default_limit(series: DeviceSeries) -> tuple[float, str]:
    """Return the limit a board ships with, by the log, else the GPU table, and which; NaN if none."""
    logged = series.device.power_limit_default_watts
    if series.is_recorded(DEFAULT_LIMIT):
        logged = float(series.known_values(DEFAULT_LIMIT).max())
    if logged is not None:
        return logged, "as logged"
    known = find_gpu(series.device.model)
    cell = known.power_limit_default_watts if known else None
    return (cell.value, f"of {known.model}: {cell.source}") if known and cell else (float("nan"), "")


def counter_name(reason: str) -> str:
    return f"clock_event_{reason}_seconds_total"


def are_events_recorded(series: DeviceSeries, *reasons: str) -> bool:
    return any(series.is_recorded(name) for each in reasons for name in (f"clock_event_{each}", counter_name(each)))


@memoized
def find_event_rows(series: DeviceSeries, *reasons: str) -> BoolArray:
    """Return the rows with any of the clock event reasons, by its bit or, where there is one, by its counter.

    A counter marks a row before which it rose for half of the time, and one each time that what is left adds up to it:
    so many rows marked are as much time as was counted.
    """
    every = [series.values(f"clock_event_{reason}") > 0 for reason in reasons]
    for reason, rows in zip(reasons, every, strict=True):
        if found := statistics.measure_increments(series, counter_name(reason), 1.0):
            read, amounts, _ = found
            share = amounts * 1e6 / np.diff(series.times[read])
            left = np.floor(np.cumsum(np.where(share < _COUNTED, share, 0)) + _COUNTED)
            rows[read[1:]] = (share >= _COUNTED) | (np.diff(left, prepend=0) > 0)
    return np.asarray(np.any(every, axis=0), dtype=np.bool_)


def median(values: FloatArray) -> float:
    known = values[:1] if columns.is_constant(values) else values
    return high_quantile(known, ~np.isnan(known), 0.5)


def high_quantile(values: FloatArray, rows: BoolArray, quantile: float = 0.95) -> float:
    chosen = values[rows & ~np.isnan(values)]
    return float(np.quantile(chosen, quantile)) if len(chosen) else float("nan")


def choose_reference_clock(signals: ClockSignals, slowed: BoolArray) -> tuple[float, str]:
    """Return the clock in Hz to compare slowed rows with, and what it is; NaN without clocks."""
    if np.isnan(signals.clock).all():
        return float("nan"), ""
    usual = high_quantile(signals.clock, signals.busy & ~slowed)
    return (usual, "that of other busy samples") if usual > 0 else (signals.clock_max, "the highest clock")


def compute_loss(series: DeviceSeries, rows: BoolArray, slowed: BoolArray) -> FloatArray | None:
    """Return the share of each row's time that a lowered clock cost in some rows, None if no clock tells.

    A clock 20% below that of rows not slowed loses 0.2 s per second, but no more than the time a kernel ran.
    """
    signals = gather_signals(series)
    shortfall = np.clip(1 - signals.clock / choose_reference_clock(signals, slowed)[0], 0, 1)
    rows = rows & signals.busy
    if np.isnan(shortfall[rows]).all() and (rows.any() or np.isnan(shortfall).all()):
        return None
    return np.where(rows & ~np.isnan(shortfall), np.fmin(shortfall, series.values(UTILISATION)), 0.0)


@memoized
def scale_power(series: DeviceSeries, at_least: bool = False) -> tuple[FloatArray, bool]:
    """Return power per row above idle as a share of what the limit leaves, NaN if unknown; and if the limit was logged.

    With `at_least`, the power reached for half a minute stands for an unknown limit: the true share is lower. Idle
    power is the lowest of the run or of the GPU table, whichever is less.
    """
    power, known, limit = series.values(POWER), series.known_values(POWER), read_power_limit(series)
    is_logged, unknown = not np.isnan(limit).all(), (np.full(len(series), np.nan), False)
    if not len(known):
        return unknown
    if not is_logged:
        watts, rows = find_default_limit(series)[0], round(_HELD_SECONDS / (series.interval or np.inf))
        limit = np.full(len(series), watts)
        if np.isnan(watts) and at_least and 0 < rows <= len(known):
            limit = np.full(len(series), np.sort(known)[-rows])
    usual, gpu = median(limit), find_gpu(series.device.model)
    most_idle = gpu.power_idle_watts.value if gpu and gpu.power_idle_watts else _IDLE_SHARE * usual
    idle = min(float(np.quantile(known, _IDLE_QUANTILE)), most_idle)
    room = np.where(np.isnan(limit), usual, limit) - idle
    # false, too, where no limit is known
    return ((power - idle) / room, is_logged) if (room > 0).all() else unknown


def draws_working_power(series: DeviceSeries, limit: float = _AT_WORK) -> bool:
    """Return whether a GPU drew the power of work in the mean, whatever its utilisation says; False if unknown."""
    share = scale_power(series)[0]
    return not np.isnan(share).all() and float(np.nanmean(share)) > limit


def list_clock_events(series: DeviceSeries) -> Iterator[ClockEventTotal]:
    signals, free = gather_signals(series), {"gpu_idle", *CHOSEN}
    events = {name: find_event_rows(series, name) for name in CLOCK_EVENT_BITS if are_events_recorded(series, name)}
    if series.is_recorded("clock_event_unknown_bits"):
        masks = columns.integers(series.rows.column("clock_event_unknown_bits")).astype(np.uint64)
        every = int(np.bitwise_or.reduce(masks))
        places = (place for place in range(64) if every >> place & 1)
        events |= {f"{1 << place:#x}": masks >> np.uint64(place) & np.uint64(1) == 1 for place in places}
    slowed = np.any([np.zeros_like(signals.busy), *(events[name] for name in events.keys() - free)], axis=0)
    reference, description = choose_reference_clock(signals, slowed)
    busy_seconds = float(series.seconds[signals.busy].sum())
    for reason, rows in events.items():
        lost, clock = None, median(signals.clock[rows & signals.busy])
        if reason not in free and busy_seconds > 0 and not np.isnan(reference):
            loss = compute_loss(series, rows, slowed) if rows.any() else np.zeros(len(series))
            lost = None if loss is None else float((loss * series.seconds).sum()) / busy_seconds
        has_bit = reason not in CLOCK_EVENT_BITS or series.is_recorded(f"clock_event_{reason}")
        yield ClockEventTotal(
            device=series.device.id,
            reason=reason,
            effect=_EFFECTS.get(reason, Effect.UNCLASSIFIED),
            busy_seconds=float(series.seconds[rows & signals.busy].sum()) if has_bit else None,
            counted=statistics.read_counter(series, counter_name(reason), 1.0),
            clock_hertz=None if np.isnan(clock) else clock,
            reference_hertz=None if np.isnan(reference) else reference,
            reference=description,
            lost_ratio=lost,
        )
