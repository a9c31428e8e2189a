"""GPUs that wait while the CPU works: loading or preprocessing holds the job back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import JOB, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import core_count, job_load, low_use
from gpureport.analysis.signals.core_count import CPU
from gpureport.analysis.signals.waits import stopped_gpus, wait_cost, wait_episodes, waiting_gpus
from gpureport.analysis.signals.waits.wait_cost import WaitCost
from gpureport.analysis.signals.waits.wait_episodes import ComparedEpisodes
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.analysis.thresholds import pragmatic
from gpureport.columns import FloatArray
from gpureport.findings import Evidence, Finding, Interval, NotJudged, Severity, Threshold

OTHER_LOAD = "other programs"
"""Cause where the CPU is kept busy by programs outside the job."""
_HALF = 0.5
"""Share of samples beyond a limit from which on their median is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBound(ClassRule):
    """Mean utilisation of the GPUs below 70% and median CPU use of at least 75% over 30 s or nine samples.

    A wait lasts until the mean exceeds 80%. The median GPU counts, without those that never work. Only within the
    job, for at least 30 s and three intervals; interruptions of 30 s or nine samples are bridged. Where the GPUs are
    busy in part of the job, the CPU must be busier in a wait than there, by 5 points and four standard errors: a CPU
    as busy beside busy GPUs is not the cause. Nor is it of a GPU that worked at 90% and more beside that load, then
    never again while another GPU went on. Where the job's own processes were recorded and hold less than half of
    the load, other programs are the cause. A job that uses less than half a core besides is not proven to lack the
    CPU: that time is low use of unknown cause.
    """

    name = "cpu_bound"
    requires = ((UTILISATION,), (CPU,))
    wants = (core_count.CORES, JOB)

    gpu: Threshold = low_use.BELOW
    leave: Threshold = pragmatic(0.80, "1", "a wait goes on through a moment in which the GPU waits less")
    cpu: Threshold = pragmatic(0.75, "1", "loaders leave some cores free; a limit of 90% would miss most waits")
    over: ClassVar[float] = 30.0  # s; averages over many training steps
    bins: ClassVar[float] = 9.0  # rows; fewer samples do not make a mean
    shortest: Threshold = pragmatic(30.0, "s", "a shorter wait counts as a gap")
    bridge: ClassVar[float] = 30.0  # s; an interruption as long as the mean is taken over
    covered: ClassVar[float] = 0.5  # below it the CPU was not watched
    fed: ClassVar[float] = 0.90  # GPUs that work this much get their data in time: the CPU is not the limit
    apart: ClassVar[float] = 0.05  # the load of a machine drifts by less
    own: ClassVar[Threshold] = pragmatic(0.5, "1", "most of what keeps the CPU busy is the job's own")
    problem: Threshold = pragmatic(0.05, "1", "lost share of the job that decides its cost")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each host, with all its episodes."""
        for candidate in waiting_gpus.find_host_candidates(context):
            if candidate.source.is_recorded(CPU) and context.window is not None:
                yield from self._judge_candidate(context, context.window, candidate)

    def _judge_candidate(
        self, context: Context, window: Interval, candidate: WaitCandidate
    ) -> Iterator[Finding | NotJudged]:
        cpu = candidate.average_metric(CPU)
        unjudged = waiting_gpus.explain_unjudged(
            "cpu_bound", context, candidate, cpu, shortest=self.shortest.value, least=self.covered, metric=CPU
        )
        if unjudged is not None:
            yield unjudged
            return
        working = stopped_gpus.leave_out_stopped_gpus(
            candidate, cpu, context.active, window, fed_level=self.fed, least_difference=self.apart
        )
        if working is not candidate:
            candidate, cpu = working, working.average_metric(CPU)
        episodes, lowest = self._find_episodes(candidate, cpu)
        episodes = intervals.intersection(episodes, intervals.to_spans([window]))
        episodes = intervals.drop_shorter(episodes, self.shortest.value)
        length = candidate.count_bins(self.over, self.bins)
        comparison = wait_episodes.compare_with_fed_gpus(
            candidate, episodes, cpu, length=length, fed_level=self.fed, least_difference=self.apart
        )
        if len(comparison.spans):
            yield self._build_finding(
                context, candidate, wait_cost.measure_wait(window, candidate.gpus, comparison.spans), comparison, lowest
            )

    def _find_episodes(self, candidate: WaitCandidate, cpu: FloatArray) -> tuple[Spans, float]:
        """Return the episodes, and the lowest mean utilisation in them."""
        bins, length = candidate.bins, candidate.count_bins(self.over, self.bins)
        full = np.where(np.isnan(cpu), np.nan, cpu >= self.cpu.value)
        mean = np.nan_to_num(rolling_mean(candidate.utilisation, length), nan=1.0)
        job = candidate.average_metric(JOB)
        few = job_load.is_hardly_used(job, cpu, job_load.count_cores(candidate.source))
        unused = job_load.is_mostly_hardly_used(few, cpu, length)
        pegged = (rolling_mean(full, length) >= _HALF) & ~unused
        within = max(self.bridge, self.bins * bins.width)
        low = np.where(pegged, mean, 1.0)
        inside = bins.mark_runs(*intervals.find_hysteresis_runs(low, enter=self.gpu.value, leave=self.leave.value))
        episodes = bins.mask_to_spans(inside, within, max(self.shortest.value, 3 * bins.width))
        return episodes, float(low[inside].min()) if len(episodes) else 1.0

    def _build_finding(
        self, context: Context, candidate: WaitCandidate, cost: WaitCost, comparison: ComparedEpisodes, lowest: float
    ) -> Finding:
        devices = tuple(candidate.gpus)
        inside = candidate.source.find_values(CPU, cost.spans)
        cpu = float(np.median(inside)) if len(inside) else float("nan")
        cores = core_count.find_core_count(context, candidate.source)
        job, own = _measure_own_load(candidate.source, cost.spans, cpu)
        is_others = own < self.own.value
        others = (
            [compare_with_limit("the job's share of the CPU load", "median", own, "<", self.own)] if is_others else []
        )
        summary = (
            f"The CPU was {phrases.percent(cpu)} busy while "
            f"{phrases.gpu_names(devices, tuple(context.gpus()))} {wait_cost.describe_wait(cost)}."
        )
        if is_others:
            summary += f" The job itself kept {job:.1f} cores busy: most of the load is other programs'."
        return Finding(
            kind="cpu_bound",
            severity=Severity.PROBLEM if cost.lost_share >= self.problem.value else Severity.WARNING,
            confidence=wait_cost.rate_confidence(candidate, cost, comparison),
            devices=devices,
            intervals=intervals.to_intervals(cost.spans),
            evidence=(
                Evidence(metric=UTILISATION, statistic="mean", observed=cost.utilisation, unit="1"),
                compare_with_limit(UTILISATION, "lowest mean over 30 s or nine samples", lowest, "<=", self.gpu),
                compare_with_limit(CPU, "median", cpu, ">=", self.cpu),
                wait_cost.build_duration_evidence(cost, self.shortest),
                *cost.level_evidence,
                *([cores.evidence] if cores else []),
                *others,
            ),
            lost_gpu_seconds=cost.lost_gpu_seconds,
            cause=OTHER_LOAD if is_others else "data",
            samples=cost.samples,
            ruled_out=wait_cost.list_ruled_out("a CPU that is as busy", comparison),
            summary=core_count.append_core_count(summary, cores),
            recommendation=KINDS["cpu_bound"].advice[OTHER_LOAD if is_others else ""],
        )


def _measure_own_load(host: DeviceSeries, spans: Spans, cpu: float) -> tuple[float, float]:
    """Return the cores that the job kept busy, and their share of the busy cores; NaN where either is not known."""
    own, counted = (host.find_values(metric, spans) for metric in (JOB, core_count.CORES))
    if not len(own) or not len(counted):
        return np.nan, np.nan
    job = float(np.median(own))
    return job, job / (cpu * float(counted.max()))
