"""What is still lost in a step, and which finding is the largest left."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from gpureport.analysis.results import GPU_TIME_CLASSES, LOST_CLASSES, Analysis
from gpureport.findings import Finding, Severity


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestFinding:
    """The findings of one kind and cause in a step.

    Attributes:
        kind: name of the rule.
        cause: what lies behind them, where known.
        severity: the highest.
        devices: device ids concerned.
        fingerprints: of the findings, each once.
        runs: how many runs of the step have any.
        findings: how many there are.
        lost_gpu_seconds: GPU time lost at most, a mean over the runs of the step.
        summary: the sentence of the one that lost most.
        recommendation: what to do.
    """

    kind: str
    cause: str | None
    severity: Severity
    devices: tuple[str, ...]
    fingerprints: tuple[str, ...]
    runs: int
    findings: int
    lost_gpu_seconds: float
    summary: str
    recommendation: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemainingLoss:
    """What a step loses; amounts are means over its runs.

    Attributes:
        step: its label.
        runs: how many it has.
        held_gpu_seconds: GPU time of jobs, from first to last sample.
        unseen_gpu_seconds: of that, time without utilisation, of which nothing is known.
        pause_gpu_seconds: time in short pauses, which counts as work, though some of it may be lost.
        lost_gpu_seconds: GPU time lost, by class, the largest first.
        largest: the findings that lost most; None where none says how much.
    """

    step: str
    runs: int
    held_gpu_seconds: float
    unseen_gpu_seconds: float
    pause_gpu_seconds: float
    lost_gpu_seconds: tuple[tuple[str, float], ...]
    largest: LargestFinding | None

    @property
    def lost(self) -> float:
        """All GPU time lost, in seconds."""
        return fsum(amount for _, amount in self.lost_gpu_seconds)


def measure_remaining_loss(label: str, analyses: Sequence[Analysis]) -> RemainingLoss:
    """Return what a step loses.

    Args:
        label: of the step.
        analyses: of its runs.
    """
    seconds = _by_class(analyses)
    lost = [(name, amount) for name, amount in seconds.items() if name in LOST_CLASSES and amount > 0]
    return RemainingLoss(
        step=label,
        runs=len(analyses),
        held_gpu_seconds=fsum(amount for name, amount in seconds.items() if name != "no_job"),
        unseen_gpu_seconds=seconds.get("no_samples", 0.0),
        pause_gpu_seconds=seconds.get("short_pauses", 0.0),
        lost_gpu_seconds=tuple(sorted(lost, key=lambda each: -each[1])),
        largest=_largest(analyses),
    )


def _by_class(analyses: Sequence[Analysis]) -> dict[str, float]:
    """Return GPU-seconds of each class, a mean over runs, in the order of GPU_TIME_CLASSES."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    for analysis in analyses:
        for time in analysis.gpu_time:
            for name, amount in time.seconds:
                seconds[name].append(amount)
    order = (*GPU_TIME_CLASSES, *sorted(set(seconds) - set(GPU_TIME_CLASSES)))
    return {name: fsum(seconds[name]) / len(analyses) for name in order if name in seconds}


def _largest(analyses: Sequence[Analysis]) -> LargestFinding | None:
    """Return the kind and cause that lost most; what follows from another finding is counted there."""
    groups: defaultdict[tuple[str, str], list[tuple[int, Finding]]] = defaultdict(list)
    for place, analysis in enumerate(analyses):
        followed = {name for finding in analysis.findings for name in finding.consequences}
        for finding in analysis.findings:
            if finding.lost_gpu_seconds and finding.fingerprint not in followed:
                groups[finding.kind, finding.cause or ""].append((place, finding))
    if not groups:
        return None
    # of two that lost as much the name decides, so that the order of runs changes nothing
    most = min(groups, key=lambda name: (-_lost(groups[name]), name))
    return _left(groups[most], len(analyses))


def _lost(group: Sequence[tuple[int, Finding]]) -> float:
    return fsum(finding.lost_gpu_seconds or 0.0 for _, finding in group)


def _left(group: Sequence[tuple[int, Finding]], runs: int) -> LargestFinding:
    worst = max((finding for _, finding in group), key=lambda each: (each.lost_gpu_seconds or 0.0, each.summary))
    severities = list(Severity)
    return LargestFinding(
        kind=worst.kind,
        cause=worst.cause,
        severity=max((finding.severity for _, finding in group), key=severities.index),
        devices=tuple(sorted({device for _, finding in group for device in finding.devices})),
        fingerprints=tuple(sorted({finding.fingerprint for _, finding in group})),
        runs=len({place for place, _ in group}),
        findings=len(group),
        lost_gpu_seconds=_lost(group) / runs,
        summary=worst.summary,
        recommendation=worst.recommendation,
    )
