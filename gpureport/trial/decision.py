"""Measures the runs of a trial, and decides which setting is best.

The logarithms of values follow a linear model of setting and round, so that a drift from round to round cancels. Since
any setting may turn out best, differences from the best one are judged by Tukey's studentized range. Settings that are
clearly worse are dropped, and the others are judged again. All looks at a trial share one error probability, and
later looks get more of it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from math import ceil, fsum, log, sqrt
from pathlib import Path
from statistics import geometric_mean
from typing import Any, NamedTuple

import numpy as np

from gpureport.comparison import quality
from gpureport.comparison.estimate import DifferenceEstimate
from gpureport.comparison.figures import FINEST_RATIO
from gpureport.comparison.run import SampledRun, unify_work
from gpureport.comparison.steps import TrainingBasis, build_steps, training_rate
from gpureport.comparison.study import LinearModel
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.work import STEPS
from gpureport.errors import SettingsError, SourceError
from gpureport.importers.headings import parse_number
from gpureport.names import normalise_work_unit
from gpureport.trial.plan import Plan, Setting, make_error

FIRST_LOOK = 2
"""The round after which settings are first compared, as one round shows no scatter."""
INTERRUPTED = "interrupted"
_ERROR, _SPENDING = 0.03, 3
"""The chance of a false claim in a trial. A look may use a part of it: the share of finished rounds, to this power.

