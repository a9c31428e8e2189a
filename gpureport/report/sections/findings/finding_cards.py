"""Findings gathered for reading: all of one kind and cause in one run are one card."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from gpureport.comparison.gains import known_loss
from gpureport.comparison.verdicts.finding_changes import can_tell
from gpureport.findings import Confidence, Evidence, Severity
from gpureport.report.model.finding_card import EvidenceLine, FindingCard
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings import advice_steps, finding_groups
from gpureport.report.sections.findings.finding_groups import Group
from gpureport.report.wording import display, terms
from gpureport.report.wording.grouping import group_holders

OPEN = "open"
_LISTED = 100
_SEVERITIES = list(Severity)
_FIRST = "first"
"""What a card repeats before cards have numbers."""
_RELATIONS = {"<=": "≤", ">=": "≥"}
_CONFIDENCES = list(Confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A finding with what follows from it, by lost time, each with whether its lost time is part of the root's."""

    root: FindingCard
    others: tuple[tuple[FindingCard, bool], ...] = ()


def build_cards(runs: Sequence[ReportRun]) -> tuple[FindingCard, ...]:
    """Return the findings of all runs as cards: open ones first, then by lost GPU time.

    What follows from a finding comes right after it, whatever it lost itself, and so does the same of other runs: of
    the last step, or of all earlier ones of which the last says the same.
    """
    last = runs[-1].step
    found = [group for position, run in enumerate(runs) for group in finding_groups.groups(position, run)]
    families = [_family(group, found, runs, last) for group in found if not any(each.explains(group) for each in found)]
    families.sort(key=lambda family: min(_rank(card) for card in (family.root, *(card for card, _ in family.others))))
    return tuple(_numbered([family for alike in _repetitions(families) for family in alike]))


def _repetitions(families: Sequence[_Family]) -> Iterator[tuple[_Family, ...]]:
    """Yield findings that stand for themselves with the same of other runs, in the order of the first."""
    groups = group_holders((_repetition_key(place, family), family) for place, family in enumerate(families))
    for alike in groups.values():
        # the same title twice in a run is of two roots
        single = len({family.root.run_index for family in alike}) == len(alike)
        repeated = (replace(family, root=replace(family.root, repeats=_FIRST)) for family in alike[1:])
        yield (alike[0], *(repeated if single else alike[1:]))


def _repetition_key(place: int, family: _Family) -> tuple[object, ...]:
    card = family.root
    return (place,) if family.others else (card.title, card.severity, card.status, card.recommendations)


def _family(group: Group, found: Sequence[Group], runs: Sequence[ReportRun], last: str) -> _Family:
    """Return the card of a group and those of what follows from it, by lost time, without numbers."""
    several = len(runs) > 1
    others = [
        (_card(each, _status(each, runs, last), several=several), _is_part(group, each))
        for each in found
        if group.explains(each)
    ]
    return _Family(
        root=_card(group, _status(group, runs, last), several=several),
        others=tuple(sorted(others, key=lambda each: _rank(each[0]))),
    )


def _is_part(root: Group, group: Group) -> bool:
    """Return whether the lost time of a group is part of its root's: only that of the same GPUs is."""
    return root.lost is not None and group.lost is not None and set(group.devices) <= set(root.devices or group.devices)


def _numbered(families: Sequence[_Family]) -> Iterator[FindingCard]:
    """Yield the cards with their numbers, those that follow with that of their root."""
    first, before = 1, ""
    for family in families:
        root, name = family.root, f"F{first}"
        before = before if root.repeats else name
        ids = tuple(f"F{first + place}" for place in range(1, len(family.others) + 1))
        repeats = before if root.repeats else ""
        yield replace(root, id=name, explains=ids, lost=_lost_through(family, ids), repeats=repeats)
        for (card, is_part), own in zip(family.others, ids, strict=True):
            lost = f"{card.lost}, counted under {name}" if is_part else card.lost
            steps = tuple(step for step in card.steps if step not in root.steps)
            yield replace(card, id=own, root=name, lost=lost, steps=steps)
        first += len(family.others) + 1


def _lost_through(family: _Family, ids: Sequence[str]) -> str:
    """Return what a root lost in words: where it cannot say so itself, by what follows from it."""
    others = [(card, own) for (card, _), own in zip(family.others, ids, strict=True) if card.lost_seconds]
    if family.root.lost_seconds is not None or not others:
        return family.root.lost
    most, own = max(others, key=lambda each: each[0].lost_seconds or 0.0)
    return f"{most.lost} through {own}"


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
        lost_at_least=bool(group.lost) and known_loss.loses_unknown_time(group.findings),
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
        steps=advice_steps.build_advice_steps(group.findings),
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
