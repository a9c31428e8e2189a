"""Clocks that somebody set below the highest."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals.clock_signals import (
    CLOCKS,
    SIGNALS,
    ClockSignals,
    are_events_recorded,
    find_event_rows,
    gather_signals,
    list_event_metrics,
)
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

_KIND = "clocks_locked"
_SETTINGS = ("applications_clocks_setting", "display_clock_setting")
_HELD = ("sw_power_cap", "hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClockSetting:
    """How the clock of one GPU is set.

    Attributes:
        device: the GPU.
        clock: median clock while busy in Hz, NaN when not known.
        highest: highest clock in Hz, the highest seen where nobody tells; NaN without any.
        is_highest_seen: whether it is no more than the highest seen.
        share: share of the busy time in which a bit says so; None where the clock alone tells.
        samples: busy readings.
    """

    device: str
    clock: float
    highest: float
    is_highest_seen: bool
    share: float | None
    samples: int

    @property
    def ratio(self) -> float:
        """The clock, of the highest; NaN when either is not known, or the highest is no clock."""
        return self.clock / self.highest if self.highest > 0 else float("nan")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClocksLocked(ClassRule):
    """A clock set by application or display clocks for half of the busy time, or one that stays below the highest.

    The bits 0x2 and 0x100 of the clock event reasons say so. Without them, the clock looks locked if it stays within
    half a step of 15 MHz in 98 of 100 busy samples, below 90% of the highest, and neither power nor heat sets it. If
    neither log nor GPU table gives the highest clock, it is the highest of the log: a GPU is seldom faster at rest
    than at work. It is reported once a run, as information. Slowdowns are measured against the clock of the run, and
    only runs with the same setting can be compared by speed.
    """

    name = _KIND
    wants = (*SIGNALS, *list_event_metrics(*_SETTINGS), *list_event_metrics(*_HELD))

    held: Threshold = pragmatic(0.5, "1", "share of busy time; a setting made for the job holds for most of it")
    fewest: Threshold = pragmatic(5.0, "rows", "a bit is read at a moment")
    steady: ClassVar[float] = 30.0  # rows; without the driver's word: so many equal samples are not chance
    step: ClassVar[float] = 7.5e6  # Hz; half a step of NVIDIA's clocks, which are 15 MHz apart
    below: Threshold = pragmatic(0.9, "1", "of the highest; many boards never reach that for want of voltage")
    highest: Threshold = pragmatic(0.98, "1", "of the highest; a setting above it costs nothing")
    power_free: Threshold = pragmatic(0.9, "1", "of the power limit; nearer to it power sets the clock")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, for all GPUs whose clocks are set."""
        settings: list[_ClockSetting] = []
        for device, series in context.gpus().items():
            signals = gather_signals(series)
            busy = int(signals.busy.sum())
            if not are_events_recorded(series, *_SETTINGS) and np.isnan(signals.clock).all():
                yield missing_metrics.not_recorded(_KIND, device, f"clock_event_{_SETTINGS[0]}", CLOCKS[0])
            elif busy < self.fewest.value:
                yield NotJudged(
                    kind=_KIND,
                    device=device,
                    template="{}; the clock of an idle GPU says nothing",
                    amounts=(missing_metrics.count_of(busy, "busy sample"),),
                    recording="a log of the job at work, with at least 5 samples",
                    code="too_few_busy_samples",
                )
            else:
                settings += [one for one in [self._find_setting(series, signals)] if one is not None]
        if settings:
            yield self._build_finding(context, settings)

    def _find_setting(self, series: DeviceSeries, signals: ClockSignals) -> _ClockSetting | None:
        busy = signals.busy
        clock = signals.clock[busy & ~np.isnan(signals.clock)]
        share = float(
            series.seconds[find_event_rows(series, *_SETTINGS) & busy].sum() / max(series.seconds[busy].sum(), 1e-9)
        )
        is_told = share >= self.held.value
        setting = _ClockSetting(
            device=series.device.id,
            clock=float(np.median(clock)) if len(clock) else float("nan"),
            highest=_find_highest_clock(signals) if np.isnan(signals.clock_max) else signals.clock_max,
            is_highest_seen=bool(np.isnan(signals.clock_max)),
            share=share if is_told else None,
            samples=series.count_readings(CLOCKS[0] if len(clock) else "gpu_utilization_ratio", busy),
        )
        if is_told:
            return None if setting.ratio >= self.highest.value else setting
        return setting if self._looks_set(series, signals, setting.ratio) else None

    def _looks_set(self, series: DeviceSeries, signals: ClockSignals, ratio: float) -> bool:
        """Whether the clock of busy samples stands still below the highest, with no other reason for it."""
        rows = signals.busy & ~np.isnan(signals.clock) & ~find_event_rows(series, *_HELD)
        limited = signals.power >= self.power_free.value * signals.power_limit
        if limited[rows].any() or rows.sum() < max(self.steady, self.below.value * signals.busy.sum()):
            return False
        low, high = np.quantile(signals.clock[rows], [0.01, 0.99])
        return bool(high - low <= self.step and ratio < self.below.value)

    def _build_finding(self, context: Context, settings: list[_ClockSetting]) -> Finding:
        lowest = min(settings, key=lambda one: 1.0 if np.isnan(one.ratio) else one.ratio)
        devices = tuple(one.device for one in settings)
        is_told = all(one.share is not None for one in settings)
        confidence = certainty.confidence_by_readings(min(one.samples for one in settings))
        return Finding(
            kind=_KIND,
            severity=Severity.INFO,
            confidence=confidence if is_told else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
            devices=devices,
            intervals=(),
            evidence=tuple(self._build_evidence(lowest)),
            lost_gpu_seconds=None,
            samples=sum(one.samples for one in settings),
            ruled_out=("the power limit and heat, which the driver reports separately or which would move the clock",),
            summary=(
                f"The clock of {phrases.gpu_names(devices, tuple(context.gpus()))} was "
                f"{'' if is_told else 'probably '}locked{_describe_clock(lowest, len(settings))}."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )

    def _build_evidence(self, one: _ClockSetting) -> Iterator[Evidence]:
        if one.share is not None:
            yield compare_with_limit("clock set", "share of busy time", one.share, ">=", self.held)
        if not np.isnan(one.ratio):
            limit = self.below if one.share is None else self.highest
            yield compare_with_limit(CLOCKS[0], "median while busy, of the highest", one.ratio, "<", limit)


def _find_highest_clock(signals: ClockSignals) -> float:
    clock = signals.clock[~np.isnan(signals.clock)]
    return float(clock.max()) if len(clock) else float("nan")


def _describe_clock(setting: _ClockSetting, gpus: int) -> str:
    """Return the clock, of several GPUs the lowest, and the highest one possible; empty where it is not known."""
    if np.isnan(setting.clock):
        return ""
    text = f" at {phrases.megahertz(setting.clock)}" + (" or more" if gpus > 1 else "")
    if np.isnan(setting.ratio):
        return text
    most = "the highest seen was" if setting.is_highest_seen else "the highest is"
    return f"{text}; {most} {phrases.megahertz(setting.highest)}"
