"""Confidence of findings; and entries for kinds that could not be judged, with what to record instead."""

import math
from collections.abc import Iterable
from dataclasses import replace

from gpureport.analysis import phrases
from gpureport.findings import Amount, Confidence, NotJudged
from gpureport.recording_advice import choose_recording

SURE_READINGS = 5  # readings that give high confidence
FEW_READINGS = 2  # with fewer readings anything may be chance
COARSE_SECONDS = 60.0  # seconds; with samples this far apart, edges and lengths are guesses
NOT_RECORDED, TOO_FEW_SAMPLES = "not_recorded", "too_few_samples"
MEMORY_RESERVED, NO_TIMES = "memory_reserved_at_once", "no_timestamps"
CLOSER = "a log with samples 5 s apart or less"

_RANK = list(Confidence)


def confidence_of(readings: int, interval: float = 0.0) -> Confidence:
    """Return the confidence for a number of readings; it is low for one reading, or for samples a minute apart."""
    if readings < FEW_READINGS or interval >= COARSE_SECONDS:
        return Confidence.LOW
    return Confidence.HIGH if readings >= SURE_READINGS else Confidence.MEDIUM


def lowest(*each: Confidence) -> Confidence:
    return max(each, key=_RANK.index)


def count_of(number: int, noun: str) -> Amount:
    return number, phrases.count_of(number, noun)


def denied(kind: str, code: str, reason: str, recording: str, device: str | None = None) -> NotJudged:
    return NotJudged(kind=kind, device=device, reason=reason, recording=recording, code=code)


def unjudged(
    kind: str, device: str | None, reason: str, metrics: Iterable[str], *amounts: Amount, code: str
) -> NotJudged:
    wanted = tuple(metrics)
    entry = denied(kind, code, reason, choose_recording(wanted), device)
    return replace(entry, template=reason if amounts else "", amounts=amounts, metrics=wanted)


def not_recorded(kind: str, device: str | None, *metrics: str) -> NotJudged:
    reason = f"{' and '.join(metrics)} {'was' if len(metrics) == 1 else 'were'} not recorded"
    return unjudged(kind, device, reason, metrics, code=NOT_RECORDED)


def implausible(kind: str, device: str | None, metric: str) -> NotJudged:
    reason = f"{metric} was recorded, but cannot be right"
    return denied(kind, "implausible_readings", reason, "the same by another tool, such as DCGM", device)


def too_short(kind: str, covered: float, needed: float, what: str = "the recording covers") -> NotJudged:
    length = phrases.duration(covered)
    if length == phrases.duration(needed):
        # rounding would make it look equal to the required length
        length = f"{math.floor(10 * covered) / 10:.1f} s"
    return NotJudged(
        kind=kind,
        device=None,
        recording=name_length(needed),
        template=f"{what} only {{}}" if covered > 0 else "the recording holds only one moment",
        amounts=((covered, length),) if covered > 0 else (),
        needed_seconds=needed,
        code="too_short",
    )


def too_few(kind: str, readings: int) -> NotJudged:
    return NotJudged(
        kind=kind,
        device=None,
        template="the recording holds only {} of each GPU",
        amounts=(count_of(readings, "sample"),),
        recording="a log of the whole job, with samples 5 s apart or less",
        code=TOO_FEW_SAMPLES,
    )


def name_length(seconds: float) -> str:
    return f"a log of at least {phrases.duration(seconds)}"
