"""Every limit of a policy, checked on every run it applies to."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import PurePath

from gpureport.analysis.results import Analysis
from gpureport.checks import acknowledgements, baseline_changes, finding_counts, run_figures, training_figures
from gpureport.checks.baseline_changes import BaselineComparison
from gpureport.checks.finding_counts import FindingFilter
from gpureport.checks.limit import Limit, TargetKind
from gpureport.checks.observed_value import NO_REASON, ObservedValue, Why, join_reasons, not_observed
from gpureport.checks.policy import Exemption, LimitScope, Policy, PolicyEntry
from gpureport.checks.training_figures import TrainedRun
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import NO_GOALS
from gpureport.findings import Check, CheckOutcome, Confidence, Finding
from gpureport.report.wording import display

NO_BASELINE_NAMED = Why("no_baseline", "no baseline was named (--baseline)")

_OBSERVERS: dict[TargetKind, Callable[[Limit, Analysis], ObservedValue]] = {
    TargetKind.STATISTIC: run_figures.observe_statistic,
    TargetKind.DEVICE: run_figures.observe_device_figure,
    TargetKind.FIGURE: run_figures.observe_figure,
    TargetKind.RUN: run_figures.observe_run,
    TargetKind.GPU_TIME: run_figures.observe_gpu_time,
}
_TRAINING_OBSERVERS: dict[TargetKind, Callable[[Limit, TrainedRun], ObservedValue]] = {
    TargetKind.TRAINING: training_figures.observe_training_metric,
    TargetKind.TRAINING_RATE: training_figures.observe_training_rate,
    TargetKind.TO_TARGET: training_figures.observe_time_to_target,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """The runs to check, and what is needed to check them.

    Attributes:
        analyses: one a run.
        selected_kinds: kinds that were looked for.
        today: the day that decides which acknowledgements apply.
        comparisons: of each step with the baseline, by step label; without labels by run id.
        why_no_baseline: why there is no baseline to compare with.
        training: the training metrics of each run, by run id.
    """

    analyses: tuple[Analysis, ...]
    selected_kinds: Collection[str]
    today: date
    comparisons: Mapping[str, BaselineComparison] = field(default_factory=dict)
    why_no_baseline: Why = NO_BASELINE_NAMED
    training: Mapping[str, TrainedRun] = field(default_factory=dict)


def step_name(analysis: Analysis) -> str:
    """Return the name by which a run is compared with the baseline: its step label, else its id."""
    return analysis.run.step or analysis.run.id


def evaluate_policy(policy: Policy, given: CheckInput) -> tuple[Check, ...]:
    """Return a check per limit and run, in the order of the limits; for a change, per limit and step."""
    return tuple(check for entry in policy.entries for check in _evaluate_entry(entry, policy, given))


def _evaluate_entry(entry: PolicyEntry, policy: Policy, given: CheckInput) -> Iterator[Check]:
    chosen = [analysis for analysis in given.analyses if _applies(entry.scope, analysis)]
    if entry.limit.subject is TargetKind.CHANGE:
        # the runs of one step are repetitions and are compared together
        chosen = list({step_name(analysis): analysis for analysis in chosen}.values())
    if not chosen and given.analyses:
        reason = Why("no_run_matches", f"no run is {entry.scope.words}")
        yield _make_check(entry, "", CheckOutcome.CANNOT_JUDGE, ObservedValue(), reason)
    for analysis in chosen:
        yield _check_run(entry, analysis, policy, given)


def _applies(where: LimitScope, analysis: Analysis) -> bool:
    run = analysis.run
    if where.step is not None and not (run.step and fnmatchcase(run.step, where.step)):
        return False
    if where.source is None:
        return True
    files = [source.locator for source in run.sources]
    names = [run.name, run.id, *files, *(PurePath(file).name for file in files)]
    return any(fnmatchcase(name, where.source) for name in names)


def _check_run(entry: PolicyEntry, analysis: Analysis, policy: Policy, given: CheckInput) -> Check:
    selected = _select_gpus(analysis, entry.scope)
    run = analysis.run.step or analysis.run.name if entry.limit.subject is TargetKind.CHANGE else analysis.run.name
    if selected is None:
        return _check_without_gpus(entry, run, analysis, given)
    excused, doubt = _evaluate_exemption(entry.unless, selected, entry.confidence, given)
    if excused:
        return _make_check(entry, run, CheckOutcome.NOT_APPLIED, ObservedValue(), excused)
    lacking = _name_missing_gpus(entry.scope, analysis)
    known = acknowledgements.find_acknowledged(entry, selected, policy, given.today)
    every = _observe(entry, selected, given, ())
    outcome, reason = _decide_outcome(entry.limit, every)
    if outcome is CheckOutcome.BROKEN and known.findings:
        without = _observe(entry, selected, given, tuple(known.findings))
        others, other_reason = _decide_outcome(entry.limit, without)
        if others is CheckOutcome.PASSED or known.whole_limit:
            outcome, reason = CheckOutcome.ACKNOWLEDGED, known.words
        elif others is CheckOutcome.CANNOT_JUDGE:
            outcome, reason = others, join_reasons(other_reason, known.words)
        else:
            every = without
    elif outcome is CheckOutcome.BROKEN and known.whole_limit:
        outcome, reason = CheckOutcome.ACKNOWLEDGED, known.words
    if outcome is CheckOutcome.BROKEN:
        reason = join_reasons(reason, known.expired)
    return _make_check(entry, run, outcome, every, join_reasons(reason, doubt, lacking))


def _check_without_gpus(entry: PolicyEntry, run: str, analysis: Analysis, given: CheckInput) -> Check:
    """Return the check of a run without any GPU in scope; an exemption of the whole run applies."""
    unless = entry.unless
    whole = unless is not None and (unless.limit is None or unless.limit.subject is TargetKind.RUN)
    excused, _ = _evaluate_exemption(unless, analysis, entry.confidence, given) if whole else (NO_REASON, NO_REASON)
    outcome = CheckOutcome.NOT_APPLIED if excused else CheckOutcome.CANNOT_JUDGE
    return _make_check(entry, run, outcome, ObservedValue(), excused or _name_missing_gpus(entry.scope, analysis))


def _name_missing_gpus(where: LimitScope, analysis: Analysis) -> Why:
    """Return which GPUs in scope the run does not have; false if it has all."""
    there = {gpu.index for gpu in analysis.run.gpus}
    absent_gpus = [str(index) for index in where.gpus or () if index not in there]
    return Why("no_such_gpu", f"the run has no GPU {display.join_words(absent_gpus)}") if absent_gpus else NO_REASON


def _select_gpus(analysis: Analysis, where: LimitScope) -> Analysis | None:
    """Return the analysis of the GPUs in scope, with all hosts; None if there are none."""
    if where.gpus is None:
        return analysis
    run = analysis.run
    kept = {gpu.id for gpu in run.gpus if gpu.index in where.gpus}
    if not kept:
        return None
    devices = tuple(device for device in run.devices if device.id in kept or device not in run.gpus)
    held = kept | {device.id for device in devices}
    return replace(
        analysis,
        run=replace(run, devices=devices),
        statistics=tuple(each for each in analysis.statistics if each.device in held),
        gpu_time=tuple(each for each in analysis.gpu_time if each.device in kept),
        findings=tuple(each for each in analysis.findings if not each.devices or kept & {*each.devices}),
        not_judged=tuple(each for each in analysis.not_judged if each.device is None or each.device in held),
    )


def _evaluate_exemption(
    unless: Exemption | None, analysis: Analysis, confidence: Confidence, given: CheckInput
) -> tuple[Why, Why]:
    """Return why a limit does not apply, or why that is unknown; else both are false."""
    if unless is None:
        return NO_REASON, NO_REASON
    if unless.label is not None:
        kind, key, value = unless.label
        labels = dict(analysis.run.params if kind == "param" else analysis.run.tags)
        return (Why("exempt", f"{kind} {key} is {value}") if labels.get(key) == value else NO_REASON), NO_REASON
    if unless.limit is None:
        return NO_REASON, NO_REASON
    sought = FindingFilter(confidence=confidence, selected_kinds=given.selected_kinds)
    seen = _observe_run_value(unless.limit, analysis, sought, given)
    # as a limit, a bare kind must not be found; as an exemption, it must
    bare = unless.limit.subject is TargetKind.FINDING and not unless.limit.threshold.text
    if seen.breaks(unless.limit) if bare else seen.keeps(unless.limit):
        return Why("exempt", f"{unless.words}: {seen.text}"), NO_REASON
    unknown = Why("exemption_not_known", f"whether {unless.words} could not be told")
    return NO_REASON, unknown if seen.missing or seen.doubt else NO_REASON


def _observe_run_value(limit: Limit, analysis: Analysis, sought: FindingFilter, given: CheckInput) -> ObservedValue:
    if limit.subject in _TRAINING_OBSERVERS:
        trained = given.training.get(analysis.run.id, TrainedRun(run=SampledRun(analysis=analysis), goals=NO_GOALS))
        return _TRAINING_OBSERVERS[limit.subject](limit, trained)
    if limit.subject is TargetKind.FINDING:
        return finding_counts.observe_findings(limit, analysis, sought)
    return _OBSERVERS[limit.subject](limit, analysis)


def _observe(entry: PolicyEntry, analysis: Analysis, given: CheckInput, without: Sequence[Finding]) -> ObservedValue:
    limit = entry.limit
    sought = FindingFilter(confidence=entry.confidence, selected_kinds=given.selected_kinds, without=without)
    if limit.subject in _TRAINING_OBSERVERS and entry.scope.gpus is not None:
        return not_observed("no_gpu_scope", "training metrics are of the whole run: leave gpu out of for")
    if limit.subject not in {TargetKind.CHANGE, TargetKind.NEW}:
        return _observe_run_value(limit, analysis, sought, given)
    found = given.comparisons.get(step_name(analysis))
    if found is None:
        return ObservedValue(missing=given.why_no_baseline)
    if limit.subject is TargetKind.CHANGE:
        if entry.scope.gpus is not None:
            return not_observed("no_gpu_scope", "changes are of all GPUs together: leave gpu out of for")
        return baseline_changes.observe_change(limit, found)
    meant = frozenset(finding.fingerprint for finding in finding_counts.select_findings(limit, analysis, sought))
    # a finding too unsure to count is reported as not counted, whether it is or may be new
    unsure = baseline_changes.find_possibly_new_fingerprints(found) - meant
    new = baseline_changes.find_new_fingerprints(found) | unsure
    seen = finding_counts.observe_findings(limit, analysis, replace(sought, only=new))
    return replace(seen, doubt=seen.doubt or baseline_changes.explain_unknown_novelty(found, meant))


def _decide_outcome(limit: Limit, seen: ObservedValue) -> tuple[CheckOutcome, Why]:
    if seen.value is None:
        return CheckOutcome.CANNOT_JUDGE, seen.missing
    if seen.breaks(limit):
        return CheckOutcome.BROKEN, seen.note
    if limit.subject is TargetKind.CHANGE and baseline_changes.keeps_change_limit(limit, seen):
        return CheckOutcome.PASSED, seen.note
    if limit.subject is not TargetKind.CHANGE and seen.keeps(limit):
        return CheckOutcome.PASSED, seen.note
    reason = seen.doubt or Why("unknown_gpu_time", f"whether it is kept depends on {seen.unknown_part}")
    return CheckOutcome.CANNOT_JUDGE, reason


def _make_check(entry: PolicyEntry, run: str, outcome: CheckOutcome, seen: ObservedValue, reason: Why) -> Check:
    limit = entry.limit
    return Check(
        limit=entry.words,
        run=run,
        outcome=outcome,
        observed=seen.text,
        reason=reason.text,
        reason_code=reason.code,
        origin=entry.origin,
        metric=" ".join(filter(None, (limit.name, limit.statistic))),
        value=None if seen.is_lower_bound or seen.value is None or not isfinite(seen.value) else seen.value,
        unit=seen.unit,
        bounds=seen.bounds if seen.bounds and all(map(isfinite, seen.bounds)) else None,
    )
