"""How well two steps trained: loss and accuracy at the end of their runs, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingChange:
    """A training metric at the end of two steps, each a mean over its runs; None where it was not recorded.

    Attributes:
        base: label of the earlier step.
        step: label of the later step.
        name: of the metric.
        before: in the earlier step.
        after: in the later step.
    """

    base: str
    step: str
    name: str
    before: float | None
    after: float | None


def compare_training(base: Step, step: Step) -> tuple[TrainingChange, ...]:
    """Return how well two steps trained, by every metric that either recorded."""
    names = sorted({figure.name for side in (base, step) for run in side.runs for figure in run.training})
    return tuple(
        TrainingChange(
            base=base.label,
            step=step.label,
            name=name,
            before=_mean(base.runs, name),
            after=_mean(step.runs, name),
        )
        for name in names
    )


def _mean(runs: Sequence[SampledRun], name: str) -> float | None:
    known = [figure.value for run in runs for figure in run.training if figure.name == name]
    return fsum(known) / len(known) if known else None
