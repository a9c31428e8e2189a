"""GPUs that wait while the machine waits for its storage."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.signals import low_use
from gpureport.analysis.signals.waits import wait_cost, wait_episodes, waiting_gpus
from gpureport.analysis.signals.waits.wait_cost import WaitCost
from gpureport.analysis.signals.waits.wait_episodes import ComparedEpisodes
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.analysis.thresholds import pragmatic, read_limits
from gpureport.findings import Finding, Interval, NotJudged, Severity, Threshold

_KIND = "io_bound"
IOWAIT = "cpu_iowait_ratio"


@dataclass(frozen=True, slots=True, kw_only=True)
class IoBound(ClassRule):
    """Mean utilisation of the GPUs of at most 64%, and at least 15% of CPU time waiting for storage.

    The utilisation is the mean over 30 s and 30 samples of the median GPU; a wait lasts until it exceeds 72%. The
    wait for storage is the mean over 30 s or three samples. Only within the job, outside waits for the CPU, for at
    least 30 s and three intervals. Where samples are far apart, the mean of a whole wait must lie below 70% by three
    standard errors. Where the GPUs are busy in part of the job, the CPU must wait for storage longer than there, by 5
    points and four standard errors.
    """

    name = _KIND
    requires = ((UTILISATION,), (IOWAIT,))
    after = ("cpu_bound",)

    gpu: Threshold = low_use.BELOW
    enter: Threshold = low_use.ENTER
    leave: Threshold = low_use.LEAVE
    iowait: Threshold = pragmatic(
        0.15, "1", "a few waiting loaders are a small share of all the cores of a large machine"
    )
    over: ClassVar[float] = 30.0  # s; averages over many training steps
    rows: ClassVar[float] = 30.0  # rows; fewer point samples do not make a mean
    bins: ClassVar[float] = 3.0  # rows; each sample of the machine is a mean since the one before it
    shortest: Threshold = pragmatic(30.0, "s", "a shorter wait counts as a gap")
    bridge: ClassVar[float] = 30.0  # s; an interruption as long as the mean is taken over
    covered: ClassVar[float] = 0.5  # below it the machine was not watched
    fed: ClassVar[float] = 0.90  # GPUs that work this much get their data in time: storage is not the limit
    apart: ClassVar[float] = 0.05  # the load of a machine drifts by less
    problem: ClassVar[float] = 0.05  # lost share of the job that decides its cost

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each host, with all its episodes."""
        for candidate in waiting_gpus.find_host_candidates(context):
            if context.window is None:
                continue
            if candidate.source.is_recorded(IOWAIT):
                yield from self._judge_candidate(context, context.window, candidate)
            else:
                yield missing_metrics.not_recorded(_KIND, candidate.source.device.id, IOWAIT)

    def _judge_candidate(
        self, context: Context, window: Interval, candidate: WaitCandidate
    ) -> Iterator[Finding | NotJudged]:
        series = candidate.average_metric(IOWAIT)
        unjudged = waiting_gpus.explain_unjudged(
            _KIND, context, candidate, series, shortest=self.shortest.value, least=self.covered, metric=IOWAIT
        )
        if unjudged is not None:
            yield unjudged
            return
        length = candidate.count_bins(self.over, self.bins)
        where = rolling_mean(series, length) >= self.iowait.value
        episodes = wait_episodes.find_low_episodes(
            context, candidate, where, read_limits(self, wait_episodes.Limits), self.after
        )
        comparison = wait_episodes.compare_with_fed_gpus(
            candidate, episodes, series, length=length, fed_level=self.fed, least_difference=self.apart
        )
        if len(comparison.spans):
            yield self._build_finding(
                context, candidate, wait_cost.measure_wait(window, candidate.gpus, comparison.spans), comparison
            )

    def _build_finding(
        self, context: Context, candidate: WaitCandidate, cost: WaitCost, comparison: ComparedEpisodes
    ) -> Finding:
        devices = tuple(candidate.gpus)
        inside = candidate.source.find_values(IOWAIT, cost.spans)
        waited = float(inside.mean()) if len(inside) else float("nan")
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM if cost.lost_share >= self.problem else Severity.WARNING,
            confidence=wait_cost.rate_confidence(candidate, cost, comparison),
            devices=devices,
            intervals=intervals.to_intervals(cost.spans),
            evidence=(
                wait_cost.build_utilisation_evidence(cost, self.gpu),
                compare_with_limit(IOWAIT, "mean", waited, ">=", self.iowait),
                wait_cost.build_duration_evidence(cost, self.shortest),
                *cost.level_evidence,
            ),
            lost_gpu_seconds=cost.lost_gpu_seconds,
            cause="storage",
            samples=cost.samples,
            ruled_out=(
                *wait_cost.list_ruled_out("a wait for storage that is as long", comparison),
                "a busy CPU: that time is left out",
            ),
            summary=(
                f"The host waited on storage while {phrases.gpu_names(devices, tuple(context.gpus()))} "
                f"{wait_cost.describe_wait(cost)}."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )
