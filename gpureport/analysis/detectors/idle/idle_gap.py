"""Stretches in which a GPU did nothing while the job was running, and those among them that recur."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np

from gpureport.analysis.detectors.idle import (
    busy_peers,
    gap_causes,
    gap_evidence,
    gap_wording,
    input_wait_overlap,
    periodicity,
    stall_grouping,
)
from gpureport.analysis.detectors.idle.gap_causes import Cause
from gpureport.analysis.detectors.idle.input_wait_overlap import GapCandidate
from gpureport.analysis.job import job_events, training_signs
from gpureport.analysis.job.job_events import JobEvents
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.rules import certainty, missing_metrics
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.rules.kinds import KINDS, describe
from gpureport.analysis.rules.rule import Context, Rule
from gpureport.analysis.series import intervals, rest_to_work_power
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals import idle_runs
from gpureport.analysis.signals.idle_runs import IdleRun
from gpureport.analysis.signals.waits import waiting_gpus
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_UNUSED = "unused"
_UNEXPLAINED = ("unknown", "periodic", training_signs.REQUESTS)
"""Causes that leave open whether the job had anything to do."""
_NEARLY_ALL = 0.9
"""Share of the bursts of a service that are short: one in ten may be a busy spell. Measured on 148 generated and
recorded logs: 80 and 95% give the same findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gap:
    """An idle run of one GPU within the job, how much of it samples show, and what lies behind it."""

    device: str
    interval: Interval
    seen_seconds: float
    run: IdleRun
    cause: Cause


@dataclass(frozen=True, slots=True, kw_only=True)
class _GapCost:
    """The share of the job that the gaps of one GPU take, its severity, and further evidence."""

    ratio: float
    severity: Severity
    evidence: tuple[Evidence, ...]


