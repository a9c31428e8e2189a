"""Which verdict two sets of final values support: by repetitions, else by what repeating a run plausibly changes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, hypot, sqrt

from gpureport.comparison.estimate import LEVEL, estimate_between_runs
from gpureport.comparison.verdict import Verdict

VERDICT_LEVEL = 0.99
"""Level at which quality changed. It is stricter than for speed: several metrics are tried, and a warning is loud."""

_SHARE_NOISE = 0.04
"""What repeating a run plausibly changes a share by at 50% (pragmatic); less towards 0 and 1, as its deviation is."""

_PERCENT = 100.0
"""The whole in per cent."""

_RELATIVE_NOISE = 0.1
"""What repeating a run plausibly changes any other metric by, as a part of it (pragmatic)."""

_ERRORS = 2.5
"""Standard errors of final values that a difference of single runs must exceed as well (pragmatic)."""

_INDEPENDENT = 4
"""Last values that count as independent at most (pragmatic): neighbours are alike where a metric is smoothed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityDifference:
    """A difference between final values.

    Attributes:
        interval: ends of the difference at a level of 0.95; None with one run on either side.
        verdict: what may be said of it.
        margin: what single runs plausibly differ by.
    """

    interval: tuple[float, float] | None
    verdict: Verdict
    margin: float


def judge_quality(
    before: Sequence[float],
    after: Sequence[float],
    errors: tuple[float, float],
    *,
    higher_is_better: bool | None,
    full_scale: float | None,
) -> QualityDifference:
    """Return the verdict on the final values of two steps.

    Args:
        before: of each run of the earlier step.
        after: of each run of the later step.
        errors: standard errors of the final value within a run, on either side.
        higher_is_better: whether a higher value is the better one; None where not known.
        full_scale: what the whole is of a share, see `find_full_scale`; None of other metrics.
    """
    if not before or not after:
        return QualityDifference(interval=None, verdict=Verdict.NOT_ENOUGH_DATA, margin=0.0)
    noise = plausible_noise(compute_mean(before), compute_mean(after), full_scale=full_scale)
    margin = hypot(noise, _ERRORS * hypot(*errors))
    difference = compute_mean(after) - compute_mean(before)
    contrast = estimate_between_runs(before, after) if min(len(before), len(after)) > 1 else None
    if contrast is None:
        verdict = Verdict.UNCONFIRMED if abs(difference) > margin else Verdict.NO_CLEAR_CHANGE
        return QualityDifference(interval=None, verdict=verdict, margin=margin)
    if not contrast.excludes_zero(VERDICT_LEVEL) and not (abs(difference) > noise and _are_separate(before, after)):
        verdict = Verdict.NO_CLEAR_CHANGE
    elif higher_is_better is None:
        verdict = Verdict.DIFFERS
    else:
        verdict = Verdict.BETTER if (difference > 0) == higher_is_better else Verdict.WORSE
    return QualityDifference(interval=contrast.interval(LEVEL), verdict=verdict, margin=margin)


def find_failed_runs(
    before: Sequence[float], after: Sequence[float], margin: float, *, higher_is_better: bool | None
) -> tuple[float, ...]:
    """Return the final values of runs that are worse than each run before by more than a margin, the worst first.

    A step of one run has none: its verdict says it.
    """
    if not before or len(after) < 2 or higher_is_better is None:  # noqa: PLR2004 - a single run is no exception
        return ()
    if higher_is_better:
        return tuple(sorted(value for value in after if value < min(before) - margin))
    return tuple(sorted((value for value in after if value > max(before) + margin), reverse=True))


def _are_separate(before: Sequence[float], after: Sequence[float]) -> bool:
    return max(before) < min(after) or max(after) < min(before)


def compute_mean(values: Sequence[float]) -> float:
    """Return the mean of some values."""
    return fsum(values) / len(values)


def compute_final_error(spread: float | None, count: int) -> float:
    """Return the standard error of a final value, by the spread of so many last values; 0 where it is not known."""
    return 0.0 if spread is None else spread / sqrt(min(count, _INDEPENDENT))


def find_full_scale(values: Iterable[float], *, higher_is_better: bool | None) -> float | None:
    """Return 1 of a metric such as an accuracy that is recorded as a share, 100 of one in per cent, None of others."""
    known = list(values)
    if higher_is_better is not True or not known or min(known) < 0 or max(known) > _PERCENT:
        return None
    return 1.0 if max(known) <= 1 else _PERCENT


def plausible_noise(before: float, after: float, *, full_scale: float | None) -> float:
    """Return what repeating a run plausibly changes a metric by, whatever changed between two steps besides."""
    if full_scale is not None:
        mean = (before + after) / 2 / full_scale
        return full_scale * 2 * _SHARE_NOISE * sqrt(max(mean * (1 - mean), 0.0))
    return _RELATIVE_NOISE * max(abs(before), abs(after))
