"""Neighbouring steps of a chain, with everything that changed between them."""

from dataclasses import dataclass
from itertools import pairwise

from gpureport.comparison.quality import QualityChange, compare_quality
from gpureport.comparison.setup.setup_changes import SetupChange, compare_setups
from gpureport.comparison.steps.step_figures import SHORTEST_REPETITION_SECONDS, recorded_seconds
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.verdicts.comparability import Comparability, check_comparability
from gpureport.comparison.verdicts.finding_changes import FindingChange, compare_findings


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """One step against the step before it.

    Attributes:
        base: the earlier step.
        step: the later step.
        deltas: the difference of every figure.
        comparability: what must agree between the two.
        finding_changes: what became of findings.
        changes: what was recorded not to be the same.
        quality: how well both trained.
        quality_since_first: the same of the later step and the first one; empty where that is the earlier one.
    """

    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    comparability: tuple[Comparability, ...]
    finding_changes: tuple[FindingChange, ...]
    changes: tuple[SetupChange, ...]
    quality: tuple[QualityChange, ...]
    quality_since_first: tuple[QualityChange, ...]

    @property
    def too_short_steps(self) -> tuple[Step, ...]:
        """Those of the two that are too short to be set against another."""
        sides = self.base, self.step
        return tuple(side for side in sides if recorded_seconds(side.analyses) < SHORTEST_REPETITION_SECONDS)

    @property
    def doubts(self) -> tuple[Comparability, ...]:
        """What must agree between the two and does not."""
        return tuple(check for check in self.comparability if check.comparable is False)

    @property
    def comparable(self) -> bool:
        """Whether any figure has a verdict, or at least an interval."""
        measured = any(delta.interval for delta in self.deltas) and not self.too_short_steps
        return measured or any(delta.verdict is not Verdict.NOT_ENOUGH_DATA for delta in self.deltas)


def pair_steps(comparison: Comparison) -> tuple[StepPair, ...]:
    """Return the links of a chain in order."""
    first, goals = comparison.steps[0], comparison.goals
    return tuple(
        StepPair(
            base=base,
            step=step,
            deltas=comparison.between(base.label, step.label),
            comparability=check_comparability(base, step),
            finding_changes=compare_findings(base, step),
            changes=compare_setups(base, step),
            quality=compare_quality(base, step, goals),
            quality_since_first=() if base is first else compare_quality(first, step, goals),
        )
        for base, step in pairwise(comparison.steps)
    )
