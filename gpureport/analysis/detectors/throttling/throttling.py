"""Clocks held down by heat or by hardware."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics
from gpureport.analysis.detectors.throttling import throttle_wording, throttled_samples
from gpureport.analysis.detectors.throttling.throttle_wording import ThrottledEpisodes
from gpureport.analysis.detectors.throttling.throttled_episodes import (
    build_counter_evidence,
    find_rows,
    join_while_hot,
    list_sample_evidence,
    measure_throttled_seconds,
)
from gpureport.analysis.detectors.throttling.throttled_samples import ThrottledSamples
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_signals import (
    SIGNALS,
    ClockSignals,
    ThrottledTime,
    choose_reference_clock,
    compute_lost_seconds,
    gather_signals,
    list_event_metrics,
)
from gpureport.analysis.thresholds import pragmatic, read_limits
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity, Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling(ClassRule):
    """Heat lowers the clock (thermal_throttle), or the hardware does for another reason (hw_throttle).

    With clock event reasons: a thermal slowdown bit; the power brake bit, or the hardware slowdown bit without a
    thermal one while the GPU is busy and its clock below 75% of the highest. Without them: a busy GPU at its
    temperature limit whose clock is below that of its cool samples, while the means of clock and power over 10 s (or
    5 samples) are too low for the power limit to be the cause. It lasts until one of the means is back, or the GPU
    cools. Or a clock far below that of cool samples on a GPU that is cool and far from its power limit. Samples at
    most 10 s (or 2.5 intervals) apart count as one stretch. Where the driver counts the time of a reason, its count
    is the time slowed, even where no sample shows the bit, from 0.1 s a run on. The time lost follows from how far
    the clock fell below that of the other busy samples, or below the highest.
    """

    name = "throttling"
    wants = (*SIGNALS, *list_event_metrics(*throttled_samples.REASONS), "gpu_memory_temperature_celsius")

    merge: Threshold = pragmatic(10.0, "s", "at its limit a GPU slows and recovers every few seconds")
    shortest: Threshold = pragmatic(2.5, "s", "one sample at 1 s is not enough")
    counted: ClassVar[Threshold] = pragmatic(0.1, "s", "the driver counts exactly; less in a whole run costs nothing")
    clock_drop: Threshold = pragmatic(0.985, "1", "two clock steps of 15 MHz below the reference")
    near_limit: Threshold = pragmatic(2.0, "Cel", "the driver keeps the core a degree or two below the limit")
    problem: Threshold = pragmatic(0.05, "1", "lost share of the job that is worth a repair")
    lasting: ClassVar[float] = 0.5  # slowed share of the job above which its cooling is too weak

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for each GPU and kind with all its episodes."""
        limits = read_limits(self, throttled_samples.Limits)
        for kind in throttled_samples.DETECTORS:
            for series in context.gpus().values():
                signals = gather_signals(series)
                throttled = throttled_samples.detect_samples(series, kind, limits)
                needed = self._find_shortest(series)
                if throttled.reason:
                    yield missing_metrics.unjudged(
                        kind,
                        series.device.id,
                        throttled.reason,
                        throttled.missing_metrics,
                        code=throttled.reason_code,
                    )
                elif context.whole.seconds < needed and throttled.counted is None:
                    yield missing_metrics.too_short(kind, context.whole.seconds, needed)
                elif len(
                    episodes := self._find_episodes(series, signals, throttled, context.whole)
                ) or self._is_counted_in_gaps(throttled):
                    measured = self._measure_episodes(kind, context, series, episodes, signals, throttled)
                    yield self._build_finding(context, series, measured)

    def measure_throttled_time(self, series: DeviceSeries, window: Interval) -> ThrottledTime:
        """Return the rows of one GPU that either kind counts, and those either tells as throttled."""
        return series.memoize(("throttled time", self, window), lambda: self._measure_throttled_time(series, window))

    def _measure_throttled_time(self, series: DeviceSeries, window: Interval) -> ThrottledTime:
        limits, signals = read_limits(self, throttled_samples.Limits), gather_signals(series)
        detected, lowered = (np.zeros(len(series), dtype=np.bool_) for _ in range(2))
        share = np.zeros(len(series))
        for kind in throttled_samples.DETECTORS:
            throttled = throttled_samples.detect_samples(series, kind, limits)
            if throttled.has_any:
                detected |= throttled.find_detected_rows(series)
                lowered |= throttled.lowered
                spans = self._find_episodes(series, signals, throttled, window)
                share = np.maximum(share, throttled.compute_row_shares(series, spans, find_rows(series, spans)))
        return ThrottledTime(rows=share > 0, detected=detected, share=share, lowered=lowered)

    def _find_shortest(self, series: DeviceSeries) -> float:
        return max(self.shortest.value, 1.5 * series.interval)

    def _find_episodes(
        self, series: DeviceSeries, signals: ClockSignals, throttled: ThrottledSamples, window: Interval
    ) -> Spans:
        if not throttled.has_any:
            return intervals.NO_SPANS
        rows = throttled.rows
        owned = np.column_stack([series.start[rows], series.end[rows]])
        bridge_seconds = max(self.merge.value, 2.5 * series.interval) - series.interval
        joined = intervals.union(owned, within=round(bridge_seconds * 1e6))
        joined = join_while_hot(series, signals, rows, joined, self.near_limit.value)
        joined = intervals.difference(joined, intervals.to_spans(series.gaps))
        long = intervals.drop_shorter(joined, self._find_shortest(series))
        sampled = intervals.drop_shorter(
            intervals.intersection(long, intervals.to_spans([window])), self.shortest.value
        )
        if throttled.counted is None or throttled.counted.total_seconds < self.counted.value:
            return sampled
        counted = intervals.union(throttled.counted.spans, within=round(self.merge.value * 1e6))
        counted = intervals.difference(counted, intervals.to_spans(series.gaps))
        return intervals.union(np.concatenate([sampled, intervals.intersection(counted, intervals.to_spans([window]))]))

    def _is_counted_in_gaps(self, throttled: ThrottledSamples) -> bool:
        return throttled.counted is not None and throttled.counted.gap_seconds >= self.counted.value

    def _measure_episodes(  # noqa: PLR0913, PLR0917 - gathers them into one value
        self,
        kind: str,
        context: Context,
        series: DeviceSeries,
        stretches: Spans,
        signals: ClockSignals,
        throttled: ThrottledSamples,
    ) -> ThrottledEpisodes:
        share = throttled.compute_row_shares(series, stretches, find_rows(series, stretches))
        rows = share > 0
        slowed = self.measure_throttled_time(series, context.whole)
        reference = choose_reference_clock(signals, slowed.detected)
        clock_shown = signals.clock[rows & throttled.lowered & signals.busy]
        is_clock_known = reference and len(clock_shown) and not np.isnan(clock_shown).all()
        own_time = replace(slowed, rows=rows, share=share)
        return ThrottledEpisodes(
            kind=kind,
            device=series.device.id,
            spans=stretches,
            rows=rows,
            seconds=measure_throttled_seconds(series, stretches, throttled),
            signals=signals,
            samples=throttled,
            lost_seconds=compute_lost_seconds(series, signals, own_time, context.whole) if len(stretches) else None,
            reference=reference,
            clock_ratio=float(np.nanmean(clock_shown)) / reference.hertz
            if reference and is_clock_known
            else float("nan"),
            cause=throttle_wording.name_cause(
                kind, series, signals, rows, is_direct=throttled.is_direct, near_limit=self.near_limit.value
            ),
        )

    def _build_finding(self, context: Context, series: DeviceSeries, episodes: ThrottledEpisodes) -> Finding:
        whole = max((context.window or context.whole).seconds, 1e-6)
        is_severe = (
            episodes.lost_seconds or 0.0
        ) / whole >= self.problem.value or episodes.seconds / whole >= self.lasting
        severity = Severity.PROBLEM if is_severe or not episodes.is_heat else Severity.WARNING
        samples = series.count_readings("gpu_utilization_ratio", episodes.rows)
        is_cause_known = episodes.samples.is_direct and episodes.cause != throttle_wording.UNEXPLAINED
        is_counted = episodes.samples.counted is not None and episodes.samples.counted.total_seconds > 0
        return Finding(
            kind=episodes.kind,
            severity=Severity.INFO if episodes.seconds < self.shortest.value else severity,
            # what the driver counts is sure however few samples there are
            confidence=certainty.lowest_confidence(
                Confidence.HIGH if is_cause_known else Confidence.MEDIUM,
                Confidence.HIGH if is_counted else certainty.confidence_by_readings(samples, series.interval),
            ),
            devices=(episodes.device,),
            intervals=intervals.to_intervals(episodes.spans),
            evidence=(
                compare_with_limit(
                    "duration",
                    "counted by the driver" if is_counted else "total",
                    episodes.seconds,
                    ">=",
                    self.counted if is_counted else self.shortest,
                ),
                *list_sample_evidence(episodes, self.clock_drop),
                *build_counter_evidence(series, episodes),
            ),
            lost_gpu_seconds=episodes.lost_seconds,
            cause=episodes.cause,
            samples=samples,
            ruled_out=throttle_wording.list_ruled_out(episodes),
            summary=throttle_wording.describe_episodes(episodes),
            recommendation=KINDS[episodes.kind].advice[
                "" if episodes.is_heat or episodes.cause == throttle_wording.UNEXPLAINED else "power brake"
            ],
        )
