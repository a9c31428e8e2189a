"""Decides which setting of a trial is best, from the runs of each round.

The logarithms of values follow a linear model of setting and round, so that a drift from round to round cancels. Since
any setting may turn out best, differences from the best one are judged by Tukey's studentized range. Settings that are
clearly worse leave the family, and the others are judged again. All looks at a trial share one chance of error, of
which later looks receive more. A drift within rounds cancels if each even round reverses the order of the last one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import ceil, fsum, log, sqrt
from statistics import fmean, geometric_mean

import numpy as np

from gpureport.comparison.estimate import DifferenceEstimate, Ends
from gpureport.comparison.figures import FINEST_RATIO
from gpureport.comparison.study import LinearModel
from gpureport.comparison.verdict import Verdict

Setting = tuple[tuple[str, str], ...]
"""The name and value of each factor."""
FIRST_LOOK = 2
"""The round after which settings are first compared, as one round shows no scatter."""
INTERRUPTED = "interrupted"
_ERROR, _SPENDING = 0.03, 3
"""The chance that a trial makes a false claim, and the power of the share of rounds by which looks receive it.

Less than 5%, since up to 5% of simulated trials make a false claim if one setting scatters twice as much as the others.
"""
_SLOW_START = 0.999  # Level at which the first run of a trial differs too much from the others to count.


class DecisionReason(StrEnum):
    """Why no setting was chosen, or why one was chosen without comparison."""

    NO_CLEAR_BEST = "no_clear_best"
    TOO_FEW_ROUNDS = "too_few_rounds"
    ALL_FAILED = "all_failed"
    QUALITY = "quality"
    BASE_ONLY = "base_only"
    ONLY_ONE_LEFT = "only_one_left"


_SINGLE = {DecisionReason.BASE_ONLY, DecisionReason.ONLY_ONE_LEFT}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRun:
    """One run. `started` is in microseconds, and `value` is its speed or, if less is better, its duration.

    A `failure` excludes the setting, except that an interrupted run counts only in the GPU time.
    """

    setting: Setting
    round: int
    folder: str
    started: int
    seconds: float
    gpu_seconds: float | None = None
    exit_code: int = 0
    value: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingResult:
    """A setting and its relative change from the base. `tied` settings may be as good as the best one."""

    setting: Setting
    rounds: int
    value: float | None = None
    change: float | None = None
    interval: Ends | None = None
    verdict: Verdict | None = None
    tied: bool = False
    dropped_after: int | None = None
    failure: str | None = None
    quality_fell: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """The relative difference of the best setting from the next best."""

    over: Setting
    change: float
    interval: Ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Saving:
    """The share of GPU time that the chosen setting saves for the same work, and when this has paid for the trial."""

    share: float
    interval: Ends
    gpu_seconds_per_run: float | None = None
    payback_runs: int | None = None
    payback_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    base: Setting
    chosen: Setting | None
    reason: DecisionReason | None
    best: Setting | None  # with the best estimate, even if others may be as good
    margin: Margin | None
    saving: Saving | None
    settings: tuple[SettingResult, ...]
    gpu_seconds: float | None
    runs: tuple[TriedRun, ...]  # in order of time

    @property
    def tied(self) -> tuple[Setting, ...]:
        return tuple(each.setting for each in self.settings if each.tied)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ranking:
    order: tuple[Setting, ...]  # from best to worst
    tied: frozenset[Setting]
    levels: dict[Setting, float]  # at which each setting was compared with the best one
    family_level: float


def decide(
    runs: Sequence[TriedRun], base: Setting, better: int, looks: int, refused: Collection[Setting] = ()
) -> Decision:
    """Return the decision. `looks` is the number of planned rounds from the second on.

    The quality of `refused` settings is too low for them to be chosen.
    """
    counted, ranking = _select_counted(runs), _rank(runs, better, looks, refused)
    results = judge_settings(runs, base, better, looks, refused)
    left = dict.fromkeys(run.setting for run in counted if run.setting not in refused)
    best = ranking.order[0] if ranking else next(iter(left)) if len(left) == 1 else None
    reason = None
    if not left:
        reason = DecisionReason.QUALITY if counted else DecisionReason.ALL_FAILED
    elif len(left) == 1:
        reason = DecisionReason.BASE_ONLY if best == base else DecisionReason.ONLY_ONE_LEFT
    elif ranking is None:
        reason = DecisionReason.TOO_FEW_ROUNDS
    elif len(ranking.tied) > 1:
        reason = DecisionReason.NO_CLEAR_BEST
    chosen, margin = best if reason is None or reason in _SINGLE else None, None
    if ranking:
        found, level = _compare_with(counted, ranking.order[1])[ranking.order[0]], ranking.levels[ranking.order[1]]
        margin = Margin(over=ranking.order[1], change=found.difference, interval=found.interval(level))
    known = [run.gpu_seconds for run in runs if run.gpu_seconds is not None]
    spent = fsum(known) if known else None
    result = next((each for each in results if each.setting == chosen), None)
    return Decision(
        base=base,
        chosen=chosen,
        reason=reason,
        best=best,
        margin=margin,
        saving=_measure_saving(result, counted, base, better, spent) if result else None,
        settings=results,
        gpu_seconds=spent,
        runs=tuple(sorted(runs, key=lambda run: run.started)),
    )


def judge_settings(
    runs: Sequence[TriedRun], base: Setting, better: int, looks: int, refused: Collection[Setting] = ()
) -> tuple[SettingResult, ...]:
    """Return the result of each setting, the base first, then in the order in which they first ran."""
    counted, ranking, failures = _select_counted(runs), _rank(runs, better, looks, refused), _list_failures(runs)
    changes = _compare_with(counted, base) if ranking and base in {run.setting for run in counted} else {}
    last, results = max((run.round for run in runs), default=0), []
    for setting in dict.fromkeys(
        run.setting for run in sorted(runs, key=lambda run: (run.setting != base, run.started))
    ):
        own = [run for run in runs if run.setting == setting and run.value and not run.failure]
        rounds, failure = max((run.round for run in own), default=0), failures.get(setting)
        result = SettingResult(
            setting=setting,
            rounds=len(own),
            value=geometric_mean([run.value for run in own if run.value]) if own else None,
            tied=ranking is not None and setting in ranking.tied,
            dropped_after=rounds if FIRST_LOOK <= rounds < last and not failure else None,
            failure=failure,
            quality_fell=setting in refused,
        )
        if ranking and (found := changes.get(setting)):
            level = _find_pair_level(ranking, setting, base)
            gain = found.change * better if found.excludes_zero(level) else 0.0
            verdict = Verdict.BETTER if gain > 0 else Verdict.WORSE if gain < 0 else Verdict.NO_CLEAR_CHANGE
            result = replace(result, change=found.difference, interval=found.interval(level), verdict=verdict)
        elif setting != base and not failure:
            result = replace(result, verdict=Verdict.NOT_ENOUGH_DATA)
        results.append(result)
    return tuple(results)


def find_dropped(
    runs: Sequence[TriedRun], better: int, looks: int, refused: Collection[Setting] = ()
) -> tuple[Setting, ...]:
    """Return the settings not to run again, given all runs of the rounds so far, of which each is complete."""
    ranking = _rank(runs, better, looks, refused)
    worse = [each for each in ranking.order if each not in ranking.tied] if ranking else []
    return tuple(dict.fromkeys([*_list_failures(runs), *worse, *(refused if ranking else ())]))


def _list_failures(runs: Sequence[TriedRun]) -> dict[Setting, str]:
    return {run.setting: run.failure for run in runs if run.failure and run.failure != INTERRUPTED}


def _select_counted(runs: Sequence[TriedRun]) -> list[TriedRun]:
    failed = _list_failures(runs)
    return [run for run in runs if run.value and not run.failure and run.setting not in failed]


def _rank(runs: Sequence[TriedRun], better: int, looks: int, refused: Collection[Setting]) -> _Ranking | None:
    counted = _select_counted(runs)
    allowed = list(dict.fromkeys(run.setting for run in counted if run.setting not in refused))
    last = max((run.round for run in counted), default=0)
    gaps = _compare_with(counted, allowed[0]) if len(allowed) > 1 and last >= FIRST_LOOK else {}
    if not gaps:
        return None
    order = sorted(allowed, key=lambda each: -better * (gaps[each].change if each in gaps else 0.0))
    gaps, tied, levels = _compare_with(counted, order[0]), frozenset(order), dict[Setting, float]()
    degrees, error = gaps[order[1]].degrees, _spend_error(last, looks + 1)
    while len(tied) > 1:
        level = _find_level(len(tied), degrees, error)
        worse = {each for each in tied if each in gaps and gaps[each].excludes_zero(level)}
        levels |= dict.fromkeys(worse or tied, level)
        if not worse:
            break
        tied -= worse
    family_level = _find_level(len({run.setting for run in counted}), degrees, error)
    return _Ranking(order=tuple(order), tied=tied, levels=levels, family_level=family_level)


def _compare_with(runs: Sequence[TriedRun], reference: Setting) -> dict[Setting, DifferenceEstimate]:
    """Return each setting's difference from the reference, or nothing if the runs do not show their scatter."""
    settings, rounds = (
        list(dict.fromkeys(each)) for each in zip(*((run.setting, run.round) for run in runs), strict=True)
    )
    settings.sort(key=lambda setting: setting != reference)
    values = np.array([log(run.value) for run in runs if run.value])
    levels = tuple(settings.index(run.setting) for run in runs), tuple(rounds.index(run.round) for run in runs)
    # start-up and empty caches may slow down the first run of a trial, which would hide differences
    first = min(run.started for run in runs)
    model = LinearModel(levels=(*levels, tuple(int(run.started == first) for run in runs)), values=values)
    if not (model.degrees >= 1 and model.is_estimable(2) and model.effect(2, 1).excludes_zero(_SLOW_START)):
        model = LinearModel(levels=levels, values=values)
    if model.degrees < 1 or not model.is_estimable(0):
        return {}
    return {setting: model.effect(0, place, FINEST_RATIO, 1.0) for place, setting in enumerate(settings) if place}


