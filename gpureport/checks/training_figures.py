"""What a run shows of limits on training metrics, the time to a target, and their changes."""

from dataclasses import dataclass, replace
from math import inf

from gpureport.analysis.results import Analysis
from gpureport.checks import check_wording, limit_units
from gpureport.checks.limit import BEST, Limit
from gpureport.checks.limit_units import MONEY, NUMBER, POINTS, SHARE
from gpureport.checks.observed_value import NO_REASON, ObservedValue, Why, not_observed
from gpureport.checks.run_figures import explain_currency
from gpureport.comparison.figures import SECONDS_TO_TARGET
from gpureport.comparison.quality import (
    QualityChange,
    find_full_scale,
    measure_run_quality,
    seconds_since_job_start,
)
from gpureport.comparison.run import SampledRun, count_work, mean_gpu_hour_price
from gpureport.comparison.steps import TrainingBasis, training_rate
from gpureport.comparison.time_to_target import MissingTarget, RunTimeToTarget, measure_run_time_to_target
from gpureport.comparison.training import TrainingGoals
from gpureport.comparison.work import build_training_curves
from gpureport.recording import Recording
from gpureport.report.wording import display
from gpureport.report.wording.reasons import describe_no_work

NO_TARGET = Why("no_target", "no target is given: --target NAME=VALUE, or target under [training]")
"""Why the time to a target is not known."""

_UNKNOWN_DIRECTION = "whether a higher {name} is better is not known: --better {name}=higher or {name}=lower"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedRun:
    """A run with its training metrics, and what a person says of them."""

    run: SampledRun
    goals: TrainingGoals


def read_training(recording: Recording, analysis: Analysis, throughput: str | None = None) -> SampledRun:
    """Return a run with its work, training metrics and price, without the series of comparisons.

    Args:
        recording: the run and its series.
        analysis: what was found out about it.
        throughput: training metric that counts its work, whatever its name.
    """
    return replace(
        count_work(recording, analysis, throughput),
        training=build_training_curves(recording.training),
        gpu_hour_price=mean_gpu_hour_price(analysis),
    )


def observe_training_rate(limit: Limit, trained: TrainedRun) -> ObservedValue:
    """Return how fast training alone went, as its loop logged, else over the steady phase."""
    bases = (TrainingBasis.SERIES, TrainingBasis.STEADY_PHASE)
    value = next((rate for basis in bases if (rate := training_rate(trained.run, basis)) is not None), None)
    if value is None:
        text = f"{limit.name} cannot be told: log a throughput, or say the work done with --work N:UNIT"
        return not_observed("unknown_work", text)
    return ObservedValue(value=value, unit=_unit(limit), text=limit_units.format_against_limit(value, limit.threshold))


def observe_training_metric(limit: Limit, trained: TrainedRun) -> ObservedValue:
    """Return a training metric at the end of a run, or at best."""
    curve = next((each for each in trained.run.training if each.name == limit.name), None)
    if curve is None:
        return not_observed("not_recorded", _explain_missing_metric(limit.name, trained.run))
    higher = trained.goals.is_higher_better(limit.name)
    if limit.statistic == BEST and higher is None:
        return not_observed("unknown_direction", _UNKNOWN_DIRECTION.format(name=limit.name))
    found = measure_run_quality(trained.run, curve, higher_is_better=higher)
    value = found.best if limit.statistic == BEST else found.final
    if value is None:
        return _observe_divergence(limit, "the last value is not a number")
    if limit.threshold.unit == SHARE:
        # many log an accuracy in per cent
        value /= find_full_scale([value], higher_is_better=higher) or 1.0
    return ObservedValue(value=value, unit=_unit(limit), text=limit_units.format_against_limit(value, limit.threshold))


def _observe_divergence(limit: Limit, why: str) -> ObservedValue:
    """Return a value that breaks every limit, for training that diverged."""
    return ObservedValue(value=inf if limit.is_upper else -inf, unit=_unit(limit), text=f"diverged: {why}")


def _unit(limit: Limit) -> str:
    """Return the unit of a value as checks show it: a plain number has none."""
    return "" if limit.threshold.unit == NUMBER else limit.threshold.unit


def _explain_missing_metric(name: str, run: SampledRun) -> str:
    known = [curve.name for curve in run.training]
    if not known:
        return f"{name} was not recorded: no training metrics are known; give them with --training FILE or a tracker"
    listed = display.join_words(known[:6]) + (" and others" if len(known) > 6 else "")  # noqa: PLR2004 - a line holds six
    return f"{name} was not recorded; recorded were {listed}"


