"""What several steps together say: each as a group with its interval, how work scales with GPUs, what batch fits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import fsum, isfinite, sqrt

import numpy as np

from gpureport.comparison import quantiles
from gpureport.comparison.batch_size import batch_size
from gpureport.comparison.contrasts import LEVEL
from gpureport.comparison.evidence import STEADY_SECONDS, evidence
from gpureport.comparison.figures import BY_METRIC, UTILISATION
from gpureport.comparison.measures import PER_WORK, WORK_BATCH
from gpureport.comparison.sampled_run import coarsest
from gpureport.comparison.steps import Step
from gpureport.comparison.within import mean as within_mean
from gpureport.recording import Device

HEADROOM = 0.05
"""Share of the memory that stays free at the largest batch: fragmentation and longer inputs need some."""

_HOUR = 3600.0
_PREALLOCATED = "mem_prealloc"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """A mean over the runs of a step.

    Attributes:
        value: the mean.
        interval: its ends at a level of 0.95; None where nothing tells its scatter.
        basis: `within-run` or `replicates`; None without an interval.
    """

    value: float
    interval: tuple[float, float] | None
    basis: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """One step among others.

    Attributes:
        label: of the step.
        runs: how many it has.
        gpus: GPUs of a run; None where its runs differ.
        models: of its GPUs.
        utilisation: GPU utilisation of what had settled; None where not recorded.
        work_unit: what work is counted in; None where not known.
        work_per_gpu_hour: work a GPU did in an hour; None where not known.
    """

    label: str
    runs: int
    gpus: int | None
    models: tuple[str, ...]
    utilisation: Mean | None
    work_unit: str | None
    work_per_gpu_hour: Mean | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Work per GPU-second of a step against that of the step with the fewest GPUs.

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
        reason: why it cannot; empty where it can.
    """

    sizes: tuple[float, ...]
    peaks: tuple[int, ...]
    fixed_bytes: float
    bytes_each: float
    total_bytes: int
    max_batch: int | None
    reason: str


def groups(steps: Sequence[Step]) -> tuple[Group, ...]:
    """Return every step as a group among others."""
    return tuple(_group(step) for step in steps)


def _group(step: Step) -> Group:
    counts = {len(analysis.run.gpus) for analysis in step.analyses}
    models = {gpu.model for analysis in step.analyses for gpu in analysis.run.gpus if gpu.model}
    per_work = _per_work(step)
    return Group(
        label=step.label,
        runs=len(step.runs),
        gpus=counts.pop() if len(counts) == 1 else None,
        models=tuple(sorted(models)),
        utilisation=_utilisation(step),
        work_unit=step.work_unit,
        work_per_gpu_hour=per_work,
    )


def _utilisation(step: Step) -> Mean | None:
    interval = coarsest(step.runs)
    if any(run.steady_seconds(UTILISATION, interval) < STEADY_SECONDS for run in step.runs):
        return None
    if len(step.runs) > 1:
        return _over_runs([run.steady_mean(UTILISATION, interval) for run in step.runs])
    (run,) = step.runs
    value = run.steady_mean(UTILISATION, interval)
    figure = BY_METRIC[UTILISATION]
    if within_mean(run, run, figure, interval).contrast is None:
        return Mean(value=value, interval=None, basis=None)
    low, high = run.estimate(UTILISATION, interval, figure.finest).interval(LEVEL)
    return Mean(value=value, interval=(low, high), basis="within-run")


def _over_runs(values: Sequence[float]) -> Mean:
    mean = fsum(values) / len(values)
    error = sqrt(fsum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    half = quantiles.student((1 + LEVEL) / 2, len(values) - 1) * error
    return Mean(value=mean, interval=(mean - half, mean + half), basis="replicates")


def _per_work(step: Step) -> Mean | None:
    """Return the work of a GPU in an hour, from what had settled where training metrics tell, else of whole runs."""
    own = evidence(step, step, BY_METRIC[PER_WORK])
    if not own.before:
        return None
    value = WORK_BATCH / own.before * _HOUR
    if len(own.figures[0]) > 1:
        return _over_runs([WORK_BATCH / each * _HOUR for each in own.figures[0]])
    return Mean(value=value, interval=None, basis=None)


def scaling(steps: Sequence[Step]) -> tuple[Scaling, ...]:
    """Return how work per GPU-second holds up with more GPUs; nothing where work or the number of GPUs is not known."""
    counted = [(count, step) for step in steps if (count := _group(step).gpus) and step.work_unit]
    if len({count for count, _ in counted}) < 2:  # noqa: PLR2004 - one number of GPUs scales nowhere
        return ()
    fewest, base = min(counted, key=lambda each: each[0])
    return tuple(
        found
        for count, step in counted
        if count > fewest and (found := _scaled(base, step, (fewest, count))) is not None
    )


def _scaled(base: Step, step: Step, gpus: tuple[int, int]) -> Scaling | None:
    """Return the ratio of GPU-seconds for the same work, the other way round."""
    found = evidence(base, step, BY_METRIC[PER_WORK])
    if not found.before or not found.after:
        return None
    interval = None
    if found.contrast is not None:
        low, high = found.contrast.interval(LEVEL)
        interval = (found.before / (found.before + high), found.before / max(found.before + low, 1e-12))
    known = interval if interval and all(map(isfinite, interval)) else None
    return Scaling(base=base.label, step=step.label, gpus=gpus, efficiency=found.before / found.after, interval=known)


def largest_batch(steps: Sequence[Step]) -> BatchSize | None:
    """Return the largest batch that fits; None unless params name two batch sizes on GPUs of one memory."""
    peaks: dict[float, int] = {}
    totals: set[int | None] = set()
    for size, peak, gpus in _recorded(steps):
        peaks[size] = max(peak, peaks.get(size, 0))
        totals |= {_available(gpu) for gpu in gpus}
    (total,) = totals if len(totals) == 1 else (None,)
    if len(peaks) < 2 or total is None:  # noqa: PLR2004 - a line takes two points
        return None
    sizes = np.array(sorted(peaks))
    held = np.array([peaks[size] for size in sizes.tolist()], dtype=np.float64)
    each, fixed = (float(value) for value in np.polyfit(sizes, held, 1))
    reason = _doubtful(steps, each)
    return BatchSize(
        sizes=tuple(sizes.tolist()),
        peaks=tuple(int(value) for value in held),
        fixed_bytes=fixed,
        bytes_each=each,
        total_bytes=total,
        max_batch=None if reason else int((total * (1 - HEADROOM) - fixed) // each),
        reason=reason,
    )


def _recorded(steps: Sequence[Step]) -> Iterator[tuple[float, int, tuple[Device, ...]]]:
    """Yield batch size, peak memory and GPUs of every run that has them."""
    for step in steps:
        for analysis in step.analyses:
            size = batch_size(analysis.run)
            held = [device.memory_peak_bytes for device in analysis.statistics if device.memory_peak_bytes]
            if size is not None and held:
                yield size, max(held), analysis.run.gpus


def _available(gpu: Device) -> int | None:
    if gpu.memory_total_bytes is None:
        return None
    return gpu.memory_total_bytes - (gpu.memory_reserved_bytes or 0)


def _doubtful(steps: Sequence[Step], bytes_each: float) -> str:
    """Return why peak memory does not tell what a batch takes; empty where it does."""
    kinds = {finding.kind for step in steps for analysis in step.analyses for finding in analysis.findings}
    if _PREALLOCATED in kinds:
        return "Memory was taken in advance, so its peak says nothing about the batch."
    if bytes_each <= 0:
        return "Peak memory did not grow with the batch."
    return ""
