"""What to record so that a question can be answered next time."""

import math
from collections.abc import Iterable

from gpureport.analysis import phrases
from gpureport.findings import Amount, NotJudged
from gpureport.recording_advice import choose_recording

GPU_LOG_METRICS = ("gpu_utilization_ratio", "gpu_memory_used_bytes")
"""What the least log of GPUs holds."""

NOT_RECORDED = "not_recorded"
TOO_SHORT = "too_short"
TOO_FEW_SAMPLES = "too_few_samples"
MEMORY_RESERVED = "memory_reserved_at_once"
NO_TIMES = "no_timestamps"


def count_of(number: int, noun: str) -> Amount:
    """Return a count for a sentence; `noun` is a singular."""
    return number, phrases.count_of(number, noun)


def denied(kind: str, code: str, reason: str, recording: str, device: str | None = None) -> NotJudged:
    return NotJudged(kind=kind, device=device, reason=reason, recording=recording, code=code)


def unjudged(
    kind: str, device: str | None, reason: str, metrics: Iterable[str], *amounts: Amount, code: str
) -> NotJudged:
    """Return that a kind cannot be judged on a device, or the whole run; the reason has `{}` for each amount."""
    wanted = tuple(metrics)
    return NotJudged(
        kind=kind,
        device=device,
        reason=reason,
        recording=choose_recording(wanted),
        template=reason if amounts else "",
        amounts=amounts,
        metrics=wanted,
        code=code,
    )


def not_recorded(kind: str, device: str | None, *metrics: str) -> NotJudged:
    reason = f"{' and '.join(metrics)} {'was' if len(metrics) == 1 else 'were'} not recorded"
    return unjudged(kind, device, reason, metrics, code=NOT_RECORDED)


def implausible(kind: str, device: str | None, metric: str) -> NotJudged:
    reason = f"{metric} was recorded, but cannot be right"
    return denied(kind, "implausible_readings", reason, "the same by another tool, such as DCGM", device)


def too_short(kind: str, covered: float, needed: float, what: str = "the recording covers") -> NotJudged:
    length = phrases.duration(covered)
    if length == phrases.duration(needed):
        # rounded to what is needed, it would deny itself
        length = f"{math.floor(10 * covered) / 10:.1f} s"
    return NotJudged(
        kind=kind,
        device=None,
        recording=name_length(needed),
        template=f"{what} only {{}}" if covered > 0 else "the recording holds only one moment",
        amounts=((covered, length),) if covered > 0 else (),
        needed_seconds=needed,
        code=TOO_SHORT,
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
