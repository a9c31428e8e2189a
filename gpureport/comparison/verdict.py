"""Decides which verdict the evidence on a figure supports, and how much more data is needed."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, expm1, fsum, inf, sqrt
from statistics import fmean
from typing import NamedTuple

from gpureport.comparison import estimate
from gpureport.comparison.comparable import Comparability
from gpureport.comparison.estimate import LEVEL, Basis, Ends, excludes_zero, two_sided
from gpureport.comparison.evidence import Evidence, Reason, ReasonKind, WholeRecordingFigure
from gpureport.comparison.figures import (
    BY_METRIC,
    LONG_SECONDS,
    POINTS,
    SLOW_RATIO,
    TRAINING_RATE,
    FigureRole,
    ShortRun,
)
from gpureport.comparison.steps import Step, find_resolution

_UNSEEN = 3.0  # With 5% probability, no random gap occurs within three times the mean time between gaps.
_MOST_RUNS, _MOST_NEEDED = 20, 1000  # Maximum numbers of runs to recommend and to try.


class Verdict(StrEnum):
    BETTER = "better"
    WORSE = "worse"
    DIFFERS = "differs"
    UNCONFIRMED = "unconfirmed (one run each)"
    NO_CLEAR_CHANGE = "no clear change"
    NOT_ENOUGH_DATA = "not enough data"

    @property
    def is_established(self) -> bool:
        return self in {Verdict.BETTER, Verdict.WORSE}

    @property
    def code(self) -> str:
        return self.name.lower()

    @property
    def short(self) -> str:
        return self.value.partition(" (")[0]


class Judgement(NamedTuple):
    verdict: Verdict
    reason: Reason | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Needed:
    half_width: float
    seconds: float | None
    runs: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delta:
    """Gaps rarer than one per `unseen_gap_seconds` may be missed."""

    metric: str
    unit: str
    device: str | None = None
    base: str
    step: str
    before: float | None
    after: float | None
    difference: float | None
    interval: Ends | None
    level: float | None
    basis: Basis | None
    detectable_difference: float | None
    verdict: Verdict
    reason: Reason | None
    window: str
    whole: WholeRecordingFigure
    primary: bool
    family: str | None
    runs: tuple[int, int]
    needed: Needed | None
    unseen_gap_seconds: float | None
    left_out: tuple[ShortRun, ...] = ()


def find_obstacle(checks: Sequence[Comparability], metric: str, *, same: bool) -> Judgement | None:
    failed = next((check for check in checks if check.comparable is False and metric in check.touches), None)
    # a recording that is too short cannot be compared even with itself
    if same and (failed is None or not failed.bars_itself):
        return Judgement(Verdict.NO_CLEAR_CHANGE, Reason(kind=ReasonKind.SAME_RECORDING))
    if failed is None:
        return None
    return Judgement(Verdict.NOT_ENOUGH_DATA, Reason(kind=ReasonKind.NOT_COMPARABLE, check=failed.check))


def judge(found: Evidence, level: float = LEVEL, family: int = 1) -> Judgement:
    contrast = found.contrast
    if contrast is None:
        # a mean with unknown scatter gets no verdict
        return _judge_single_runs(found) if found.lone else Judgement(Verdict.NOT_ENOUGH_DATA, found.reason)
    if not contrast.excludes_zero(level):
        if found.reason and excludes_zero(contrast.ends(level)) and not _is_within_usual_noise(found):
            return Judgement(Verdict.NOT_ENOUGH_DATA, found.reason)
        by_chance = family > 1 and contrast.excludes_zero()
        many = Reason(kind=ReasonKind.MANY_COMPARISONS, amount=family) if by_chance else None
        return Judgement(Verdict.NO_CLEAR_CHANGE, many)
    if contrast.basis is Basis.WITHIN_RUN or min(map(len, found.figures)) == 1:
        return _judge_single_runs(found)
    better = found.figure.better * contrast.difference
    return Judgement(Verdict.BETTER if better > 0 else Verdict.WORSE if better < 0 else Verdict.DIFFERS)


def _judge_single_runs(found: Evidence) -> Judgement:
    low, high = sorted(abs(value or 0.0) for value in (found.before, found.after))
    if found.lone and found.brief and high <= SLOW_RATIO * low:
        return Judgement(Verdict.NOT_ENOUGH_DATA, found.brief)
    if _is_within_usual_noise(found):
        return Judgement(Verdict.NO_CLEAR_CHANGE, Reason(kind=ReasonKind.WITHIN_USUAL_NOISE))
    return Judgement(Verdict.UNCONFIRMED, Reason(kind=ReasonKind.NOT_REPEATED))


def _is_within_usual_noise(found: Evidence) -> bool:
    before, after = found.before or 0.0, found.after or 0.0
    return abs(after - before) <= found.figure.margin(before)


def build_delta(base: Step, step: Step, found: Evidence, judgement: Judgement, *, primary: str) -> Delta:
    figure, contrast = found.figure, found.contrast
    is_training, is_primary = figure.metric == TRAINING_RATE, figure.metric == primary
    counts = (len(found.figures[0]), len(found.figures[1])) if found.left_out and all(found.figures) else None
    return Delta(
        metric=figure.metric,
        unit=figure.unit,
        base=base.label,
        step=step.label,
        before=found.before,
        after=found.after,
        difference=found.difference,
        interval=None if contrast is None else figure.clip(contrast.interval(), found.before),
        level=None if contrast is None else LEVEL,
        basis=None if contrast is None else contrast.basis,
        detectable_difference=None if contrast is None else contrast.detectable,
        verdict=judgement.verdict,
        reason=judgement.reason,
        window="training" if is_training else "steady" if found.steady else "whole",
        whole=found.whole,
        primary=is_primary,
        family="primary" if is_primary else "training" if is_training else None,
        runs=counts or (len(base.runs), len(step.runs)),
        needed=_estimate_needed_data(found),
        unseen_gap_seconds=None if found.unseen is None else found.unseen / _UNSEEN,
        left_out=found.left_out,
    )


def _estimate_needed_data(found: Evidence) -> Needed | None:
    contrast = found.contrast
    half_width = POINTS if found.figure.is_share else POINTS * abs(found.before or 0.0)
    if contrast is None or half_width == 0:
        return None
    if contrast.basis is Basis.WITHIN_RUN:
        # scatter falls with the square root of the length
        seconds = found.seconds and found.seconds * (contrast.scatter / half_width) ** 2
        seconds = max(LONG_SECONDS, seconds) if seconds and found.reason else seconds
        return Needed(half_width=half_width, seconds=seconds, runs=None)
    if contrast.half_width <= half_width:
        # the existing runs are enough
        return None
    squares = [(value - fmean(side)) ** 2 for side in found.figures for value in side]
    spread = sqrt(fsum(squares) / (len(squares) - 2))
    runs = (each for each in range(2, _MOST_NEEDED + 1) if spread * _width(each, each) <= half_width)
    return Needed(half_width=half_width, seconds=None, runs=None if contrast.least > half_width else next(runs, None))


def _width(first: int, other: int) -> float:
    return two_sided(LEVEL, first + other - 2) * sqrt(1 / first + 1 / other)


class RunInterval(NamedTuple):
    """The side that can get more runs comes first. No half-width is below `least`."""

    counts: tuple[int, int]
    half_width: float
    least: float


def measure_run_interval(delta: Delta, interval: Ends, base: Step, step: Step, *, repeat_base: bool) -> RunInterval:
    is_work = BY_METRIC[delta.metric].role is FigureRole.WORK
    least = (delta.before or 0.0) * expm1(find_resolution(base, step, delta.metric).least) if is_work else 0.0
    return RunInterval(delta.runs if repeat_base else delta.runs[::-1], (interval[1] - interval[0]) / 2, least)


def estimate_runs_for_interval(now: RunInterval, half_width: float, *, on_both: bool = False) -> int | None:
    """Return how many runs the first side needs (each side if `on_both`), or None above `_MOST_RUNS`."""
    if half_width <= 0 or now.least > half_width:
        return None
    first, other = now.counts
    unit, start = now.half_width / _width(first, other), max(now.counts) if on_both else first
    sides = ((runs, runs if on_both else other) for runs in range(start, _MOST_RUNS + 1))
    return next((runs for runs, beside in sides if unit * _width(runs, beside) <= half_width), None)


def estimate_interval_of_next_run(values: Sequence[float], finest: float, least: float) -> float:
    found = estimate.estimate_between_runs(values, [fsum(values) / len(values)], finest, least)
    return inf if found is None else found.half_width


def find_smallest_ratio(half_width: float) -> float:
    # the smallest limit on a ratio that can still be judged for a run at the upper end of the interval
    return exp(2 * half_width) - exp(half_width) if half_width < 1 else inf
