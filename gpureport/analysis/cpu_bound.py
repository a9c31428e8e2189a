"""GPUs that wait while the CPU works: loading or preprocessing holds the job back."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import answering, intervals, wording
from gpureport.analysis.base import Context
from gpureport.analysis.bins import Grid, grid, middle, rolling_mean
from gpureport.analysis.cells import Cells
from gpureport.analysis.intervals import Spans
from gpureport.analysis.phases import UTILISATION
from gpureport.analysis.thresholds import literature, pragmatic
from gpureport.columns import FloatArray
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

CPU = "cpu_utilization_ratio"
_ADVICE = (
    "Feed the GPU faster: more loader workers while cores or host memory are free, prefetch and pinned memory; where "
    "the CPU is full, preprocess offline or on the GPU (DALI), store larger files (TFRecord, Parquet), and use "
    "processes instead of threads."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuBound:
    """Mean utilisation of the GPUs below 70 % and median CPU use of at least 75 % over 30 s or nine samples.

    An episode lasts until the mean exceeds 80 %. The GPUs are taken together by their median, those that never
    work left out. Only within the job window, for at least 30 s and three intervals; holes of 30 s or nine samples
    are closed.
    """

    kinds: ClassVar[tuple[str, ...]] = ("cpu_bound",)
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,), (CPU,))
    after: ClassVar[tuple[str, ...]] = ()
    wants: ClassVar[tuple[str, ...]] = ()
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = (("cpu_bound", (_ADVICE,)),)

    gpu: Threshold = literature(0.70, "1", "published advice calls more than 70 % generally good (neptune.ai blog)")
    leave: Threshold = pragmatic(
        0.80, "1", "an episode goes on through a stretch in which the GPU happens to wait less"
    )
    cpu: Threshold = pragmatic(0.75, "1", "loaders leave some cores to the job; 90 % misses most such phases")
    over: Threshold = pragmatic(30.0, "s", "averages over many training steps")
    bins: Threshold = pragmatic(9.0, "rows", "fewer samples do not make a mean")
    shortest: Threshold = pragmatic(30.0, "s", "a shorter wait is a gap")
    bridge: Threshold = pragmatic(30.0, "s", "a hole as long as what is averaged over")
    covered: Threshold = pragmatic(0.5, "1", "below it the CPU was not watched")
    problem: Threshold = pragmatic(0.05, "1", "lost share of the job that decides its cost")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding for each host, with all its episodes."""
        if context.window is None:
            return
        for host, cells in context.hosts().items():
            beside = {
                name: one
                for name, one in context.gpus().items()
                if cells.device.node in {None, one.device.node} and name in context.active
            }
            if beside and cells.recorded(CPU):
                yield from self._of(context, context.window, host, beside)

    def _of(
        self, context: Context, window: Interval, host: str, beside: dict[str, Cells]
    ) -> Iterator[Finding | NotJudged]:
        bins = grid(window, [context.cells[host], *beside.values()])
        needed = max(self.shortest.value, 3 * bins.width)
        if context.whole.seconds < needed:
            yield answering.too_short("cpu_bound", context.whole.seconds, needed)
            return
        cpu = bins.mean(context.cells[host], CPU)
        used = middle([bins.mean(one, UTILISATION) for one in beside.values()])
        seen = float((~np.isnan(cpu) & ~np.isnan(used)).sum()) / max(float((~np.isnan(used)).sum()), 1)
        if seen < self.covered.value:
            yield NotJudged(
                kind="cpu_bound",
                device=host,
                reason=f"the CPU series covers only {wording.percent(seen)} of the job",
                recording=answering.recording([CPU]),
            )
            return
        episodes, lowest = self._episodes(bins, used, cpu)
        episodes = intervals.intersection(episodes, intervals.spans([window]))
        if len(episodes):
            yield self._finding(context, window, host, beside, episodes, lowest)

    def _episodes(self, bins: Grid, used: FloatArray, cpu: FloatArray) -> tuple[Spans, float]:
        """Return the episodes, and the lowest mean utilisation in them."""
        length = max(round(self.over.value / bins.width), round(self.bins.value))
        full = np.where(np.isnan(cpu), np.nan, cpu >= self.cpu.value)
        mean = np.nan_to_num(rolling_mean(used, length), nan=1.0)
        pegged = rolling_mean(full, length) >= 0.5  # noqa: PLR2004 - half above the limit is a median above it
        within = max(self.bridge.value, self.bins.value * bins.width)
        low = np.where(pegged, mean, 1.0)
        inside = bins.mask(*intervals.hysteresis(low, enter=self.gpu.value, leave=self.leave.value))
        episodes = bins.spans(inside, within, max(self.shortest.value, 3 * bins.width))
        return episodes, float(low[inside].min()) if len(episodes) else 1.0

    def _finding(  # noqa: PLR0913, PLR0917 - the figures of one sentence
        self,
        context: Context,
        window: Interval,
        host: str,
        beside: dict[str, Cells],
        episodes: Spans,
        lowest: float,
    ) -> Finding:
        lost = sum(_waiting(one, episodes) for one in beside.values())
        seconds = intervals.total_seconds(episodes)
        share = lost / (window.seconds * len(beside))
        gpu = 1 - lost / max(sum(_covered(one, episodes) for one in beside.values()), 1e-9)
        machine = context.cells[host]
        there = intervals.contains(episodes, machine.times - machine.shift)
        cpu = float(np.nanmedian(machine.values(CPU)[there])) if there.any() else float("nan")
        samples = sum(one.readings(UTILISATION, intervals.contains(episodes, one.times)) for one in beside.values())
        coarse = max(one.interval for one in (machine, *beside.values())) > 5  # noqa: PLR2004 - the interval above which nine samples span a minute
        return Finding(
            kind="cpu_bound",
            severity=Severity.PROBLEM if share >= self.problem.value else Severity.WARNING,
            confidence=Confidence.MEDIUM if coarse else Confidence.HIGH,
            devices=tuple(beside),
            intervals=intervals.intervals(episodes),
            evidence=self._evidence(gpu, lowest, cpu, seconds),
            lost_gpu_seconds=lost,
            cause="data",
            samples=samples,
            ruled_out=("start-up and tail of the job", "a busy CPU beside busy GPUs"),
            summary=(
                f"For {wording.duration(seconds)} the CPU was busy (median {wording.percent(cpu)}) while "
                f"{wording.gpus(tuple(beside), tuple(context.gpus()))} worked {wording.percent(gpu)} of the time: "
                f"{wording.duration(lost)} of GPU time went into waiting."
            ),
            recommendation=_ADVICE,
        )

    def _evidence(self, gpu: float, lowest: float, cpu: float, seconds: float) -> tuple[Evidence, ...]:
        return (
            Evidence(metric=UTILISATION, statistic="mean", observed=gpu, unit="1"),
            Evidence(
                metric=UTILISATION,
                statistic="lowest mean over 30 s or nine samples",
                observed=lowest,
                unit="1",
                threshold=self.gpu,
                relation="<=",
            ),
            Evidence(metric=CPU, statistic="median", observed=cpu, unit="1", threshold=self.cpu, relation=">="),
            Evidence(
                metric="duration",
                statistic="sum of episodes",
                observed=seconds,
                unit="s",
                threshold=self.shortest,
                relation=">=",
            ),
        )


def _waiting(cells: Cells, episodes: Spans) -> float:
    """Return the idle share of the cells inside the episodes, in seconds."""
    inside = intervals.overlap(cells.start - cells.shift, cells.end - cells.shift, episodes)
    return float(np.nansum((1 - np.clip(cells.values(UTILISATION), 0, 1)) * inside))


def _covered(cells: Cells, episodes: Spans) -> float:
    known = ~np.isnan(cells.values(UTILISATION))
    return float(intervals.overlap(cells.start - cells.shift, cells.end - cells.shift, episodes)[known].sum())
