"""Estimates scaling, the largest batch that fits, and which GPUs have enough memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import isfinite
from statistics import mean
from typing import Any

from gpureport.analysis import phrases
from gpureport.analysis.job import params
from gpureport.comparison.estimate import LEVEL
from gpureport.comparison.evidence import gather_evidence
from gpureport.comparison.figures import BY_METRIC, SHORTEST_SECONDS, TRAINING_RATE, recorded_seconds
from gpureport.comparison.steps import Step
from gpureport.comparison.work import batch_size
from gpureport.findings import Confidence, Evidence, Finding, Provenance, Severity, Threshold
from gpureport.metrics import load_gpus

HEADROOM = Threshold(
    value=0.05,
    unit="1",
    provenance=Provenance.PRAGMATIC,
    source="workspaces, longer sequences or fragmentation may take up this much memory at the peak",
)
"""Share of the usable memory that must stay free."""


class BatchDoubt(StrEnum):
    PREALLOCATED = "preallocated"
    PRECISION_DIFFERS = "precision_differs"
    NO_GROWTH = "no_growth"


class PeakDoubt(StrEnum):
    """Why a peak may not show how much memory a job needs."""

    NOT_RECORDED = "not_recorded"
    UNUSED = "unused"
    PREALLOCATED = "preallocated"
    PERHAPS_PREALLOCATED = "perhaps_preallocated"


BATCH_DOUBTS = {
    BatchDoubt.PREALLOCATED: "Memory was allocated in advance, so peak memory does not show what the batch needs.",
    BatchDoubt.PRECISION_DIFFERS: "The runs differ in precision, and therefore in the memory per sample.",
    BatchDoubt.NO_GROWTH: "Peak memory did not grow with the batch.",
}
_NAMED = 3  # maximum number of GPU models listed, smallest first
_MEMORY = "gpu_memory_used_bytes"
_SCALE = (
    "Compare the cost per unit of work: fewer GPUs may be cheaper and hardly slower. If more GPUs are needed, find "
    "out what slows them down: communication, too small a batch per GPU, or input that does not keep up."
)
_BATCH = (
    "Increase the batch size gradually, scale the learning rate, and watch the loss and work per GPU-hour; memory "
    "use may not grow in proportion."
)
_KINDS = "Before you switch, compare the cost per unit of work on one such GPU, as memory size does not indicate speed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Work per GPU-second during training, relative to the step with the fewest GPUs."""

    base: str
    step: str
    gpus: tuple[int, int]
    efficiency: float
    interval: tuple[float, float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSize:
    sizes: tuple[float, ...]
    peaks: tuple[int, ...]
    fixed_bytes: float
    bytes_each: float
    total_bytes: int
    max_batch: int | None
    reason: BatchDoubt | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KindFit:
    """A GPU model. `fits` is None if peak memory exceeds the GPU's memory but the job may need less."""

    model: str
    memory_bytes: int
    source: str
    fits: bool | None
    free_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFit:
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
        return next((kind for kind in self.kinds if kind.fits), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossFinding:
    finding: Finding
    steps: tuple[str, ...]
    content: Scaling | BatchSize | MemoryFit


def scaling(steps: Sequence[Step]) -> tuple[Scaling, ...]:
    # over a whole short trial, scaling would look poor: more GPUs do not shorten start-up
    counted = [
        (count, step)
        for step in steps
        if recorded_seconds(step.analyses) >= SHORTEST_SECONDS and (count := step.gpu_count) and step.work_unit
    ]
    found = []
    for count, step in counted:
        fewest, base = min(counted, key=lambda each: each[0])
        rates = gather_evidence(base, step, BY_METRIC[TRAINING_RATE])
        if count == fewest or not rates.before or not rates.after:
            continue
        share, interval = fewest / count, None
        if rates.contrast is not None:
            low, high = (share * (1 + end / rates.before) for end in rates.contrast.interval(LEVEL))
            interval = (low, high) if isfinite(high) else None
        efficiency = share * rates.after / rates.before
        found.append(
            Scaling(base=base.label, step=step.label, gpus=(fewest, count), efficiency=efficiency, interval=interval)
        )
    return tuple(found)


def largest_batch(steps: Sequence[Step]) -> BatchSize | None:
    """Return the largest batch that fits, or None without two sizes for the same GPUs."""
    found: dict[float, int] = {}
    totals: set[int | None] = set()
    for analysis in (analysis for step in steps for analysis in step.analyses):
        size = batch_size(analysis.run)
        held = [device.memory_peak_bytes for device in analysis.statistics if device.memory_peak_bytes]
        if size is not None and isfinite(size) and held:
            found[size] = max(*held, found.get(size, 0))
            totals |= {
                None if gpu.memory_total_bytes is None else gpu.memory_total_bytes - (gpu.memory_reserved_bytes or 0)
                for gpu in analysis.run.gpus
            }
    (total,) = totals if len(totals) == 1 else (None,)
    # a batch is divided among all GPUs, so with more GPUs, each one processes less
    if len(found) <= 1 or total is None or len({step.gpu_count for step in steps}) > 1:
        return None
    sizes, peaks = zip(*sorted(found.items()), strict=True)
    each, fixed = _fit_line(sizes, peaks)
    reason = _doubt_batch(steps, float(each))
    free = total * (1 - Fraction(str(HEADROOM.value)))
    return BatchSize(
        sizes=sizes,
        peaks=peaks,
        fixed_bytes=float(fixed),
        bytes_each=float(each),
        total_bytes=total,
        max_batch=None if reason else int((free - fixed) // each),
        reason=reason,
    )


def _fit_line(places: Sequence[float], values: Sequence[int]) -> tuple[Fraction, Fraction]:
    """Return the exact least-squares slope and intercept; rounding must not decide which batch fits."""
    exact, middle = [*map(Fraction, places)], mean(map(Fraction, places))
    rise = sum(((place - middle) * value for place, value in zip(exact, values, strict=True)), Fraction())
    slope = rise / sum(((place - middle) ** 2 for place in exact), Fraction())
    return slope, mean(map(Fraction, values)) - slope * middle


def _doubt_batch(steps: Sequence[Step], bytes_each: float) -> BatchDoubt | None:
    if any(run.preallocated for step in steps for run in step.runs):
        return BatchDoubt.PREALLOCATED
    found = [params.find_precision_param(each.run.params_and_tags) for step in steps for each in step.analyses]
    if len({precision and precision[1] for precision in found}) > 1:
        return BatchDoubt.PRECISION_DIFFERS
    return BatchDoubt.NO_GROWTH if bytes_each <= 0 else None


def fit_memory(step: Step) -> MemoryFit:
    peaks = [
        (-one.memory_peak_bytes, analysis.run.name, one.device)
        for analysis in step.analyses
        for one in analysis.statistics
        if one.memory_peak_bytes is not None and one.device in {gpu.id for gpu in analysis.run.gpus}
    ]
    # order equal peaks by name, whatever the order of runs
    highest, run, device = min(peaks, default=(None, None, None))
    peak, taken, reason = None if highest is None else -highest, {one.preallocated for one in step.runs}, None
    if peak == 0:
        reason = PeakDoubt.UNUSED
    elif True in taken:
        reason = PeakDoubt.PREALLOCATED
    elif peak is None or len(peaks) < sum(len(analysis.run.gpus) for analysis in step.analyses):
        reason = PeakDoubt.NOT_RECORDED
    elif None in taken:
        reason = PeakDoubt.PERHAPS_PREALLOCATED
    fits = []
    kinds = load_gpus() if reason in {None, PeakDoubt.PERHAPS_PREALLOCATED} else ()
    for gpu in kinds:
        if (total := gpu.memory_total_bytes) is not None:
            memory = round(total.value - (gpu.memory_reserved_bytes.value if gpu.memory_reserved_bytes else 0.0))
            free = 1 - (peak or 0) / memory
            fit = True if free >= HEADROOM.value else False if reason is None else None
            fits.append(KindFit(model=gpu.model, memory_bytes=memory, source=total.source, fits=fit, free_ratio=free))
    return MemoryFit(
        step=step.label,
        run=run,
        device=device,
        peak_bytes=peak,
        headroom=HEADROOM.value,
        headroom_source=HEADROOM.source,
        kinds=tuple(sorted(fits, key=lambda kind: (kind.memory_bytes, kind.model))),
        unknown=tuple(gpu.model for gpu in kinds if gpu.memory_total_bytes is None),
        reason=reason,
    )


def across_findings(steps: Sequence[Step]) -> tuple[AcrossFinding, ...]:
    found = [
        AcrossFinding(finding=_word_scaling(each), steps=(each.base, each.step), content=each)
        for each in scaling(steps)
    ]
    if (batch := largest_batch(steps)) is not None:
        labels = tuple(step.label for step in steps)
        found.append(AcrossFinding(finding=_word_batch(batch), steps=labels, content=batch))
    fits = [fit for fit in map(fit_memory, steps) if fit.kinds and not fit.reason]
    return (*found, *(AcrossFinding(finding=_word_kinds(fit), steps=(fit.step,), content=fit) for fit in fits))


def _finding(kind: str, evidence: Sequence[Evidence], summary: str, advice: str, *, is_sure: bool = True) -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.INFO,
        confidence=Confidence.MEDIUM if is_sure else Confidence.LOW,
        devices=(),
        intervals=(),
        evidence=tuple(evidence),
        lost_gpu_seconds=None,
        summary=summary,
        recommendation=advice,
    )


def _see(metric: str, statistic: str, observed: float, unit: str = "1", relation: Any = None) -> Evidence:
    limit = {} if relation is None else {"threshold": HEADROOM, "relation": relation}
    return Evidence(metric=metric, statistic=statistic, observed=float(observed), unit=unit, **limit)


def _word_scaling(found: Scaling) -> Finding:
    few, many = found.gpus
    observed = {f"on {many} GPUs, relative to {few}": found.efficiency}
    if found.interval is not None:
        names = (f"{name} end of the 95% interval" for name in ("lower", "upper"))
        observed |= zip(names, found.interval, strict=True)
    evidence = [_see("work_per_gpu_second", name, seen) for name, seen in observed.items()]
    done = phrases.percent(found.efficiency)
    text = f"In training, {many} GPUs do {done} as much work per GPU-second as {few}."
    return _finding("scaling", evidence, text, _SCALE, is_sure=found.interval is not None)


def _word_batch(found: BatchSize) -> Finding:
    evidence = [
        _see(_MEMORY, "peak per sample in the batch", found.bytes_each, "By"),
        _see(_MEMORY, "peak with an empty batch", found.fixed_bytes, "By"),
    ]
    if found.reason is not None:
        return _finding("batch_size", evidence, BATCH_DOUBTS[found.reason], "", is_sure=False)
    largest = f"largest batch that leaves {phrases.percent(HEADROOM.value)} of the memory free"
    evidence.insert(0, _see("max_batch", largest, found.max_batch or 0, relation=">="))
    text = f"A batch of up to {found.max_batch} samples would fit; each sample takes {phrases.size(found.bytes_each)}."
    return _finding("batch_size", evidence, text, _BATCH)


def _word_kinds(found: MemoryFit) -> Finding:
    peak, kinds = found.peak_bytes or 0, found.kinds
    evidence = [_see(_MEMORY, "max, worst GPU", peak, "By")]
    evidence += [
        _see(_MEMORY, f"free on {kind.model}", kind.free_ratio, relation=">=" if kind.fits else "<") for kind in kinds
    ]
    fitting = [f"{kind.model} ({phrases.size(kind.memory_bytes)})" for kind in kinds if kind.fits]
    more = f" and {len(fitting) - _NAMED} larger models" if len(fitting) > _NAMED else ""
    said = f"would fit on {', '.join(fitting[:_NAMED])}{more}" if fitting else "would not fit on any GPU of known size"
    text = f"The peak of {phrases.size(peak)} on one GPU {said}, with {phrases.percent(HEADROOM.value)} left free."
    text += f" The memory of {len(found.unknown)} other models is not known." if found.unknown else ""
    return _finding("gpu_kinds", evidence, text, _KINDS if fitting else "")
