"""How many findings count against a limit, and how much they lost."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from gpureport.analysis import RULES
from gpureport.analysis.account.selection import kinds_by_name
from gpureport.analysis.results import Analysis
from gpureport.checks.figures import explain_short_time
from gpureport.checks.limit import (
    FINDINGS,
    MONEY,
    NO_REASON,
    SHARE,
    TIME,
    CheckedRun,
    Limit,
    Observed,
    Why,
    format_against_limit,
    join_reasons,
    not_observed,
)
from gpureport.comparison.figures import observed_seconds
from gpureport.findings import Confidence, Finding, NotJudged, Severity
from gpureport.report.wording import display

FAMILIES = kinds_by_name(RULES)
"""The kinds of every kind and family, by its name."""

_EVERY_KIND = frozenset(kind for rule in RULES for kind in rule.kinds)
_SEVERITIES, _CONFIDENCES = list(Severity), list(Confidence)
_LISTED = 6


def list_kinds(name: str) -> frozenset[str]:
    return frozenset(FAMILIES[name]) if name in FAMILIES else _EVERY_KIND


def select_findings(limit: Limit, run: CheckedRun) -> tuple[Finding, ...]:
    """Return the findings that count against a limit, of a severity those that are worse as well."""
    kinds = list_kinds(limit.name)
    severities = _SEVERITIES[_SEVERITIES.index(Severity(limit.name)) :] if limit.name in _SEVERITIES else _SEVERITIES
    sure = _CONFIDENCES[: _CONFIDENCES.index(run.confidence) + 1]
    return tuple(
        finding
        for finding in run.analysis.findings
        if finding.kind in kinds and finding.severity in severities and finding.confidence in sure
        if (run.only is None or finding.fingerprint in run.only) and finding not in run.acknowledged
    )


def observe_findings(limit: Limit, run: CheckedRun) -> Observed:
    kinds = list_kinds(limit.name)
    asked = kinds & set(run.selected_kinds)
    if not asked:
        return not_observed("not_looked_for", f"{limit.name} was not looked for (--select, --ignore)")
    found = select_findings(limit, run)
    one_kind = limit.name not in _SEVERITIES
    lacking = [entry for entry in run.analysis.not_judged if entry.kind in asked]
    seen = _count_findings(found) if limit.threshold.unit == FINDINGS else _sum_losses(limit, run.analysis, found)
    unsure = _count_unsure(limit, run, len(found))
    if unsure and not found:
        # a rule that holds shows only what was observed
        seen, unsure = replace(seen, text=f"{seen.text}, {unsure.text}"), NO_REASON
    unjudged = NO_REASON
    if lacking and not one_kind:
        unjudged = Why("kinds_not_judged", f"not assessed: {', '.join(dict.fromkeys(each.kind for each in lacking))}")
    doubt = seen.doubt or _explain_doubt(run.analysis, lacking if one_kind else (), kinds - asked if one_kind else ())
    return replace(seen, doubt=doubt, note=join_reasons(unjudged, unsure))


def _count_findings(found: Sequence[Finding]) -> Observed:
    text = display.plural(len(found), "finding")
    return Observed(value=float(len(found)), text=f"{text}: {_name_kinds(found)}" if found else text)


def _name_kinds(found: Sequence[Finding]) -> str:
    kinds = [finding.kind for finding in found]
    names = [f"{kind} ({kinds.count(kind)} times)" if kinds.count(kind) > 1 else kind for kind in dict.fromkeys(kinds)]
    more = f" and {len(names) - _LISTED} more kinds" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _sum_losses(limit: Limit, analysis: Analysis, found: Sequence[Finding]) -> Observed:
    """Return what findings lost; a root includes its consequences."""
    unit, cost, held = limit.threshold.unit, analysis.cost, analysis.job_gpu_seconds
    if unit == MONEY and (cost is None or cost.currency != limit.threshold.currency):
        currency = limit.threshold.currency or "this currency"
        return not_observed("no_price", f"no price is stated in {currency}: --gpu-hour-price or [prices]")
    if unit == SHARE and held <= 0:
        return not_observed("no_gpu_time", "GPU time could not be divided")
    prints = {finding.fingerprint for finding in found}
    roots = [finding for finding in found if finding.root not in prints]
    lost = [(each, cost.cost_of(each) if cost and unit == MONEY else each.lost_gpu_seconds) for each in roots]
    untold = [finding for finding, amount in lost if amount is None]
    total = fsum(amount for _, amount in lost if amount is not None)
    value = total / held if unit == SHARE else total
    shown = format_against_limit(value, limit.threshold, display.gpu_time if unit == TIME else None)
    doubt = Why("loss_not_known", f"what {_name_kinds(untold)} lost is not known in GPU time") if untold else NO_REASON
    return Observed(value=value, text=f"{shown}: {_name_kinds(found)}" if found else shown, doubt=doubt)


def _explain_doubt(analysis: Analysis, lacking: Sequence[NotJudged], unasked: Sequence[str] | frozenset[str]) -> Why:
    """Return why the findings may be incomplete; false without doubt."""
    if short := explain_short_time(observed_seconds([analysis]), "the GPUs"):
        return short
    if not any(gpu.metric("gpu_utilization_ratio") for gpu in analysis.statistics):
        return Why("not_recorded", "the utilisation of no GPU was recorded")
    if lacking:
        needs = f"; needs {lacking[0].recording}" if lacking[0].recording else ""
        return Why("kind_not_judged", f"{lacking[0].kind} was not assessed: {lacking[0].reason}{needs}")
    text = f"{', '.join(sorted(unasked))} not looked for (--select, --ignore)"
    return Why("not_looked_for", text) if unasked else NO_REASON


def _count_unsure(limit: Limit, run: CheckedRun, counted: int) -> Why:
    """Return how many findings are not sure enough to count; false where all are."""
    unsure = len(select_findings(limit, replace(run, confidence=Confidence.LOW))) - counted
    if not unsure:
        return NO_REASON
    words = f"{display.plural(unsure, 'finding')} with less than {run.confidence} confidence not counted"
    return Why("unsure_findings", words)
