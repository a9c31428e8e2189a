"""Findings gathered for reading: all of one kind and cause in one run are one card."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from gpureport.comparison.verdicts.finding_changes import can_tell
from gpureport.findings import Confidence, Evidence, Severity
from gpureport.report.model.finding_card import EvidenceLine, FindingCard
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import advised, finding_groups
from gpureport.report.sections.findings.finding_groups import Group
from gpureport.report.wording import display, terms

OPEN = "open"
_LISTED = 100
_SEVERITIES = list(Severity)
_FIRST = "first"
"""What a card repeats before cards have numbers."""
_COUNTED = ", counted under"
"""What the lost time of a card ends with where it is part of that of its root."""

_RELATIONS = {"<=": "≤", ">=": "≥"}
_CONFIDENCES = list(Confidence)


def cards(runs: Sequence[ReportRun]) -> tuple[FindingCard, ...]:
    """Return the findings of all runs as cards: open ones first, then by lost GPU time.

    What follows from a finding comes right after it, whatever it lost itself, and so does the same of other runs: of
    the last step, or of all earlier ones of which the last says the same.
    """
    last = runs[-1].step
    found = [group for position, run in enumerate(runs) for group in finding_groups.groups(position, run)]
    families = [_family(group, found, runs, last) for group in found if not any(each.explains(group) for each in found)]
    families.sort(key=lambda family: min(_rank(card) for card in family))
    return tuple(_numbered([family for alike in _repetitions(families) for family in alike]))


def _repetitions(
    families: Sequence[list[FindingCard]],
) -> Iterator[tuple[list[FindingCard], ...]]:
    """Yield findings that stand for themselves with the same of other runs, in the order of the first."""
    gathered: dict[tuple[object, ...], list[list[FindingCard]]] = {}
    for place, family in enumerate(families):
        card = family[0]
        alone = len(family) == 1
        key = (card.title, card.severity, card.status, card.recommendations) if alone else (place,)
        gathered.setdefault(key, []).append(family)
    for alike in gathered.values():
        # the same title twice in a run is of two roots
        single = len({family[0].run_index for family in alike}) == len(alike)
        yield (alike[0], *([replace(card, repeats=_FIRST)] if single else [card] for (card,) in alike[1:]))


def _family(group: Group, found: Sequence[Group], runs: Sequence[ReportRun], last: str) -> list[FindingCard]:
    """Return the card of a group and those of what follows from it, by lost time, without numbers."""
    root, *others = (
        _part(group, each, _card(each, _status(each, runs, last), several=len(runs) > 1))
        for each in (group, *(other for other in found if group.explains(other)))
    )
    return [root, *sorted(others, key=_rank)]


def _part(root: Group, group: Group, card: FindingCard) -> FindingCard:
    """Return a card with whether its time is part of its root's: only that of the same GPUs is."""
    counted = group is not root and root.lost is not None and set(group.devices) <= set(root.devices or group.devices)
    return replace(card, lost=f"{card.lost}{_COUNTED}") if counted and card.lost_seconds is not None else card


def _numbered(families: Sequence[list[FindingCard]]) -> Iterator[FindingCard]:
    """Yield the cards with their numbers, those that follow with that of their root."""
    first, before = 1, ""
    for root, *others in families:
        name = f"F{first}"
        before = before if root.repeats else name
        ids = tuple(f"F{first + place}" for place in range(1, len(others) + 1))
        repeats = before if root.repeats else ""
        yield replace(root, id=name, explains=ids, lost=_through(root, others, ids), repeats=repeats)
        for card, own in zip(others, ids, strict=True):
            lost = card.lost.replace(_COUNTED, f"{_COUNTED} {name}")
            steps = tuple(step for step in card.steps if step not in root.steps)
            yield replace(card, id=own, root=name, lost=lost, steps=steps)
        first += len(others) + 1


def _through(root: FindingCard, others: Sequence[FindingCard], ids: Sequence[str]) -> str:
    """Return what a root lost in words: where it cannot say so itself, by what follows from it."""
    told = zip(others, ids, strict=True)
    lost = [(card.lost_seconds, card.lost.removesuffix(_COUNTED), own) for card, own in told if card.lost_seconds]
    if root.lost_seconds is not None or not lost:
        return root.lost
    _, most, own = max(lost, key=lambda each: each[0] or 0.0)
    return f"{most} through {own}"


def _status(group: Group, runs: Sequence[ReportRun], last: str) -> str:
    """Return `open`, or what the last step says about a finding of an earlier one."""
    if group.run.step == last:
        return OPEN
    finding = group.findings[0]
    final = [run.analysis for run in runs if run.step == last]
    if any((f.kind, f.cause) == (finding.kind, finding.cause) for analysis in final for f in analysis.findings):
        return "still found in the last step"
    count = sum(can_tell(analysis, finding) for analysis in final)
    if not count:
        return "the last step cannot tell"
    several = f"the {count} of {len(final)} runs of the last step that could be judged"
    return f"not found in {several if count < len(final) else 'the last step'}"


def _rank(card: FindingCard) -> tuple[bool, bool, float, int, int]:
    """Sort open cards first, facts after what calls for action, then by lost time, severity and run."""
    severity = Severity(card.severity)
    lost = card.lost_seconds or 0.0
    return not card.is_open, severity is Severity.INFO, -lost, -_SEVERITIES.index(severity), card.run_index


def _card(group: Group, status: str, *, several: bool) -> FindingCard:
    worst = group.worst
    held = gpu_time.job_gpu_seconds([group.run.analysis])
    ratio = group.lost / held if group.lost is not None and held else None
    listed = tuple(islice(finding_groups.occurrences(group), _LISTED))
    count = sum(len(finding.intervals) for finding in group.findings)
    return FindingCard(
        id="",
        kind=display.clean(worst.kind),
        title=finding_groups.title(group),
        severity=group.severity.value,
        confidence=min((f.confidence for f in group.findings), key=lambda c: -_CONFIDENCES.index(c)).value,
        status=status,
        is_open=status == OPEN,
        run=group.run.label if several else "",
        run_index=group.position,
        lost_seconds=group.lost,
        lost=finding_groups.lost(group, ratio),
        lost_ratio=ratio,
        lost_cost=group.cost,
        summary=finding_groups.summary(group),
        evidence=tuple(evidence_line(evidence) for evidence in worst.evidence),
        recommendations=_unique(finding.recommendation for finding in group.findings),
        cause=finding_groups.cause(worst),
        where=finding_groups.where(group, listed, count),
        count=len(group.findings),
        occurrences=listed,
        omitted=f"and {display.integer(count - _LISTED)} more" if count > _LISTED else "",
        ruled_out=_unique(iter(worst.ruled_out)),
        explains=(),
        fingerprints=group.fingerprints,
        steps=advised.lines(group.findings),
    )


def _unique(texts: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(display.clean_sentence(text) for text in texts if text))


def evidence_line(evidence: Evidence) -> EvidenceLine:
    """Return a measured value in words, with its limit and the limit's origin."""
    quantity = f"{terms.column_title(display.clean(evidence.metric))}, {display.clean(evidence.statistic)}"
    threshold = evidence.threshold
    limit = source = ""
    if threshold is not None:
        relation = _RELATIONS.get(evidence.relation, evidence.relation) or "limit"
        limit = f"{relation} {display.quantity(threshold.value, threshold.unit)}"
        source = f"{threshold.provenance.value}: {display.clean_sentence(threshold.source)}"
    return EvidenceLine(
        quantity=quantity.removesuffix(", "),
        observed=display.quantity(evidence.observed, evidence.unit),
        limit=limit,
        source=source,
    )
