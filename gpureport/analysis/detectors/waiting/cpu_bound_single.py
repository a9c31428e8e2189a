"""GPUs that wait while one core works as fast as it can and the others do little."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import JOB, UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.signals import job_load, low_use
from gpureport.analysis.signals.core_count import CPU
from gpureport.analysis.signals.waits import copied_data, wait_cost, wait_episodes, waiting_gpus
from gpureport.analysis.signals.waits.wait_cost import WaitCost
from gpureport.analysis.signals.waits.wait_episodes import ComparedEpisodes
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.analysis.thresholds import pragmatic, read_limits
from gpureport.columns import BoolArray, FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "cpu_bound_single"
CORE = "cpu_busiest_core_ratio"
PROCESS = "process_cpu_cores"
_HALF = 0.5
"""Share of samples beyond a limit from which on their median is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBoundSingle(ClassRule):
    """Mean utilisation of the GPUs of at most 64%, one core busy for 96%, all cores together less than 75%.

    The utilisation is the mean over 30 s and 30 samples of the median GPU; a wait lasts until it exceeds 72%. The
    cores are medians over 30 s or nine samples. A thread that moves from core to core fills none of them: where the
    busiest process uses between 0.96 and 1.1 cores, the whole job no more than 1.1, and the GPUs reach 90% in less
    than a tenth of the wait, that counts as well. Where the job's own processes were recorded and use less than
    half a core, the full core is another program's. Only within the job, outside waits for the whole CPU or for
    storage, for at least a minute (half a minute where the whole job is shorter, with low confidence) and three
    intervals. Where samples are far apart, the mean of a whole wait must lie below 70% by three standard errors. A
    thread that spins while it waits for the GPU looks the same. Where the GPUs are busy in part of the job, the
    core must therefore be busier in a wait than there, by 5 points and four standard errors; without such a part
    the finding is at most a warning. Where the GPU receives at least 4 GB/s meanwhile, and sends less than half of
    it, the cause is copying: the CPU copies what is not pinned.
    """

    name = _KIND
    requires = ((UTILISATION,), (CPU,), (CORE, PROCESS))
    after = ("cpu_bound", "io_bound")
    wants = (PROCESS, JOB, copied_data.RECEIVED, copied_data.SENT)

    gpu: Threshold = low_use.BELOW
    enter: Threshold = low_use.ENTER
    leave: Threshold = low_use.LEAVE
    cpu: ClassVar[Threshold] = pragmatic(0.75, "1", "above it all cores are busy, not one")
    core: Threshold = pragmatic(0.96, "1", "a thread that never waits, less the error of sampling")
    process: ClassVar[float] = 1.1  # cores; a process that uses more has more than one busy thread
    job: ClassVar[Threshold] = job_load.HARDLY
    over: ClassVar[float] = 30.0  # s; averages over many training steps
    rows: ClassVar[float] = 30.0  # rows; fewer point samples do not make a mean
    bins: ClassVar[float] = 9.0  # rows; fewer samples of the machine do not make a median
    shortest: Threshold = waiting_gpus.SHORTEST_ONE_CORE_WAIT
    shortest_job: ClassVar[Threshold] = waiting_gpus.ONE_CORE_WAIT_OF_SHORT_JOB
    bridge: ClassVar[float] = 30.0  # s; an interruption as long as the mean is taken over
    covered: ClassVar[float] = 0.5  # below it the cores were not watched
    fed: ClassVar[float] = 0.90  # GPUs that work this much get their data in time: no core is the limit
    apart: ClassVar[float] = 0.05  # a core of a machine at work is this much less busy than one that is full
    fed_share: ClassVar[float] = 0.1  # a thread that is as busy beside busy GPUs only waits for them
    copied: ClassVar[Threshold] = copied_data.FILLS_A_CORE
    problem: ClassVar[float] = 0.05  # lost share of the job that decides its cost

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each host, with all its episodes."""
        for candidate in waiting_gpus.find_host_candidates(context):
            if context.window is None:
                continue
            source = candidate.source
            metric = CORE if source.is_recorded(CORE) else PROCESS
            missing = [] if source.is_recorded(CPU) else [CPU]
            missing += [] if source.is_recorded(metric) else [CORE]
            if missing:
                yield missing_metrics.not_recorded(_KIND, source.device.id, *missing)
            else:
                shortest = waiting_gpus.find_shortest_one_core_wait(context.window, self.shortest)
                fitting = replace(self, shortest=shortest)
                yield from fitting.judge_candidate(context, context.window, candidate, metric)

    def judge_candidate(
        self, context: Context, window: Interval, candidate: WaitCandidate, metric: str
    ) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for one host; `shortest` must fit the length of the job."""
        unjudged = waiting_gpus.explain_unjudged(
            _KIND,
            context,
            candidate,
            candidate.average_metric(metric),
            shortest=self.shortest.value,
            least=self.covered,
            metric=metric,
        )
        if unjudged is not None:
            yield unjudged
            return
        for each in dict.fromkeys((metric, PROCESS)):
            comparison = self._compare_episodes(context, candidate, each)
            if len(comparison.spans):
                yield self._build_finding(context, window, candidate, each, comparison)
                return

    def _compare_episodes(self, context: Context, candidate: WaitCandidate, metric: str) -> ComparedEpisodes:
        """Return when GPUs waited while a metric showed one full core, as it did not beside busy GPUs."""
        series, length = candidate.average_metric(metric), candidate.count_bins(self.over, self.bins)
        is_full = (
            wait_episodes.compute_rolling_share(series, length, lambda values: self._is_core_full(values, metric))
            >= _HALF
        )
        is_calm = (
            wait_episodes.compute_rolling_share(
                candidate.average_metric(CPU), length, lambda values: values >= self.cpu.value
            )
            < _HALF
        )
        is_other = job_load.is_mostly_hardly_used(
            candidate.average_metric(JOB) < self.job.value, candidate.average_metric(CPU), length
        )
        if metric == PROCESS:
            jobs = candidate.average_metric(JOB)
            is_other |= wait_episodes.compute_rolling_share(jobs, length, lambda cores: cores > self.process) >= _HALF
        limits = read_limits(self, wait_episodes.Limits)
        episodes = wait_episodes.find_low_episodes(
            context, candidate, is_full & is_calm & ~is_other, limits, self.after
        )
        if metric == PROCESS:
            episodes = wait_episodes.drop_partly_fed(candidate, episodes, self.fed, self.fed_share)
        return wait_episodes.compare_with_fed_gpus(
            candidate, episodes, series, length=length, fed_level=self.fed, least_difference=self.apart
        )

    def _is_core_full(self, values: FloatArray, metric: str) -> BoolArray:
        busy: BoolArray = values >= self.core.value
        return busy if metric == CORE else busy & (values <= self.process)

    def _build_finding(
        self, context: Context, window: Interval, candidate: WaitCandidate, metric: str, comparison: ComparedEpisodes
    ) -> Finding:
        cost = wait_cost.measure_wait(window, candidate.gpus, comparison.spans)
        devices = tuple(candidate.gpus)
        core, cpu = (_median_or_nan(candidate.source.find_values(name, cost.spans)) for name in (metric, CPU))
        many = cost.lost_share >= self.problem and comparison.has_comparison
        copies = copied_data.measure_copies(candidate.gpus, cost.spans)
        is_copying = copies >= self.copied.value
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM if many else Severity.WARNING,
            confidence=self._rate_confidence(candidate, cost, comparison, metric),
            devices=devices,
            intervals=intervals.to_intervals(cost.spans),
            evidence=(
                *self._build_evidence(metric, cost, core, cpu),
                *copied_data.build_copy_evidence(copies, self.copied),
            ),
            lost_gpu_seconds=cost.lost_gpu_seconds,
            cause=copied_data.COPYING if is_copying else "one thread",
            samples=cost.samples,
            ruled_out=(
                *wait_cost.list_ruled_out("a core that is as busy", comparison),
                "a CPU that is busy as a whole, and waiting for storage: that time is left out",
            ),
            summary=(
                f"{_describe_core(metric, core)} while {phrases.gpu_names(devices, tuple(context.gpus()))} "
                f"{wait_cost.describe_wait(cost)}; all cores together were {phrases.percent(cpu)} busy."
                f"{copied_data.describe_copies(copies) if is_copying else ''}"
            ),
            recommendation=KINDS["cpu_bound_single"].advice["copying" if is_copying else ""],
        )

    def _rate_confidence(
        self, candidate: WaitCandidate, cost: WaitCost, comparison: ComparedEpisodes, metric: str
    ) -> Confidence:
        if self.shortest == self.shortest_job:
            # compiling or saving may keep one core busy for as long
            return Confidence.LOW
        return wait_cost.rate_confidence(candidate, cost, comparison) if metric == CORE else Confidence.MEDIUM

    def _build_evidence(self, metric: str, cost: WaitCost, core: float, cpu: float) -> tuple[Evidence, ...]:
        unit = "1" if metric == CORE else "cores"
        return (
            wait_cost.build_utilisation_evidence(cost, self.gpu),
            Evidence(
                metric=metric,
                statistic="median",
                observed=core,
                unit=unit,
                threshold=replace(self.core, unit=unit),
                relation=">=",
            ),
            compare_with_limit(CPU, "median", cpu, "<", self.cpu),
            wait_cost.build_duration_evidence(cost, self.shortest),
            *cost.level_evidence,
        )


def _describe_core(metric: str, cores: float) -> str:
    if metric == CORE:
        return "One CPU core was saturated"
    return f"The busiest process used {cores:.2f} cores, as much as one thread can,"


def _median_or_nan(values: FloatArray) -> float:
    return float(np.median(values)) if len(values) else float("nan")
