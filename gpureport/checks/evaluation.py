"""Every limit of a policy, checked on every run it applies to, and what is acknowledged of what is broken."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import PurePath

from gpureport.analysis.results import Analysis
from gpureport.checks import changes, finding_counts
from gpureport.checks.changes import BaselineComparison
from gpureport.checks.limit import (
    NO_REASON,
    NO_VALUE,
    CheckedRun,
    Limit,
    Observed,
    Subject,
    Why,
    join_reasons,
    not_observed,
)
from gpureport.checks.policy import Acknowledgement, Exemption, LimitScope, Policy, PolicyEntry
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Check, CheckOutcome, Finding
from gpureport.report.wording import display

NO_BASELINE_NAMED = Why("no_baseline", "no baseline was named (--baseline)")

_FORMER: dict[tuple[str, str | None], tuple[str, str | None]] = {
    ("idle_gap", "data"): ("idle_gap", "io"),
    ("idle_gap", "unknown"): ("idle_gap", "io"),
    ("power_limited", "capped below its limit"): ("power_cap", None),
}
"""Kind and cause of findings that had others in the release before: what names them by these holds for one more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    """The runs to check, each with its training metrics, and what is needed to check them.

    Comparisons are of each step with the baseline, by `step_name`; today decides which acknowledgements apply.
    """

    runs: tuple[SampledRun, ...]
    selected_kinds: Collection[str]
    today: date
    goals: TrainingGoals = NO_GOALS
    comparisons: Mapping[str, BaselineComparison] = field(default_factory=dict)
    why_no_baseline: Why = NO_BASELINE_NAMED


def step_name(analysis: Analysis) -> str:
    """Return the name by which a run is compared with the baseline: its step label, else its id."""
    return analysis.run.step or analysis.run.id


def evaluate_policy(policy: Policy, given: CheckInput) -> tuple[Check, ...]:
    """Return a check per limit and run, in the order of the limits; for a change, per limit and step."""
    return tuple(check for entry in policy.entries for check in _evaluate_entry(entry, policy, given))


def _evaluate_entry(entry: PolicyEntry, policy: Policy, given: CheckInput) -> Iterator[Check]:
    chosen = [run for run in given.runs if _applies(entry.scope, run.analysis)]
    if entry.limit.subject is Subject.CHANGE:
        # the runs of one step are repetitions and are compared together
        chosen = list({step_name(run.analysis): run for run in chosen}.values())
    if not chosen and given.runs:
        reason = Why("no_run_matches", f"no run is {entry.scope.words}")
        yield _make_check(entry, "", CheckOutcome.CANNOT_JUDGE, NO_VALUE, reason)
    for run in chosen:
        yield _check_run(entry, run, policy, given)


def _applies(where: LimitScope, analysis: Analysis) -> bool:
    run = analysis.run
    if where.step is not None and not (run.step and fnmatchcase(run.step, where.step)):
        return False
    files = [source.locator for source in run.sources]
    names = [run.name, run.id, *files, *(PurePath(file).name for file in files)]
    return where.source is None or any(fnmatchcase(name, where.source) for name in names)


def _check_run(entry: PolicyEntry, sampled: SampledRun, policy: Policy, given: CheckInput) -> Check:
    limit, whole = entry.limit, sampled.analysis
    name = whole.run.step or whole.run.name if limit.subject is Subject.CHANGE else whole.run.name
    run = CheckedRun(
        sampled=sampled,
        analysis=_select_gpus(whole, entry.scope),
        selected_kinds=given.selected_kinds,
        goals=given.goals,
        confidence=entry.confidence,
    )
    there = {gpu.index for gpu in whole.run.gpus}
    absent = [str(index) for index in entry.scope.gpus or () if index not in there]
    lacking = Why("no_such_gpu", f"the run has no GPU {display.join_words(absent)}") if absent else NO_REASON
    has_gpus = entry.scope.gpus is None or len(absent) < len(entry.scope.gpus)
    excused, doubt = _evaluate_exemption(entry.unless, run, has_gpus=has_gpus)
    if excused:
        return _make_check(entry, name, CheckOutcome.NOT_APPLIED, NO_VALUE, excused)
    if not has_gpus:
        return _make_check(entry, name, CheckOutcome.CANNOT_JUDGE, NO_VALUE, lacking)

    findings, is_whole, words, expired = _find_acknowledged(entry, run.analysis, policy, given.today)
    seen = _observe(entry, run, given)
    outcome, reason = _decide_outcome(limit, seen)
    if outcome is CheckOutcome.BROKEN and (findings or is_whole):
        without = _observe(entry, replace(run, acknowledged=findings), given) if findings else seen
        others, other_reason = _decide_outcome(limit, without)
        if others is CheckOutcome.PASSED or is_whole:
            outcome, reason = CheckOutcome.ACKNOWLEDGED, words
        elif others is CheckOutcome.CANNOT_JUDGE:
            outcome, reason = others, join_reasons(other_reason, words)
        else:
            seen = without
    if outcome is CheckOutcome.BROKEN:
        reason = join_reasons(reason, expired)
    return _make_check(entry, name, outcome, seen, join_reasons(reason, doubt, lacking))


