"""GPUs that work only part of the time, with nothing recorded that would tell why."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gpureport.analysis import answering, certainty, intervals, low_use
from gpureport.analysis.base import Context
from gpureport.analysis.low_use import Figures, LowUse
from gpureport.analysis.phases import UTILISATION
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Finding, NotJudged, Severity, Threshold

_KIND = "low_util_cause_unknown"
_ADVICE = f"Log the CPU beside the GPU to learn why: {answering.recording([low_use.CPU])}."


@dataclass(frozen=True, slots=True, kw_only=True)
class LowUtilCauseUnknown:
    """Mean utilisation outside idle gaps between 8 and 64 % for two minutes or 30 samples, and no CPU series.

    An episode ends when the mean rises above 72 %. Log gaps, idle gaps and start-up inside it are not part of it. Where
    samples are points far apart, the mean of a whole episode lies below 70 % by three standard errors.
    Without a CPU series a wait for data looks like any other, so no cause is named. With one, `underutilised` speaks.
    """

    kinds: ClassVar[tuple[str, ...]] = (_KIND,)
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = low_use.EXPLAINED
    wants: ClassVar[tuple[str, ...]] = (low_use.CPU,)
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ((_KIND, (_ADVICE,)),)

    enter: Threshold = pragmatic(0.64, "1", "70 % less the error of a mean of 30 point samples")
    leave: Threshold = pragmatic(0.72, "1", "70 % with room for the same error")
    gpu: Threshold = low_use.BELOW
    idle: Threshold = pragmatic(0.08, "1", "below it a GPU is unused rather than underused")
    over: Threshold = pragmatic(120.0, "s", "longer than an evaluation pass between two training phases")
    rows: Threshold = pragmatic(30.0, "rows", "fewer point samples do not make a mean")
    watched: Threshold = pragmatic(0.5, "1", "share of the episodes below which the CPU was not watched")

    def limits(self) -> low_use.Limits:
        """Return the thresholds as the computation wants them."""
        return low_use.Limits(
            enter=self.enter.value,
            leave=self.leave.value,
            gpu=self.gpu.value,
            idle=self.idle.value,
            over=self.over.value,
            rows=self.rows.value,
            watched=self.watched.value,
        )

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most one finding, over all GPUs whose CPU was not recorded."""
        needed = low_use.needed_seconds(context, self.limits())
        if context.whole.seconds < needed:
            yield answering.too_short(_KIND, context.whole.seconds, needed)
            return
        if low_use.sampled_seconds(context) < needed:
            yield answering.too_short(_KIND, low_use.sampled_seconds(context), needed, "samples cover")
            return
        low = low_use.find(context, self.limits())
        alone = [name for name in low.spans if not low_use.watched(context, self.limits(), name, low.spans[name])]
        if alone:
            yield self._finding(context, low, low_use.figures(context, low, alone))

    def _finding(self, context: Context, low: LowUse, found: Figures) -> Finding:
        interval = max(context.cells[name].interval for name in found.devices)
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=certainty.weakest(
                Confidence.MEDIUM, certainty.by_readings(found.samples // len(found.devices), interval)
            ),
            devices=found.devices,
            intervals=intervals.intervals(found.spans),
            evidence=(*low_use.depth(low, found, self.enter), low_use.length(found, self.over)),
            lost_gpu_seconds=found.lost,
            samples=found.samples,
            ruled_out=("idle gaps and log gaps, which are counted on their own",),
            summary=f"{found.worked(context.gpus())}; why cannot be told, since no CPU series was recorded.",
            recommendation=_ADVICE,
        )
