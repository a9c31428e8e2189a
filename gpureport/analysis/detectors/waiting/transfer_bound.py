"""GPUs that wait while the link to the host carries about all it can."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport import gpus
from gpureport.analysis import missing_metrics, phrases
from gpureport.analysis.evidence import compare_with_limit
from gpureport.analysis.job.phases import UTILISATION
from gpureport.analysis.kinds import KINDS
from gpureport.analysis.rulebook import ClassRule, Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.bins import rolling_mean
from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.analysis.signals import low_use
from gpureport.analysis.signals.waits import wait_cost, wait_episodes, waiting_gpus
from gpureport.analysis.signals.waits.copied_data import COPYING, RECEIVED, SENT
from gpureport.analysis.signals.waits.wait_cost import WaitCost
from gpureport.analysis.signals.waits.wait_episodes import ComparedEpisodes
from gpureport.analysis.signals.waits.waiting_gpus import WaitCandidate
from gpureport.analysis.thresholds import pragmatic, read_limits
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "transfer_bound"
GENERATION = ("pcie_link_generation", "pcie_link_generation_max")
WIDTH = ("pcie_link_width", "pcie_link_width_max")
_LANE = {
    1: 2.5e9 * 8 / 10,
    2: 5e9 * 8 / 10,
    3: 8e9 * 128 / 130,
    4: 16e9 * 128 / 130,
    5: 32e9 * 128 / 130,
    6: 64e9 * 242 / 256,
}
"""Bits a second one lane carries each way, by generation: what the PCI Express base specification encodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """What a GPU's link can carry one way, and whether generation and width are as logged."""

    bytes_per_second: float
    description: str
    is_logged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferBound(ClassRule):
    """Mean utilisation of a GPU of at most 64% beside PCIe traffic of at least 60% of what its link carries one way.

    Both are means over 30 s and 30 samples, the traffic of the busier direction; a wait lasts until the utilisation
    exceeds 72% or the traffic falls below 30%. What the link carries follows from the highest generation and width it
    ran at. Only within the job, outside waits for CPU or storage, for at least 30 s and three intervals. Where
    samples are far apart, the mean of a whole wait must lie below 70% by three standard errors. Where the GPU is busy
    in part of the job, the traffic must be higher in a wait than there, by 5 points and four standard errors.
    """

    name = _KIND
    requires = ((UTILISATION,), (RECEIVED, SENT))
    after = ("cpu_bound", "io_bound", "cpu_bound_single")
    wants = (*GENERATION, *WIDTH)

    gpu: Threshold = low_use.BELOW
    enter: Threshold = low_use.ENTER
    leave: Threshold = low_use.LEAVE
    link: Threshold = pragmatic(0.60, "1", "headers and pauses between copies leave no more than 80 to 90% at best")
    pause: ClassVar[float] = 0.30  # a wait goes on through a moment in which the link carries less
    over: ClassVar[float] = 30.0  # s; averages over many training steps
    rows: ClassVar[float] = 30.0  # rows; fewer point samples do not make a mean; traffic is read over 20 ms
    shortest: Threshold = pragmatic(30.0, "s", "loading a model or a checkpoint fills the link for less")
    bridge: ClassVar[float] = 30.0  # s; an interruption as long as the mean is taken over
    covered: ClassVar[float] = 0.5  # below it the link was not watched
    fed: ClassVar[float] = 0.90  # a GPU that works this much gets its data in time: the link is not the limit
    apart: ClassVar[float] = 0.05  # traffic drifts by less
    problem: ClassVar[float] = 0.05  # lost share of the job that decides its cost

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each GPU, with all its episodes."""
        if context.window is None:
            return
        for device, series in context.gpus().items():
            if device not in context.active:
                continue
            if not series.is_recorded(RECEIVED) and not series.is_recorded(SENT):
                yield missing_metrics.not_recorded(_KIND, device, RECEIVED, SENT)
                continue
            link = _find_link(series)
            if link is None:
                reason = "PCIe traffic was recorded, but not what the link can carry: its generation and width"
                metrics = [GENERATION[0], WIDTH[0]]
                yield missing_metrics.unjudged(_KIND, device, reason, metrics, code="link_not_recorded")
                continue
            yield from self._judge_candidate(
                context, context.window, waiting_gpus.build_candidate(context.window, series, {device: series}), link
            )

    def _judge_candidate(
        self, context: Context, window: Interval, candidate: WaitCandidate, link: _Link
    ) -> Iterator[Finding | NotJudged]:
        series = np.fmax(candidate.average_metric(RECEIVED), candidate.average_metric(SENT)) / link.bytes_per_second
        unjudged = waiting_gpus.explain_unjudged(
            _KIND, context, candidate, series, shortest=self.shortest.value, least=self.covered, metric=RECEIVED
        )
        if unjudged is not None:
            yield unjudged
            return
        length = candidate.count_bins_with_samples(self.over, self.rows)
        carried = -rolling_mean(series, length)
        where = candidate.bins.mark_runs(
            *intervals.find_hysteresis_runs(carried, enter=-self.link.value, leave=-self.pause)
        )
        limits = read_limits(self, wait_episodes.Limits)
        episodes = wait_episodes.find_low_episodes(context, candidate, where, limits, self.after)
        comparison = wait_episodes.compare_with_fed_gpus(
            candidate, episodes, series, length=length, fed_level=self.fed, least_difference=self.apart
        )
        if len(comparison.spans):
            cost = wait_cost.measure_wait(window, candidate.gpus, comparison.spans)
            traffic = np.concatenate(
                [series[candidate.bins.find_bin_slice(start, end)] for start, end in comparison.spans]
            )
            if not np.isnan(traffic).all():
                yield self._build_finding(candidate, link, cost, comparison, traffic)

    def _build_finding(
        self, candidate: WaitCandidate, link: _Link, cost: WaitCost, comparison: ComparedEpisodes, traffic: FloatArray
    ) -> Finding:
        device = candidate.source.device.id
        used = float(np.nanmean(traffic))
        return Finding(
            kind=_KIND,
            severity=Severity.PROBLEM if cost.lost_share >= self.problem else Severity.WARNING,
            confidence=wait_cost.rate_confidence(candidate, cost, comparison) if link.is_logged else Confidence.LOW,
            devices=(device,),
            intervals=intervals.to_intervals(cost.spans),
            evidence=(
                wait_cost.build_utilisation_evidence(cost, self.gpu),
                compare_with_limit(
                    "PCIe traffic", "mean of the busier direction, of what the link carries", used, ">=", self.link
                ),
                wait_cost.build_duration_evidence(cost, self.shortest),
                *cost.level_evidence,
            ),
            lost_gpu_seconds=cost.lost_gpu_seconds,
            cause=COPYING,
            samples=cost.samples,
            ruled_out=(
                *wait_cost.list_ruled_out("traffic that is as dense", comparison),
                "waiting for CPU and storage, as far as recorded: that time is left out",
            ),
            summary=(
                f"Copies used {phrases.percent(used)} of the {link.description} PCIe link while "
                f"{phrases.gpu_name(device)} {wait_cost.describe_wait(cost)}."
            ),
            recommendation=KINDS[_KIND].advice[""],
        )


def _find_link(series: DeviceSeries) -> _Link | None:
    """Return what the link of a GPU carries, None where generation or width is not known; no link has no lanes."""
    generation, width = (_highest(series, names) for names in (GENERATION, WIDTH))
    known = gpus.find_gpu(series.device.model)
    logged = generation is not None
    if generation is None and known is not None and known.pcie_generation is not None:
        generation = round(known.pcie_generation.value)
    if generation is None or not width or generation not in _LANE:
        return None
    return _Link(
        bytes_per_second=_LANE[generation] / 8 * width,
        description=f"gen {generation} x{width}",
        is_logged=logged,
    )


def _highest(series: DeviceSeries, names: tuple[str, ...]) -> int | None:
    """Return the highest value of the first column that was recorded; a link is slower only while nothing is sent."""
    name = next((name for name in names if series.is_recorded(name)), None)
    return None if name is None else int(np.nanmax(series.values(name)))