def _select_gpus(analysis: Analysis, where: LimitScope) -> Analysis:
    """Return the analysis of the GPUs in scope, with all hosts; of all GPUs where none is there."""
    run = analysis.run
    kept = {gpu.id for gpu in run.gpus if gpu.index in (where.gpus or ())}
    if not kept:
        return analysis
    devices = tuple(device for device in run.devices if device.id in kept or device not in run.gpus)
    held = {device.id for device in devices}
    return replace(
        analysis,
        run=replace(run, devices=devices),
        statistics=tuple(each for each in analysis.statistics if each.device in held),
        gpu_time=tuple(each for each in analysis.gpu_time if each.device in kept),
        findings=tuple(each for each in analysis.findings if not each.devices or kept & {*each.devices}),
        not_judged=tuple(each for each in analysis.not_judged if each.device is None or each.device in held),
    )


def _evaluate_exemption(unless: Exemption | None, run: CheckedRun, *, has_gpus: bool) -> tuple[Why, Why]:
    """Return why a limit does not apply, or why that is unknown; else both are false.

    A run without any GPU in scope can be excused by what is of the whole run alone.
    """
    if unless is not None and unless.label is not None:
        kind, key, value = unless.label
        labels = dict(run.analysis.run.params if kind == "param" else run.analysis.run.tags)
        return Why("exempt", f"{kind} {key} is {value}") if labels.get(key) == value else NO_REASON, NO_REASON
    limit = unless.limit if unless else None
    if unless is None or limit is None or not (has_gpus or limit.subject is Subject.RUN):
        return NO_REASON, NO_REASON
    seen = limit.figure.observe(limit, run)
    # as a limit, a bare kind must not be found; as an exemption, it must
    is_bare = limit.subject is Subject.FINDING and not limit.threshold.text
    if seen.breaks(limit) if is_bare else seen.keeps(limit):
        return Why("exempt", f"{unless.words}: {seen.text}"), NO_REASON
    unknown = Why("exemption_not_known", f"whether {unless.words} is not known")
    return NO_REASON, unknown if seen.doubt else NO_REASON


def _observe(entry: PolicyEntry, run: CheckedRun, given: CheckInput) -> Observed:
    limit, is_of_gpus = entry.limit, entry.scope.gpus is not None
    if is_of_gpus and limit.subject is Subject.TRAINING:
        return not_observed("no_gpu_scope", "training metrics describe the whole run: leave out gpu under for")
    if not limit.needs_baseline:
        return limit.figure.observe(limit, run)
    found = given.comparisons.get(step_name(run.analysis))
    if found is None:
        return Observed(doubt=given.why_no_baseline)
    if limit.subject is Subject.CHANGE:
        if is_of_gpus:
            return not_observed("no_gpu_scope", "changes are those of all GPUs together: leave out gpu under for")
        return changes.observe_change(limit, found)
    sure = {finding.fingerprint for finding in finding_counts.select_findings(limit, run)}
    new = changes.map_new_fingerprints(found)
    # a finding too unsure to count is reported as not counted, whether it is or may be new
    counted = {each for each, why in new.items() if not why or each not in sure}
    seen = finding_counts.observe_findings(limit, replace(run, only=counted))
    return replace(seen, doubt=seen.doubt or next((new[each] for each in new if each not in counted), NO_REASON))


def _decide_outcome(limit: Limit, seen: Observed) -> tuple[CheckOutcome, Why]:
    if seen.value is None:
        return CheckOutcome.CANNOT_JUDGE, seen.doubt
    if seen.breaks(limit):
        return CheckOutcome.BROKEN, seen.note
    if seen.keeps(limit):
        return CheckOutcome.PASSED, seen.note
    open_ = Why("unknown_gpu_time", f"whether it is kept depends on {seen.open_part}")
    return CheckOutcome.CANNOT_JUDGE, seen.doubt or open_


def _find_acknowledged(
    entry: PolicyEntry, analysis: Analysis, policy: Policy, today: date
) -> tuple[list[Finding], bool, Why, Why]:
    """Return what is acknowledged of a limit: findings, whether itself, in words what applies and no longer does."""
    findings: list[Finding] = []
    words, expired, is_whole = [], [], False
    is_counted = entry.limit.subject in {Subject.FINDING, Subject.NEW}
    for each in policy.acknowledged:
        meant = [finding for finding in analysis.findings if is_counted and _acknowledges(each, finding)]
        is_limit, reason = each.limit == entry.limit.words, display.clean(each.reason)
        if not (meant or is_limit):
            continue
        if each.until < today:
            expired.append(f"acknowledged until {each.until} ({reason}), which is over ({each.origin})")
            continue
        findings += meant
        is_whole = is_whole or is_limit
        words.append(f"acknowledged until {each.until}: {reason}")
    known, over = Why("acknowledged", "; ".join(words)), Why("acknowledgement_expired", "; ".join(expired))
    return findings, is_whole, known, over


def _acknowledges(known: Acknowledgement, finding: Finding) -> bool:
    kind, cause = _FORMER.get((finding.kind, finding.cause), (finding.kind, finding.cause))
    prints = {finding.fingerprint, replace(finding, kind=kind, cause=cause).fingerprint}
    return not known.kinds.isdisjoint({finding.kind, kind}) or known.fingerprint in prints


def _make_check(entry: PolicyEntry, run: str, outcome: CheckOutcome, seen: Observed, reason: Why) -> Check:
    limit, bounds = entry.limit, seen.bounds
    return Check(
        limit=entry.words,
        run=run,
        outcome=outcome,
        observed=seen.text,
        reason=reason.text,
        reason_code=reason.code,
        origin=entry.origin,
        metric=" ".join(filter(None, (limit.name, limit.statistic))),
        value=seen.value if seen.value is not None and isfinite(seen.value) else None,
        unit="" if seen.value is None else limit.unit,
        bounds=bounds if bounds and all(map(isfinite, bounds)) else None,
    )
