"""Checks each run against the limits that apply, subject to acknowledgements."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fnmatch import fnmatchcase
from math import fsum, isfinite
from pathlib import PurePath

from gpureport.analysis.results import Analysis
from gpureport.checks import changes, figures
from gpureport.checks.changes import BaselineComparison
from gpureport.checks.figures import CheckedRun, Observed, explain_short_time, join_reasons, not_observed
from gpureport.checks.limit import (
    EVERY_KIND,
    FAMILIES,
    FINDINGS,
    MONEY,
    NO_REASON,
    NUMBER,
    SHARE,
    TIME,
    Limit,
    Subject,
    Why,
    format_against_limit,
)
from gpureport.checks.policy import Acknowledgement, Exemption, Policy, PolicyEntry
from gpureport.comparison.figures import observed_seconds
from gpureport.comparison.run import SampledRun
from gpureport.comparison.training import NO_GOALS, TrainingGoals
from gpureport.findings import Check, CheckOutcome, Confidence, Finding, NotJudged, Severity
from gpureport.report.wording import display

NO_BASELINE_NAMED = Why("no_baseline", "no baseline was given (--baseline)")
_FORMER: dict[tuple[str, str | None], tuple[str, str | None]] = {
    ("idle_gap", "data"): ("idle_gap", "io"),
    ("idle_gap", "unknown"): ("idle_gap", "io"),
    ("power_limited", "capped below its limit"): ("power_cap", None),
}
"""The former kind and cause of renamed findings, which acknowledgements may still use."""
_SEVERITIES, _CONFIDENCES = list(Severity), list(Confidence)
_LISTED = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckInput:
    runs: tuple[SampledRun, ...]
    selected_kinds: Collection[str]
    today: date
    goals: TrainingGoals = NO_GOALS
    comparisons: Mapping[str, BaselineComparison] = field(default_factory=dict)
    why_no_baseline: Why = NO_BASELINE_NAMED


def step_name(analysis: Analysis) -> str:
    return analysis.run.step or analysis.run.id


def evaluate_policy(policy: Policy, given: CheckInput) -> tuple[Check, ...]:
    found = []
    for entry in policy.entries:
        chosen = [run for run in given.runs if _applies(entry, run.analysis)]
        if entry.limit.subject is Subject.CHANGE:
            # the runs of one step are repetitions and are compared together
            chosen = list({step_name(run.analysis): run for run in chosen}.values())
        if not chosen and given.runs:
            reason = Why("no_run_matches", f"no run matches {entry.scope}")
            found.append(_make_check(entry, "", CheckOutcome.CANNOT_JUDGE, Observed(), reason))
        found += [_check_run(entry, run, policy, given) for run in chosen]
    return tuple(found)


def _applies(where: PolicyEntry, analysis: Analysis) -> bool:
    run = analysis.run
    if where.step is not None and not (run.step and fnmatchcase(run.step, where.step)):
        return False
    files = [source.locator for source in run.sources]
    names = [run.name, run.id, *files, *(PurePath(file).name for file in files)]
    return where.source is None or any(fnmatchcase(name, where.source) for name in names)


def _check_run(entry: PolicyEntry, sampled: SampledRun, policy: Policy, given: CheckInput) -> Check:
    whole = sampled.analysis
    run = CheckedRun(
        sampled=sampled,
        analysis=_select_gpus(whole, entry.gpus),
        selected_kinds=given.selected_kinds,
        goals=given.goals,
        confidence=entry.confidence,
    )
    there, asked = {gpu.index for gpu in whole.run.gpus}, entry.gpus
    absent = [str(index) for index in asked or () if index not in there]
    lacking = Why("no_such_gpu", f"the run has no GPU {display.join_words(absent)}") if absent else NO_REASON
    has_gpus = asked is None or len(absent) < len(asked)
    excused, doubt = _evaluate_exemption(entry.unless, run, has_gpus=has_gpus)
    if excused:
        seen, outcome, reason = Observed(), CheckOutcome.NOT_APPLIED, excused
    elif not has_gpus:
        seen, outcome, reason = Observed(), CheckOutcome.CANNOT_JUDGE, lacking
    else:
        seen, outcome, reason = _judge(entry, run, policy, given)
        compared = given.comparisons.get(step_name(whole)) if entry.limit.needs_baseline else None
        reason = join_reasons(reason, compared.left_out if compared else NO_REASON, doubt, lacking)
    failure = figures.explain_failure(sampled)
    reason = reason if reason.code == failure.code else join_reasons(reason, failure)
    name = whole.run.step if entry.limit.subject is Subject.CHANGE else None
    return _make_check(entry, name or whole.run.name, outcome, seen, reason)


def _select_gpus(analysis: Analysis, asked: tuple[int, ...] | None) -> Analysis:
    """Return the analysis of the GPUs in scope and all hosts, or everything if no GPU is in scope."""
    run = analysis.run
    kept = {gpu.id for gpu in run.gpus if gpu.index in (asked or ())}
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
    """Return why a limit does not apply, and why it is unknown whether it does. Either reason may be empty."""
    if unless is not None and unless.label is not None:
        kind, key, value = unless.label
        labels = dict(run.analysis.run.params if kind == "param" else run.analysis.run.tags)
        return Why("exempt", f"{kind} {key} is {value}") if labels.get(key) == value else NO_REASON, NO_REASON
    limit = unless.limit if unless else None
    if unless is None or limit is None or not (has_gpus or limit.subject is Subject.RUN):
        return NO_REASON, NO_REASON
    seen = _OBSERVERS[limit.subject](limit, run)
    # a bare kind must be absent to meet a limit, but present for an exemption
    is_bare = limit.subject is Subject.FINDING and not limit.threshold.text
    if seen.breaks(limit) if is_bare else seen.keeps(limit):
        return Why("exempt", f"{unless.words}: {seen.text}"), NO_REASON
    unknown = Why("exemption_not_known", f"it is not known whether the exception {unless.words} applies")
    return NO_REASON, unknown if seen.doubt else NO_REASON


def _observe(entry: PolicyEntry, run: CheckedRun, given: CheckInput) -> Observed:
    limit, is_of_gpus = entry.limit, entry.gpus is not None
    if is_of_gpus and limit.subject is Subject.TRAINING:
        return not_observed("no_gpu_scope", "training metrics describe the whole run, so leave out 'gpu' under 'for'")
    if not limit.needs_baseline:
        return figures.doubt_partial_run(limit, run, _OBSERVERS[limit.subject](limit, run))
    found = given.comparisons.get(step_name(run.analysis))
    if found is None:
        return Observed(doubt=given.why_no_baseline)
    if limit.subject is Subject.CHANGE:
        if is_of_gpus:
            return not_observed("no_gpu_scope", "changes describe all GPUs together, so leave out 'gpu' under 'for'")
        return changes.observe_change(limit, found)
    sure = {finding.fingerprint for finding in _select_findings(limit, run)}
    new = changes.map_new_fingerprints(found)
    # report a finding whose confidence is too low as not counted, even if it may not be new
    counted = {each for each, why in new.items() if not why or each not in sure}
    seen = _observe_findings(limit, replace(run, only=counted))
    return replace(seen, doubt=seen.doubt or next((new[each] for each in new if each not in counted), NO_REASON))


def _decide_outcome(limit: Limit, seen: Observed) -> tuple[CheckOutcome, Why]:
    if seen.value is None:
        return CheckOutcome.CANNOT_JUDGE, seen.doubt
    if seen.breaks(limit):
        return CheckOutcome.BROKEN, seen.note
    if seen.keeps(limit):
        return CheckOutcome.PASSED, seen.note
    open_ = Why("unknown_gpu_time", f"whether the limit is met depends on {seen.open_part}")
    return CheckOutcome.CANNOT_JUDGE, seen.doubt or open_


def _judge(rule: PolicyEntry, run: CheckedRun, policy: Policy, given: CheckInput) -> tuple[Observed, CheckOutcome, Why]:
    limit, seen = rule.limit, _observe(rule, run, given)
    outcome, reason = _decide_outcome(limit, seen)
    if outcome is not CheckOutcome.BROKEN:
        return seen, outcome, reason
    findings: list[Finding] = []
    words, expired, is_whole = [], [], False
    is_counted = limit.subject in {Subject.FINDING, Subject.NEW}
    for each in policy.acknowledged:
        meant = [finding for finding in run.analysis.findings if is_counted and _acknowledges(each, finding)]
        is_limit, why = each.limit == limit.words, display.clean(each.reason)
        if (meant or is_limit) and each.until < given.today:
            expired.append(f"the acknowledgement expired after {each.until} ({why}; {each.origin})")
        elif meant or is_limit:
            findings += meant
            is_whole = is_whole or is_limit
            words.append(f"acknowledged until {each.until}: {why}")
    known, over = Why("acknowledged", "; ".join(words)), Why("acknowledgement_expired", "; ".join(expired))
    without = _observe(rule, replace(run, acknowledged=findings), given) if findings else seen
    others, other_reason = _decide_outcome(limit, without)
    if others is CheckOutcome.PASSED or is_whole:
        return seen, CheckOutcome.ACKNOWLEDGED, known
    if others is CheckOutcome.CANNOT_JUDGE:
        return seen, others, join_reasons(other_reason, known)
    return without, outcome, join_reasons(reason, over)


def _acknowledges(known: Acknowledgement, finding: Finding) -> bool:
    kind, cause = _FORMER.get((finding.kind, finding.cause), (finding.kind, finding.cause))
    prints = {finding.fingerprint, replace(finding, kind=kind, cause=cause).fingerprint}
    return known.finding in prints or not {finding.kind, kind}.isdisjoint(FAMILIES.get(known.finding, ()))


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
        unit="" if seen.value is None or limit.threshold.unit == NUMBER else limit.threshold.unit,
        bounds=bounds if bounds and all(map(isfinite, bounds)) else None,
    )


# --- findings


def _select_findings(limit: Limit, run: CheckedRun) -> tuple[Finding, ...]:
    kinds = frozenset(FAMILIES.get(limit.name, EVERY_KIND))
    severities = _SEVERITIES[_SEVERITIES.index(Severity(limit.name)) :] if limit.name in _SEVERITIES else _SEVERITIES
    sure = _CONFIDENCES[: _CONFIDENCES.index(run.confidence) + 1]
    return tuple(
        finding
        for finding in run.analysis.findings
        if finding.kind in kinds and finding.severity in severities and finding.confidence in sure
        if (run.only is None or finding.fingerprint in run.only) and finding not in run.acknowledged
    )


def _observe_findings(limit: Limit, run: CheckedRun) -> Observed:
    kinds = frozenset(FAMILIES.get(limit.name, EVERY_KIND))
    asked = kinds & set(run.selected_kinds)
    if not asked:
        return not_observed("not_looked_for", f"{limit.name} was not looked for (--select, --ignore)")
    found = _select_findings(limit, run)
    one_kind = limit.name not in _SEVERITIES
    lacking = [entry for entry in run.analysis.not_judged if entry.kind in asked]
    seen = _add_up(limit, run.analysis, found)
    less_sure, unsure = len(_select_findings(limit, replace(run, confidence=Confidence.LOW))) - len(found), NO_REASON
    if less_sure:
        words = f"{display.plural(less_sure, 'finding')} with less than {run.confidence} confidence not counted"
        unsure = Why("unsure_findings", words)
    if unsure and not found:
        # add the note, as the output for a passed rule shows only the observation
        seen, unsure = replace(seen, text=f"{seen.text}, {unsure.text}"), NO_REASON
    kinds_lacking = ", ".join(dict.fromkeys(each.kind for each in lacking))
    unjudged = Why("kinds_not_judged", f"not assessed: {kinds_lacking}") if lacking and not one_kind else NO_REASON
    doubt = seen.doubt or _explain_doubt(run.analysis, lacking if one_kind else (), kinds - asked if one_kind else ())
    return replace(seen, doubt=doubt, note=join_reasons(unjudged, unsure))


def _name_kinds(found: Sequence[Finding]) -> str:
    names = []
    for kind, count in Counter(finding.kind for finding in found).items():
        gpus = {each for finding in found if finding.kind == kind for each in finding.devices}
        times = f"on {count} GPUs" if len(gpus) == count else f"{count} times"
        names.append(f"{kind} ({times})" if count > 1 else kind)
    more = f" and {len(names) - _LISTED} more kinds" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _add_up(limit: Limit, analysis: Analysis, found: Sequence[Finding]) -> Observed:
    """Return the number of findings, or their loss, counting consequences only once."""
    unit, cost, held = limit.threshold.unit, analysis.cost, analysis.job_gpu_seconds
    named = f": {_name_kinds(found)}" if found else ""
    if unit == FINDINGS:
        return Observed(value=float(len(found)), text=f"{display.plural(len(found), 'finding')}{named}")
    if unit == MONEY and (cost is None or cost.currency != limit.threshold.currency):
        currency = limit.threshold.currency or "this currency"
        return not_observed("no_price", f"no price is stated in {currency}: use --gpu-hour-price or [prices]")
    if unit == SHARE and held <= 0:
        return not_observed("no_gpu_time", "GPU time could not be divided into classes")
    prints = {finding.fingerprint for finding in found}
    roots = [finding for finding in found if finding.root not in prints]
    lost = [(each, cost.cost_of(each) if cost and unit == MONEY else each.lost_gpu_seconds) for each in roots]
    untold = [finding for finding, amount in lost if amount is None]
    total = fsum(amount for _, amount in lost if amount is not None)
    value = total / held if unit == SHARE else total
    shown = format_against_limit(value, limit.threshold, display.gpu_time if unit == TIME else None)
    doubt = Why("loss_not_known", f"the GPU time lost to {_name_kinds(untold)} is not known") if untold else NO_REASON
    return Observed(value=value, text=f"{shown}{named}", doubt=doubt)


def _explain_doubt(analysis: Analysis, lacking: Sequence[NotJudged], unasked: Sequence[str] | frozenset[str]) -> Why:
    if short := explain_short_time(observed_seconds([analysis]), "the GPUs"):
        return short
    if not any(gpu.metric("gpu_utilization_ratio") for gpu in analysis.statistics):
        return Why("not_recorded", "no GPU utilisation was recorded")
    if lacking:
        needs = f"; needs {lacking[0].recording}" if lacking[0].recording else ""
        return Why("kind_not_judged", f"{lacking[0].kind} was not assessed: {lacking[0].reason}{needs}")
    text = f"{', '.join(sorted(unasked))} not looked for (--select, --ignore)"
    return Why("not_looked_for", text) if unasked else NO_REASON


_OBSERVERS = {
    Subject.STATISTIC: figures.observe_device,
    Subject.DEVICE: figures.observe_device,
    Subject.FIGURE: figures.observe_figure,
    Subject.GPU_TIME: figures.observe_gpu_time,
    Subject.RUN: figures.observe_run,
    Subject.TRAINING: figures.observe_training,
    Subject.FINDING: _observe_findings,
}
