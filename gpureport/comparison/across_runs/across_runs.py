"""What several steps together say: how work scales with GPUs, and what batch fits."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite

from gpureport.analysis.job import params
from gpureport.comparison.across_runs.memory_fit import HEADROOM
from gpureport.comparison.estimate import LEVEL
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.figures import BY_METRIC, SHORTEST_SECONDS, TRAINING_RATE, recorded_seconds
from gpureport.comparison.steps import Step
from gpureport.comparison.work import batch_size
from gpureport.recording import Device


class BatchDoubt(StrEnum):
    """Why peak memory does not tell what a batch takes."""

    PREALLOCATED = "preallocated"
    PRECISION_DIFFERS = "precision_differs"
    NO_GROWTH = "no_growth"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Work per GPU-second of training alone, against that of the step with the fewest GPUs.

    Attributes:
        base: label of the step with the fewest GPUs.
        step: label of this one.
        gpus: GPUs of a run of either.
        efficiency: 1 where as many more GPUs do as much more work.
        interval: its ends at a level of 0.95; None where nothing tells its scatter.
    """

    base: str
    step: str
    gpus: tuple[int, int]
    efficiency: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    """The largest batch that fits, by peak memory at several batch sizes.

    Attributes:
        sizes: batch sizes recorded, the smallest first.
        peaks: highest memory of any GPU at each, in bytes.
        fixed_bytes: memory that a batch of none would take.
        bytes_each: memory that one more in the batch takes.
        total_bytes: memory a job can get.
        max_batch: largest batch that leaves HEADROOM; None where that cannot be told.
        reason: why it cannot; None where it can.
    """

    sizes: tuple[float, ...]
    peaks: tuple[int, ...]
    fixed_bytes: float
    bytes_each: float
    total_bytes: int
    max_batch: int | None
    reason: BatchDoubt | None


def scaling(steps: Sequence[Step]) -> tuple[Scaling, ...]:
    """Return how work per GPU-second holds up with more GPUs.

    Steps of which less than a minute was recorded, or whose work or number of GPUs is not known, are left out.
    """
    long_enough = [step for step in steps if recorded_seconds(step.analyses) >= SHORTEST_SECONDS]
    counted = [(count, step) for step in long_enough if (count := step.gpu_count) and step.work_unit]
    if len({count for count, _ in counted}) < 2:  # noqa: PLR2004 - one number of GPUs scales nowhere
        return ()
    fewest, base = min(counted, key=lambda each: each[0])
    return tuple(
        found
        for count, step in counted
        if count > fewest and (found := _scaled(base, step, (fewest, count))) is not None
    )


def _scaled(base: Step, step: Step, gpus: tuple[int, int]) -> Scaling | None:
    """Return the ratio of the training rates of one GPU.

    Start-up is as long with more GPUs, so by the whole job a short trial run would seem to scale badly.
    """
    found = gather_evidence(base, step, BY_METRIC[TRAINING_RATE])
    if not found.before or not found.after:
        return None
    share = gpus[0] / gpus[1]
    interval = None
    if found.contrast is not None:
        low, high = (share * (1 + end / found.before) for end in found.contrast.interval(LEVEL))
        interval = (low, high) if isfinite(high) else None
    efficiency = share * found.after / found.before
    return Scaling(base=base.label, step=step.label, gpus=gpus, efficiency=efficiency, interval=interval)


def largest_batch(steps: Sequence[Step]) -> BatchSize | None:
    """Return the largest batch that fits; None unless params name two batch sizes on as many GPUs of one memory."""
    peaks: dict[float, int] = {}
    totals: set[int | None] = set()
    for size, peak, gpus in _recorded(steps):
        peaks[size] = max(peak, peaks.get(size, 0))
        totals |= {_available(gpu) for gpu in gpus}
    (total,) = totals if len(totals) == 1 else (None,)
    # a batch is one of all GPUs together: more of them take less of it each
    if len(peaks) < 2 or total is None or len({step.gpu_count for step in steps}) > 1:  # noqa: PLR2004 - a line takes two points
        return None
    each, fixed = _line(peaks)
    reason = _doubt(steps, float(each))
    free = total * (1 - Fraction(str(HEADROOM.value)))
    return BatchSize(
        sizes=tuple(sorted(peaks)),
        peaks=tuple(peaks[size] for size in sorted(peaks)),
        fixed_bytes=float(fixed),
        bytes_each=float(each),
        total_bytes=total,
        max_batch=None if reason else int((free - fixed) // each),
        reason=reason,
    )


def _line(points: Mapping[float, int]) -> tuple[Fraction, Fraction]:
    """Return slope and intercept of the line of least squares.

    Exact: whether one more fits must not hang on the last digit of a float, which differs between processors.
    """
    places = {Fraction(place): value for place, value in points.items()}
    middle, mean = Fraction(sum(places)) / len(places), Fraction(sum(places.values()), len(places))
    rise = sum(((place - middle) * value for place, value in places.items()), Fraction())
    slope = rise / sum(((place - middle) * (place - middle) for place in places), Fraction())
    return slope, mean - slope * middle


def _recorded(steps: Sequence[Step]) -> Iterator[tuple[float, int, tuple[Device, ...]]]:
    for step in steps:
        for analysis in step.analyses:
            size = batch_size(analysis.run)
            held = [device.memory_peak_bytes for device in analysis.statistics if device.memory_peak_bytes]
            if size is not None and isfinite(size) and held:
                yield size, max(held), analysis.run.gpus


def _available(gpu: Device) -> int | None:
    if gpu.memory_total_bytes is None:
        return None
    return gpu.memory_total_bytes - (gpu.memory_reserved_bytes or 0)


def _doubt(steps: Sequence[Step], bytes_each: float) -> BatchDoubt | None:
    """Return why peak memory does not tell what a batch takes; None where it does."""
    if any(run.preallocated for step in steps for run in step.runs):
        return BatchDoubt.PREALLOCATED
    precisions = {
        params.find_precision_param(analysis.run.params_and_tags) for step in steps for analysis in step.analyses
    }
    if len({precision and precision[1] for precision in precisions}) > 1:
        return BatchDoubt.PRECISION_DIFFERS
    return BatchDoubt.NO_GROWTH if bytes_each <= 0 else None
