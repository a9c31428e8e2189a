"""GPUs that work only part of the time, with nothing recorded that would tell why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import answering, intervals, low_use, wording
from gpureport.analysis.base import Context
from gpureport.analysis.cells import Cells
from gpureport.analysis.intervals import Spans
from gpureport.analysis.low_use import LowUse
from gpureport.analysis.phases import UTILISATION
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, NotJudged, Severity, Threshold

_KIND = "low_util_cause_unknown"
_CPU = "cpu_utilization_ratio"
_CAUSES = ("cpu_busiest_core_ratio", "cpu_iowait_ratio")
_ADVICE = f"Log the CPU beside the GPU to learn why: {answering.recording([_CPU])}."
_PROFILING = "and DCGM's SM_ACTIVE, DRAM_ACTIVE and PCIE_RX_BYTES"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Figures:
    """Low use of several GPUs taken together: when, seconds and mean of one GPU, and GPU time lost."""

    devices: tuple[str, ...]
    spans: Spans
    seconds: float
    mean: float
    lost: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUtilCauseUnknown:
    """Mean utilisation outside idle gaps between 8 and 64 % for two minutes or 30 samples, and no CPU series.

    An episode ends when the mean rises above 72 %. Log gaps, idle gaps and start-up inside it are not part of it.
    Without a CPU series a wait for data looks like any other, so no cause is named. With one, what lies outside
    CPU-bound episodes is not judged: the CPU as a whole is not the reason, and what is takes other series to tell.
    """

    kinds: ClassVar[tuple[str, ...]] = (_KIND,)
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = low_use.EXPLAINED
    wants: ClassVar[tuple[str, ...]] = (_CPU, *_CAUSES)
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ((_KIND, (_ADVICE,)),)

    enter: Threshold = pragmatic(0.64, "1", "70 % less the error of a mean of 30 point samples")
    leave: Threshold = pragmatic(0.72, "1", "70 % with room for the same error")
    idle: Threshold = pragmatic(0.08, "1", "below it a GPU is unused rather than underused")
    over: Threshold = pragmatic(120.0, "s", "longer than an evaluation pass between two training phases")
    rows: Threshold = pragmatic(30.0, "rows", "fewer point samples do not make a mean")
    watched: Threshold = pragmatic(0.5, "1", "share of the episodes below which the CPU was not watched")

    def limits(self) -> low_use.Limits:
        """Return the thresholds as the computation wants them."""
        return low_use.Limits(
            enter=self.enter.value,
            leave=self.leave.value,
            idle=self.idle.value,
            over=self.over.value,
            rows=self.rows.value,
        )

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, over all GPUs whose CPU was not recorded, and one entry for the others."""
        needed = low_use.needed_seconds(context, self.limits())
        if context.whole.seconds < needed:
            yield answering.too_short(_KIND, context.whole.seconds, needed)
            return
        low = low_use.find(context, self.limits())
        watched = [name for name in low.spans if self._watched(context, name, low.spans[name])]
        alone = [name for name in low.spans if name not in watched]
        if alone:
            yield self._finding(context, low, _figures(context, low, alone))
        if watched:
            yield _unexplained(context, _figures(context, low, watched))

    def _watched(self, context: Context, device: str, spans: Spans) -> bool:
        """Whether the CPU beside a GPU was recorded for most of the episodes."""
        node = context.cells[device].device.node
        return any(
            intervals.overlap(host.start - host.shift, host.end - host.shift, spans)[~np.isnan(host.values(_CPU))].sum()
            >= self.watched.value * intervals.total_seconds(spans)
            for host in context.hosts().values()
            if host.device.node in {None, node}
        )

    def _finding(self, context: Context, low: LowUse, found: _Figures) -> Finding:
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
            devices=found.devices,
            intervals=intervals.intervals(found.spans),
            evidence=(
                Evidence(
                    metric=UTILISATION,
                    statistic=f"lowest mean over {wording.duration(low.mean_seconds)}",
                    observed=low.lowest,
                    unit="1",
                    threshold=self.enter,
                    relation="<=",
                ),
                Evidence(metric=UTILISATION, statistic="mean", observed=found.mean, unit="1"),
                Evidence(
                    metric="duration",
                    statistic="sum of episodes of one GPU",
                    observed=found.seconds,
                    unit="s",
                    threshold=self.over,
                    relation=">=",
                ),
            ),
            lost_gpu_seconds=found.lost,
            samples=found.samples,
            ruled_out=("idle gaps and log gaps, which are counted on their own",),
            summary=f"{_worked(context, found)}; why cannot be told, since no CPU series was recorded.",
            recommendation=_ADVICE,
        )


def _figures(context: Context, low: LowUse, devices: list[str]) -> _Figures:
    spans = [low.spans[name] for name in devices]
    held = sum(intervals.total_seconds(one) for one in spans)
    lost = sum(low_use.unused_seconds(context, context.cells[name], low.spans[name]) for name in devices)
    return _Figures(
        devices=tuple(devices),
        spans=intervals.union(np.concatenate(spans)),
        seconds=max(intervals.total_seconds(one) for one in spans),
        mean=1 - lost / held,
        lost=lost,
        samples=sum(_readings(context.cells[name], low.spans[name]) for name in devices),
    )


def _readings(cells: Cells, spans: Spans) -> int:
    return cells.readings(UTILISATION, intervals.contains(spans, cells.times))


def _worked(context: Context, found: _Figures) -> str:
    whose = wording.sentence(wording.gpus(found.devices, tuple(context.gpus())))
    return f"{whose} worked only {wording.percent(found.mean)} of {wording.duration(found.seconds)}"


def _unexplained(context: Context, found: _Figures) -> NotJudged:
    return NotJudged(
        kind=_KIND,
        device=found.devices[0] if len(found.devices) == 1 else None,
        reason=(
            f"{_worked(context, found)} and the CPU as a whole is not the reason: which cause it is (one core, "
            "storage, the model) is not judged yet"
        ),
        recording=f"{answering.recording(_CAUSES)}, {_PROFILING}",
    )
