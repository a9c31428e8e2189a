"""Clocks set by the power limit: normal at full load, a choice where the limit was lowered."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import certainty, missing_metrics, phrases
from gpureport.analysis.detectors.throttling.power_limit_figures import (
    PAUSES,
    CappedTime,
    DefaultLimit,
    build_clock_evidence,
    build_counter_evidence,
    compute_clock_ratio,
    find_default_limit,
    is_masked_by_diagnostics,
    read_counted_time,
)
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_signals import (
    SIGNALS,
    ClockSignals,
    are_events_recorded,
    find_event_rows,
    gather_signals,
    list_event_metrics,
)
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity, Threshold

_ALL = 0.995
"""Share of the busy time from which on it rounds to all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerLimits(ClassRule):
    """The clock is set by the power limit while busy (power_cap), or the limit is below 90% of the default.

    power_cap: the software power cap bit, or power within 2% of the limit where bits were not logged, for at least 5%
    of the busy time, as counted by the driver where it counts. Samples at most 20 s apart count as one stretch, which
    lasts at least 30 s. It is information, since modern GPUs run so by design. It is a warning where the default
    limit keeps the median clock below 70% of the highest, unless NVIDIA's own diagnostics ignore such events of the
    model. A lowered limit is a choice: no time is counted lost.
    """

    name = "power_limits"
    wants = (*SIGNALS, *list_event_metrics("sw_power_cap"), "gpu_power_limit_default_watts")

    merge: Threshold = pragmatic(20.0, "s", "at its power limit a GPU slows and recovers with every step")
    shortest: Threshold = pragmatic(30.0, "s", "shorter bursts do not set the speed of a job")
    at_limit: Threshold = pragmatic(0.98, "1", "regulation keeps power within 2% of the limit")
    lowered: Threshold = pragmatic(0.9, "1", "below it somebody set the limit")
    least: ClassVar[Threshold] = pragmatic(
        0.05, "1", "share of busy time; bursts below it do not set the speed of a job"
    )
    slow: Threshold = literature(
        0.70, "1", "measured: data-centre boards keep 76 to 89% of their rated speed at the default limit"
    )
    reached: ClassVar[Threshold] = pragmatic(0.95, "1", "a limit that power never comes near costs nothing")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding of each kind for each GPU."""
        for device, series in context.gpus().items():
            signals = gather_signals(series)
            limit_findings = tuple(self._judge_limit(device, series, signals))
            is_lowered = any(isinstance(finding, Finding) for finding in limit_findings)
            yield from self._judge_cap(context.whole, series, signals, is_lowered=is_lowered)
            yield from limit_findings

    def _judge_cap(
        self, whole: Interval, series: DeviceSeries, signals: ClockSignals, *, is_lowered: bool
    ) -> Iterator[Finding | NotJudged]:
        device = series.device.id
        is_direct = are_events_recorded(series, "sw_power_cap")
        if not is_direct and (np.isnan(signals.power).all() or np.isnan(signals.power_limit).all()):
            reason = "neither clock event reasons nor power and its limit were recorded"
            metrics = ["clock_event_sw_power_cap", "gpu_power_limit_watts"]
            yield missing_metrics.unjudged("power_cap", device, reason, metrics, code="signals_not_recorded")
            return
        if whole.seconds < self.shortest.value:
            yield missing_metrics.too_short("power_cap", whole.seconds, self.shortest.value)
            return
        rows = (
            find_event_rows(series, "sw_power_cap")
            if is_direct
            else signals.power >= self.at_limit.value * signals.power_limit
        )
        rows = rows & signals.busy
        counted = read_counted_time(series)
        at_limit = intervals.rows_to_spans(series.start, series.end, rows) if counted is None else counted.spans
        episodes = self._find_episodes(series, at_limit, whole)
        part = np.where(rows, 1.0, 0.0) if counted is None else counted.compute_row_shares(series, counted.spans)
        capped = float((part * series.seconds)[signals.busy].sum())
        share = capped / max(float(series.seconds[signals.busy].sum()), 1e-9)
        if len(episodes) and share >= self.least.value:
            rows = rows if counted is None else counted.held_rows & counted.adjacent_rows & signals.busy
            yield self._build_cap_finding(
                series, signals, CappedTime(episodes, rows, share, at_limit, counted), is_lowered=is_lowered
            )

    def _find_episodes(self, series: DeviceSeries, at_limit: Spans, whole: Interval) -> Spans:
        bridge_seconds = max(self.merge.value, 2.5 * series.interval) - series.interval
        joined = intervals.union(at_limit, within=round(bridge_seconds * 1e6))
        joined = intervals.difference(joined, intervals.to_spans(series.gaps))
        long = intervals.drop_shorter(joined, max(self.shortest.value, 1.5 * series.interval))
        return intervals.intersection(long, intervals.to_spans([whole]))

    def _build_cap_finding(
        self, series: DeviceSeries, signals: ClockSignals, capped: "CappedTime", *, is_lowered: bool
    ) -> Finding:
        device, ratio = series.device.id, compute_clock_ratio(signals, capped.rows)
        clock = "" if np.isnan(ratio) else f", at {phrases.percent(ratio)} of its top clock"
        evidence = [compare_with_limit("power cap", "share of busy time", capped.share, ">=", self.least)]
        samples = series.count_readings("gpu_power_watts", capped.rows)
        is_slow = not is_lowered and ratio < self.slow.value and not is_masked_by_diagnostics(series)
        if not np.isnan(ratio):
            evidence.append(build_clock_evidence(ratio, self.slow if is_slow else None))
        if capped.counted is not None:
            evidence.append(build_counter_evidence(capped.counted))
        return Finding(
            kind="power_cap",
            severity=Severity.WARNING if is_slow else Severity.INFO,
            confidence=certainty.lowest_confidence(
                Confidence.HIGH if are_events_recorded(series, "sw_power_cap") else Confidence.MEDIUM,
                certainty.confidence_by_readings(samples, series.interval),
            ),
            devices=(device,),
            intervals=intervals.to_intervals(capped.episodes),
            evidence=tuple(evidence),
            lost_gpu_seconds=None,
            samples=samples,
            summary=(
                f"{phrases.gpu_name(device)} ran at its power limit {_describe_share(capped.share)}{clock}"
                f"{'' if is_slow or is_lowered else ': normal under load'}."
                f"{_describe_merging(capped)}"
            ),
            recommendation=KINDS["power_cap"].advice["chosen" if is_lowered else "slow" if is_slow else ""],
        )

    def _judge_limit(self, device: str, series: DeviceSeries, signals: ClockSignals) -> Iterator[Finding | NotJudged]:
        limits = signals.power_limit[signals.power_limit > 0]
        default = find_default_limit(series)
        if len(limits) == 0 or default is None:
            reason = "the power limit or its default is not known"
            metrics = ["gpu_power_limit_watts", "gpu_power_limit_default_watts"]
            yield missing_metrics.unjudged("power_limited", device, reason, metrics, code="unknown_power_limit")
            return
        limit = float(np.median(limits))
        if limit >= self.lowered.value * default.watts:
            return
        power = signals.power[signals.busy & ~np.isnan(signals.power)]
        peak = float(np.quantile(power, 0.95)) if len(power) else float("nan")
        yield self._build_limit_finding(device, series, signals, limit, default, peak)

    def _build_limit_finding(  # noqa: PLR0913, PLR0917 - the figures of one sentence
        self, device: str, series: DeviceSeries, signals: ClockSignals, limit: float, default: DefaultLimit, peak: float
    ) -> Finding:
        is_binding, is_power_known = peak >= self.reached.value * limit, not np.isnan(peak)
        samples = series.count_readings("gpu_power_watts", slice(None))
        effect = ", and ran into it" if is_binding else ", but hardly came near it"
        effect = effect if is_power_known else "; whether that slows the job is not known"
        ratio = compute_clock_ratio(signals, signals.busy & (signals.power >= self.reached.value * signals.power_limit))
        reach, relation = "p95 while busy, of the limit", ">=" if is_binding else "<"
        power = compare_with_limit("gpu_power_watts", reach, peak / limit, relation, self.reached)
        of_default = f"median, of the default ({default.source})"
        return Finding(
            kind="power_limited",
            severity=Severity.WARNING if is_binding else Severity.INFO,
            # how long the limit held does not matter, so a coarse log tells as surely
            confidence=certainty.confidence_by_readings(samples) if default.is_logged else Confidence.LOW,
            devices=(device,),
            intervals=(),
            evidence=(
                compare_with_limit("gpu_power_limit_watts", of_default, limit / default.watts, "<", self.lowered),
                *([power] if is_power_known else []),
                *([] if np.isnan(ratio) else [build_clock_evidence(ratio, None)]),
            ),
            lost_gpu_seconds=None,
            samples=samples,
            summary=(
                f"{phrases.gpu_name(device)} was capped at {limit:.0f} W, "
                f"{phrases.percent(limit / default.watts)} of its default {default.watts:.0f} W{effect}."
            ),
            recommendation=KINDS["power_limited"].advice["" if is_binding or not is_power_known else "not reached"],
        )


def _describe_share(share: float) -> str:
    return "throughout" if share >= _ALL else f"for {phrases.percent(share)} of its busy time"


def _describe_merging(capped: CappedTime) -> str:
    """Return a sentence on stretches that include pauses below the limit; empty without such."""
    at_limit = intervals.intersection(intervals.union(capped.at_limit), capped.episodes)
    seconds, whole = intervals.total_seconds(at_limit), intervals.total_seconds(capped.episodes)
    if capped.counted is not None or whole - seconds < PAUSES * whole:
        return ""
    return f" It did so for {phrases.duration(seconds)} of the {phrases.duration(whole)} marked."
