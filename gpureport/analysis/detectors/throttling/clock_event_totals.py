"""Clock event reasons of each GPU, with their time, the clock meanwhile and what that cost."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpureport import columns
from gpureport.analysis.results import ClockEventTotal, CounterReading, Effect
from gpureport.analysis.series import counter_increments
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_event_time import CountedTime, counter_name, measure_counted_time
from gpureport.analysis.signals.clock_signals import (
    COUNTED_SHARE,
    ClockSignals,
    ReferenceClock,
    ThrottledTime,
    choose_reference_clock,
    compute_lost_ratio,
    gather_signals,
)
from gpureport.columns import BoolArray
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS

_BENIGN = {"gpu_idle", "applications_clocks_setting", "sw_power_cap", "display_clock_setting"}
_HARMFUL = {"hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"}
_SETTINGS = {"gpu_idle", "applications_clocks_setting", "display_clock_setting"}
"""Reasons that say at rest, or which clock was asked for: other samples do not show what they cost."""
_UNKNOWN = "clock_event_unknown_bits"
_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReasonRows:
    """One reason on the rows of one GPU: its bit, None where it was not recorded, and what was counted of it."""

    reason: str
    bit: BoolArray | None
    counted_time: CountedTime | None
    reading: CounterReading | None

    @property
    def is_absent(self) -> bool:
        """Whether it neither showed nor was counted."""
        return (self.bit is None or not self.bit.any()) and (
            self.counted_time is None or self.counted_time.total_seconds <= 0
        )

    @property
    def lowered(self) -> BoolArray:
        """Rows whose clock the reason set."""
        if self.bit is not None:
            return self.bit
        return self.counted_time.held_rows if self.counted_time is not None else np.zeros(0, dtype=np.bool_)


def list_clock_event_totals(gpus: Iterable[DeviceSeries]) -> Iterator[ClockEventTotal]:
    """Yield one entry for each GPU and reason that was recorded, in NVML's order, unnamed bits last."""
    for series in gpus:
        reasons = [*_read_named_reasons(series), *_read_unnamed_bits(series)]
        if reasons:
            yield from _build_entries(series, reasons)


def _read_named_reasons(series: DeviceSeries) -> Iterator[_ReasonRows]:
    for reason in CLOCK_EVENT_BITS:
        recorded, total = series.is_recorded(f"clock_event_{reason}"), counter_name(reason)
        counted = counter_increments.read_counter(series, total, 1.0) if total in BY_NAME else None
        if recorded or counted is not None:
            bit = series.values(f"clock_event_{reason}") > 0 if recorded else None
            yield _ReasonRows(
                reason=reason, bit=bit, counted_time=measure_counted_time(series, reason), reading=counted
            )


def _read_unnamed_bits(series: DeviceSeries) -> Iterator[_ReasonRows]:
    if not series.is_recorded(_UNKNOWN):
        return
    masks = columns.integers(series.rows.column(_UNKNOWN)).astype(np.uint64)
    every = int(np.bitwise_or.reduce(masks))
    for place in range(_BITS):
        if every >> place & 1:
            bit = (masks >> np.uint64(place)) & np.uint64(1) == 1
            yield _ReasonRows(reason=f"{1 << place:#x}", bit=bit, counted_time=None, reading=None)


def _build_entries(series: DeviceSeries, reasons: list[_ReasonRows]) -> Iterator[ClockEventTotal]:
    signals = gather_signals(series)
    is_held = np.zeros(len(series), dtype=np.bool_)
    for reason_rows in reasons:
        if reason_rows.reason not in _SETTINGS and not reason_rows.is_absent:
            is_held |= _compute_held_share(series, reason_rows) >= COUNTED_SHARE
    reference = choose_reference_clock(signals, is_held)
    busy_seconds = float(series.seconds[signals.busy].sum())
    for reason_rows in reasons:
        if reason_rows.is_absent:
            lost = 0.0 if reference and busy_seconds > 0 and reason_rows.reason not in _SETTINGS else None
            yield _build_entry(series, reason_rows, reference, lost=lost)
            continue
        is_shown = reason_rows.lowered & signals.busy & ~np.isnan(signals.clock)
        yield replace(
            _build_entry(
                series,
                reason_rows,
                reference,
                lost=_compute_lost_share(series, signals, reason_rows, is_held, busy_seconds),
            ),
            busy_seconds=None
            if reason_rows.bit is None
            else float(series.seconds[reason_rows.bit & signals.busy].sum()),
            clock_hertz=float(np.median(signals.clock[is_shown])) if is_shown.any() else None,
        )


def _build_entry(
    series: DeviceSeries, reason_rows: _ReasonRows, reference: ReferenceClock | None, *, lost: float | None
) -> ClockEventTotal:
    """Return the entry of a reason that held no clock of a busy sample."""
    return ClockEventTotal(
        device=series.device.id,
        reason=reason_rows.reason,
        effect=_classify_effect(reason_rows.reason),
        busy_seconds=None if reason_rows.bit is None else 0.0,
        counted=reason_rows.reading,
        clock_hertz=None,
        reference_hertz=reference.hertz if reference else None,
        reference=reference.description if reference else "",
        lost_ratio=lost,
    )


def _classify_effect(reason: str) -> Effect:
    if reason in _BENIGN:
        return Effect.BENIGN
    return Effect.HARMFUL if reason in _HARMFUL else Effect.UNCLASSIFIED


def _compute_held_share(series: DeviceSeries, reason_rows: _ReasonRows) -> "columns.FloatArray":
    """Return the share of each row's time in which the reason held the clock."""
    bit = np.zeros(len(series)) if reason_rows.bit is None else reason_rows.bit.astype(np.float64)
    if reason_rows.counted_time is None or reason_rows.counted_time.total_seconds <= 0:
        return bit
    return np.maximum(
        np.where(reason_rows.counted_time.adjacent_rows, 0.0, bit),
        reason_rows.counted_time.compute_row_shares(series, reason_rows.counted_time.spans),
    )


def _compute_lost_share(
    series: DeviceSeries, signals: ClockSignals, reason_rows: _ReasonRows, is_held: BoolArray, busy_seconds: float
) -> float | None:
    """Return the share of the busy time that the reason cost; None if that is unknown, as in log gaps."""
    share = _compute_held_share(series, reason_rows)
    if reason_rows.reason in _SETTINGS or busy_seconds <= 0 or not share.any():
        return None
    throttled = ThrottledTime(rows=share > 0, detected=is_held, share=share, lowered=reason_rows.lowered)
    ratio = compute_lost_ratio(series, signals, throttled)
    return None if ratio is None else float((ratio * series.seconds).sum()) / busy_seconds
