"""Sentences on a lowered clock: its cause and what to do."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.detectors.throttling.throttled_samples import BRAKE, THERMAL, ThrottledSamples
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import measure_counted_time
from gpureport.analysis.signals.clock_signals import ClockSignals, ReferenceClock, are_events_recorded, find_event_rows
from gpureport.columns import BoolArray

UNEXPLAINED = "hardware slowdown, reason not recorded"
"""Cause if only the bit was set that covers heat, power brake and others."""

_AS_HIGH = 0.995
"""Share of the reference from which on a clock rounds to all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledEpisodes:
    """Throttled stretches of one GPU and what was measured in them."""

    kind: str
    device: str
    spans: Spans
    rows: BoolArray
    seconds: float
    signals: ClockSignals
    samples: ThrottledSamples
    lost_seconds: float | None
    reference: ReferenceClock | None
    clock_ratio: float
    cause: str

    @property
    def is_heat(self) -> bool:
        """Whether heat is the reason."""
        return self.kind == "thermal_throttle"


def name_cause(  # noqa: PLR0913 - what decides it
    kind: str, series: DeviceSeries, signals: ClockSignals, rows: BoolArray, *, is_direct: bool, near_limit: float
) -> str:
    """Return the cause of throttled rows; a power brake only if its own bit is set."""
    if kind == "thermal_throttle":
        return "heat"
    if not is_direct:
        return "hardware"
    braked = measure_counted_time(series, BRAKE)
    if (find_event_rows(series, BRAKE) & rows).any() or (braked and braked.total_seconds > 0):
        return "power brake"
    hot = (signals.temperature[rows] >= signals.temperature_limit - near_limit).any()
    return UNEXPLAINED if hot or not are_events_recorded(series, *THERMAL) else "hardware"


def describe_episodes(episodes: ThrottledEpisodes) -> str:
    """Return what happened, how far the clock fell, and whether the loss is known."""
    has_clock = episodes.reference is not None and not np.isnan(episodes.clock_ratio)
    fall = 1 - episodes.clock_ratio if has_clock and episodes.clock_ratio < _AS_HIGH else 0.0
    parts = [f"{_describe_slowdown(episodes, fall)} for {phrases.duration(episodes.seconds)}"]
    if has_clock and not fall:
        parts.append("its mean clock did not fall")
    if episodes.cause == UNEXPLAINED:
        parts.append("whether from heat or a power brake is not known")
    if episodes.lost_seconds is None:
        parts.append("the time lost is not known")
    return "; ".join(parts) + "."


def _describe_slowdown(episodes: ThrottledEpisodes, fall: float) -> str:
    """Return who slowed the GPU, and by how much where that is known."""
    whose = phrases.gpu_name(episodes.device)
    probably = "" if episodes.samples.is_direct else " probably"
    hot = episodes.signals.temperature[episodes.rows]
    if not episodes.is_heat:
        culprit = "A power brake" if episodes.cause == "power brake" else "The hardware"
        done = f"cut the clock of {whose} by {phrases.percent(fall)}" if fall else f"slowed {whose}"
        return f"{culprit}{probably} {done}"
    if np.isnan(hot).all():
        done = f"lowered the clock of {whose} by {phrases.percent(fall)}" if fall else f"slowed {whose}"
        return f"Heat{probably} {done}"
    reached = f"{whose} reached {np.nanmax(hot):.0f} °C"
    if fall:
        return f"{reached}; its clock{probably} fell {phrases.percent(fall)}"
    return f"{reached}; heat{probably} slowed it"


def list_ruled_out(episodes: ThrottledEpisodes) -> tuple[str, ...]:
    """Return which other explanations were excluded."""
    if episodes.samples.is_direct:
        return ("the power cap and locked clocks, which are reported separately",)
    if episodes.is_heat:
        return ("the power cap: power was below its limit", "idle clocks: the GPU was busy")
    return ("heat: the core was cool", "the power cap: power was far below its limit", "idle clocks: the GPU was busy")
