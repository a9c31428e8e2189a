"""Every two neighbouring steps of a chain with all that is said of them."""

from dataclasses import dataclass
from itertools import pairwise

from gpureport.comparison.comparability import Comparability, comparability
from gpureport.comparison.fates import FindingFate, fates
from gpureport.comparison.measures import SHORTEST_SECONDS, observed_seconds
from gpureport.comparison.steps import Comparison, Delta, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One step against the step before it."""

    base: Step
    step: Step
    deltas: tuple[Delta, ...]
    comparability: tuple[Comparability, ...]
    fates: tuple[FindingFate, ...]

    @property
    def brief(self) -> tuple[Step, ...]:
        """Those of the two that are too short to be set against another."""
        return tuple(one for one in (self.base, self.step) if observed_seconds(one.analyses) < SHORTEST_SECONDS)

    @property
    def comparable(self) -> bool:
        """Whether anything can be compared: both are long enough, and some figure was recorded in both."""
        return not self.brief and any(delta.difference is not None for delta in self.deltas)


def links(comparison: Comparison) -> tuple[Link, ...]:
    """Return the links of a chain in order."""
    return tuple(
        Link(
            base=base,
            step=step,
            deltas=comparison.between(base.label, step.label),
            comparability=comparability(base, step),
            fates=fates(base, step),
        )
        for base, step in pairwise(comparison.steps)
    )
