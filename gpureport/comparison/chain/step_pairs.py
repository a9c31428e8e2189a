"""Neighbouring steps of a chain, with everything that changed between them."""

from dataclasses import dataclass
from itertools import pairwise

from gpureport.comparison.steps.step_figures import SHORTEST_REPETITION_SECONDS, recorded_seconds
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.verdicts.comparability import Comparability, check_comparability
from gpureport.comparison.verdicts.finding_changes import FindingChange, compare_findings
from gpureport.comparison.verdicts.setup_changes import SetupChange, compare_setups
from gpureport.comparison.verdicts.training_quality import TrainingChange, compare_training


@dataclass(frozen=True, slots=True, kw_only=True)
class StepPair:
    """One step against the step before it."""

    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    comparability: tuple[Comparability, ...]
    finding_changes: tuple[FindingChange, ...]
    changes: tuple[SetupChange, ...]
    training: tuple[TrainingChange, ...]

    @property
    def too_short_steps(self) -> tuple[Step, ...]:
        """Those of the two that are too short to be set against another."""
        sides = self.base, self.step
        return tuple(side for side in sides if recorded_seconds(side.analyses) < SHORTEST_REPETITION_SECONDS)

    @property
    def comparable(self) -> bool:
        """Whether any figure has a verdict, or at least an interval."""
        measured = any(delta.interval for delta in self.deltas) and not self.too_short_steps
        return measured or any(delta.verdict is not Verdict.NOT_ENOUGH_DATA for delta in self.deltas)


def pair_steps(comparison: Comparison) -> tuple[StepPair, ...]:
    """Return the links of a chain in order."""
    return tuple(
        StepPair(
            base=base,
            step=step,
            deltas=comparison.between(base.label, step.label),
            comparability=check_comparability(base, step),
            finding_changes=compare_findings(base, step),
            changes=compare_setups(base, step),
            training=compare_training(base, step),
        )
        for base, step in pairwise(comparison.steps)
    )