def _spend_error(done: int, planned: int) -> float:
    now, before = ((min(each, planned) / planned) ** _SPENDING for each in (done, done - 1))
    return _ERROR * (now - (before if done > FIRST_LOOK else 0.0))


@cache
def _find_level(settings: int, degrees: float, error: float) -> float:
    """Return the level at which Student's interval is as wide as Tukey's."""
    from scipy import special, stats

    reach = stats.studentized_range.ppf(1 - error, settings, degrees) / sqrt(2)
    return float(2 * special.stdtr(degrees, reach) - 1)


def _find_pair_level(ranking: _Ranking, one: Setting, other: Setting) -> float:
    best = ranking.order[0]
    return ranking.levels.get(other if one == best else one if other == best else (), ranking.family_level)


def _measure_saving(
    result: SettingResult, runs: Sequence[TriedRun], base: Setting, better: int, spent: float | None
) -> Saving | None:
    if result.verdict is not Verdict.BETTER or result.change is None or result.interval is None:
        return None
    before, after = ([run for run in runs if run.setting == setting] for setting in (base, result.setting))
    gpus = [
        fsum(run.gpu_seconds or 0.0 for run in side) / fsum(run.seconds for run in side) for side in (before, after)
    ]
    ratio = gpus[1] / gpus[0] if min(gpus) > 0 else 1.0
    share, *ends = (1 - ratio * (1 + change) ** -better for change in (result.change, *result.interval))
    saving = Saving(share=share, interval=(min(ends), max(ends)))
    if not spent or min(gpus) <= 0 or share <= 0:
        return saving
    per_run = share * fmean(run.gpu_seconds or 0.0 for run in before)
    after_seconds = spent / gpus[1] * (1 - share) / share
    return replace(
        saving, gpu_seconds_per_run=per_run, payback_runs=ceil(spent / per_run), payback_seconds=after_seconds
    )
