"""Which kinds of GPU would hold what a step took of memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from gpureport import gpus
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step
from gpureport.findings import Provenance, Threshold
from gpureport.gpus import Gpu

HEADROOM = Threshold(
    value=0.05,
    unit="1",
    provenance=Provenance.PRAGMATIC,
    source="what stays free at the peak: a workspace, a longer sequence or a fragmented allocation takes as much",
)
"""Share of the memory a job can get that must stay free."""


class PeakDoubt(StrEnum):
    """Why a peak says nothing about what a job needs, or may say too much."""

    NOT_RECORDED = "not_recorded"
    UNUSED = "unused"
    PREALLOCATED = "preallocated"
    PERHAPS_PREALLOCATED = "perhaps_preallocated"


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFit:
    """One kind of the GPU table against a peak.

    Attributes:
        model: its name in the table.
        memory_bytes: what a job can get of it, installed less reserved where the table says that.
        source: where the table has that from.
        fits: whether the peak leaves HEADROOM; None where it does not, and the job may need less than its peak.
        free_ratio: share that would stay free; negative where it would not fit.
    """

    model: str
    memory_bytes: int
    source: str
    fits: bool | None
    free_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
    """Which kinds of GPU would hold the peak of a step.

    Attributes:
        step: its label.
        run: name of the run with the highest peak; None where none was recorded.
        device: GPU with the highest peak.
        peak_bytes: that peak.
        headroom: share of the memory that must stay free.
        headroom_source: why as much.
        kinds: every kind whose memory the table knows, the smallest first; none where the peak says nothing.
        unknown: kinds whose memory the table does not know.
        reason: why the peak says nothing, or may say too much; None where neither.
    """

    step: str
    run: str | None
    device: str | None
    peak_bytes: int | None
    headroom: float
    headroom_source: str
    kinds: tuple[KindFit, ...]
    unknown: tuple[str, ...]
    reason: PeakDoubt | None

    @property
    def smallest(self) -> KindFit | None:
        """The kind with the least memory that holds the peak."""
        return next((kind for kind in self.kinds if kind.fits), None)


def memory_fits(steps: Sequence[Step]) -> tuple[MemoryFit, ...]:
    """Return for every step the kinds of GPU that would hold its peak, by the GPU that took most."""
    return tuple(_fit(step) for step in steps)


def _fit(step: Step) -> MemoryFit:
    peaks = [peak for run in step.runs for peak in _peaks(run)]
    gpu_count = sum(len(run.analysis.run.gpus) for run in step.runs)
    # of equal peaks the name decides, so that the order of runs changes nothing
    most, run, device = min(peaks, key=lambda each: (-each[0], each), default=(None, None, None))
    reason = None
    if most == 0:
        reason = PeakDoubt.UNUSED
    elif any(one.preallocated for one in step.runs):
        reason = PeakDoubt.PREALLOCATED
    elif most is None or len(peaks) < gpu_count:
        reason = PeakDoubt.NOT_RECORDED
    elif any(one.preallocated is None for one in step.runs):
        reason = PeakDoubt.PERHAPS_PREALLOCATED
    is_usable = reason in {None, PeakDoubt.PERHAPS_PREALLOCATED}
    return MemoryFit(
        step=step.label,
        run=run,
        device=device,
        peak_bytes=most,
        headroom=HEADROOM.value,
        headroom_source=HEADROOM.source,
        kinds=_kinds(most, sure=reason is None) if is_usable and most is not None else (),
        unknown=tuple(gpu.model for gpu in gpus.load_gpus() if gpu.memory_total_bytes is None) if is_usable else (),
        reason=reason,
    )


def _peaks(run: SampledRun) -> list[tuple[int, str, str]]:
    names = {gpu.id for gpu in run.analysis.run.gpus}
    return [
        (one.memory_peak_bytes, run.analysis.run.name, one.device)
        for one in run.analysis.statistics
        if one.device in names and one.memory_peak_bytes is not None
    ]


def _kinds(peak: int, *, sure: bool) -> tuple[KindFit, ...]:
    found = (kind for gpu in gpus.load_gpus() if (kind := _kind(gpu, peak, sure=sure)) is not None)
    return tuple(sorted(found, key=lambda kind: (kind.memory_bytes, kind.model)))


def _kind(gpu: Gpu, peak: int, *, sure: bool) -> KindFit | None:
    """Return one kind against a peak; None where the table does not know its memory."""
    total = gpu.memory_total_bytes
    if total is None:
        return None
    reserved = gpu.memory_reserved_bytes.value if gpu.memory_reserved_bytes else 0.0
    memory = round(total.value - reserved)
    free = 1 - peak / memory
    fits = True if free >= HEADROOM.value else False if sure else None
    return KindFit(model=gpu.model, memory_bytes=memory, source=total.source, fits=fits, free_ratio=free)
