"""Which samples of a GPU are throttled, by event bits or, without them, by clock, temperature and power."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import CountedTime, measure_counted_time
from gpureport.analysis.signals.clock_signals import (
    COUNTED_SHARE,
    ClockSignals,
    are_events_recorded,
    estimate_full_clock,
    find_event_rows,
    gather_signals,
)
from gpureport.analysis.thresholds import vendor
from gpureport.columns import BoolArray, FloatArray

THERMAL = ("sw_thermal_slowdown", "hw_thermal_slowdown")
BRAKE = "hw_power_brake_slowdown"
REASONS = (*THERMAL, BRAKE, "hw_slowdown")
"""Clock event reasons that are throttling."""
_SETTLED_SAMPLES = 5


COOL = 4.0  # Cel; cooler than this, heat no longer slows the GPU
"""Degrees below the temperature limit at which heat cannot lower clocks."""
POWER_FREE = 0.975  # the next clock step takes 2 to 3% more power, which the limit would allow
"""Mean power, of the limit, below which the power cap does not act."""
POWER_CAPPED = 0.99  # this near the limit there is no power for a higher clock
"""Mean power, of the limit, from which on the cap acts and heat no longer does."""
CLOCK_BACK = 0.99  # less than one clock step of 15 MHz below the reference
"""Mean clock, of the cool reference, from which on heat no longer lowers it."""
SETTLED = 10.0  # s; power and clock vary with the load; at least 5 samples
"""Time over which these means are taken, at least."""
HW_CLOCK_MAX = 0.75  # NVML: hardware slowdown halves the clock; P-state changes set the bit too
"""Clock, of the highest, below which a hardware slowdown is real."""
HW_CLOCK_DROP = vendor(0.65, "1", "NVML: hardware slowdown cuts the clock by a factor of 2 or more")
"""Clock, of the reference, below which only hardware cuts it."""
HW_POWER = 0.8  # a GPU this far below its limit is not power-capped
"""Power, of the limit, below which such a cut is not the power cap."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The settings by which a clock counts as lowered by heat.

    Attributes:
        clock_drop: clock, of the cool reference, below which heat lowered it.
        near_limit: degrees below the temperature limit from which heat can lower clocks.
    """

    clock_drop: float
    near_limit: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledSamples:
    """Throttled rows and how they were detected, or why they could not be.

    Attributes:
        rows: rows detected by their own values, except those beside which the driver's counters rose.
        is_direct: whether event bits or counters show them.
        reason: why they could not be detected; empty if they could.
        reason_code: the same in one word.
        missing_metrics: metrics that would show them.
        counted: what the driver counted, None where it counted nothing of this kind.
    """

    rows: BoolArray
    is_direct: bool = True
    reason: str = ""
    reason_code: str = ""
    missing_metrics: tuple[str, ...] = ()
    counted: CountedTime | None = None

    @property
    def lowered(self) -> BoolArray:
        """Rows whose recorded clock is a lowered one."""
        return self.rows if self.counted is None else self.rows | (self.counted.held_rows & self.counted.adjacent_rows)

    @property
    def has_any(self) -> bool:
        """Whether anything was throttled."""
        return bool(self.rows.any()) or (self.counted is not None and self.counted.total_seconds > 0)

    def compute_row_shares(self, series: DeviceSeries, stretches: Spans, inside: BoolArray) -> FloatArray:
        """Return the share of each row's time that was throttled within stretches."""
        sampled = np.where(self.rows & inside, 1.0, 0.0)
        return (
            sampled if self.counted is None else np.maximum(sampled, self.counted.compute_row_shares(series, stretches))
        )

    def find_detected_rows(self, series: DeviceSeries) -> BoolArray:
        """Return all throttled rows, whose clocks are no reference for others."""
        if self.counted is None:
            return self.rows
        return self.lowered | (self.counted.compute_row_shares(series, self.counted.spans) >= COUNTED_SHARE)


def _report_unjudged(series: DeviceSeries, reason: str) -> ThrottledSamples:
    events = (f"clock_event_{name}" for name in (*THERMAL, "hw_slowdown"))
    missing = (*events, "gpu_sm_clock_hertz", "gpu_sm_clock_max_hertz", "gpu_power_limit_watts")
    return ThrottledSamples(
        rows=np.zeros(len(series), dtype=np.bool_),
        reason=reason,
        reason_code="signals_not_recorded",
        missing_metrics=missing,
    )


def _name_missing_clock(signals: ClockSignals) -> str:
    """Say which clock is missing that would tell a real cut from a change of performance state."""
    if np.isnan(signals.clock).all():
        return "the clock"
    return "the highest clock" if np.isnan(signals.clock_max) else ""


def _report_missing_clock(series: DeviceSeries, lacking: str) -> ThrottledSamples:
    return ThrottledSamples(
        rows=np.zeros(len(series), dtype=np.bool_),
        reason=(
            f"a hardware slowdown was reported while the GPU was busy, and without {lacking} a cut cannot be told from "
            "a change of performance state, which sets the same bit"
        ),
        reason_code="clock_not_recorded",
        missing_metrics=("clock_event_hw_power_brake_slowdown", "gpu_sm_clock_hertz", "gpu_sm_clock_max_hertz"),
    )


