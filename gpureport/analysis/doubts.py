"""Rates the confidence of findings, and explains why kinds were not judged and what to record."""

import math
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpureport.analysis import phrases
from gpureport.findings import Amount, Confidence, NotJudged
from gpureport.recording_advice import RECORD, choose_recording

SURE_READINGS = 5  # number of readings that give high confidence
FEW_READINGS = 2  # with fewer readings, any result may be chance
COARSE_SECONDS = 60.0  # seconds; with samples this far apart, starts, ends and lengths are guesses
NOT_RECORDED, TOO_FEW, SLOW_CLOCK = "not_recorded", "too_few_samples", "slow_clock"

_SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_name("doubts.toml").read_text(encoding="utf-8"))
_RECORDINGS = {"record": RECORD, **_SAID.pop("@")}
_NAME = re.compile(r"{(\w+)}")

_RANK = list(Confidence)


def confidence_of(readings: int, interval: float = 0.0) -> Confidence:
    """Return the confidence from readings: low for a single reading, or with samples a minute apart."""
    if readings < FEW_READINGS or interval >= COARSE_SECONDS:
        return Confidence.LOW
    return Confidence.HIGH if readings >= SURE_READINGS else Confidence.MEDIUM


def lowest(*each: Confidence) -> Confidence:
    return max(each, key=_RANK.index)


def count_of(number: int, noun: str) -> Amount:
    return number, phrases.count_of(number, noun)


def unjudged(
    kind: str,
    code: str,
    device: str | None = None,
    *amounts: Amount,
    metrics: Iterable[str] = (),
    case: str = "",
    **words: str,
) -> NotJudged:
    """Return why a kind could not be judged, as worded in `doubts.toml`."""
    said = _SAID[code]
    reason, recording, *named = said if isinstance(said, list) else said.get(case or kind) or said[""]
    wanted, reason = tuple(metrics or named), _NAME.sub(lambda name: words[name[1]], reason)
    return NotJudged(
        kind=kind,
        device=device,
        reason=reason,
        recording=choose_recording(wanted) if wanted else recording.format_map(_RECORDINGS),
        template=reason if amounts else "",
        amounts=amounts,
        metrics=wanted,
        code=code,
    )


def not_recorded(kind: str, device: str | None, *metrics: str) -> NotJudged:
    what = f"{' and '.join(metrics)} {'was' if len(metrics) == 1 else 'were'}"
    return unjudged(kind, NOT_RECORDED, device, metrics=metrics, what=what)


def too_short(kind: str, covered: float, needed: float, what: str = "the recording covers") -> NotJudged:
    length = phrases.duration(covered)
    if length == phrases.duration(needed):
        # rounding would make it look equal to the required length
        length = f"{math.floor(10 * covered) / 10:.1f} s"
    return NotJudged(
        kind=kind,
        device=None,
        recording=name_length(needed),
        template=f"{what} only {{}}" if covered > 0 else "the recording covers only one moment",
        amounts=((covered, length),) if covered > 0 else (),
        needed_seconds=needed,
        code="too_short",
    )


def name_length(seconds: float) -> str:
    return f"a log of at least {phrases.duration(seconds)}"
