"""Every two neighbouring steps of a chain with all that is said of them."""

from dataclasses import dataclass
from itertools import pairwise

from gpureport.comparison.steps.step_figures import SHORTEST_SECONDS, recorded_seconds
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.verdicts.comparability import Comparability, comparability
from gpureport.comparison.verdicts.finding_changes import FindingFate, fates
from gpureport.comparison.verdicts.setup_changes import Change, changes
from gpureport.comparison.verdicts.training_quality import Trained, trained


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One step against the step before it."""

    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    comparability: tuple[Comparability, ...]
    fates: tuple[FindingFate, ...]
    changes: tuple[Change, ...]
    training: tuple[Trained, ...]

    @property
    def brief(self) -> tuple[Step, ...]:
        """Those of the two that are too short to be set against another."""
        return tuple(one for one in (self.base, self.step) if recorded_seconds(one.analyses) < SHORTEST_SECONDS)

    @property
    def comparable(self) -> bool:
        """Whether anything can be judged."""
        return any(delta.verdict is not Verdict.CANNOT_JUDGE for delta in self.deltas)


def links(comparison: Comparison) -> tuple[Link, ...]:
    """Return the links of a chain in order."""
    return tuple(
        Link(
            base=base,
            step=step,
            deltas=comparison.between(base.label, step.label),
            comparability=comparability(base, step),
            fates=fates(base, step),
            changes=changes(base, step),
            training=trained(base, step),
        )
        for base, step in pairwise(comparison.steps)
    )
