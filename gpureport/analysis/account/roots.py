"""Which findings follow from which, so that each cause appears once, above its consequences."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from gpureport.analysis.kinds import KINDS, RootCause
from gpureport.analysis.series import intervals
from gpureport.findings import Finding, Interval, Severity

_RANK = list(Severity)
_COVERED_SHARE = 0.9  # share of the time of a consequence that its root must cover


def link_findings(findings: Sequence[Finding], whole: Interval, gpus: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings, in the order of preferred roots, with their consequences or their root.

    Findings of one kind and cause are one root, each for its own devices. A root that follows from another passes its
    consequences on, and is as severe as what it led to. A finding without intervals stands for the whole run, one
    without devices for all GPUs.
    """
    above: dict[int, int] = {}
    for place, found in enumerate(findings):
        for root in KINDS[found.kind].follows:
            top = _find_root(root, place, findings, whole, gpus)
            if top is not None and _climb(top, above) != place:
                above[place] = top
                break
    tops = {place: _climb(place, above) for place in above}
    below: dict[int, list[Finding]] = {}
    for place, top in sorted(tops.items()):
        below.setdefault(top, []).append(findings[place])
    return tuple(
        replace(
            found,
            severity=max([found, *below.get(place, ())], key=lambda one: _RANK.index(one.severity)).severity,
            consequences=tuple(dict.fromkeys(one.fingerprint for one in below.get(place, ()))),
            root=findings[tops[place]].fingerprint if place in tops else None,
        )
        for place, found in enumerate(findings)
    )


def _find_root(
    root: RootCause, place: int, findings: Sequence[Finding], whole: Interval, gpus: Collection[str]
) -> int | None:
    if root.explains and findings[place].cause not in root.explains:
        return None
    wanted, families = set(findings[place].devices or gpus), dict[str | None, dict[int, set[str]]]()
    for other, found in enumerate(findings):
        devices = set(found.devices or gpus)
        is_named = found.kind == root.kind and (not root.causes or found.cause in root.causes)
        is_placed = bool(found.devices and found.intervals) or not root.needs_place
        if other != place and is_named and is_placed and (root.on_any_device or devices & wanted):
            families.setdefault(found.cause, {})[other] = devices
    for family in families.values():
        is_covered = root.on_any_device or set().union(*family.values()) >= wanted
        if is_covered and _fits(root, findings[place], [findings[other] for other in family], whole):
            return min(family)
    return None


def _fits(root: RootCause, found: Finding, roots: Iterable[Finding], whole: Interval) -> bool:
    if root.when == "ever":
        return True
    parts = [part for one in roots for part in one.intervals or (whole,)]
    if root.when == "since":
        parts = [Interval(min(part.start for part in parts), whole.end)]
    own = intervals.to_spans(found.intervals or (whole,))
    inside = intervals.total_seconds(intervals.intersection(own, intervals.to_spans(parts)))
    return inside >= _COVERED_SHARE * intervals.total_seconds(own) > 0


def _climb(place: int, above: Mapping[int, int]) -> int:
    while place in above:
        place = above[place]
    return place
