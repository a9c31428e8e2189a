"""Findings gathered for reading: all of one kind and cause in one run are one card."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.comparison.measures import SHORTEST_SECONDS
from gpureport.findings import Confidence, Evidence, Severity
from gpureport.report import display, gpu_time, groups, terms
from gpureport.report.groups import Group
from gpureport.report.inputs import RunInput
from gpureport.report.parts import EvidenceLine, FindingCard

OPEN = "open"
_LISTED = 100
_SEVERITIES = list(Severity)
_RELATIONS = {"<=": "≤", ">=": "≥"}
_CONFIDENCES = list(Confidence)


def cards(runs: Sequence[RunInput]) -> tuple[FindingCard, ...]:
    """Return the findings of all runs as cards: open ones first, then by lost GPU time."""
    last = runs[-1].step
    found = [group for position, run in enumerate(runs) for group in groups.groups(position, run)]
    drafts = [_card(group, _status(group, runs, last), several=len(runs) > 1) for group in found]
    drafts.sort(key=_rank)
    numbered = [replace(draft, id=f"F{number}") for number, draft in enumerate(drafts, start=1)]
    consequences = {group.key: {c for f in group.findings for c in f.consequences} for group in found}
    return tuple(_linked(card, numbered, consequences) for card in numbered)


def _status(group: Group, runs: Sequence[RunInput], last: str) -> str:
    """Return `open`, or what the last step says about a finding of an earlier one."""
    if group.run.step == last:
        return OPEN
    finding = group.findings[0]
    final = [run.analysis for run in runs if run.step == last]
    length = max(run.seconds for run in runs if run.step == last)
    if any((f.kind, f.cause) == (finding.kind, finding.cause) for analysis in final for f in analysis.findings):
        return "still found in the last step"
    missing = any(entry.kind == finding.kind for analysis in final for entry in analysis.not_judged)
    if missing or length < SHORTEST_SECONDS:
        return "the last step cannot tell"
    return "not found in the last step"


def _rank(card: FindingCard) -> tuple[bool, bool, float, int, int]:
    """Sort open cards first, facts after what calls for action, then by lost time, severity and run."""
    severity = Severity(card.severity)
    lost = card.lost_seconds or 0.0
    return not card.is_open, severity is Severity.INFO, -lost, -_SEVERITIES.index(severity), card.run_index


def _card(group: Group, status: str, *, several: bool) -> FindingCard:
    worst = group.worst
    held = gpu_time.held_seconds([group.run.analysis])
    ratio = group.lost / held if group.lost is not None and held else None
    found = list(groups.occurrences(group))
    return FindingCard(
        id="",
        kind=worst.kind,
        title=groups.title(group),
        severity=group.severity.value,
        confidence=min((f.confidence for f in group.findings), key=lambda c: -_CONFIDENCES.index(c)).value,
        status=status,
        is_open=status == OPEN,
        run=group.run.label if several else "",
        run_index=group.position,
        lost_seconds=group.lost,
        lost=groups.lost(group, ratio),
        lost_ratio=ratio,
        lost_cost=group.cost,
        summary=groups.summary(group),
        evidence=tuple(evidence_line(evidence) for evidence in worst.evidence),
        recommendations=_unique(finding.recommendation for finding in group.findings),
        cause=groups.cause(worst),
        where=groups.where(group, found),
        count=len(group.findings),
        occurrences=tuple(found[:_LISTED]),
        omitted=f"and {display.integer(len(found) - _LISTED)} more" if len(found) > _LISTED else "",
        ruled_out=_unique(iter(worst.ruled_out)),
        explains=(),
        fingerprints=group.fingerprints,
    )


def _unique(texts: "Iterator[str]") -> tuple[str, ...]:
    return tuple(dict.fromkeys(display.sentence(text) for text in texts if text))


def evidence_line(evidence: Evidence) -> EvidenceLine:
    """Return a measured value in words, with its limit and the limit's origin."""
    quantity = f"{terms.column(display.clean(evidence.metric))}, {display.clean(evidence.statistic)}"
    threshold = evidence.threshold
    limit = source = ""
    if threshold is not None:
        relation = _RELATIONS.get(evidence.relation, evidence.relation) or "limit"
        limit = f"{relation} {display.quantity(threshold.value, threshold.unit)}"
        source = f"{threshold.provenance.value}: {display.sentence(threshold.source)}"
    return EvidenceLine(
        quantity=quantity.removesuffix(", "),
        observed=display.quantity(evidence.observed, evidence.unit),
        limit=limit,
        source=source,
    )


def _linked(
    card: FindingCard, others: list[FindingCard], consequences: dict[tuple[int, tuple[str, ...]], set[str]]
) -> FindingCard:
    """Return the card with the ids of those of the same run that follow from it."""
    follow = consequences[card.run_index, card.fingerprints]
    explains = tuple(
        other.id
        for other in others
        if other.id != card.id and other.run_index == card.run_index and follow & set(other.fingerprints)
    )
    return replace(card, explains=explains)
