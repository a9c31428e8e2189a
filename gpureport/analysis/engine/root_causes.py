"""Which findings follow from which, so that each cause appears once, with its consequences beneath it."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gpureport.analysis.kinds import RootCause, When
from gpureport.analysis.rulebook import Rule
from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.findings import Finding, Interval, Severity

_RANK = list(Severity)

COVERED_SHARE = 0.9
"""Share of the time of a consequence that its root must cover."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A kind of finding, and one that can be its root."""

    consequence: str
    root: RootCause

    def leads(self, found: Finding) -> bool:
        """Whether a finding can be the root."""
        return (
            found.kind == self.root.kind
            and (not self.root.causes or found.cause in self.root.causes)
            and not (self.root.needs_place and not (found.devices and found.intervals))
        )

    def follows(self, found: Finding) -> bool:
        """Whether a finding can be the consequence."""
        return found.kind == self.consequence and (not self.root.explains or found.cause in self.root.explains)


def list_links(rules: Sequence[Rule]) -> Iterator[Link]:
    """Yield what may follow from what by the rules, for each kind the preferred root first."""
    for rule in rules:
        for kind in rule.descriptions:
            yield from (Link(consequence=kind.name, root=root) for root in kind.follows)


def link_findings(
    findings: Sequence[Finding], rules: Sequence[Rule], whole: Interval, gpus: Collection[str]
) -> tuple[Finding, ...]:
    """Return the findings, roots with their consequences and consequences with their root.

    Findings of one kind and cause are one root together, each for its own devices. A root that itself follows from
    another passes its consequences on to that one. A root is as severe as what it led to: the roots alone
    show the worst of everything.

    Args:
        findings: all that was found, in the order in which roots are preferred.
        rules: the rules, which say what may follow from what.
        whole: from first to last sample, which a finding without intervals stands for.
        gpus: ids of all GPUs, which a finding without devices stands for.
    """
    above: dict[int, int] = {}
    for link in list_links(rules):
        leading = [place for place, found in enumerate(findings) if link.leads(found)]
        for cause in dict.fromkeys(findings[place].cause for place in leading):
            family = [place for place in leading if findings[place].cause == cause]
            free = [place for place, found in enumerate(findings) if link.follows(found) and place not in above]
            for roots, others in _group_by_roots(link, family, free, findings, gpus).items():
                for other in _select_by_time(link, [findings[place] for place in roots], others, findings, whole):
                    if _find_top_root(roots[0], above) != other:
                        above[other] = roots[0]
    return _mark_roots(findings, {place: _find_top_root(place, above) for place in above})


def _mark_roots(findings: Sequence[Finding], tops: Mapping[int, int]) -> tuple[Finding, ...]:
    """Return the findings with root and consequences as the places of their roots say."""
    below: dict[int, list[str]] = {}
    worst = {top: findings[top].severity for top in tops.values()}
    for place, top in sorted(tops.items()):
        below.setdefault(top, []).append(findings[place].fingerprint)
        worst[top] = max(worst[top], findings[place].severity, key=_RANK.index)
    return tuple(
        replace(
            found,
            severity=worst.get(place, found.severity),
            consequences=tuple(dict.fromkeys(below.get(place, ()))),
            root=findings[tops[place]].fingerprint if place in tops else None,
        )
        if place in tops or place in below or found.consequences
        else found
        for place, found in enumerate(findings)
    )


def _group_by_roots(
    link: Link, family: Sequence[int], free: Sequence[int], findings: Sequence[Finding], gpus: Collection[str]
) -> dict[tuple[int, ...], list[int]]:
    """Group findings by the roots that together cover all of their devices.

    Keys and values are positions in `findings`.
    """
    found: dict[tuple[int, ...], list[int]] = {}
    by_device: dict[str, list[int]] = {}
    for place in () if link.root.on_any_device else family:
        for device in findings[place].devices or gpus:
            by_device.setdefault(device, []).append(place)
    for other in free:
        own = findings[other].devices or gpus
        roots = [family] if link.root.on_any_device else [by_device.get(device, ()) for device in own]
        apart = [[place for place in each if place != other] for each in roots]
        if apart and all(apart):
            found.setdefault(tuple(sorted(set().union(*apart))), []).append(other)
    return found


def _select_by_time(
    link: Link, roots: Sequence[Finding], others: Sequence[int], findings: Sequence[Finding], whole: Interval
) -> Sequence[int]:
    """Return the places of those findings whose time lies to that of the roots as the link asks."""
    if link.root.when is When.EVER:
        return others
    parts = [part for root in roots for part in root.intervals or (whole,)]
    if link.root.when is When.SINCE:
        parts = [Interval(min(part.start for part in parts), whole.end)]
    return _select_covered(
        intervals.to_spans(parts), [findings[other].intervals or (whole,) for other in others], others
    )


def _select_covered(held: Spans, times: Sequence[tuple[Interval, ...]], places: Sequence[int]) -> list[int]:
    """Return the places whose time the stretches cover for the share that is asked for, all of them at once."""
    owners = np.repeat(np.arange(len(times)), [len(each) for each in times])
    edges = np.array([(part.start, part.end) for each in times for part in each], dtype=np.int64)
    shared = np.bincount(
        owners, weights=intervals.overlap_seconds(edges[:, 0], edges[:, 1], held), minlength=len(times)
    )
    own = np.bincount(owners, weights=(edges[:, 1] - edges[:, 0]) / 1e6, minlength=len(times))
    return [
        place for place, inside, length in zip(places, shared, own, strict=True) if inside >= COVERED_SHARE * length > 0
    ]


def _find_top_root(place: int, above: Mapping[int, int]) -> int:
    while place in above:
        place = above[place]
    return place
