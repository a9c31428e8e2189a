"""Changes in figures since a baseline, and the smallest change that a rule can detect."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, exp, isfinite, log
from statistics import stdev

from gpureport.checks.figures import NO_TARGET, Observed, join_reasons, not_observed, observe_divergence
from gpureport.checks.limit import BEST, NO_REASON, POINTS, SHARE, Limit, Why, format_against_limit, format_quantity
from gpureport.comparison.chain import compare
from gpureport.comparison.changes import (
    ChangeKind,
    FindingChange,
    compare_findings,
    compare_setups,
    list_distinct_changes,
)
from gpureport.comparison.estimate import Basis
from gpureport.comparison.evidence import ReasonKind, gather_evidence
from gpureport.comparison.figures import BY_METRIC, PER_WORK, FigureRole, Resolution, observed_seconds
from gpureport.comparison.quality import QualityChange, compare_quality
from gpureport.comparison.run import SampledRun
from gpureport.comparison.steps import Step, find_resolution
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.comparison.verdict import (
    Delta,
    Verdict,
    estimate_interval_of_next_run,
    estimate_runs_for_interval,
    find_smallest_ratio,
    measure_run_interval,
)
from gpureport.number_format import MINUS
from gpureport.report.wording import differences, display, terms
from gpureport.report.wording.reasons import (
    SINGLE_RUN_SCATTER,
    describe_no_work,
    describe_reason,
    describe_unknown_change,
)

_NEAR = 0.1
"""Share of the limit and of the interval within which a change is close to the limit."""
_ROOM = 0.9
"""Safety factor for the target half-width, as a few runs give only a rough estimate."""
_LARGEST = 1.0
_BASELINE, _CHECKED = "the baseline", "this run"
_THREE_RUNS = "make the baseline from three runs: gpureport baseline set NAME A B C"
_UNSURE_SIZE = {ReasonKind.SHORT_RUN, ReasonKind.SINGLE_FIGURE, ReasonKind.FEW_BATCHES}


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    finding_changes: tuple[FindingChange, ...]
    quality: tuple[QualityChange, ...]
    left_out: Why


def compare_with_baseline(
    baseline: Sequence[SampledRun], step: Sequence[SampledRun], goals: TrainingGoals = NO_GOALS
) -> BaselineComparison:
    checked = {run.analysis.run.id for run in step}
    others = [run for run in baseline if run.analysis.run.id not in checked] or baseline
    comparison = compare([run.in_step(_BASELINE) for run in others] + [run.in_step(_CHECKED) for run in step], goals)
    base, last = comparison.steps
    found, quality = compare_findings(base, last), compare_quality(base, last, goals)
    text = "this run is part of the baseline, and is left out of it" if len(others) < len(baseline) else ""
    return BaselineComparison(base, last, comparison.deltas, found, quality, Why("baseline_run_checked", text))


def observe_change(limit: Limit, found: BaselineComparison) -> Observed:
    if limit.statistic:
        return _observe_quality_change(limit, found.quality)
    delta = next((each for each in found.deltas if each.metric == limit.name), None)
    if delta is None:
        return Observed(doubt=NO_TARGET)
    reason, difference = delta.reason, delta.difference
    is_harmless = difference is not None and _is_improvement(limit, difference)
    has_size = is_harmless and reason is not None and reason.kind in _UNSURE_SIZE
    is_same = reason is not None and reason.kind is ReasonKind.SAME_RECORDING
    if difference is None or is_same or (delta.verdict is Verdict.NOT_ENOUGH_DATA and not has_size):
        return Observed(doubt=_explain_no_change(limit, delta, found))
    scale = abs(delta.before or 0.0) if limit.threshold.unit == SHARE else 1.0
    if scale == 0.0:
        return not_observed("zero", f"{limit.name} was 0 in the baseline, so its % change is undefined")
    low, high = delta.interval or (difference, difference)
    if delta.interval is None or delta.basis is not Basis.REPLICATES:
        # with one run per side, the interval covers at least the normal variation
        figure, margin = BY_METRIC[delta.metric], BY_METRIC[delta.metric].margin(delta.before or 0.0)
        low, high = figure.clip((min(low, difference - margin), max(high, difference + margin)), delta.before)
    value, ends, has_level = difference / scale, (low / scale, high / scale), delta.interval is not None
    seen = _hold_change(limit, value, ends, lambda: _advise_runs(limit, delta, found, value, ends), has_level=has_level)
    if reason and reason.kind is ReasonKind.DRIFT and not seen.doubt and not limit.holds(value):
        # the runs did not alternate, so machine drift may explain the change
        return replace(seen, value=None, ends=None, doubt=Why("drift", describe_reason(reason).removesuffix(".")))
    changed = list_distinct_changes(compare_setups(found.base, found.step))
    setup = Why("other_setup", f"changed since the baseline: {differences.list_setup_changes(changed)}")
    return replace(seen, note=join_reasons(_describe_basis(delta), seen.note, setup if changed else NO_REASON))


def _hold_change(
    limit: Limit, value: float, ends: tuple[float, float], advise: Callable[[], str], *, has_level: bool
) -> Observed:
    """Return a measured change, with a caveat unless the run improved or its interval excludes the limit.

    A change that meets the limit is also clear if its interval extends past the change by at most the limit's size.
    """
    reach = ends[1] - value if limit.is_upper else value - ends[0]
    is_precise = isfinite(reach) and reach <= abs(limit.threshold.value) * (1 + 1e-9)
    is_known = len({limit.holds(end) for end in ends}) == 1 or _is_improvement(limit, value)
    doubt = note = NO_REASON
    far = ends[1] if limit.is_upper else ends[0]
    if isfinite(far) and limit.holds(value) and not limit.holds(far):
        rise = "a rise" if far > 0 else "a fall"
        note = Why("wide_interval", f"{rise} of {format_size(limit, far)}, beyond the limit, is possible")
    if not is_known and not (is_precise and limit.holds(value)):
        verb = "fell" if limit.threshold.value < 0 else "rose"
        least = "at least" if limit.demands_change == limit.relation.endswith("=") else "more than"
        text = f"whether it {verb} by {least} {limit.size} cannot be judged {advise()}"
        doubt = Why("unknown_change", text)
    size, unit = format_size(limit, value), f"{display.GAP}points"
    verb = "changed" if size == format_size(limit, 0.0) else "fell" if value < 0 else "rose"
    text = f"{verb} by {size}"
    if all(map(isfinite, ends)):
        # label an interval only if its confidence level is 95%
        low, high = (f"{MINUS if end < 0 else '+'}{format_size(limit, end).removesuffix(unit)}" for end in ends)
        text += f" ({'95%: ' if has_level else ''}{low} to {high})"
    return Observed(value=value, text=f"{text} against the baseline", ends=ends, doubt=doubt, note=note)


def _is_improvement(limit: Limit, value: float) -> bool:
    return not limit.demands_change and (value < 0 if limit.is_upper else value > 0)


def _explain_no_change(limit: Limit, delta: Delta, found: BaselineComparison) -> Why:
    reason, sides = delta.reason, _list_lacking(delta.before, delta.after)
    if reason is not None and not (sides and reason.kind is ReasonKind.NOT_RECORDED):
        return Why(reason.kind.value, describe_reason(reason).removesuffix("."))
    idle = next(each for each in found.deltas if each.metric == PER_WORK)
    lacking = _list_lacking(idle.before, idle.after)
    if BY_METRIC[limit.name].role is not FigureRole.WORK or not lacking:
        return _explain_absence(limit.name, sides)
    steps = {
        _BASELINE: "store the baseline with gpureport baseline set NAME SOURCE --work N:UNIT",
        _CHECKED: "give --work N:UNIT to this check",
    }
    remedy = ", and ".join(steps[side] for side in lacking)
    return Why("unknown_work", f"the work done in {' and in '.join(lacking)} is not known: {remedy}")


def _explain_absence(name: str, sides: Sequence[str]) -> Why:
    return Why("not_recorded", f"{name} was not recorded in {' and in '.join(sides or (_BASELINE, _CHECKED))}")


def _list_lacking(before: float | None, after: float | None) -> list[str]:
    return [side for side, value in ((_BASELINE, before), (_CHECKED, after)) if value is None]


def _describe_basis(delta: Delta) -> Why:
    if delta.verdict is Verdict.NOT_ENOUGH_DATA and delta.reason:
        return Why("size_not_sure", f"the size is uncertain: {describe_reason(delta.reason).removesuffix('.')}")
    unsure = "; gpureport compare calls the change unconfirmed until the run is repeated"
    waits = unsure if delta.verdict is Verdict.UNCONFIRMED else ""
    if delta.basis is Basis.REPLICATES:
        return _count_runs(*delta.runs, waits)
    covers = "the interval covers at least the normal variation between repeated runs"
    return Why("single_runs", f"one run per side; {covers}{waits}")


def _count_runs(before: int, after: int, waits: str = "") -> Why:
    assumed = f"; {SINGLE_RUN_SCATTER}" if min(before, after) == 1 < max(before, after) else ""
    return Why("replicates", f"{display.plural(before, 'baseline run')}, {after} checked{assumed}{waits}")


def _advise_runs(limit: Limit, delta: Delta, found: BaselineComparison, value: float, ends: tuple[float, float]) -> str:
    """Return why the size of a change is too uncertain, and how to measure it better.

    The interval must shrink until it excludes the limit or, if the change meets it, is narrow enough.
    """
    difference = delta.difference or 0.0
    low, high = interval = delta.interval or (difference, difference)
    if delta.basis is Basis.REPLICATES and low < high:
        size, distance = abs(limit.threshold.value), abs(limit.threshold.value - value)
        reach, other = (ends[1] - value, value - ends[0])[:: 1 if limit.is_upper else -1]
        aim = max(distance, size) / reach if limit.holds(value) else distance / other if other else 0.0
        now = measure_run_interval(delta, interval, found.base, found.step, repeat_base=True)
        wanted = now.half_width * aim * _ROOM
        runs = estimate_runs_for_interval(now, wanted)
        if runs is None and not limit.holds(value) and aim < _NEAR and distance < _NEAR * size:
            return "this close to the limit: choose another limit"
        cause = "this short" if now.least > wanted else "that differ this much"
        remedy = f"use {runs} baseline runs" if runs else "record longer ones, or allow a larger change"
        return f"from runs {cause}: {remedy}"
    margin = BY_METRIC[delta.metric].margin(delta.before or 0.0)
    if max(high - difference, difference - low) > margin * (1 + 1e-9):
        return f"from runs this short: record 10 min or more, or {_THREE_RUNS}"
    return f"from one run per side: {_THREE_RUNS}"


def _observe_quality_change(limit: Limit, changes: Sequence[QualityChange]) -> Observed:
    name, is_best = limit.name, limit.statistic == BEST
    change = next((each for each in changes if each.name == name), None)
    if change is None:
        return not_observed("not_recorded", f"{name} was not recorded")
    if not is_best and change.after.diverged > change.before.diverged:
        return observe_divergence(limit, "the last values of this run include one that is not a number")
    before, after = (change.before.best, change.after.best) if is_best else change.values
    if before is None or after is None:
        return Observed(doubt=_explain_absence(name, _list_lacking(before, after)))
    if change.reason is not None:
        return not_observed(change.reason.value, f"{name} cannot be compared: {describe_no_work(change.reason)}")
    scale = {SHARE: abs(before), POINTS: change.full_scale}.get(limit.threshold.unit, 1.0)
    if not scale:
        code, why = "zero", "was 0 in the baseline, so its % change is undefined"
        if scale is None:
            code, why = "not_a_share", "is not a share, so it cannot change by points: set the limit in %"
        return not_observed(code, f"{name} {why}")
    difference = after - before
    low, high = change.interval or (difference - change.margin, difference + change.margin)
    if is_best:
        low, high = difference - (high - low) / 2, difference + (high - low) / 2
    runs = change.before.runs, change.after.runs
    advice = f"from one run per side: {_THREE_RUNS}, and check several"
    note = Why("single_runs", "one run per side; the interval is the plausible variation between repeated runs")
    if min(runs) > 1:
        advice, note = "from runs that differ this much: add runs to the baseline", _count_runs(*runs)
    ends, has_level = (low / scale, high / scale), change.interval is not None
    seen = _hold_change(limit, difference / scale, ends, lambda: advice, has_level=has_level)
    return replace(seen, note=join_reasons(note, seen.note))


def map_new_fingerprints(found: BaselineComparison) -> dict[str, Why]:
    new = {}
    for each in found.finding_changes:
        if each.change is ChangeKind.NEW:
            new[each.fingerprint] = NO_REASON
        elif each.change is ChangeKind.CANNOT_TELL and each.after:
            why = f"it is not known whether {each.kind} is new ({describe_unknown_change(each)})"
            new[each.fingerprint] = Why("novelty_not_known", why)
    return new


def format_size(limit: Limit, value: float) -> str:
    unit, bound = limit.threshold.unit, replace(limit.threshold, value=abs(limit.threshold.value))
    plain = display.percent if unit == SHARE else lambda size: format_quantity(size, unit, bound.currency)
    return format_against_limit(abs(value), bound, lambda size: plain(size).removeprefix("+"))


def describe_precision(runs: Sequence[SampledRun]) -> Iterator[str]:
    if len(runs) == 1:
        yield "One run shows no spread; with three or more, a rule can detect smaller changes."
        return
    longest = max(runs, key=lambda run: observed_seconds([run.analysis]))
    another = replace(longest, analysis=replace(longest.analysis, run=replace(longest.analysis.run, id=_CHECKED)))
    comparison = compare([*(run.in_step(_BASELINE) for run in runs), another.in_step(_CHECKED)])
    delta, base = comparison.judged(_BASELINE, _CHECKED), comparison.steps[0]
    figure = BY_METRIC[comparison.primary]
    is_ratio = figure.role is FigureRole.WORK
    values = [log(value) if is_ratio else value for value in gather_evidence(base, base, figure).figures[0]]
    if len(values) <= 1 or delta is None or delta.verdict is Verdict.NOT_ENOUGH_DATA:
        why = "" if delta is None else display.clean_sentence(describe_reason(delta.reason))
        yield f"No rule about changes can be assessed against these runs. {why}".rstrip()
        return
    known = find_resolution(base, base, figure.metric) if is_ratio else Resolution(finest=figure.finest)
    half, spread = estimate_interval_of_next_run(values, known.finest, known.least), stdev(values)
    size = ceil(min(find_smallest_ratio(half) if is_ratio else half, _LARGEST) * 100 - 1e-9) / 100
    if is_ratio:
        held, differ, other = f"{size:.0%}", display.percent(exp(spread) - 1), ""
    else:
        held, differ = (display.percentage_points(each).lstrip("+") for each in (size, spread))
        held, other = held.replace(".0", ""), "; for a rule on GPU time per unit of work, give --work N:UNIT"
    noun, spreads = terms.name_for_one(terms.column_title(figure.metric)), f"{len(values)} runs vary by {differ}"
    can = f"a rule on {noun} can detect changes of {held} or more"
    yield f"{spreads}: {can if size < _LARGEST else f'too much for a rule on {noun}'}{other}."
