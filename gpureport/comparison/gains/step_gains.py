"""The table of gains: of every step what it changed, what that was worth, and what became of findings."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isfinite

from gpureport.comparison.chain import Comparison, StepPair, pair_steps
from gpureport.comparison.changes import FindingChange
from gpureport.comparison.evidence import Reason
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.gains.advised_changes import (
    AdvisedChange,
    find_advised_changes,
    find_possibly_advised_changes,
)
from gpureport.comparison.quality.quality_change import QualityChange
from gpureport.comparison.setup import SetupChange, has_params, list_distinct_changes
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RelativeChange:
    """A figure of a step as a multiple of that of an earlier step.

    Attributes:
        metric: name of the figure.
        ratio: later value / earlier value.
        interval: ends of the ratio at a level of 0.95; None where none can be told.
        verdict: what may be said of the change.
        reason: why no more than that may be said.
    """

    metric: str
    ratio: float
    interval: tuple[float, float] | None
    verdict: Verdict
    reason: Reason | None

    def inverted(self, metric: str) -> "RelativeChange":
        """Return the same change as that of the reciprocal figure: of work per time instead of time per work."""
        ends = self.interval and (1 / self.interval[1], 1 / self.interval[0] if self.interval[0] > 0 else float("inf"))
        return RelativeChange(
            metric=metric,
            ratio=1 / self.ratio,
            interval=ends if ends and isfinite(ends[1]) else None,
            verdict=self.verdict,
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GainSince:
    """What a step was worth against one earlier step; None where a figure is not known of both.

    Attributes:
        base: label of the earlier step.
        whole_job: work done in the time of the whole job, start-up and end included.
        training: work done in the time of training alone.
        gpu_time: GPU time of a unit of work.
        cost: money for a unit of work.
        energy: energy of a unit of work.
    """

    base: str
    whole_job: RelativeChange | None
    training: RelativeChange | None
    gpu_time: RelativeChange | None
    cost: RelativeChange | None
    energy: RelativeChange | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepGain:
    """A row of the table of gains.

    Attributes:
        step: the step.
        since_before: what it was worth against the step before; None of the first step.
        since_first: the same against the first step; None of the first step.
        params_recorded: whether params or tags of both runs are known, so that a change shows.
        changes: what was changed since the step before, without what describes single runs.
        advised: those of the changes that a finding of an earlier step had advised.
        possibly_advised: those that one may have advised, since one of the two steps does not name the setting.
        findings: what became of findings since the step before.
        quality: the training metrics that count, against the step before.
        quality_since_first: the same against the first step; of the second step those against the step before.
    """

    step: Step
    since_before: GainSince | None
    since_first: GainSince | None
    params_recorded: bool
    changes: tuple[SetupChange, ...]
    advised: tuple[AdvisedChange, ...]
    possibly_advised: tuple[AdvisedChange, ...]
    findings: tuple[FindingChange, ...]
    quality: tuple[QualityChange, ...]
    quality_since_first: tuple[QualityChange, ...]


def build_gains(comparison: Comparison, pairs: Sequence[StepPair] | None = None) -> tuple[StepGain, ...]:
    """Return one row a step.

    Args:
        comparison: the steps.
        pairs: each of them against the one before, where that is known already.
    """
    steps = comparison.steps
    pairs = pair_steps(comparison) if pairs is None else pairs
    first = StepGain(
        step=steps[0],
        since_before=None,
        since_first=None,
        params_recorded=has_params(steps[0], steps[0]),
        changes=(),
        advised=(),
        possibly_advised=(),
        findings=(),
        quality=(),
        quality_since_first=(),
    )
    rows = (
        StepGain(
            step=step,
            since_before=_measure_gain(comparison, base, step),
            since_first=_measure_gain(comparison, steps[0], step),
            params_recorded=has_params(base, step),
            changes=list_distinct_changes(pair.changes),
            advised=find_advised_changes(steps[:place], step),
            possibly_advised=find_possibly_advised_changes(steps[:place], step),
            findings=pair.finding_changes,
            quality=tuple(change for change in pair.quality if change.leading),
            quality_since_first=tuple(change for change in pair.quality_since_first or pair.quality if change.leading),
        )
        for place, ((base, step), pair) in enumerate(zip(pairwise(steps), pairs, strict=True), start=1)
    )
    return (first, *rows)


def _measure_gain(comparison: Comparison, base: Step, step: Step) -> GainSince:
    changes = {
        delta.metric: change
        for delta in comparison.between(base.label, step.label)
        if (change := _express_as_ratio(delta)) is not None
    }
    gpu_time = changes.get(PER_WORK)
    # with as many GPUs the GPU time of a unit of work is its time, and its verdict allows for the other steps
    same_count = base.gpu_count is not None and base.gpu_count == step.gpu_count
    whole_job = gpu_time.inverted(WORK_RATE) if gpu_time and same_count else changes.get(WORK_RATE)
    return GainSince(
        base=base.label,
        whole_job=whole_job,
        training=changes.get(TRAINING_RATE),
        gpu_time=gpu_time,
        cost=changes.get(COST_PER_WORK),
        energy=changes.get(ENERGY_PER_WORK),
    )


def _express_as_ratio(delta: Delta) -> RelativeChange | None:
    """Return a difference as a ratio; None where one of the two is not known, or not above zero."""
    if not delta.before or delta.difference is None or delta.before + delta.difference <= 0 or delta.before < 0:
        return None
    before = delta.before
    ends = delta.interval and tuple(1 + end / before for end in delta.interval)
    return RelativeChange(
        metric=delta.metric,
        ratio=1 + delta.difference / before,
        interval=(ends[0], ends[1]) if ends and all(map(isfinite, ends)) else None,
        verdict=delta.verdict,
        reason=delta.reason,
    )
