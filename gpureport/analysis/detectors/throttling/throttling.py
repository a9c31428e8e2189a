"""Clocks held down by heat or by hardware."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpureport.analysis.detectors.throttling import throttle_wording, throttled_samples
from gpureport.analysis.detectors.throttling.throttle_wording import ThrottledEpisodes
from gpureport.analysis.detectors.throttling.throttled_samples import BRAKE, THERMAL, ThrottledSamples
from gpureport.analysis.rules import certainty, missing_metrics
from gpureport.analysis.rules.kind_description import AdvicePath, KindDescription
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals.clock_event_time import counter_name, measure_counted_time
from gpureport.analysis.signals.clock_signals import (
    SIGNALS,
    ClockSignals,
    ThrottledTime,
    choose_reference_clock,
    compute_lost_seconds,
    gather_signals,
    list_event_metrics,
)
from gpureport.analysis.thresholds import limits, pragmatic, vendor
from gpureport.columns import BoolArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_LONGEST_RELEASE_INTERVALS = 3.5
_DETECTORS = (
    ("thermal_throttle", throttled_samples.detect_heat),
    ("hw_throttle", throttled_samples.detect_hardware_slowdown),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throttling(Rule):
    """A clock held down by heat (thermal_throttle) or by hardware for another reason (hw_throttle).

    With clock event reasons: a thermal slowdown bit; the power brake bit, or the hardware slowdown bit without a
    thermal one while the GPU is busy and its clock below 75 % of the highest. Without them: a busy GPU at its
    temperature limit whose clock is below that of its cool samples, while the means over 10 s (or 5 samples) of clock
    and power are below what a power cap would set; until one of the means is back, or it cools. Or a clock far below
    that of cool samples on a GPU that is cool and far from its power limit. Samples at most 10 s (or 2.5 intervals)
    apart are one episode.
    Where the driver counts the time of a reason, what it counted is the throttled time, at any sampling and also where
    no sample shows the bit; from 0.1 s a run on.
    The time lost is what the clock of busy samples fell short of that of the others, or of the highest.
    """

    name = "throttling"
    descriptions = (
        KindDescription(
            name="thermal_throttle",
            title="Clock reduced by heat",
            recommendations=throttle_wording.HEAT,
            advice_paths=(AdvicePath(steps=("cooling", "lower_power_limit")),),
            gpu_time_class="throttled",
            always_loses_time=True,
        ),
        KindDescription(
            name="hw_throttle",
            title="Clock reduced by the hardware",
            recommendations=throttle_wording.HARDWARE,
            advice_paths=(
                AdvicePath(causes=("power brake",), steps=("power_supply",)),
                AdvicePath(steps=("power_supply", "cooling")),
            ),
            gpu_time_class="throttled",
            always_loses_time=True,
        ),
    )
    wants = (
        *SIGNALS,
        *list_event_metrics(*throttled_samples.REASONS),
        "gpu_memory_temperature_celsius",
    )

    merge: Threshold = pragmatic(10.0, "s", "a controller at its limit goes on and off every few seconds")
    shortest: Threshold = pragmatic(2.5, "s", "one sample at 1 s is no episode")
    counted: ClassVar[Threshold] = pragmatic(
        0.1, "s", "the driver's counters are exact; less in a whole run costs nothing"
    )
    clock_drop: Threshold = pragmatic(0.985, "1", "two clock steps of 15 MHz below the reference")
    near_limit: Threshold = pragmatic(2.0, "Cel", "the controller holds the core a degree or two below the limit")
    cool: ClassVar[Threshold] = pragmatic(4.0, "Cel", "below it the thermal controller has let go")
    power_free: ClassVar[Threshold] = pragmatic(
        0.975, "1", "the next clock step takes 2 to 3 % more power: a cap would grant it"
    )
    power_capped: ClassVar[Threshold] = pragmatic(
        0.99, "1", "a mean this near the limit leaves no room for a clock step"
    )
    clock_back: ClassVar[Threshold] = pragmatic(0.99, "1", "less than one clock step of 15 MHz below the reference")
    settled: ClassVar[Threshold] = pragmatic(
        10.0, "s", "power and clock of busy samples waver with the load; 5 samples at least"
    )
    hw_clock_max: ClassVar[Threshold] = vendor(
        0.75, "1", "NVML: hardware slowdown halves the clock; P-state changes set the bit too"
    )
    hw_clock_drop: ClassVar[Threshold] = vendor(
        0.65, "1", "NVML: hardware slowdown cuts the clock by a factor of 2 or more"
    )
    hw_power: ClassVar[Threshold] = pragmatic(0.8, "1", "a GPU this far below its limit is not power-capped")
    hotter: ClassVar[Threshold] = pragmatic(
        8.0, "Cel", "a GPU this much hotter than its peers has a cooling fault of its own"
    )
    problem: Threshold = pragmatic(0.05, "1", "lost share of the job, worth a repair")
    lasting: ClassVar[Threshold] = pragmatic(
        0.5, "1", "slowed share of the job above which cooling does not suffice for it"
    )

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding for each GPU and kind with all its episodes."""
        for kind, judge in _DETECTORS:
            for device, cells in context.gpus().items():
                found = gather_signals(cells)
                judged = judge(cells, found, limits(self, throttled_samples.Limits))
                needed = self._shortest(cells)
                if judged.reason:
                    yield missing_metrics.unjudged(kind, device, judged.reason, judged.missing)
                elif context.whole.seconds < needed and judged.held is None:
                    yield missing_metrics.too_short(kind, context.whole.seconds, needed)
                elif len(episodes := self._episodes(cells, found, judged, context.whole)) or self._in_gaps(judged):
                    yield self._finding(context, cells, self._measured(kind, context, cells, episodes, found, judged))

    def slowed(self, cells: DeviceSeries, window: Interval) -> ThrottledTime:
        """Return the rows of one GPU that either kind counts, and those either tells as throttled."""
        found = gather_signals(cells)
        told, lowered = (np.zeros(len(cells), dtype=np.bool_) for _ in range(2))
        share = np.zeros(len(cells))
        for _, judge in _DETECTORS:
            judged = judge(cells, found, limits(self, throttled_samples.Limits))
            if judged.any:
                told |= judged.told(cells)
                lowered |= judged.lowered
                spans = self._episodes(cells, found, judged, window)
                share = np.maximum(share, judged.share(cells, spans, _find_rows(cells, spans)))
        return ThrottledTime(rows=share > 0, told=told, share=share, lowered=lowered)

    def _shortest(self, cells: DeviceSeries) -> float:
        return max(self.shortest.value, 1.5 * cells.interval)

    def _episodes(self, cells: DeviceSeries, found: ClockSignals, judged: ThrottledSamples, window: Interval) -> Spans:
        rows = judged.rows
        told = np.column_stack([cells.start[rows], cells.end[rows]])
        apart = max(self.merge.value, 2.5 * cells.interval) - cells.interval
        joined = intervals.union(told, within=round(apart * 1e6))
        joined = _join_while_hot(cells, found, rows, joined, self.near_limit.value)
        joined = intervals.difference(joined, intervals.to_spans(cells.gaps))
        long = intervals.drop_shorter(joined, self._shortest(cells))
        sampled = intervals.drop_shorter(
            intervals.intersection(long, intervals.to_spans([window])), self.shortest.value
        )
        if judged.held is None or judged.held.total < self.counted.value:
            return sampled
        counted = intervals.union(judged.held.spans, within=round(self.merge.value * 1e6))
        counted = intervals.difference(counted, intervals.to_spans(cells.gaps))
        return intervals.union(np.concatenate([sampled, intervals.intersection(counted, intervals.to_spans([window]))]))

    def _in_gaps(self, judged: ThrottledSamples) -> bool:
        """Return whether the driver counted throttling across log gaps."""
        return judged.held is not None and judged.held.gap_seconds >= self.counted.value

    def _measured(  # noqa: PLR0913, PLR0917 - gathers them into one value
        self,
        kind: str,
        context: Context,
        cells: DeviceSeries,
        stretches: Spans,
        found: ClockSignals,
        judged: ThrottledSamples,
    ) -> ThrottledEpisodes:
        share = judged.share(cells, stretches, _find_rows(cells, stretches))
        rows = share > 0
        slowed = self.slowed(cells, context.whole)
        compared = choose_reference_clock(found, slowed.told)
        shown = found.clock[rows & judged.lowered & found.busy]
        known = compared and len(shown) and not np.isnan(shown).all()
        own = replace(slowed, rows=rows, share=share)
        return ThrottledEpisodes(
            kind=kind,
            device=cells.device.id,
            spans=stretches,
            rows=rows,
            seconds=_measure_throttled_seconds(cells, stretches, judged),
            found=found,
            judged=judged,
            lost=compute_lost_seconds(cells, found, own, context.whole) if len(stretches) else None,
            reference=compared,
            clock_ratio=float(np.nanmean(shown)) / compared.hertz if compared and known else float("nan"),
            cause=throttle_wording.name_cause(
                kind, cells, found, rows, direct=judged.direct, near_limit=self.near_limit.value
            ),
        )

    def _finding(self, context: Context, cells: DeviceSeries, found: ThrottledEpisodes) -> Finding:
        whole = max((context.window or context.whole).seconds, 1e-6)
        severe = (found.lost or 0.0) / whole >= self.problem.value or found.seconds / whole >= self.lasting.value
        grave = Severity.PROBLEM if severe or not found.heat else Severity.WARNING
        samples = cells.readings("gpu_utilization_ratio", found.rows)
        told = found.judged.direct and found.cause != throttle_wording.UNEXPLAINED
        counted = found.judged.held is not None and found.judged.held.total > 0
        return Finding(
            kind=found.kind,
            severity=Severity.INFO if found.seconds < self.shortest.value else grave,
            # what the driver counts is sure however few samples there are
            confidence=certainty.weakest(
                Confidence.HIGH if told else Confidence.MEDIUM,
                Confidence.HIGH if counted else certainty.by_readings(samples, cells.interval),
            ),
            devices=(found.device,),
            intervals=intervals.to_intervals(found.spans),
            evidence=(*self._evidence(found), *_build_counter_evidence(cells, found)),
            lost_gpu_seconds=found.lost,
            cause=found.cause,
            samples=samples,
            ruled_out=throttle_wording.list_ruled_out(found),
            summary=throttle_wording.describe_episodes(found) + self._peers(context, cells, found),
            recommendation=throttle_wording.choose_advice(found),
        )

    def _evidence(self, found: ThrottledEpisodes) -> Iterator[Evidence]:
        counted = found.judged.held is not None and found.judged.held.total > 0
        yield Evidence(
            metric="duration",
            statistic="counted by the driver" if counted else "sum of episodes",
            observed=found.seconds,
            unit="s",
            threshold=self.counted if counted else self.shortest,
            relation=">=",
        )
        hot = found.found.temperature[found.rows]
        if not np.isnan(hot).all():
            hottest = float(np.nanmax(hot))
            limit = vendor(found.found.limit, "Cel", found.found.limit_source) if found.found.limit_source else None
            yield Evidence(
                metric="gpu_temperature_celsius",
                statistic="max",
                observed=hottest,
                unit="Cel",
                threshold=limit,
                relation=">=" if hottest >= found.found.limit else "<",
            )
        drawn = found.found.power[found.rows]
        if found.heat and not np.isnan(drawn).all():
            drawn_then = float(np.nanmean(drawn))
            yield Evidence(metric="gpu_power_watts", statistic="mean while slowed", observed=drawn_then, unit="W")
        if found.reference and not np.isnan(found.clock_ratio):
            limit = self.clock_drop if found.heat else self.hw_clock_drop
            yield Evidence(
                metric="gpu_sm_clock_hertz",
                statistic=f"mean, of {found.reference.whose}",
                observed=found.clock_ratio,
                unit="1",
                threshold=None if found.judged.direct else limit,
                relation="" if found.judged.direct else "<",
            )

    def _peers(self, context: Context, cells: DeviceSeries, found: ThrottledEpisodes) -> str:
        """Say when this GPU is far hotter than the others at the same time."""
        others = [
            float(np.nanmean(part))
            for name, other in context.gpus().items()
            if name != found.device
            and len(part := other.values("gpu_temperature_celsius")[_find_rows(other, found.spans)])
            and not np.isnan(part).all()
        ]
        own = cells.values("gpu_temperature_celsius")[_find_rows(cells, found.spans)]
        if not others or np.isnan(own).all():
            return ""
        excess = float(np.nanmean(own)) - float(np.median(others))
        return f" It is {excess:.0f} °C hotter than the other GPUs." if excess > self.hotter.value else ""