def observe_time_to_target(limit: Limit, trained: TrainedRun) -> ObservedValue:
    """Return what a run spent until a training metric first reached the target."""
    target = trained.goals.target
    if target is None:
        return ObservedValue(missing=NO_TARGET)
    found = measure_run_time_to_target(trained.run, trained.goals)
    if found.missing is MissingTarget.NOT_RECORDED:
        return not_observed("not_recorded", _explain_missing_metric(target.name, trained.run))
    if found.missing is MissingTarget.NOT_REACHED and limit.name == SECONDS_TO_TARGET:
        return _observe_missed_target(limit, trained)
    value = _read_spent(limit, found)
    why = _explain_price(limit, trained, found)
    if found.missing:
        why = Why(found.missing.name.lower(), f"{target.text}: {found.missing.value}")
    if value is None or why:
        return ObservedValue(missing=why)
    shown = limit_units.format_against_limit(value, limit.threshold)
    return ObservedValue(value=value, unit=limit.threshold.unit, text=f"{shown} to {target.text}")


def _read_spent(limit: Limit, found: RunTimeToTarget) -> float | None:
    spent = {SECONDS_TO_TARGET: found.seconds, "gpu_seconds_to_target": found.gpu_seconds, "cost_to_target": found.cost}
    return spent[limit.name]


def _explain_price(limit: Limit, trained: TrainedRun, found: RunTimeToTarget) -> Why:
    """Return why a cost cannot be compared with a limit; else false."""
    if limit.threshold.unit != MONEY:
        return NO_REASON
    if found.cost is None:
        return Why("no_price", "the price of a GPU-hour is not known: --gpu-hour-price or [prices]")
    cost = trained.run.analysis.cost
    currency = cost.currency if cost else ""
    return NO_REASON if currency == limit.threshold.currency else explain_currency(currency, limit)


def _observe_missed_target(limit: Limit, trained: TrainedRun) -> ObservedValue:
    """Return the time for which a run trained without reaching the target."""
    target = trained.goals.target
    curve = next(each for each in trained.run.training if target is not None and each.name == target.name)
    seconds = seconds_since_job_start(trained.run, curve, -1)
    name = target.text if target else ""
    doubt = Why("target_not_reached", f"the run trained for {display.duration(seconds)}, less than the limit")
    return ObservedValue(
        value=seconds,
        unit=limit.threshold.unit,
        text=f"{name} was never reached in {display.duration(seconds)}",
        is_lower_bound=True,
        doubt=doubt if limit.is_upper else NO_REASON,
    )


def observe_quality_change(limit: Limit, changes: tuple[QualityChange, ...]) -> ObservedValue:
    """Return the change of a training metric since the baseline, in the unit of its limit."""
    change = next((each for each in changes if each.name == limit.name), None)
    if change is None:
        return not_observed("not_recorded", f"{limit.name} was not recorded")
    if limit.statistic != BEST and change.after.diverged > change.before.diverged:
        return _observe_divergence(limit, "a last value of this run is not a number")
    before, after = (change.before.best, change.after.best) if limit.statistic == BEST else change.values
    if before is None or after is None:
        sides = [name for name, value in (("the baseline", before), ("this run", after)) if value is None]
        return not_observed("not_recorded", f"{limit.name} was not recorded in {' and in '.join(sides)}")
    if change.reason is not None:
        return not_observed(change.reason.value, f"{limit.name} cannot be compared: {describe_no_work(change.reason)}")
    scale = {SHARE: abs(before), POINTS: change.full_scale}.get(limit.threshold.unit, 1.0)
    if not scale:
        code, why = ("not_a_share", "is not a share, so it has no change in points: state the limit in %")
        if scale is not None:
            code, why = "zero", "was 0 in the baseline, so its change cannot be given in per cent"
        return not_observed(code, f"{limit.name} {why}")
    difference = after - before
    low, high = change.interval or (difference - change.margin, difference + change.margin)
    if limit.statistic == BEST:
        half = (high - low) / 2
        low, high = difference - half, difference + half
    value, ends = difference / scale, (low / scale, high / scale)
    changed = check_wording.describe_change(limit, value, ends, has_level=change.interval is not None)
    return ObservedValue(
        value=value,
        unit=_unit(limit),
        text=f"{changed} against the baseline",
        low=ends[0],
        high=ends[1],
        doubt=Why(
            check_wording.UNKNOWN_CHANGE,
            check_wording.explain_unknown_change(limit, value, ends, _advise_runs(change)),
        ),
        note=_describe_basis(change),
    )


def _advise_runs(change: QualityChange) -> str:
    """Return what leaves the size of a change open, and what would settle it."""
    if min(change.before.runs, change.after.runs) > 1:
        return "from runs that differ this much: add runs to the baseline"
    return f"from one run a side: {check_wording.THREE_RUNS}, and check several"


def _describe_basis(change: QualityChange) -> Why:
    if min(change.before.runs, change.after.runs) > 1:
        return Why("replicates", check_wording.count_compared_runs(change.before.runs, change.after.runs))
    return Why("single_runs", "one run a side; the interval is what repeating a run plausibly changes")
