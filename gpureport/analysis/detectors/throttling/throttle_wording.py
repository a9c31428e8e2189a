"""Sentences on a lowered clock: its cause and what to do."""

from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.throttling.throttled_samples import BRAKE, THERMAL, ThrottledSamples
from gpureport.analysis.rules import phrases
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import measure_counted_time
from gpureport.analysis.signals.clock_signals import ClockSignals, ReferenceClock, are_events_recorded, find_event_rows
from gpureport.columns import BoolArray

UNEXPLAINED = "hardware slowdown, reason not recorded"
"""Cause if only the bit was set that covers heat, power brake and others."""

_HEAT = (
    "Improve cooling: check airflow, fans, filters and the neighbours of this slot; if cooling cannot be improved, "
    "lower the power limit (nvidia-smi -pl) below what the GPU draws while it is slowed; record temperature.memory, "
    "since hot memory slows a cool core."
)
_BRAKE = (
    "Check power delivery, not cooling: power supply, cabling, and whether the management controller of the server "
    "asserts the power brake."
)
_EITHER = (
    "Check both cooling (airflow, fans, filters) and power delivery (power supply, cabling, power brake), and record "
    "all clock event reasons, which tell the two apart."
)
HEAT, HARDWARE = (_HEAT,), (_BRAKE, _EITHER)
"""All that may be recommended against either."""
_AS_HIGH = 0.995
"""Share of the reference from which on a clock rounds to all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottledEpisodes:
    """Throttled stretches of one GPU and what was measured in them.

    Attributes:
        kind: thermal_throttle or hw_throttle.
        device: the GPU.
        spans: when.
        rows: throttled rows within.
        seconds: throttled time: what the driver counted, else how long the stretches are.
        signals: series of the GPU.
        samples: how the rows were detected.
        lost_seconds: seconds lost, None when not known.
        reference: clock they are set against, None when not known.
        clock_ratio: mean clock of busy throttled rows, of the reference; NaN when not known.
        cause: what lies behind it.
    """

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


def choose_advice(episodes: ThrottledEpisodes) -> str:
    """Return what to do."""
    if episodes.is_heat:
        return _HEAT
    return _EITHER if episodes.cause == UNEXPLAINED else _BRAKE


def describe_episodes(episodes: ThrottledEpisodes) -> str:
    """Return what happened, how far the clock fell, and whether the loss is known."""
    hardware = "a power brake" if episodes.cause == "power brake" else "the hardware"
    seems = "was" if episodes.samples.is_direct else "appears to have been"
    sentence = (
        f"{phrases.gpu_name(episodes.device)} {seems} slowed by {'heat' if episodes.is_heat else hardware} for "
        f"{phrases.duration(episodes.seconds)}{_describe_count(episodes)}"
    )
    hot = episodes.signals.temperature[episodes.rows]
    if episodes.is_heat and not np.isnan(hot).all():
        sentence += f", at up to {np.nanmax(hot):.0f} °C"
    if episodes.cause == UNEXPLAINED:
        sentence += "; whether by heat or by a power brake was not recorded"
    if episodes.reference and not np.isnan(episodes.clock_ratio):
        share, whose = phrases.percent(episodes.clock_ratio), episodes.reference.description
        has_fallen = episodes.clock_ratio < _AS_HIGH
        sentence += (
            f"; its clock fell to {share} of {whose}" if has_fallen else f"; its mean clock was as high as {whose}"
        )
    if episodes.lost_seconds is None:
        is_clock_hidden = episodes.samples.counted is not None and not np.isnan(episodes.signals.clock).all()
        why = "no sample shows the clock it fell to, so the time lost is not known" if is_clock_hidden else None
        sentence += f"; {why or 'the time lost is not known without a clock to compare'}"
    return sentence + "."


def _describe_count(episodes: ThrottledEpisodes) -> str:
    """Return how many episodes there are, and what the driver's counters say beyond them."""
    sentence = f" in {phrases.count_of(len(episodes.spans), 'episode')}" if len(episodes.spans) else ""
    counted = episodes.samples.counted
    if counted is None or counted.total_seconds <= 0:
        return sentence
    sentence += ", counted by the driver"
    if counted.gap_seconds > 0:
        sentence += f" ({phrases.duration(counted.gap_seconds)} of it while the log has a gap)"
    if counted.restarts:
        sentence += "; the counter started anew in between, so that it may be more"
    return sentence


def list_ruled_out(episodes: ThrottledEpisodes) -> tuple[str, ...]:
    """Return which other explanations were excluded."""
    if episodes.samples.is_direct:
        return ("the power cap and locked clocks, which have bits of their own",)
    if episodes.is_heat:
        return ("the power cap: power was below its limit", "idle clocks: the GPU was busy")
    return ("heat: the core was cool", "the power cap: power was far below its limit", "idle clocks: the GPU was busy")
