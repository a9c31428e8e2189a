"""Idle gaps that recur at one period, as one finding with the gaps as its consequences."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.analysis.detectors.idle import periodicity
from gpureport.analysis.detectors.idle.gap_causes import Cause
from gpureport.analysis.job import training_signs
from gpureport.analysis.rules import certainty, phrases
from gpureport.analysis.rules.evidence import compare_with_limit
from gpureport.analysis.rules.kinds import KINDS
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series import intervals
from gpureport.findings import Confidence, Evidence, Finding, Interval, Severity, Threshold

NON_PERIODIC_CAUSES = ("data", "hang", "peers busy", "unused", training_signs.REQUESTS)
"""Causes of gaps that are no part of a period."""
_SAME = 0.04
"""How far the periods of two GPUs may differ and still be one."""
_NAMED = {
    "checkpoint": "at checkpoints",
    "epoch": "at the end of an epoch or in an evaluation",
    "io": "waiting for storage",
}
"""What a GPU that stalls waits for, by cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stall:
    """Gaps of one or several GPUs that recur at one period."""

    devices: tuple[str, ...]
    gaps: tuple[Finding, ...]
    seconds: float
    agreeing_share: float
    gap_count: int
    occurrences: int

    @property
    def lost_gpu_seconds(self) -> float:
        """GPU-seconds of its gaps."""
        return sum(gap.lost_gpu_seconds or 0.0 for gap in self.gaps)

    @property
    def mean_gap_seconds(self) -> float:
        """Mean length of a gap in seconds."""
        return self.lost_gpu_seconds / len(self.gaps)

    @property
    def cause(self) -> str:
        """The commonest cause of its gaps."""
        return Counter(gap.cause or "periodic" for gap in self.gaps).most_common(1)[0][0]


def find_stalls(context: Context, gaps: Sequence[Finding]) -> list[Stall]:
    """Return the stalls; GPUs with the same period share one. In the order of the GPUs."""
    stalls: list[Stall] = []
    by_device: dict[tuple[str, ...], list[Finding]] = {}
    for gap in gaps:
        by_device.setdefault(gap.devices, []).append(gap)
    for device in context.gpus():
        stall = _find_stall(device, by_device.get((device,), ()))
        if stall is None:
            continue
        matching = next((old for old in stalls if abs(old.seconds - stall.seconds) <= _SAME * old.seconds), None)
        if matching is None:
            stalls.append(stall)
        else:
            stalls[stalls.index(matching)] = _join_stalls(matching, stall)
    return stalls


def _find_stall(device: str, gaps: Sequence[Finding]) -> Stall | None:
    own = sorted((gap for gap in gaps if gap.cause not in NON_PERIODIC_CAUSES), key=lambda gap: gap.intervals)
    period = periodicity.find_period(np.array([gap.intervals[0].start for gap in own], dtype=np.int64))
    if period is None:
        return None
    members = tuple(gap for gap, member in zip(own, period.members, strict=True) if member)
    return Stall(
        devices=(device,),
        gaps=members,
        seconds=period.seconds,
        agreeing_share=period.agreeing,
        gap_count=len(own),
        occurrences=len(members),
    )


def _join_stalls(one: Stall, other: Stall) -> Stall:
    shares = len(one.devices), len(other.devices)
    least = min(one, other, key=lambda each: each.agreeing_share)
    return Stall(
        devices=one.devices + other.devices,
        gaps=one.gaps + other.gaps,
        seconds=float(np.average([one.seconds, other.seconds], weights=shares)),
        agreeing_share=least.agreeing_share,
        gap_count=least.gap_count,
        occurrences=max(one.occurrences, other.occurrences),
    )


def mark_periodic(gaps: Sequence[Interval], causes: list[Cause]) -> list[Cause]:
    """Return the causes of gaps, with `periodic` for unknown causes of gaps that recur."""
    places = [place for place, cause in enumerate(causes) if cause.name not in NON_PERIODIC_CAUSES]
    period = periodicity.find_period(np.array([gaps[place].start for place in places], dtype=np.int64))
    if period is None:
        return causes
    members = {place for place, member in zip(places, period.members, strict=True) if member}
    return [
        Cause(name="periodic") if place in members and cause.name == "unknown" else cause
        for place, cause in enumerate(causes)
    ]


def build_stall_finding(
    context: Context, stall: Stall, share: float, severity: Severity, least_agreement: Threshold
) -> Finding:
    """Return the finding of a stall."""
    cause_name = _NAMED.get(stall.cause)
    step = max(context.series[device].interval for device in stall.devices)
    confidence = certainty.confidence_by_readings(stall.occurrences - 1, step)
    whose = phrases.gpu_names(stall.devices, tuple(context.gpus()))
    return Finding(
        kind="periodic_stall",
        severity=severity,
        confidence=confidence if cause_name else certainty.lowest_confidence(confidence, Confidence.MEDIUM),
        devices=stall.devices,
        intervals=intervals.to_intervals(intervals.to_spans(gap.intervals[0] for gap in stall.gaps)),
        evidence=_build_evidence(stall, share, least_agreement),
        lost_gpu_seconds=stall.lost_gpu_seconds,
        cause=stall.cause if cause_name else None,
        consequences=tuple(dict.fromkeys(gap.fingerprint for gap in stall.gaps)),
        samples=sum(gap.samples for gap in stall.gaps),
        ruled_out=("chance: the distances between starts are multiples of one period",),
        period_seconds=stall.seconds,
        summary=(
            f"{phrases.capitalize(whose)} stalled every {phrases.duration(stall.seconds)} for about "
            f"{phrases.duration(stall.mean_gap_seconds)}, {phrases.percent(share)} of the job"
            + (f", {cause_name}." if cause_name else "; the log doesn't show why.")
        ),
        recommendation=KINDS["periodic_stall"].advice[stall.cause if cause_name else "periodic"],
    )


def _build_evidence(stall: Stall, share: float, agree: Threshold) -> tuple[Evidence, ...]:
    return (
        Evidence(metric="period", statistic="mean distance of starts", observed=stall.seconds, unit="s"),
        compare_with_limit(
            "distances of starts", "share that are multiples of the period", stall.agreeing_share, ">=", agree
        ),
        Evidence(metric="idle time", statistic="mean of one period", observed=stall.mean_gap_seconds, unit="s"),
        Evidence(metric="idle time", statistic="share of the job", observed=share, unit="1"),
    )