Less than 5%, since up to 5% of simulated trials make a false claim if one setting scatters twice as much as the others.
"""
_SAME_STEPS, _SAME_WORK = 1.02, 1.25
"""Ratios up to which step counts, or their products with a setting, count as equal, as logs omit the first steps."""
_SLOW_START = 0.999  # Level at which the first run of a trial differs too much from the others to count.


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRun:
    """One run. A `failure` excludes the setting, except that an interrupted run only adds to the GPU time."""

    setting: Setting
    round: int
    folder: str
    started: int  # in microseconds
    seconds: float
    gpu_seconds: float | None = None
    exit_code: int = 0
    value: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Runs in chronological order, with values: speeds if more is `better` (1), durations if less is (-1).

    `refused` maps settings that lower the quality or miss the target to the metric and its values. `notes` are codes
    for assumptions and unknowns.
    """

    runs: tuple[TriedRun, ...]
    better: int
    metric: str
    unit: str
    refused: Mapping[Setting, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def measure_runs(
    runs: Sequence[TriedRun], base: Setting, goals: TrainingGoals, key: str | None, sample: Callable[[str], SampledRun]
) -> Measured:
    """Return the runs with their values. `sample` reads the folder of a run."""
    found: dict[str, SampledRun] = {}
    for run in runs:
        with suppress(SourceError):
            found[run.folder] = sample(run.folder)
    finished = [run for run in runs if not run.failure]
    read = [run for run in finished if run.folder in found]
    sampled = dict(zip(read, unify_work([found[run.folder] for run in read]), strict=True))
    logged = [run.throughput for run in sampled.values() if "training" in {each.kind for each in run.info.sources}]
    if key and logged and not any(logged):
        raise make_error(SettingsError, "--throughput", "no_such_throughput", name=key)
    # only the first round decides what is compared, so that later rounds bring no setting back
    first = [sampled.get(run) for run in finished if run.round == 1]
    units = {each and each.work_unit for each in first}
    counts = {run: each.info.work.amount for run, each in sampled.items() if run.round == 1 and each.info.work}
    are_steps = {normalise_work_unit(each or "") for each in units} == {STEPS}
    differ = are_steps and not _are_alike([*counts.values()], _SAME_STEPS)
    # steps of different sizes did the same work if there were fewer of the larger ones
    sizes = ({run: parse_number(run.setting[at][1]) or 0.0 for run in counts} for at in range(len(base)))
    is_unclear = differ and not any(_are_alike([counts[run] * own[run] for run in own], _SAME_WORK) for own in sizes)
    bases = TrainingBasis if len(units) == 1 and not differ else ()
    basis = next((each for each in bases if all(run and training_rate(run, each) for run in first)), None)
    values: dict[TriedRun, float | None] = {} if is_unclear else {run: run.seconds for run in finished}
    if basis:
        values = {run: training_rate(each, basis) for run, each in sampled.items() if each.work_unit in units}
    spent = {folder: each.analysis.job_gpu_seconds or None for folder, each in found.items()}
    valued = [replace(run, value=values.get(run) or None, gpu_seconds=spent.get(run.folder)) for run in runs]
    measured = [run if run.failure or run.value else replace(run, failure="not_measured") for run in valued]
    missing = {quality.measure_run_time_to_target(each, goals).missing for each in sampled.values() if goals.target}
    unknown = missing - {None, quality.MissingTarget.NOT_REACHED}
    is_known = (run and run.info.work for run in map(sampled.get, finished))
    notes = {
        "work_unclear": is_unclear,
        "speed_not_compared": not basis and any(each and (key or each.unit != STEPS) for each in logged),
        "assumes_equal_work": differ != is_unclear or not (basis or all(is_known)),
        "target_not_recorded": unknown and unknown == missing,
        "target_partly_recorded": unknown and unknown != missing,
    }
    return Measured(
        runs=tuple(measured),
        better=1 if basis else -1,
        metric="training_rate_hertz" if basis else "duration",
        unit=f"{units.pop()}/s" if basis else "s",
        refused=dict(_find_refused(sampled, base, goals)),
        notes=tuple(code for code, applies in notes.items() if applies),
    )


def _are_alike(amounts: Sequence[float], ratio: float) -> bool:
    return all(0 < amount <= ratio * min(amounts) for amount in amounts)


def _find_refused(
    sampled: Mapping[TriedRun, SampledRun], base: Setting, goals: TrainingGoals
) -> Iterator[tuple[Setting, dict[str, Any]]]:
    settings = list(dict.fromkeys([base, *(run.setting for run in sampled)]))
    labelled = [each.in_step(str(settings.index(run.setting))) for run, each in sampled.items()]
    steps = {settings[int(step.label)]: step for step in build_steps(labelled)}
    for setting, step in steps.items():
        times = [(run, quality.measure_run_time_to_target(run, goals).missing) for run in step.runs]
        missed = tuple(run for run, missing in times if missing is quality.MissingTarget.NOT_REACHED)
        changes = quality.compare_quality(steps.get(base, step), step, goals)
        if goals.target and missed:
            best = quality.measure_step_quality(replace(step, runs=missed), goals.target.name, goals).best
            yield setting, {"metric": goals.target.name, "value": best, "before": None, "target": goals.target.value}
        elif fell := next((each for each in changes if each.leading and each.fell), None):
            before, value = fell.values
            yield setting, {"metric": fell.name, "value": value, "before": before, "target": None}


class _Ranking(NamedTuple):
    failures: dict[Setting, str]
    counted: list[TriedRun]
    order: list[Setting]  # those that may be chosen, from best to worst if any are `tied`
    tied: frozenset[Setting] = frozenset()  # none before settings can be compared
    levels: Mapping[frozenset[Setting], float] = {}  # at which each setting was compared with the best one
    family_level: float = 0.0


def decide(found: Measured, plan: Plan, ended: str) -> dict[str, Any]:
    """Return the content of `decision.json`. Folders of runs are relative to the trial's folder."""
    ranking, base = _rank(found, plan.repeat), plan.settings[0]
    order, tied, reason = ranking.order, ranking.tied, None
    left = [each for each in plan.settings if each not in ranking.failures and each not in found.refused]
    if not left:
        reason = "quality" if ranking.counted else "work_unclear" if "work_unclear" in found.notes else "all_failed"
    elif len(left) == 1 == len(order):
        reason = "base_only" if left[0] == base else "only_one_left"
    elif len(tied) != 1:
        reason = "no_clear_best" if tied else "too_few_rounds"
    best = order[0] if tied or len(order) == len(left) == 1 else None
    chosen = best if len(left) == 1 or len(tied) == 1 else None
    settings = list(_judge_settings(found, plan, ranking, ended))
    margin = None
    if best and tied:
        change, pair = _compare_with(ranking.counted, order[1])[best], frozenset(order[:2])
        margin = {"over": dict(order[1]), **_describe(change, ranking.levels[pair])}
    content = {
        "schema": "gpureport.decision/1",
        "exit_code": 0 if chosen else 1 if reason in {"quality", "all_failed"} else 4,
        "tied": [each["setting"] for each in settings if each["tied"]],
        "base": dict(base),
        "chosen": dict(chosen) if chosen else None,
        "reason": reason,
        "best": dict(best) if best else None,
        "margin": margin,
        "saving": _measure_saving(found, base, chosen, settings) if chosen else None,
        "settings": settings,
        "gpu_seconds": _sum_gpu_seconds(found.runs) or None,
        "runs": [
            asdict(run) | {"setting": dict(run.setting), "folder": "/".join(Path(run.folder).parts[-2:])}
            for run in found.runs
        ],
        "plan": asdict(plan),
        "ended": ended,
        **{name: getattr(found, name) for name in ("better", "metric", "unit", "notes")},
    }
    rounded: dict[str, Any] = json.loads(json.dumps(content), parse_float=lambda text: round(float(text), 6))
    return rounded


def _judge_settings(found: Measured, plan: Plan, ranking: _Ranking, ended: str) -> Iterator[dict[str, Any]]:
    base, counted = plan.settings[0], ranking.counted
    changes = _compare_with(counted, base) if ranking.tied and base in {run.setting for run in counted} else {}
    last = max((run.round for run in found.runs), default=0) if ended == "budget" else plan.repeat
    for setting in plan.settings:
        values = [run.value for run in found.runs if run.setting == setting and run.value]
        failure, change = ranking.failures.get(setting), changes.get(setting)
        level = ranking.levels.get(frozenset((setting, base)), ranking.family_level)
        verdict = "no_clear_change" if change else "not_enough_data"
        if change and change.excludes_zero(level):
            verdict = "better" if change.change * found.better > 0 else "worse"
        was_dropped = FIRST_LOOK <= len(values) < last and not failure and setting not in ranking.tied
        yield {
            "setting": dict(setting),
            "rounds": len(values),
            "value": geometric_mean(values) if values else None,
            **_describe(change, level),
            "verdict": None if setting == base or failure else verdict,
            "tied": setting in ranking.tied,
            "dropped_after": len(values) if was_dropped else None,
            "failure": failure,
            "quality_fell": setting in found.refused,
            "quality": found.refused.get(setting),
        }


def _describe(change: DifferenceEstimate | None, level: float) -> dict[str, Any]:
    return {"change": change and change.difference, "interval": change and change.interval(level)}


def find_dropped(found: Measured, rounds: int) -> list[Setting]:
    """Return the settings not to run again, given all runs of complete rounds."""
    ranking = _rank(found, rounds)
    worse = [each for each in (*ranking.order, *found.refused) if ranking.tied and each not in ranking.tied]
    return list(dict.fromkeys([*ranking.failures, *worse]))


def _rank(found: Measured, rounds: int) -> _Ranking:
    failures = {run.setting: run.failure for run in found.runs if run.failure and run.failure != INTERRUPTED}
    counted = [run for run in found.runs if run.value and run.setting not in failures]
    order = list(dict.fromkeys(run.setting for run in counted if run.setting not in found.refused))
    last = max((run.round for run in counted), default=0)
    gaps = _compare_with(counted, order[0]) if len(order) > 1 and last >= FIRST_LOOK else {}
    if not gaps:
        return _Ranking(failures, counted, order)
    order.sort(key=lambda each: -found.better * (gaps[each].change if each in gaps else 0.0))
    changes, tied, levels = _compare_with(counted, order[0]), frozenset(order), dict[frozenset[Setting], float]()
    degrees = changes[order[1]].degrees
    # later looks get more of the chance of error
    now, before = ((min(each, rounds) / rounds) ** _SPENDING for each in (last, last - 1))
    error = _ERROR * (now - (before if last > FIRST_LOOK else 0.0))
    while len(tied) > 1:
        level = _find_level(len(tied), degrees, error)
        worse = {each for each in tied if each in changes and changes[each].excludes_zero(level)}
        levels |= {frozenset((order[0], each)): level for each in worse or tied}
        if not worse:
            break
        tied -= worse
    family_level = _find_level(len({run.setting for run in counted}), degrees, error)
    return _Ranking(failures, counted, order, tied, levels, family_level)


def _compare_with(runs: Sequence[TriedRun], reference: Setting) -> dict[Setting, DifferenceEstimate]:
    """Return each setting's difference from the reference, or nothing if the scatter is unknown."""
    settings, rounds = (
        list(dict.fromkeys(each)) for each in zip(*((run.setting, run.round) for run in runs), strict=True)
    )
    settings.sort(key=lambda setting: setting != reference)
    values = np.array([log(run.value) for run in runs if run.value])
    places = [(settings.index(run.setting), rounds.index(run.round), int(run is runs[0])) for run in runs]
    levels = tuple(zip(*places, strict=True))
    # start-up and empty caches may slow the first run, which would hide differences
    model = LinearModel(levels=levels, values=values)
    if not (model.degrees >= 1 and model.is_estimable(2) and model.effect(2, 1).excludes_zero(_SLOW_START)):
        model = LinearModel(levels=levels[:2], values=values)
    if model.degrees < 1 or not model.is_estimable(0):
        return {}
    return {setting: model.effect(0, place, FINEST_RATIO, 1.0) for place, setting in enumerate(settings) if place}


def _sum_gpu_seconds(runs: Iterable[TriedRun]) -> float:
    return fsum(run.gpu_seconds or 0.0 for run in runs)


@cache
def _find_level(settings: int, degrees: float, error: float) -> float:
    """Return the level at which Student's interval is as wide as Tukey's."""
    from scipy import special, stats

    reach = stats.studentized_range.ppf(1 - error, settings, degrees) / sqrt(2)
    return float(2 * special.stdtr(degrees, reach) - 1)


def _measure_saving(
    found: Measured, base: Setting, chosen: Setting, judged: Sequence[dict[str, Any]]
) -> dict[str, Any] | None:
    own = next(each for each in judged if each["setting"] == dict(chosen))
    if own["verdict"] != "better":
        return None
    sides = [[run for run in found.runs if run.setting == each and run.value] for each in (base, chosen)]
    gpus = [_sum_gpu_seconds(side) / fsum(run.seconds for run in side) for side in sides]
    ratio = gpus[1] / gpus[0] if min(gpus) > 0 else 1.0
    share, *ends = (1 - ratio * (1 + change) ** -found.better for change in (own["change"], *own["interval"]))
    saved, spent = share * _sum_gpu_seconds(sides[0]) / len(sides[0]), _sum_gpu_seconds(found.runs)
    is_earned = min(*gpus, share) > 0
    return {
        "share": share,
        "interval": sorted(ends),
        "gpu_seconds_per_run": saved if is_earned else None,
        "payback_runs": ceil(spent / saved) if is_earned else None,
        "payback_seconds": spent / gpus[1] * (1 - share) / share if is_earned else None,
    }