def _explain_missing_signals(series: DeviceSeries, signals: ClockSignals) -> str:
    """Return which series are missing to detect throttling without event bits; empty if none is."""
    if np.isnan(signals.clock).all():
        margin = (
            float(np.nanmax(signals.temperature)) - signals.temperature_limit
            if series.is_recorded("gpu_temperature_celsius")
            else -99
        )
        remark = " (it ran within 3 °C of its limit)" if margin >= -3 else ""  # noqa: PLR2004 - said in the words
        return f"neither clock event reasons nor clocks were recorded{remark}"
    for column, name in (
        (signals.temperature, "temperature"),
        (signals.power, "power"),
        (signals.power_limit, "power limit"),
    ):
        if np.isnan(column).all():
            return f"without clock event reasons or the {name}, other causes of a low clock cannot be excluded"
    return (
        ""
        if not np.isnan(signals.temperature_limit)
        else "clock event reasons were not recorded, and this GPU's temperature limit is not known"
    )


def _drop_counted_rows(rows: BoolArray, counted: CountedTime | None) -> BoolArray:
    """Return the rows with an event bit whose counter did not rise; those with a rise are counted by it."""
    return rows if counted is None else rows & ~counted.adjacent_rows


def detect_heat(series: DeviceSeries, signals: ClockSignals, limits: Limits) -> ThrottledSamples:
    """Return the rows slowed by heat."""
    if are_events_recorded(series, *THERMAL):
        counted = measure_counted_time(series, *THERMAL)
        return ThrottledSamples(rows=_drop_counted_rows(find_event_rows(series, *THERMAL), counted), counted=counted)
    reason = _explain_missing_signals(series, signals)
    if reason:
        return _report_unjudged(series, reason)
    return ThrottledSamples(rows=_find_heated_rows(series, signals, limits), is_direct=False)


def _find_heated_rows(series: DeviceSeries, signals: ClockSignals, limits: Limits) -> BoolArray:
    """Return the rows whose clock is lowered by heat, by clock, temperature and power.

    A power cap keeps power at its limit; heat lowers the clock further and leaves power unused. The load varies by
    more than that difference, so means around each sample decide between the two.
    """
    cool = signals.busy & (signals.temperature < signals.temperature_limit - COOL)
    full = estimate_full_clock(signals.clock, cool)
    hot = signals.busy & (signals.temperature >= signals.temperature_limit - limits.near_limit)
    suspect = hot & (signals.clock < limits.clock_drop * full)
    if not suspect.any():
        return suspect
    length = max(_SETTLED_SAMPLES, round(SETTLED / series.interval))
    clock, power = (
        rolling_mean(np.where(signals.busy, values, np.nan), length)
        for values in (signals.clock / full, signals.power / signals.power_limit)
    )
    is_throttled = suspect & (clock < limits.clock_drop) & (power < POWER_FREE)
    return _fill_between(is_throttled, ~hot | (clock >= CLOCK_BACK) | (power >= POWER_CAPPED))


def _fill_between(rows: BoolArray, ended: BoolArray) -> BoolArray:
    """Return rows and all rows between two of them, unless one in between shows the end of throttling."""
    at = np.flatnonzero(rows)
    joined = np.flatnonzero(np.diff(np.cumsum(ended)[at]) == 0)
    steps = np.zeros(len(rows) + 1, dtype=np.int64)
    steps[at[joined]] += 1
    steps[at[joined + 1]] -= 1
    return rows | (np.cumsum(steps[:-1]) > 0)


def detect_hardware_slowdown(series: DeviceSeries, signals: ClockSignals, _: Limits) -> ThrottledSamples:
    """Return the rows slowed by hardware for another reason than heat."""
    if are_events_recorded(series, BRAKE, "hw_slowdown"):
        low = signals.clock < HW_CLOCK_MAX * signals.clock_max
        brake = find_event_rows(series, BRAKE)
        umbrella = find_event_rows(series, "hw_slowdown") & signals.busy & ~find_event_rows(series, *THERMAL)
        if not brake.any() and umbrella.any() and (lacking := _name_missing_clock(signals)):
            return _report_missing_clock(series, lacking)
        counted = measure_counted_time(series, BRAKE)
        return ThrottledSamples(rows=_drop_counted_rows(brake, counted) | (umbrella & low), counted=counted)
    reason = _explain_missing_signals(series, signals)
    if reason:
        return _report_unjudged(series, reason)
    cool = signals.temperature < signals.temperature_limit - COOL
    low = signals.clock < HW_CLOCK_DROP.value * estimate_full_clock(signals.clock, signals.busy & cool)
    return ThrottledSamples(
        rows=signals.busy & low & cool & (signals.power < HW_POWER * signals.power_limit), is_direct=False
    )


DETECTORS = {"thermal_throttle": detect_heat, "hw_throttle": detect_hardware_slowdown}
"""What detects the throttled samples of each kind."""


def detect_samples(series: DeviceSeries, kind: str, limits: Limits) -> ThrottledSamples:
    """Return the samples of one GPU that are throttled in the way of a kind; not to be written to."""
    return series.memoize(
        ("throttled samples", kind, limits), lambda: DETECTORS[kind](series, gather_signals(series), limits)
    )