def _measure_throttled_seconds(cells: DeviceSeries, stretches: Spans, judged: ThrottledSamples) -> float:
    """Return the throttled time in stretches: what was counted, and what only samples show beside it."""
    if judged.held is None or judged.held.total <= 0:
        return intervals.total_seconds(stretches)
    rows = judged.rows
    sampled = intervals.rows_to_spans(cells.start, cells.end, rows)
    shown = intervals.difference(intervals.intersection(sampled, stretches), judged.held.spans)
    return judged.held.within(stretches) + judged.held.gap_seconds + intervals.total_seconds(shown)


def _build_counter_evidence(cells: DeviceSeries, found: ThrottledEpisodes) -> Iterator[Evidence]:
    """Yield what each counter of the kind rose by."""
    for reason in THERMAL if found.heat else (BRAKE,):
        counted = measure_counted_time(cells, reason)
        if counted is not None and counted.total > 0:
            yield Evidence(
                metric=counter_name(reason),
                statistic="rise over the recording",
                observed=counted.total,
                unit="s",
                threshold=None,
                relation="",
            )


def _join_while_hot(cells: DeviceSeries, found: ClockSignals, rows: BoolArray, episodes: Spans, slack: float) -> Spans:
    """Join episodes between which the GPU stayed busy and as hot as in them: the controller let go for a moment."""
    hot = found.temperature[rows & ~np.isnan(found.temperature)]
    if len(episodes) < 2 or len(hot) == 0:  # noqa: PLR2004 - two make a hole
        return episodes
    cooled = (found.temperature < float(np.median(hot)) - slack) | ~found.busy
    counted = np.concatenate([[0], np.cumsum(cooled)])
    first = np.searchsorted(cells.times, episodes[:-1, 1], side="left")
    stop = np.searchsorted(cells.times, episodes[1:, 0], side="left")
    near = episodes[1:, 0] - episodes[:-1, 1] <= _LONGEST_RELEASE_INTERVALS * cells.interval * 1e6
    holes = np.column_stack([episodes[:-1, 1], episodes[1:, 0]])[near & (counted[stop] == counted[first])]
    return intervals.union(np.concatenate([episodes, holes]))


def _find_rows(cells: DeviceSeries, stretches: Spans) -> BoolArray:
    """Return the rows in stretches; one at their end belongs to them, as the last sample of a log does."""
    return np.asarray(
        intervals.contains(stretches, cells.times) | np.isin(cells.times, stretches[:, 1]), dtype=np.bool_
    )
