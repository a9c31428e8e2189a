"""The change of a figure since a baseline, its interval, and whether it keeps a limit."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.checks import baseline_precision, check_wording, training_figures
from gpureport.checks.limit import Limit
from gpureport.checks.limit_units import SHARE
from gpureport.checks.observed_value import NO_REASON, ObservedValue, Why, join_reasons, not_observed
from gpureport.comparison.chain import compare
from gpureport.comparison.changes import ChangeKind, FindingChange, compare_findings
from gpureport.comparison.estimate import Basis
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.figures import BY_METRIC, PER_WORK, FigureRole
from gpureport.comparison.quality import QualityChange, compare_quality
from gpureport.comparison.run import SampledRun
from gpureport.comparison.setup import compare_setups, list_changes_of_job
from gpureport.comparison.steps import Step
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.comparison.verdict import Delta, Verdict, measure_run_interval
from gpureport.report.wording import differences
from gpureport.report.wording.reasons import describe_reason, describe_unknown_change

_NEAR = 0.1
"""Distance from a limit, as a share of it and of the interval, up to which a change lies almost on it (pragmatic)."""

_BASELINE, _CHECKED = "the baseline", "this run"


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineComparison:
    """A step compared with its baseline.

    Attributes:
        deltas: the change of every figure.
        finding_changes: whether each finding is new, still there or gone.
        base: the baseline.
        step: what is compared with it.
        quality: the change of every training metric that says how well a run trained.
    """

    deltas: tuple[Delta, ...]
    finding_changes: tuple[FindingChange, ...]
    base: Step
    step: Step
    quality: tuple[QualityChange, ...] = ()


def compare_with_baseline(
    baseline: Sequence[SampledRun], step: Sequence[SampledRun], goals: TrainingGoals = NO_GOALS
) -> BaselineComparison:
    """Compare the runs of one step with those of a baseline."""
    checked = {run.analysis.run.id for run in step}
    others = [run for run in baseline if run.analysis.run.id not in checked] or baseline
    sides = [run.in_step(_BASELINE) for run in others], [run.in_step(_CHECKED) for run in step]
    comparison = compare([*sides[0], *sides[1]], goals)
    first, last = comparison.steps
    return BaselineComparison(
        deltas=comparison.deltas,
        finding_changes=compare_findings(first, last),
        base=first,
        step=last,
        quality=compare_quality(first, last, goals),
    )


_UNSURE_SIZE = {ReasonKind.SHORT_RUN, ReasonKind.SINGLE_FIGURE, ReasonKind.FEW_BATCHES}
"""Why the size of a change is not known, though both sides have the figure."""


def observe_change(limit: Limit, found: BaselineComparison) -> ObservedValue:
    """Return the change of a figure: in points, as a share of before, or in its unit."""
    if limit.statistic:
        return training_figures.observe_quality_change(limit, found.quality)
    delta = next((each for each in found.deltas if each.metric == limit.name), None)
    if delta is None:
        return ObservedValue(missing=training_figures.NO_TARGET)
    reason = delta.reason
    if reason and reason.kind is ReasonKind.SAME_RECORDING:
        return not_observed(reason.kind.value, "the baseline is the very recording that is checked")
    is_harmless = delta.difference is not None and check_wording.is_improvement(limit, delta.difference)
    has_size = is_harmless and reason is not None and reason.kind in _UNSURE_SIZE
    if delta.difference is None or (delta.verdict is Verdict.NOT_ENOUGH_DATA and not has_size):
        known = Why(reason.kind.value, describe_reason(reason)) if reason else NO_REASON
        unrecorded = Why("not_recorded", f"{limit.name} was not recorded on both sides")
        return ObservedValue(missing=_explain_missing_figure(limit, delta, found) or known or unrecorded)
    relative = limit.threshold.unit == SHARE
    scale = abs(delta.before or 0.0) if relative else 1.0
    if scale == 0.0:
        return not_observed("zero", f"{limit.name} was 0 in the baseline, so its change cannot be given in per cent")
    low, high = (end / scale for end in _widen_interval(delta))
    value = delta.difference / scale
    changed = check_wording.describe_change(limit, value, (low, high), has_level=delta.interval is not None)
    doubt = check_wording.explain_unknown_change(limit, value, (low, high), "")
    if doubt:
        aim = _find_aim(limit, value, (low, high))
        doubt += _advise_runs(delta, found, aim, is_near_limit=_is_near(limit, value, aim))
    return ObservedValue(
        value=value,
        unit=limit.threshold.unit,
        text=f"{changed} against the baseline",
        low=low,
        high=high,
        doubt=Why(check_wording.UNKNOWN_CHANGE, doubt),
        note=join_reasons(_describe_basis(delta), _describe_setup(found)),
    )


def _explain_missing_figure(limit: Limit, delta: Delta, found: BaselineComparison) -> Why:
    """Return on which side a figure is missing and what to do; else false."""
    sides = [side for side, value in ((_BASELINE, delta.before), (_CHECKED, delta.after)) if value is None]
    if not sides or delta.reason is None or delta.reason.kind is not ReasonKind.NOT_RECORDED:
        return NO_REASON
    worked = next(each for each in found.deltas if each.metric == PER_WORK)
    idle = [side for side, value in ((_BASELINE, worked.before), (_CHECKED, worked.after)) if value is None]
    if BY_METRIC[limit.name].role is not FigureRole.WORK or not idle:
        return Why("not_recorded", f"{limit.name} was not recorded in {' and in '.join(sides)}")
    steps = {
        _BASELINE: "ingest its log with --work N:UNIT and set the baseline again",
        _CHECKED: "give --work N:UNIT to this check",
    }
    remedy = ", and ".join(steps[side] for side in idle)
    return Why("unknown_work", f"the work done in {' and in '.join(idle)} is not known: {remedy}")


def _widen_interval(delta: Delta) -> tuple[float, float]:
    """Return the interval of a difference; with one run per side at least what repeating changes."""
    difference = delta.difference or 0.0
    low, high = delta.interval or (difference, difference)
    if delta.interval is not None and delta.basis == Basis.REPLICATES.value:
        return low, high
    margin = _repetition_margin(delta)
    return BY_METRIC[delta.metric].clip((min(low, difference - margin), max(high, difference + margin)), delta.before)


def _repetition_margin(delta: Delta) -> float:
    return BY_METRIC[delta.metric].margin(delta.before or 0.0)


def _describe_basis(delta: Delta) -> Why:
    if delta.verdict is Verdict.NOT_ENOUGH_DATA and delta.reason:
        return Why("size_not_sure", f"its size is not sure: {describe_reason(delta.reason).removesuffix('.')}")
    if delta.reason and delta.reason.kind is ReasonKind.DRIFT:
        return Why("drift", describe_reason(delta.reason).removesuffix("."))
    if delta.basis == Basis.REPLICATES.value:
        return Why("replicates", check_wording.count_compared_runs(*delta.runs))
    return Why("single_runs", "one run a side; the interval is no narrower than what repeating a run commonly changes")


def _describe_setup(found: BaselineComparison) -> Why:
    """Return what is known to have changed in the set-up since the baseline; else false."""
    changes = list_changes_of_job(compare_setups(found.base, found.step))
    if not changes:
        return NO_REASON
    return Why("other_setup", f"changed since the baseline: {differences.list_setup_changes(changes)}")


def _find_aim(limit: Limit, value: float, ends: tuple[float, float]) -> float:
    """Return to what share of its width an interval must shrink to decide whether a change keeps its limit.

    It is known where the interval no longer reaches the limit, and where a change that keeps the limit is known to
    better than the limit's size.
    """
    reach = ends[1] - value if limit.is_upper else value - ends[0]
    distance = abs(limit.threshold.value - value)
    if limit.holds(value):
        return max(distance, abs(limit.threshold.value)) / reach
    other = value - ends[0] if limit.is_upper else ends[1] - value
    return distance / other if other else 0.0


def _is_near(limit: Limit, value: float, aim: float) -> bool:
    """Return whether a change exceeds its limit by little of limit and interval."""
    distance = abs(limit.threshold.value - value)
    return not limit.holds(value) and aim < _NEAR and distance < _NEAR * abs(limit.threshold.value)


def _advise_runs(delta: Delta, found: BaselineComparison, aim: float, *, is_near_limit: bool) -> str:
    """Return what leaves the size of a change open, and what would settle it."""
    difference = delta.difference or 0.0
    low, high = interval = delta.interval or (difference, difference)
    if delta.basis == Basis.REPLICATES.value and low < high:
        now = measure_run_interval(delta, interval, found.base, found.step, repeat_base=True)
        return baseline_precision.advise_more_data(now, aim=aim, is_near_limit=is_near_limit)
    if max(high - difference, difference - low) > _repetition_margin(delta) * (1 + 1e-9):
        return f"from runs this short: record 10 min or more, or {check_wording.THREE_RUNS}"
    return f"from one run a side: {check_wording.THREE_RUNS}"


def keeps_change_limit(limit: Limit, seen: ObservedValue) -> bool:
    """Return whether a change keeps its limit: it is known not to be broken."""
    return seen.value is not None and not seen.doubt and not seen.breaks(limit)


def find_new_fingerprints(found: BaselineComparison) -> frozenset[str]:
    """Return the fingerprints of findings that the baseline did not have."""
    return frozenset(each.fingerprint for each in found.finding_changes if each.change is ChangeKind.NEW)


def find_possibly_new_fingerprints(found: BaselineComparison) -> frozenset[str]:
    """Return the fingerprints of findings that the baseline may have had."""
    return frozenset(each.fingerprint for each in _list_possibly_new(found))


def explain_unknown_novelty(found: BaselineComparison, fingerprints: frozenset[str]) -> Why:
    """Return why it is not known whether findings are new; false if it is known."""
    open_ = next((each for each in _list_possibly_new(found) if each.fingerprint in fingerprints), None)
    if open_ is None:
        return NO_REASON
    return Why("novelty_not_known", f"whether {open_.kind} is new cannot be told ({describe_unknown_change(open_)})")


def _list_possibly_new(found: BaselineComparison) -> list[FindingChange]:
    return [each for each in found.finding_changes if each.change is ChangeKind.CANNOT_TELL and each.after]
