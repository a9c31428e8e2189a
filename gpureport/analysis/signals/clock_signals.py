"""What the series of one GPU say about its clock: event bits where logged, clock, temperature and power where not."""

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

Chosen, not measured: above the 12 % that stray kernels reach, below what the slowest job that is fed at all shows.
"""
COUNTED_SHARE = 0.1
"""Share of a row's time that must be counted for its clock to be no reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSignals:
    """Series of one GPU, NaN where null.

    Attributes:
        busy: rows with utilisation above 20 %; all rows where utilisation was not recorded.
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
        detected: all that were told as such; their clocks are no reference for others.
        share: share of each row's time in which the clock was held, where the driver counted it; None when all of it.
        lowered: rows whose own clock is a lowered one; None when it is that of all rows.
    """

    rows: BoolArray
    detected: BoolArray
    share: FloatArray | None = None
    lowered: BoolArray | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceClock:
    """A clock in Hz that others are set against, and whose it is, in words."""

    hertz: float
    description: str


def find_event_rows(cells: DeviceSeries, *reasons: str) -> BoolArray:
    """Return the rows on which any of the clock event reasons is set or was counted; null is not set.

    The driver's counters see what happened between samples; a row counts where they rose by a tenth of the time
    since the row before. A counter that falls was reset. Not to be written to.
    """
    return cells.memoize(("event", reasons), lambda: _mark_event_rows(cells, reasons))


def _mark_event_rows(cells: DeviceSeries, reasons: Sequence[str]) -> BoolArray:
    rows = np.zeros(len(cells), dtype=np.bool_)
    for reason in reasons:
        bit = cells.values(f"clock_event_{reason}")
        # most are never set, or not recorded
        if not columns.is_constant(bit) or (bit[:1] > 0).any():
            rows |= bit > 0
        if cells.is_recorded(counter_name(reason)):
            rise = np.diff(cells.values(counter_name(reason)), prepend=np.nan)
            rows |= rise >= COUNTED_SHARE * np.maximum(np.diff(cells.times, prepend=0) / 1e6, 1e-3)
    return rows


def list_event_metrics(*reasons: str) -> tuple[str, ...]:
    """Return the metrics that tell clock event reasons: their bits, and the driver's counters where it has any."""
    names = (name for reason in reasons for name in (f"clock_event_{reason}", counter_name(reason)))
    return tuple(name for name in names if name in BY_NAME)


def are_events_recorded(cells: DeviceSeries, *reasons: str) -> bool:
    """Whether any of the clock event reasons was logged or counted for this GPU."""
    return any(
        cells.is_recorded(f"clock_event_{reason}") or cells.is_recorded(counter_name(reason)) for reason in reasons
    )


def _find_highest(cells: DeviceSeries, metric: str) -> float:
    most = float(np.nanmax(cells.values(metric))) if cells.is_recorded(metric) else 0.0
    # a recorder that knows no highest clock may write 0
    return most if most > 0 else float("nan")


def _find_temperature_limit(cells: DeviceSeries, known: gpus.Gpu | None) -> tuple[float, str]:
    if cells.is_recorded("gpu_temperature_margin_celsius"):
        margin = cells.values("gpu_temperature_celsius") + cells.values("gpu_temperature_margin_celsius")
        if not np.isnan(margin).all():
            return float(np.nanmedian(margin)), "temperature plus margin, as logged"
    cell = known.temperature_max_operating_celsius if known else None
    return (cell.value, f"{known.model}: {cell.source}") if known and cell else (float("nan"), "")


def read_power_limit(cells: DeviceSeries) -> FloatArray:
    """Return the power limit in force in W a row, NaN where neither log nor device tells; 0 W is no limit."""
    name = "gpu_power_limit_watts"
    if not cells.is_recorded(name):
        name = "gpu_power_limit_requested_watts"
    limit = cells.values(name)
    if not cells.is_recorded(name) and cells.device.power_limit_watts:
        return np.full(len(cells), cells.device.power_limit_watts)
    return np.where(limit > 0, limit, np.nan) if (limit <= 0).any() else limit