def _touches(run: IdleRun, stretches: Sequence[Interval]) -> bool:
    """Return whether an idle run shares time with any of some stretches."""
    return any(run.start < stretch.end and run.end > stretch.start for stretch in stretches)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleGap(Rule):
    """At least 5 s within the job in which a GPU's utilisation reaches 5% or less and never exceeds 12%.

    Before the first work of a GPU, in a job that works already, it need not reach 5%. A moment of little work, such as
    a stray kernel, does not end a gap; a log gap does. With sparse samples, a run of low ones counts only if it is too
    long to be chance, given the samples around it, and is not an artefact of steps about as long as the sampling
    interval. Low samples while the GPU waits for input are part of that wait. Rows that
    repeat a reading of the driver count once, and no gap is shorter than the time from one reading to the next.

    Causes:

    - data: while the GPU waits for input.
    - unused: this GPU never worked while another did.
    - hang: at least a minute in which the other GPUs are at 99% and draw less than 90% of what they do at work, or
      draw an unknown power.
    - peers busy: a minute in which another GPU works otherwise.
    - checkpoint, epoch: most moments of a stage or training metric of that name, or of an evaluation, lie in gaps; a
      checkpoint also where the disks write far more than elsewhere.
    - no process: memory is empty for half of the gap or more.
    - io: the CPU waits for storage, or the disks read far more than elsewhere.
    - periodic: no other cause fits, but the gap recurs.
    - requests or input: at least ten gaps, all of unknown cause, without a sign of training. Nine of ten have a minute
      of work or less between them, or the GPU works less than half of the time between them. Gaps that recur have this
      cause only where they take half of the job.
    - unknown: none of these.

    Gaps of a fifth of the job are a problem. They are not if the GPU never worked, or waited for requests or input,
    or if the cause is unknown and it works less than half of the time between them. Signs of training are
    checkpoints, epochs, and params, metrics and stages that only training has.

    periodic_stall: at least four gaps of a GPU, those with the causes data, hang, peers busy and unused left out,
    whose starts lie one period or a multiple apart in three of four cases, in nine of ten with fewer than ten gaps.
    Its gaps are its consequences.
    """

    name = "idle_gap"
    descriptions = describe("idle_gap", "periodic_stall")
    requires = ((UTILISATION,),)
    after = waiting_gpus.WAIT_KINDS
    wants = (busy_peers.POWER, gap_causes.IOWAIT, gap_causes.READS, gap_causes.WRITES)

    idle: Threshold = pragmatic(0.05, "1", "background kernels of a monitor or a display stay below it")
    still: Threshold = pragmatic(0.12, "1", "one stray kernel of 0.1 s in a 1-s window stays below it")
    shortest: Threshold = idle_runs.SHORTEST
    coarse: ClassVar[float] = 2.0  # s; NVML: a utilisation value covers at most 1 s; further apart are point samples
    # share of the job; checkpoints and ends of epochs take less time than the work between them
    mostly: ClassVar[float] = 0.50
    warning: Threshold = pragmatic(0.02, "1", "share of the job above which gaps are worth a change")
    problem: Threshold = pragmatic(0.20, "1", "share of the job above which gaps decide its cost")
    many_bursts: ClassVar[float] = 10.0  # rows; fewer gaps do not show how work comes
    burst: ClassVar[Threshold] = pragmatic(
        60.0, "s", "training works for minutes between two pauses, a service for its requests"
    )
    sparse: ClassVar[Threshold] = pragmatic(
        0.50, "1", "a GPU that has less to do waits for work, as a service does in quiet hours"
    )

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield one finding a gap and GPU, in time order, one a period, and the GPUs without utilisation."""
        if context.whole.seconds < self.shortest.value:
            yield from (
                missing_metrics.too_short(kind, context.whole.seconds, self.shortest.value) for kind in self.kinds
            )
            return
        if context.window is None:
            return
        candidates: dict[str, list[GapCandidate]] = {}
        events = job_events.find_job_events(context.recording)
        for device, series in context.gpus().items():
            if series.is_recorded(UTILISATION):
                candidates[device] = self._find_candidates(context, context.window, device)
            else:
                yield from (missing_metrics.not_recorded(kind, device, UTILISATION) for kind in self.kinds)
        found = list(self._build_findings(context, context.window, events, candidates))
        yield from found
        for stall in stall_grouping.find_stalls(context, found):
            share = stall.lost_gpu_seconds / (intervals.total_seconds(context.work) * len(stall.devices))
            severity = min(
                self._rate_severity(share), max(gap.severity for gap in stall.gaps), key=list(Severity).index
            )
            agree = periodicity.AGREE_FEW if stall.gap_count < periodicity.FEW else periodicity.AGREE
            yield stall_grouping.build_stall_finding(context, stall, share, severity, agree)

    def _find_candidates(self, context: Context, window: Interval, device: str) -> list[GapCandidate]:
        """Return what may be gaps of a GPU, and waits that look like them."""
        series = context.series[device]
        shortest = max(self.shortest.value, series.refresh_period(UTILISATION) or 0.0)
        limits = idle_runs.Limits(idle=self.idle.value + 1e-6, still=self.still.value + 1e-6, shortest_seconds=shortest)
        runs = idle_runs.find_idle_runs(series, limits, window)
        leads = [Interval(job.window.start, job.active[device].start) for job in context.jobs if device in job.active]
        if leads:
            # before its first work a GPU is at rest at any utilisation that is no work
            at_rest = idle_runs.find_idle_runs(series, replace(limits, idle=limits.still), window)
            runs = (
                *(run for run in runs if not _touches(run, leads)),
                *(run for run in at_rest if _touches(run, leads)),
            )
        return [
            part
            for job in context.jobs
            for part in input_wait_overlap.separate_gaps_from_waits(
                context,
                series,
                runs,
                job.window,
                shortest=shortest,
                resting=rest_to_work_power.RESTING_LEVEL.value,
                coarse=series.interval > self.coarse,
            )
        ]

    def _build_findings(
        self,
        context: Context,
        window: Interval,
        events: tuple[JobEvents, ...],
        candidates: Mapping[str, Sequence[GapCandidate]],
    ) -> Iterator[Finding]:
        """Yield a finding a gap, GPU by GPU."""
        spans = {device: [part.interval for part in parts] for device, parts in candidates.items()}
        found = gap_causes.find_gap_causes(context, spans, events, self.still.value)
        trains = training_signs.is_training(context.recording, events)
        work_seconds = intervals.total_seconds(context.work)
        outside = intervals.to_intervals(intervals.difference(intervals.to_spans([window]), context.work))
        several = len(context.gpus()) > 1
        for device, parts in candidates.items():
            series, own = context.series[device], spans[device]
            causes = [
                Cause(name="data") if part.is_wait else cause for part, cause in zip(parts, found[device], strict=True)
            ]
            causes = stall_grouping.mark_periodic(own, causes)
            known = intervals.rows_to_spans(*series.averaging_windows(context.whole), series.known_rows(UTILISATION))
            seen = [intervals.total_seconds(intervals.intersection(intervals.to_spans([span]), known)) for span in own]
            lost_share = sum(seen) / work_seconds
            between = input_wait_overlap.average_between_gaps(series, [*own, *outside], window)
            if not trains:
                causes = self._mark_requests(own, causes, lost_share, between)
            for part, seconds, cause in zip(parts, seen, causes, strict=True):
                gap = _Gap(device=device, interval=part.interval, seen_seconds=seconds, run=part.run, cause=cause)
                yield self._build_finding(gap, series, self._rate_cost(gap, lost_share, between), several=several)

    def _rate_cost(self, gap: _Gap, lost_share: float, between: float) -> _GapCost:
        """Return what the gaps of a GPU cost, and how severe that is; a job with little work to do is no problem."""
        is_little = between < self.sparse.value and gap.cause.name in _UNEXPLAINED
        # a GPU that never worked has a finding of its own
        is_mild = is_little or gap.cause.name in {_UNUSED, training_signs.REQUESTS}
        severity = self._rate_severity(lost_share)
        severity = Severity.WARNING if is_mild and severity is Severity.PROBLEM else severity
        sparse = compare_with_limit(UTILISATION, "mean between the gaps of this GPU", between, "<", self.sparse)
        return _GapCost(ratio=lost_share, severity=severity, evidence=(sparse,) if is_little else ())

    def _mark_requests(self, gaps: list[Interval], causes: list[Cause], lost: float, between: float) -> list[Cause]:
        """Return the causes, all `requests` if none is known and there is little work between the gaps.

        Gaps of one period count as requests only if they take most of the job, since requests have no period.
        """
        open_causes = {"unknown", "periodic"} if lost >= self.mostly else {"unknown"}
        if len(gaps) < self.many_bursts or any(cause.name not in open_causes for cause in causes):
            return causes
        work = [(after.start - before.end) / 1e6 for before, after in pairwise(gaps)]
        long_work = float(np.quantile(work, _NEARLY_ALL))
        if long_work > self.burst.value:
            return [Cause(name=training_signs.REQUESTS)] * len(causes) if between < self.sparse.value else causes
        evidence = compare_with_limit("work between two gaps", "90% quantile", long_work, "<=", self.burst)
        return [Cause(name=training_signs.REQUESTS, evidence=(evidence,))] * len(causes)

    def _rate_severity(self, lost_share: float) -> Severity:
        if lost_share >= self.problem.value:
            return Severity.PROBLEM
        return Severity.WARNING if lost_share >= self.warning.value else Severity.INFO

    def _build_finding(self, gap: _Gap, series: DeviceSeries, share: _GapCost, *, several: bool) -> Finding:
        interval, run = gap.interval, gap.run
        is_long = interval.seconds >= self.shortest.value + 1.5 * series.resolution(UTILISATION)
        confidence = certainty.confidence_by_readings(run.samples, series.interval)
        return Finding(
            kind="idle_gap",
            severity=share.severity,
            confidence=confidence if is_long else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
            devices=(gap.device,),
            intervals=(interval,),
            evidence=(
                gap_evidence.build_gap_level_evidence(run.mean, self.still),
                compare_with_limit("duration", "length", interval.seconds, ">=", self.shortest),
                Evidence(
                    metric="idle time of this GPU in gaps", statistic="share of the job", observed=share.ratio, unit="1"
                ),
                *gap_evidence.build_power_evidence(run, rest_to_work_power.RESTING_LEVEL),
                *share.evidence,
                *gap.cause.evidence,
            ),
            lost_gpu_seconds=gap.seen_seconds,
            cause=gap.cause.name,
            samples=run.samples,
            ruled_out=gap_wording.list_ruled_out(run, several=several),
            summary=gap_wording.describe_gap(series, interval, gap.cause.name),
            recommendation=KINDS["idle_gap"].advice[gap.cause.name],
        )
