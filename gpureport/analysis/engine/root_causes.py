"""Which findings follow from which: one cause is told once, with what it led to beneath it."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.analysis.signals import gpu_loss_times, low_use, waiting_gpus
from gpureport.findings import Finding, Interval, Severity

_RANK = list(Severity)

SHARED = 0.9
"""Share of the time of a consequence that its root must cover."""


class When(Enum):
    """How the time of a consequence lies to that of its root."""

    DURING = "during the root, for at least 90 % of its time"
    SINCE = "from the beginning of the root on, for at least 90 % of its time"
    EVER = "at any time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A kind that can be the root of another.

    Attributes:
        root: kind of the root.
        consequence: kind that may follow from it.
        causes: causes a consequence may have; any when empty.
        root_causes: causes the root must have; any when empty.
        elsewhere: whether it may concern other devices than the root.
        placed: whether the root must name its devices and its time; else it may stand for all of both.
        when: how their times must lie.
    """

    root: str
    consequence: str
    causes: tuple[str | None, ...] = ()
    root_causes: tuple[str, ...] = ()
    elsewhere: bool = False
    placed: bool = False
    when: When = When.DURING

    def leads(self, found: Finding) -> bool:
        """Whether a finding can be the root."""
        return (
            found.kind == self.root
            and (not self.root_causes or found.cause in self.root_causes)
            and not (self.placed and not (found.devices and found.intervals))
        )

    def follows(self, found: Finding) -> bool:
        """Whether a finding can be the consequence."""
        return found.kind == self.consequence and (not self.causes or found.cause in self.causes)


_AFTER_LOSS = ("idle_gap", "imbalance", "tail_idle", "log_gap")
_STALLS = ("hang", "peers busy")

LINKS: tuple[Link, ...] = (
    *(
        Link(root="gpu_lost", root_causes=gpu_loss_times.FATAL_CAUSES, placed=True, consequence=kind, when=When.SINCE)
        for kind in _AFTER_LOSS
    ),
    Link(
        root="gpu_lost", root_causes=gpu_loss_times.FATAL_CAUSES, placed=True, consequence="unused_gpu", when=When.EVER
    ),
    Link(
        root="gpu_lost",
        root_causes=gpu_loss_times.FATAL_CAUSES,
        placed=True,
        consequence="hollow_util",
        causes=("hang",),
        elsewhere=True,
        when=When.SINCE,
    ),
    Link(root="unused_gpu", consequence="idle_gap", causes=("unused",)),
    Link(root="unused_gpu", consequence="imbalance", when=When.EVER),
    Link(root="hollow_util", root_causes=("hang",), consequence="imbalance", elsewhere=True),
    Link(root="hollow_util", root_causes=("hang",), consequence="idle_gap", causes=_STALLS, elsewhere=True),
    *(
        Link(root=heat, consequence=kind)
        for heat in ("thermal_throttle", "hw_throttle")
        for kind in ("imbalance", "power_cap")
    ),
    Link(root="power_limited", consequence="power_cap"),
    Link(root="power_limited", consequence="imbalance"),
    Link(root="imbalance", consequence="hollow_util", causes=("straggler",), elsewhere=True),
    Link(root="pcie_degraded", consequence="transfer_bound"),
    *(Link(root=wait, consequence="idle_gap", causes=("data", "io")) for wait in waiting_gpus.WAIT_KINDS),
    *(Link(root=wait, consequence=kind) for wait in waiting_gpus.WAIT_KINDS for kind in low_use.LOW_USE_KINDS),
    Link(root="periodic_stall", consequence="idle_gap"),
    Link(root="mem_leak", consequence="mem_pressure", when=When.EVER),
)
"""What may follow from what, the root to be preferred first where several fit."""


def linked(findings: Sequence[Finding], whole: Interval, gpus: Collection[str]) -> tuple[Finding, ...]:
    """Return the findings, roots with their consequences and consequences with their root.

    Findings of one kind and cause are one root together, each for its own devices. A root that itself follows from
    another passes its consequences on to that one. A root is as severe as what it led to: who reads the roots alone
    misses nothing.

    Args:
        findings: all that was found, in the order in which roots are preferred.
        whole: from first to last sample, which a finding without intervals stands for.
        gpus: ids of all GPUs, which a finding without devices stands for.
    """
    above: dict[int, int] = {}
    for link in LINKS:
        leading = [place for place, found in enumerate(findings) if link.leads(found)]
        for cause in dict.fromkeys(findings[place].cause for place in leading):
            family = [place for place in leading if findings[place].cause == cause]
            free = [place for place, found in enumerate(findings) if link.follows(found) and place not in above]
            for roots, others in _beside(link, family, free, findings, gpus).items():
                for other in _in_time(link, [findings[place] for place in roots], others, findings, whole):
                    if _top(roots[0], above) != other:
                        above[other] = roots[0]
    return _marked(findings, {place: _top(place, above) for place in above})


def _marked(findings: Sequence[Finding], tops: Mapping[int, int]) -> tuple[Finding, ...]:
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


def _beside(
    link: Link, family: Sequence[int], free: Sequence[int], findings: Sequence[Finding], gpus: Collection[str]
) -> dict[tuple[int, ...], list[int]]:
    """Return the consequences whose devices some roots of a family have all, by the places of these roots."""
    found: dict[tuple[int, ...], list[int]] = {}
    for other in free:
        own = set(findings[other].devices or gpus)
        near = tuple(
            place
            for place in family
            if place != other and (link.elsewhere or own & set(findings[place].devices or gpus))
        )
        covered = {device for place in near for device in findings[place].devices or gpus}
        if near and (link.elsewhere or own <= covered):
            found.setdefault(near, []).append(other)
    return found


def _in_time(
    link: Link, roots: Sequence[Finding], others: Sequence[int], findings: Sequence[Finding], whole: Interval
) -> Sequence[int]:
    """Return the places of those findings whose time lies to that of the roots as the link asks."""
    if link.when is When.EVER:
        return others
    parts = [part for root in roots for part in root.intervals or (whole,)]
    if link.when is When.SINCE:
        parts = [Interval(min(part.start for part in parts), whole.end)]
    return _covered(intervals.to_spans(parts), [findings[other].intervals or (whole,) for other in others], others)


def _covered(held: Spans, times: Sequence[tuple[Interval, ...]], places: Sequence[int]) -> list[int]:
    """Return the places whose time the stretches cover for the share that is asked for, all of them at once."""
    owners = np.repeat(np.arange(len(times)), [len(each) for each in times])
    edges = np.array([(part.start, part.end) for each in times for part in each], dtype=np.int64)
    shared = np.bincount(
        owners, weights=intervals.overlap_seconds(edges[:, 0], edges[:, 1], held), minlength=len(times)
    )
    own = np.bincount(owners, weights=(edges[:, 1] - edges[:, 0]) / 1e6, minlength=len(times))
    return [place for place, inside, length in zip(places, shared, own, strict=True) if inside >= SHARED * length > 0]


def _top(place: int, above: Mapping[int, int]) -> int:
    while place in above:
        place = above[place]
    return place