def read_clocks(cells: DeviceSeries) -> tuple[FloatArray, float]:
    """Return the clock in Hz a row, and the highest one; NaN where neither log nor GPU table tells."""
    known = gpus.find_gpu(cells.device.model)
    clock = next((cells.values(name) for name in CLOCKS if cells.is_recorded(name)), cells.values(CLOCKS[0]))
    clock_max = _find_highest(cells, "gpu_sm_clock_max_hertz")
    if np.isnan(clock_max) and known and known.sm_clock_max_hertz:
        clock_max = known.sm_clock_max_hertz.value
    return clock, clock_max


def gather_signals(cells: DeviceSeries) -> ClockSignals:
    """Gather the series of one GPU; the log wins over the GPU table. Not to be written to."""
    return cells.memoize("signals", lambda: _gather_signals(cells))


def _gather_signals(cells: DeviceSeries) -> ClockSignals:
    known = gpus.find_gpu(cells.device.model)
    clock, clock_max = read_clocks(cells)
    used = cells.values("gpu_utilization_ratio")
    limit, source = _find_temperature_limit(cells, known)
    busy = used > BUSY if cells.is_recorded("gpu_utilization_ratio") else np.ones(len(cells), dtype=np.bool_)
    return ClockSignals(
        busy=busy,
        clock=clock,
        clock_max=clock_max,
        temperature=cells.values("gpu_temperature_celsius"),
        temperature_limit=limit,
        temperature_limit_source=source,
        power=cells.values("gpu_power_watts"),
        power_limit=read_power_limit(cells),
    )


def estimate_full_clock(clock: FloatArray, rows: BoolArray) -> float:
    """Return the 95 % quantile of the clock over rows, NaN when none has a value."""
    chosen = clock[rows & ~np.isnan(clock)]
    return (
        float(np.partition(chosen, int(0.95 * (len(chosen) - 1)))[int(0.95 * (len(chosen) - 1))])
        if len(chosen)
        else float("nan")
    )


def choose_reference_clock(found: ClockSignals, slowed: BoolArray) -> ReferenceClock | None:
    """Return the clock that slowed rows are set against, None where no clock was recorded or nothing compares.

    It is the 95 % quantile over busy rows that are not slowed; without such rows, the highest clock.
    """
    if np.isnan(found.clock).all():
        return None
    hertz = estimate_full_clock(found.clock, found.busy & ~slowed)
    if hertz > 0:
        return ReferenceClock(hertz=hertz, description="that of other busy samples")
    return ReferenceClock(hertz=found.clock_max, description="the highest clock") if found.clock_max > 0 else None


def compute_lost_ratio(cells: DeviceSeries, found: ClockSignals, slowed: ThrottledTime) -> FloatArray | None:
    """Return the share of each row's time that lowered clocks cost, None without a clock to compare with.

    A clock 20 % below the reference loses 0.2 s a second, but no more than the time in which a kernel ran. Rows
    that are not slowed, or not busy, lose nothing.
    """
    compared = choose_reference_clock(found, slowed.detected)
    if compared is None:
        return None
    missing = _compute_shortfall(found, slowed, compared)
    if missing is None:
        return None
    worked = np.fmin(missing, cells.values("gpu_utilization_ratio"))
    share = 1.0 if slowed.share is None else slowed.share
    return np.where(slowed.rows & found.busy & ~np.isnan(missing), share * worked, 0.0)


def _compute_shortfall(found: ClockSignals, slowed: ThrottledTime, compared: ReferenceClock) -> FloatArray | None:
    """Return by how much the clock of each row falls short while it is held, None where no row shows a held clock.

    A row beside which time was counted shows the clock of a moment that need not be within that time: it gets the
    median of those that do.
    """
    missing = np.clip(1 - found.clock / compared.hertz, 0, 1)
    if slowed.lowered is None or not (slowed.rows & found.busy & ~slowed.lowered).any():
        return missing
    shown = missing[slowed.lowered & slowed.detected & found.busy & ~np.isnan(missing)]
    return np.where(slowed.lowered, missing, np.median(shown)) if len(shown) else None


def compute_lost_seconds(
    cells: DeviceSeries, found: ClockSignals, slowed: ThrottledTime, window: Interval
) -> float | None:
    """Return the time a steady clock would have saved within a window, None without a clock to compare with."""
    ratio = compute_lost_ratio(cells, found, slowed)
    if ratio is None:
        return None
    start, end = cells.averaging_windows(window)
    return float((ratio * (end - start)).sum() / 1e6)
