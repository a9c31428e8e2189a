"""Findings over several runs: how work scales with GPUs, what batch fits, and which kinds of GPU would do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.analysis import phrases
from gpureport.comparison.across_runs.across_runs import BatchDoubt, BatchSize, Scaling, largest_batch, scaling
from gpureport.comparison.across_runs.memory_fit import HEADROOM, MemoryFit, memory_fits
from gpureport.comparison.steps import Step
from gpureport.findings import Confidence, Evidence, Finding, Severity

SCALING, BATCH_SIZE, GPU_KINDS = "scaling", "batch_size", "gpu_kinds"
"""Kinds of findings over several runs."""

_NAMED = 3
"""Kinds of GPU that are named, the smallest of those which would do."""
BATCH_DOUBTS = {
    BatchDoubt.PREALLOCATED: "Memory was taken in advance, so its peak says nothing about the batch.",
    BatchDoubt.PRECISION_DIFFERS: "The runs differ in precision, and so in what a sample takes of memory.",
    BatchDoubt.NO_GROWTH: "Peak memory did not grow with the batch.",
}
"""Why peak memory does not tell the largest batch."""
_MEMORY = "gpu_memory_used_bytes"
_SCALE = (
    "Compare the cost per unit of work: fewer GPUs may be cheaper and hardly slower. Where more are needed, look at "
    "what GPUs wait for: communication, a batch too small for each, input that does not keep up."
)
_BATCH = (
    "Raise the batch in steps towards it, scale the learning rate, and watch loss and work per GPU-hour; memory need "
    "not go on growing evenly."
)
_KINDS = "Compare the cost per unit of work on one of them before moving: memory says nothing about how fast it is."


@dataclass(frozen=True, slots=True, kw_only=True)
class AcrossFinding:
    """A finding over several runs.

    Attributes:
        finding: what is said, in the form findings of one run have.
        steps: labels of the steps it rests on.
        content: the figures themselves.
    """

    finding: Finding
    steps: tuple[str, ...]
    content: Scaling | BatchSize | MemoryFit


def across_findings(steps: Sequence[Step]) -> tuple[AcrossFinding, ...]:
    """Return everything that several runs, or the memory of a step, say together; as information, never as a fault."""
    return tuple(_build_across_findings(steps))


def _build_across_findings(steps: Sequence[Step]) -> Iterator[AcrossFinding]:
    for scaled in scaling(steps):
        yield AcrossFinding(finding=_scaled(scaled), steps=(scaled.base, scaled.step), content=scaled)
    batch = largest_batch(steps)
    if batch is not None:
        yield AcrossFinding(finding=_batch(batch), steps=tuple(step.label for step in steps), content=batch)
    for fit in memory_fits(steps):
        if fit.kinds and not fit.reason:
            yield AcrossFinding(finding=_fitting(fit), steps=(fit.step,), content=fit)


def _finding(kind: str, sure: Confidence, evidence: tuple[Evidence, ...], summary: str, advice: str) -> Finding:
    return Finding(
        kind=kind,
        severity=Severity.INFO,
        confidence=sure,
        devices=(),
        intervals=(),
        evidence=evidence,
        lost_gpu_seconds=None,
        summary=summary,
        recommendation=advice,
    )


def _scaled(found: Scaling) -> Finding:
    few, many = found.gpus
    evidence = [
        Evidence(
            metric="work_per_gpu_second",
            statistic=f"of {many} GPUs, of that of {few}",
            observed=found.efficiency,
            unit="1",
        )
    ]
    for place, name in enumerate(("lower", "upper") if found.interval else ()):
        observed = found.interval[place] if found.interval else 0.0
        evidence.append(
            Evidence(
                metric="work_per_gpu_second", statistic=f"{name} end of the 95% interval", observed=observed, unit="1"
            )
        )
    return _finding(
        SCALING,
        Confidence.MEDIUM if found.interval else Confidence.LOW,
        tuple(evidence),
        f"In training, {many} GPUs instead of {few} do {phrases.percent(found.efficiency)} of the work per GPU-second.",
        _SCALE,
    )


def _batch(found: BatchSize) -> Finding:
    evidence = [
        Evidence(
            metric=_MEMORY, statistic="peak that one more in the batch adds", observed=found.bytes_each, unit="By"
        ),
        Evidence(metric=_MEMORY, statistic="peak of a batch of none", observed=found.fixed_bytes, unit="By"),
    ]
    if found.reason is not None:
        return _finding(BATCH_SIZE, Confidence.LOW, tuple(evidence), BATCH_DOUBTS[found.reason], "")
    largest = Evidence(
        metric="max_batch",
        statistic=f"largest that leaves {phrases.percent(HEADROOM.value)} of the memory free",
        observed=float(found.max_batch or 0),
        unit="1",
        threshold=HEADROOM,
        relation=">=",
    )
    return _finding(
        BATCH_SIZE,
        Confidence.MEDIUM,
        (largest, *evidence),
        f"A batch of up to {found.max_batch} would fit; one more in it takes {phrases.size(found.bytes_each)}.",
        _BATCH,
    )


def _fitting(found: MemoryFit) -> Finding:
    peak = Evidence(metric=_MEMORY, statistic="max, worst GPU", observed=float(found.peak_bytes or 0), unit="By")
    free = [
        Evidence(
            metric=_MEMORY,
            statistic=f"free on {kind.model}",
            observed=kind.free_ratio,
            unit="1",
            threshold=HEADROOM,
            relation=">=" if kind.fits else "<",
        )
        for kind in found.kinds
    ]
    fitting = [kind.model for kind in found.kinds if kind.fits]
    more = f" and {len(fitting) - _NAMED} kinds with more" if len(fitting) > _NAMED else ""
    said = f"would fit {', '.join(fitting[:_NAMED])}{more}" if fitting else "would fit no kind whose memory is known"
    return _finding(
        GPU_KINDS,
        Confidence.MEDIUM,
        (peak, *free),
        f"The peak of {phrases.size(found.peak_bytes or 0)} {said}, with {phrases.percent(HEADROOM.value)} left free.",
        _KINDS if fitting else "",
    )
