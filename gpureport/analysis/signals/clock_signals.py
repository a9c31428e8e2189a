"""The series of one GPU that show why its clock was lowered: event bits, clock, temperature and power."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport import columns, gpus
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_event_time import counter_name
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Interval
from gpureport.metrics import BY_NAME

CLOCKS = ("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz")
SIGNALS = (
    "gpu_utilization_ratio",
    CLOCKS[0],
    "gpu_sm_clock_max_hertz",
    "gpu_temperature_celsius",
    "gpu_temperature_margin_celsius",
    "gpu_power_watts",
    "gpu_power_limit_watts",
)
"""Metrics that `signals` gathers, without those that only stand in for another."""

BUSY = 0.2
"""Utilisation above which a GPU is at work, and its clock and its tensor cores say something of that work.

Above the 12% that stray kernels reach. Measured on 148 generated and recorded logs: 13% gives the same findings,
30% changes power_cap in two.
"""
COUNTED_SHARE = 0.1
"""Share of a row's time that must be counted for its clock to be no reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSignals:
    """Series of one GPU, NaN where null.

    Attributes:
        busy: rows with utilisation above 20%; all rows where utilisation was not recorded.
        clock: multiprocessor clock in Hz, the graphics clock where it is missing.
        clock_max: highest clock in Hz, NaN when unknown.
        temperature: core temperature in degrees Celsius.
        temperature_limit: temperature from which the driver lowers clocks, NaN when unknown.
        temperature_limit_source: where that limit comes from, in words.
        power: board power in W.
        power_limit: limit in force in W, NaN when unknown.
    """

    busy: BoolArray
    clock: FloatArray
    clock_max: float
    temperature: FloatArray
    temperature_limit: float
    temperature_limit_source: str
    power: FloatArray
    power_limit: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledTime:
    """Rows of one GPU with throttled clocks.

    Attributes:
        rows: those that count as episodes.
        detected: all throttled rows, short ones included; their clocks are no reference for others.
        share: share of each row's time in which the clock was held, where the driver counted it; None when all of it.
        lowered: rows whose recorded clock is a lowered one; None if all rows count.
    """

    rows: BoolArray
    detected: BoolArray
    share: FloatArray | None = None
    lowered: BoolArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceClock:
    """A clock in Hz to compare others with, and what it is, in words."""

    hertz: float
    description: str


def find_event_rows(series: DeviceSeries, *reasons: str) -> BoolArray:
    """Return the rows on which any of the clock event reasons is set or was counted; null is not set.

    The driver's counters see what happened between samples; a row counts where they rose by a tenth of the time
    since the row before. A counter that falls was reset. Not to be written to.
    """
    return series.memoize(("event", reasons), lambda: _mark_event_rows(series, reasons))


def _mark_event_rows(series: DeviceSeries, reasons: Sequence[str]) -> BoolArray:
    rows = np.zeros(len(series), dtype=np.bool_)
    for reason in reasons:
        if series.is_recorded(f"clock_event_{reason}"):
            bit = series.values(f"clock_event_{reason}")
            # most are never set
            if not columns.is_constant(bit) or bit[0] > 0:
                rows |= bit > 0
        if series.is_recorded(counter_name(reason)):
            rise = np.diff(series.values(counter_name(reason)), prepend=np.nan)
            rows |= rise >= COUNTED_SHARE * np.maximum(np.diff(series.times, prepend=0) / 1e6, 1e-3)
    return rows


def list_event_metrics(*reasons: str) -> tuple[str, ...]:
    """Return the metrics of clock event reasons: their bits, and the driver's counters of those that have one."""
    names = (name for reason in reasons for name in (f"clock_event_{reason}", counter_name(reason)))
    return tuple(name for name in names if name in BY_NAME)


def are_events_recorded(series: DeviceSeries, *reasons: str) -> bool:
    """Whether any of the clock event reasons was logged or counted for this GPU."""
    return any(
        series.is_recorded(f"clock_event_{reason}") or series.is_recorded(counter_name(reason)) for reason in reasons
    )


def _find_highest(series: DeviceSeries, metric: str) -> float:
    most = float(series.known_values(metric).max()) if series.is_recorded(metric) else 0.0
    # a recorder that knows no highest clock may write 0
    return most if most > 0 else float("nan")


def _find_temperature_limit(series: DeviceSeries, known: gpus.Gpu | None) -> tuple[float, str]:
    if series.is_recorded("gpu_temperature_margin_celsius"):
        margin = series.values("gpu_temperature_celsius") + series.values("gpu_temperature_margin_celsius")
        if not np.isnan(margin).all():
            return float(np.nanmedian(margin)), "temperature plus margin, as logged"
    cell = known.temperature_max_operating_celsius if known else None
    return (cell.value, f"{known.model}: {cell.source}") if known and cell else (float("nan"), "")


