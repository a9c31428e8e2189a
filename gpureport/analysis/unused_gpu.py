"""GPUs that never worked while others of the job did."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gpureport.analysis import answering, certainty, intervals, wording
from gpureport.analysis.base import Context
from gpureport.analysis.cells import Cells
from gpureport.analysis.phases import ACTIVE, UTILISATION
from gpureport.analysis.thresholds import pragmatic
from gpureport.findings import Confidence, Evidence, Finding, Interval, NotJudged, Severity, Threshold

_KIND = "unused_gpu"
_SEEN = 0.95
"""Share of the job that samples speak of, below which it is said how much."""
_ADVICE = (
    "If nothing else is meant to run there, release it, or let the job use it: check CUDA_VISIBLE_DEVICES, the number "
    "of processes it starts, and the GPUs it was given by the scheduler."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusedGpu:
    """No sustained utilisation above 12 % in the whole recording, while another GPU of it worked for a minute.

    Time in log gaps is not counted as lost, and confidence is low with samples a minute or more apart.
    """

    kinds: ClassVar[tuple[str, ...]] = (_KIND,)
    requires: ClassVar[tuple[tuple[str, ...], ...]] = ((UTILISATION,),)
    after: ClassVar[tuple[str, ...]] = ()
    wants: ClassVar[tuple[str, ...]] = ("gpu_memory_used_bytes",)
    advice: ClassVar[tuple[tuple[str, tuple[str, ...]], ...]] = ((_KIND, (_ADVICE,)),)

    shortest: Threshold = pragmatic(60.0, "s", "ranks start and stop seconds apart")
    context: Threshold = pragmatic(2.0**29, "By", "a driver or a display holds less; a process with a context more")

    def find(self, context: Context) -> Iterator[Finding | NotJudged]:
        """Yield at most two findings: for the GPUs whose memory nobody held, and for the others that were not used."""
        if context.window is None:
            return
        idle = [
            cells
            for device, cells in context.gpus().items()
            if device not in context.active and intervals.overlap(cells.start, cells.end, context.work).any()
        ]
        yield from (
            answering.absent(_KIND, cells.device.id, UTILISATION) for cells in idle if not cells.recorded(UTILISATION)
        )
        known = [cells for cells in idle if cells.recorded(UTILISATION)]
        if known and context.window.seconds < self.shortest.value:
            yield answering.too_short(_KIND, context.window.seconds, self.shortest.value, "other GPUs worked for")
            return
        job = context.window
        free = [cells for cells in known if (_held(cells, job) or 0) < self.context.value]
        for group in (free, [cells for cells in known if cells not in free]):
            if group:
                yield self._finding(context, group, context.window)

    def _finding(self, context: Context, group: Sequence[Cells], window: Interval) -> Finding:
        names = tuple(cells.device.id for cells in group)
        everybody = tuple(context.gpus())
        peaks = [peak for cells in group if (peak := _held(cells, window)) is not None]
        held = max(peaks, default=None)
        taken = held is not None and held >= self.context.value
        parts, worked = _sampled_parts(group, window), intervals.total_seconds(context.work)
        seen = sum(part.seconds for part in parts)
        unsure = taken or len(peaks) < len(group)
        readings = min(cells.readings(UTILISATION, cells.rows(window.start, window.end + 1)) for cells in group)
        sure = certainty.by_readings(readings, max(cells.interval for cells in group))
        return Finding(
            kind=_KIND,
            severity=Severity.WARNING,
            confidence=certainty.weakest(sure, Confidence.MEDIUM if unsure else Confidence.HIGH),
            devices=names,
            intervals=parts,
            evidence=tuple(self._evidence(group, held, worked)),
            lost_gpu_seconds=seen * len(group),
            samples=sum(cells.readings(UTILISATION, slice(None)) for cells in group),
            ruled_out=("a pause: no work at any time of the recording",),
            summary=(
                f"{wording.sentence(wording.gpus(names, everybody))} never worked, "
                f"while {wording.gpus(tuple(context.active), everybody)} worked for "
                f"{wording.duration(worked)}{_sampled(seen, worked)}{_memory(held, taken=taken)}."
            ),
            recommendation=_ADVICE,
        )

    def _evidence(self, group: Sequence[Cells], held: int | None, seconds: float) -> Iterator[Evidence]:
        mean = max(float(np.nanmean(cells.values(UTILISATION))) for cells in group)
        yield Evidence(
            metric=UTILISATION,
            statistic="mean",
            observed=mean,
            unit="1",
            threshold=ACTIVE if mean <= ACTIVE.value else None,
            relation="<=" if mean <= ACTIVE.value else "",
        )
        yield Evidence(
            metric="work of other GPUs",
            statistic="from the first to the last",
            observed=seconds,
            unit="s",
            threshold=self.shortest,
            relation=">=",
        )
        if held is not None:
            yield Evidence(metric="gpu_memory_used_bytes", statistic="max", observed=held, unit="By")


def _held(cells: Cells, job: Interval) -> int | None:
    """Return the most memory in use while others worked, in bytes; None where none was recorded then."""
    used = cells.values("gpu_memory_used_bytes")[cells.rows(job.start, job.end + 1)]
    known = used[~np.isnan(used)]
    return int(known.max()) if len(known) else None


def _sampled_parts(group: Sequence[Cells], window: Interval) -> tuple[Interval, ...]:
    """Return the job without what no sample of these GPUs owns in log gaps: nobody knows what they did there."""
    unseen = intervals.spans(
        Interval(int(cells.end[row - 1]), int(cells.start[row])) for cells in group for row in cells.gap_rows
    )
    return intervals.intervals(intervals.difference(intervals.spans([window]), unseen)) or (window,)


def _sampled(seen: float, worked: float) -> str:
    """Return what part of the job samples speak of, where much of it is in log gaps."""
    if seen >= _SEEN * worked:
        return ""
    return f", of which samples tell of {wording.duration(seen)}"


def _memory(held: int | None, *, taken: bool) -> str:
    if held is None:
        return "; whether it was reserved for another job is not known"
    if taken:
        return f"; up to {wording.size(held)} of memory was held, so another process may use it"
    return "; nothing held memory there, so at most it was reserved"
