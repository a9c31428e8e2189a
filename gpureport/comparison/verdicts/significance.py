"""Which verdict the evidence on a figure of two steps supports."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.comparison.statistics.difference_estimate import (
    LEVEL,
    Basis,
    estimate_runs_needed,
    estimate_seconds_needed,
)
from gpureport.comparison.statistics.slow_changes import RATIO_ALLOWANCE
from gpureport.comparison.steps.compared_figures import POINTS
from gpureport.comparison.steps.steps import Needed, Verdict
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind
from gpureport.comparison.verdicts.comparability import Comparability, find_barrier
from gpureport.comparison.verdicts.figure_evidence import Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class SignificanceResult:
    """A verdict, and the reason why it is not a surer one; None where it is certain."""

    verdict: Verdict
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a figure is tested.

    Attributes:
        level: at which its interval must exclude zero.
        family: how many comparisons that level allows for.
    """

    level: float = LEVEL
    family: int = 1


def compute_holm_levels(tested: Sequence[Evidence]) -> list[float]:
    """Return for each comparison of a family the level at which it was tested.

    Step by step after S. Holm (1979): the surest must hold at 1 - 0.05/m, the next at 1 - 0.05/(m - 1), until one
    does not; so the chance of any false claim stays at 5%.
    """
    left = list(range(len(tested)))
    levels = [LEVEL] * len(tested)
    while left:
        level = 1 - (1 - LEVEL) / len(left)
        shown = [place for place in left if _excludes(tested[place], level)]
        for place in shown or left:
            levels[place] = level
        if not shown:
            break
        left = [place for place in left if place not in shown]
    return levels


def _excludes(evidence: Evidence, level: float) -> bool:
    return evidence.contrast is not None and evidence.contrast.excludes_zero(level)


def find_obstacle(checks: Sequence[Comparability], metric: str, *, same: bool) -> SignificanceResult | None:
    """Return the verdict on a figure that must not be compared; None where it may be.

    Args:
        checks: what must agree between the two steps.
        metric: name of the figure.
        same: whether the same recordings stand on both sides.
    """
    failed = find_barrier(checks, metric)
    # what is too short to compare is so with itself, too
    if same and (failed is None or not failed.bars_itself):
        return SignificanceResult(verdict=Verdict.NO_CLEAR_CHANGE, reason=Reason(kind=ReasonKind.SAME_RECORDING))
    if failed is None:
        return None
    return SignificanceResult(
        verdict=Verdict.NOT_ENOUGH_DATA, reason=Reason(kind=ReasonKind.NOT_COMPARABLE, check=failed.check)
    )


def judge_difference(evidence: Evidence, trial: Trial) -> SignificanceResult:
    """Return the verdict on a figure that may be compared."""
    contrast = evidence.contrast
    if contrast is None:
        return _without_interval(evidence)
    if not contrast.excludes_zero(trial.level):
        scatter = contrast.scatter
        if scatter and scatter.excludes_zero(trial.level) and not _is_within_usual_noise(evidence):
            return SignificanceResult(verdict=Verdict.NOT_ENOUGH_DATA, reason=evidence.reason)
        chance = trial.family > 1 and contrast.excludes_zero()
        many = Reason(kind=ReasonKind.MANY_COMPARISONS, amount=trial.family) if chance else None
        return SignificanceResult(verdict=Verdict.NO_CLEAR_CHANGE, reason=many)
    if contrast.basis is Basis.WITHIN_RUN or min(map(len, evidence.figures)) == 1:
        return _pair(evidence)
    better = evidence.figure.better * contrast.difference
    verdict = Verdict.BETTER if better > 0 else Verdict.WORSE if better < 0 else Verdict.DIFFERS
    return SignificanceResult(verdict=verdict)


def _without_interval(evidence: Evidence) -> SignificanceResult:
    """Judge one figure a run by what repetitions commonly differ by; a mean without its scatter not at all."""
    if not evidence.lone:
        return SignificanceResult(verdict=Verdict.NOT_ENOUGH_DATA, reason=evidence.reason)
    return _pair(evidence)


def _pair(evidence: Evidence) -> SignificanceResult:
    """Judge a run without repetition: it differs, unconfirmed, by more than repeating commonly changes."""
    if evidence.lone and evidence.brief and _is_within_allowance(evidence):
        return SignificanceResult(verdict=Verdict.NOT_ENOUGH_DATA, reason=evidence.brief)
    if _is_within_usual_noise(evidence):
        return SignificanceResult(verdict=Verdict.NO_CLEAR_CHANGE, reason=Reason(kind=ReasonKind.WITHIN_USUAL_NOISE))
    return SignificanceResult(verdict=Verdict.UNCONFIRMED, reason=Reason(kind=ReasonKind.NOT_REPEATED))


def _is_within_usual_noise(evidence: Evidence) -> bool:
    """Whether a difference is no larger than what repeating a run commonly changes."""
    before, after = evidence.before or 0.0, evidence.after or 0.0
    return abs(after - before) <= evidence.figure.margin(before)


def _is_within_allowance(evidence: Evidence) -> bool:
    """Whether one value a run differs by no more than slow changes let short recordings differ."""
    low, high = sorted(abs(value or 0.0) for value in (evidence.before, evidence.after))
    return high <= RATIO_ALLOWANCE * low


def estimate_needed_data(evidence: Evidence) -> Needed | None:
    """Return what would narrow the interval to two points, or two per cent; None without one, or where runs do so."""
    contrast = evidence.contrast
    if contrast is None:
        return None
    points = evidence.figure.is_share
    half_width = POINTS if points else POINTS * abs(evidence.before or 0.0)
    if half_width == 0:
        return None
    if contrast.basis is Basis.REPLICATES:
        if contrast.half_width <= half_width:
            # fewer runs than there are would tell no scatter
            return None
        runs = None if contrast.least > half_width else estimate_runs_needed(*evidence.figures, half_width)
        return Needed(half_width=half_width, seconds=None, runs=runs)
    seconds = evidence.seconds and estimate_seconds_needed(contrast, evidence.seconds, half_width)
    return Needed(half_width=half_width, seconds=seconds, runs=None)