def read_power_limit(series: DeviceSeries) -> FloatArray:
    """Return the power limit in force in W for each row, NaN if unknown; 0 W is no limit."""
    name = "gpu_power_limit_watts"
    if not series.is_recorded(name):
        name = "gpu_power_limit_requested_watts"
    limit = series.values(name)
    if not series.is_recorded(name) and series.device.power_limit_watts:
        return np.full(len(series), series.device.power_limit_watts)
    return np.where(limit > 0, limit, np.nan) if (limit <= 0).any() else limit


def read_clocks(series: DeviceSeries) -> tuple[FloatArray, float]:
    """Return the clock in Hz for each row, and the highest possible; NaN if neither log nor GPU table has it."""
    known = gpus.find_gpu(series.device.model)
    clock = next((series.values(name) for name in CLOCKS if series.is_recorded(name)), series.values(CLOCKS[0]))
    clock_max = _find_highest(series, "gpu_sm_clock_max_hertz")
    if np.isnan(clock_max) and known and known.sm_clock_max_hertz:
        clock_max = known.sm_clock_max_hertz.value
    return clock, clock_max


def gather_signals(series: DeviceSeries) -> ClockSignals:
    """Gather the series of one GPU; the log wins over the GPU table. Not to be written to."""
    return series.memoize("signals", lambda: _gather_signals(series))


def _gather_signals(series: DeviceSeries) -> ClockSignals:
    known = gpus.find_gpu(series.device.model)
    clock, clock_max = read_clocks(series)
    used = series.values("gpu_utilization_ratio")
    limit, source = _find_temperature_limit(series, known)
    busy = used > BUSY if series.is_recorded("gpu_utilization_ratio") else np.ones(len(series), dtype=np.bool_)
    return ClockSignals(
        busy=busy,
        clock=clock,
        clock_max=clock_max,
        temperature=series.values("gpu_temperature_celsius"),
        temperature_limit=limit,
        temperature_limit_source=source,
        power=series.values("gpu_power_watts"),
        power_limit=read_power_limit(series),
    )


def estimate_full_clock(clock: FloatArray, rows: BoolArray) -> float:
    """Return the 95% quantile of the clock over rows, NaN when none has a value."""
    chosen = clock[rows & ~np.isnan(clock)]
    return (
        float(np.partition(chosen, int(0.95 * (len(chosen) - 1)))[int(0.95 * (len(chosen) - 1))])
        if len(chosen)
        else float("nan")
    )


def choose_reference_clock(signals: ClockSignals, slowed: BoolArray) -> ReferenceClock | None:
    """Return the clock to compare throttled rows with, None if no clock was recorded.

    It is the 95% quantile over busy rows that are not slowed; without such rows, the highest clock.
    """
    if np.isnan(signals.clock).all():
        return None
    hertz = estimate_full_clock(signals.clock, signals.busy & ~slowed)
    if hertz > 0:
        return ReferenceClock(hertz=hertz, description="that of other busy samples")
    return ReferenceClock(hertz=signals.clock_max, description="the highest clock") if signals.clock_max > 0 else None


def compute_lost_ratio(series: DeviceSeries, signals: ClockSignals, throttled: ThrottledTime) -> FloatArray | None:
    """Return the share of each row's time that lowered clocks cost, None without a clock to compare with.

    A clock 20% below the reference loses 0.2 s a second, but no more than the time in which a kernel ran. Rows
    that are not slowed, or not busy, lose nothing.
    """
    reference = choose_reference_clock(signals, throttled.detected)
    if reference is None:
        return None
    shortfall = _compute_shortfall(signals, throttled, reference)
    if shortfall is None:
        return None
    worked = np.fmin(shortfall, series.values("gpu_utilization_ratio"))
    share = 1.0 if throttled.share is None else throttled.share
    return np.where(throttled.rows & signals.busy & ~np.isnan(shortfall), share * worked, 0.0)


def _compute_shortfall(signals: ClockSignals, throttled: ThrottledTime, reference: ReferenceClock) -> FloatArray | None:
    """Return by which share the clock of each throttled row falls short, None if no row shows a lowered clock.

    A row beside which time was counted shows the clock of a moment that need not be within that time: it gets the
    median of those that do.
    """
    shortfall = np.clip(1 - signals.clock / reference.hertz, 0, 1)
    if throttled.lowered is None or not (throttled.rows & signals.busy & ~throttled.lowered).any():
        return shortfall
    measured = shortfall[throttled.lowered & throttled.detected & signals.busy & ~np.isnan(shortfall)]
    return np.where(throttled.lowered, shortfall, np.median(measured)) if len(measured) else None


def compute_lost_seconds(
    series: DeviceSeries, signals: ClockSignals, throttled: ThrottledTime, window: Interval
) -> float | None:
    """Return the time a steady clock would have saved within a window, None without a clock to compare with."""
    ratio = compute_lost_ratio(series, signals, throttled)
    if ratio is None:
        return None
    start, end = series.averaging_windows(window)
    return float((ratio * (end - start)).sum() / 1e6)
