"""How many findings count against a limit, and how much they lost."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import fsum

from gpureport.analysis.results import Analysis
from gpureport.checks import limit_units
from gpureport.checks.limit import Limit, finding_kinds, finding_severities
from gpureport.checks.limit_units import FINDINGS, MONEY, SHARE
from gpureport.checks.observed_value import NO_REASON, ObservedValue, Why, join_reasons, not_observed
from gpureport.comparison.figures import SHORTEST_SECONDS, observed_seconds
from gpureport.findings import Confidence, Finding, NotJudged, Severity
from gpureport.report.wording import display

_LISTED = 6
_CONFIDENCE_ORDER = list(reversed(Confidence))


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingFilter:
    """Which findings count.

    Attributes:
        confidence: findings of lower confidence do not count.
        selected_kinds: kinds that were looked for; a limit on any other cannot be judged.
        only: fingerprints that count; None if all do.
        without: acknowledged findings, which do not count.
    """

    confidence: Confidence
    selected_kinds: Collection[str]
    only: Collection[str] | None = None
    without: Collection[Finding] = ()


def select_findings(limit: Limit, analysis: Analysis, sought: FindingFilter) -> tuple[Finding, ...]:
    """Return the findings that count against a limit."""
    kinds, severities = finding_kinds(limit.name), finding_severities(limit.name)
    return tuple(
        finding
        for finding in analysis.findings
        if finding.kind in kinds
        and finding.severity in severities
        and _CONFIDENCE_ORDER.index(finding.confidence) >= _CONFIDENCE_ORDER.index(sought.confidence)
        and (sought.only is None or finding.fingerprint in sought.only)
        and finding not in sought.without
    )


def observe_findings(limit: Limit, analysis: Analysis, sought: FindingFilter) -> ObservedValue:
    """Return the findings in the unit of the limit."""
    kinds = finding_kinds(limit.name)
    asked = kinds & set(sought.selected_kinds)
    if not asked:
        return not_observed("not_looked_for", f"{limit.name} was not looked for (--select, --ignore)")
    found = select_findings(limit, analysis, sought)
    one_kind = limit.name not in tuple(Severity)
    lacking = [entry for entry in analysis.not_judged if entry.kind in asked]
    made = _count_findings(found) if limit.threshold.unit == FINDINGS else _sum_losses(limit, analysis, found)
    uncounted = _count_unsure(limit, analysis, sought)
    if uncounted and not found:
        # a rule that holds shows only what was observed
        made, uncounted = replace(made, text=f"{made.text}, {uncounted.text}"), NO_REASON
    return ObservedValue(
        value=made.value,
        unit=made.unit,
        text=made.text,
        missing=made.missing,
        doubt=made.doubt or _explain_doubt(analysis, lacking, kinds - asked, one_kind=one_kind),
        note=join_reasons(NO_REASON if one_kind else _list_unjudged(lacking), uncounted),
    )


def _count_findings(found: Sequence[Finding]) -> ObservedValue:
    text = display.plural(len(found), "finding")
    return ObservedValue(
        value=float(len(found)), unit=FINDINGS, text=f"{text}: {_list_kinds(found)}" if found else text
    )


def _list_kinds(found: Sequence[Finding]) -> str:
    kinds = [finding.kind for finding in found]
    names = [f"{kind} ({kinds.count(kind)} times)" if kinds.count(kind) > 1 else kind for kind in dict.fromkeys(kinds)]
    more = f" and {len(names) - _LISTED} more kinds" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _sum_losses(limit: Limit, analysis: Analysis, found: Sequence[Finding]) -> ObservedValue:
    """Return what findings lost; a root includes its consequences."""
    unit, prints = limit.threshold.unit, {finding.fingerprint for finding in found}
    roots = [finding for finding in found if finding.root not in prints]
    if unit == MONEY and (analysis.cost is None or analysis.cost.currency != limit.threshold.currency):
        return not_observed(
            "no_price",
            f"no price is stated in {limit.threshold.currency or 'this currency'}: --gpu-hour-price or [prices]",
        )
    cost = analysis.cost.cost_of if analysis.cost and unit == MONEY else lambda finding: finding.lost_gpu_seconds
    amounts_lost = [cost(finding) for finding in roots]
    untold = [finding for finding, lost in zip(roots, amounts_lost, strict=True) if lost is None]
    held = analysis.job_gpu_seconds
    total = fsum(lost for lost in amounts_lost if lost is not None)
    if unit == SHARE and held <= 0:
        return not_observed("no_gpu_time", "GPU time could not be divided")
    value = total / held if unit == SHARE else total
    shown = limit_units.format_against_limit(
        value, limit.threshold, display.gpu_time if unit == limit_units.TIME else None
    )
    doubt = Why("loss_not_known", f"what {_list_kinds(untold)} lost is not known in GPU time") if untold else NO_REASON
    return ObservedValue(value=value, unit=unit, text=f"{shown}: {_list_kinds(found)}" if found else shown, doubt=doubt)


def _explain_doubt(
    analysis: Analysis, lacking: Sequence[NotJudged], unasked: Collection[str], *, one_kind: bool
) -> Why:
    """Return why the findings may be incomplete; false without doubt."""
    seconds = observed_seconds([analysis])
    if seconds < SHORTEST_SECONDS:
        return Why(
            "too_short", f"only {display.duration(seconds)} of the GPUs were recorded, and a minute is the least"
        )
    if not any(gpu.metric("gpu_utilization_ratio") for gpu in analysis.statistics):
        return Why("not_recorded", "the utilisation of no GPU was recorded")
    if one_kind and lacking:
        entry = lacking[0]
        needs = f"; needs {entry.recording}" if entry.recording else ""
        return Why("kind_not_judged", f"{entry.kind} was not assessed: {entry.reason}{needs}")
    if not unasked or not one_kind:
        return NO_REASON
    return Why("not_looked_for", f"{', '.join(sorted(unasked))} not looked for (--select, --ignore)")


def _list_unjudged(lacking: Sequence[NotJudged]) -> Why:
    """Return which kinds could not be judged; false where all could."""
    kinds = list(dict.fromkeys(entry.kind for entry in lacking))
    return Why("kinds_not_judged", f"not assessed: {', '.join(kinds)}") if kinds else NO_REASON


def _count_unsure(limit: Limit, analysis: Analysis, sought: FindingFilter) -> Why:
    """Return how many findings are not sure enough to count; false where all are."""
    every = replace(sought, confidence=Confidence.LOW)
    unsure = len(select_findings(limit, analysis, every)) - len(select_findings(limit, analysis, sought))
    if not unsure:
        return NO_REASON
    words = f"{display.plural(unsure, 'finding')} with less than {sought.confidence} confidence not counted"
    return Why("unsure_findings", words)
