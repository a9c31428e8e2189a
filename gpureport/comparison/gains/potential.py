"""What the last step still loses, and how much faster it could be at most without that."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.analysis.results import Analysis
from gpureport.comparison.changes import RemainingLoss
from gpureport.comparison.gains.known_loss import MOST_UNSEEN_RATIO, list_unmeasured_kinds


@dataclass(frozen=True, slots=True, kw_only=True)
class PotentialLoss:
    """A class of GPU time lost: its share of the whole job, and how many times as fast that is at most without it."""

    name: str
    lost_ratio: float
    at_most: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Potential:
    """What a step could gain from what it loses. It is an upper bound and no promise.

    Attributes:
        step: its label.
        lost_ratio: share of the GPU time of the whole job that is lost; None where most of it was not observed.
        at_most: how many times as fast the job is at most if all of that went; None where that has no bound.
        losses: the classes lost, the largest first. They share no time, so that their shares add up.
        unseen_ratio: share of the GPU time without utilisation. The bound counts it as lost.
        pauses_ratio: share of it in short pauses, which count as work. The bound counts them as lost.
        unmeasured: kinds of findings that lost an amount that is not known, so that there is no bound.
    """

    step: str
    lost_ratio: float | None
    at_most: float | None
    losses: tuple[PotentialLoss, ...]
    unseen_ratio: float
    pauses_ratio: float
    unmeasured: tuple[str, ...]


def estimate_potential(left: RemainingLoss, analyses: Sequence[Analysis] = ()) -> Potential:
    """Return what a step could gain at most: 1 / (1 - share that is or may be lost), over the whole job.

    Args:
        left: what it loses.
        analyses: of its runs, whose findings say where an amount is not known.
    """
    findings = [finding for analysis in analyses for finding in analysis.findings]
    unmeasured = list_unmeasured_kinds(findings)
    held = left.held_gpu_seconds
    unseen = left.unseen_gpu_seconds / held if held else 1.0
    known = unseen <= MOST_UNSEEN_RATIO
    pauses = left.pause_gpu_seconds / held if held else 0.0
    lost = left.lost / held if known else None
    return Potential(
        step=left.step,
        lost_ratio=lost,
        at_most=None if lost is None or unmeasured else _bound_speedup(lost + unseen + pauses),
        losses=tuple(
            PotentialLoss(name=name, lost_ratio=amount / held, at_most=_bound_speedup(amount / held))
            for name, amount in (left.lost_gpu_seconds if known else ())
        ),
        unseen_ratio=unseen,
        pauses_ratio=pauses,
        unmeasured=tuple(sorted(unmeasured)),
    )


def _bound_speedup(share: float) -> float | None:
    return 1 / (1 - share) if share < 1 else None
