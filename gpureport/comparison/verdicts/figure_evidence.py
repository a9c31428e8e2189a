"""What two steps hold on one figure, and whole recordings side by side where no more can be told."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from gpureport.comparison.statistics.contrasts import Contrast
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.step_figures import measures
from gpureport.comparison.steps.steps import Plain, Step

ABSENT = "It was not recorded in one of the two steps, or in both."
NO_PRICE = "The price of a GPU-hour is not known for both steps."
OTHER_WORK = "The two steps count their work in different units."
ZERO = "It is 0 in one of the runs, and a ratio to 0 says nothing."
SINGLE_FIGURE = (
    "It is one figure a run, so one run on each side says nothing about scatter: only what lies beyond what repeating "
    "a run commonly changes is told."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One figure of two steps.

    Attributes:
        figure: the figure.
        before: value in the earlier step, a mean over its runs; None when not recorded.
        after: value in the later step.
        steady: whether the values are of what had settled, not of whole recordings.
        contrast: the difference and how sure it is; None where that cannot be told.
        reason: why it cannot; empty where it can.
        general: the reason without the run it was said of; empty where it names none.
        whole: the figure over whole recordings.
        figures: one value a run on each side, where the run is the unit.
        seconds: shortest steady time of a run, where the interval rests on what lies within runs.
        lone: whether it is one figure a run, of one run on each side, without an interval.
        unseen: seconds of the shorter run without any gap; None where both have some, or where runs are the unit.
    """

    figure: Figure
    before: float | None
    after: float | None
    steady: bool
    contrast: Contrast | None
    reason: str
    whole: Plain
    figures: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    seconds: float | None = None
    general: str = ""
    lone: bool = False
    unseen: float | None = None

    @property
    def difference(self) -> float | None:
        """How far the values are apart; None when either is missing, or one cannot be taken from the other."""
        return replace(self.whole, before=self.before, after=self.after).difference


def whole_of(base: Step, step: Step, figure: Figure) -> Plain:
    """Return a figure over whole recordings."""
    return Plain(before=base.value(figure.metric), after=step.value(figure.metric))


def told(base: Step, step: Step, figure: Figure, reason: str) -> Evidence:
    """Return whole recordings side by side."""
    whole = replace(whole_of(base, step, figure), comparable=reason != OTHER_WORK)
    missing = whole.before is None or whole.after is None
    return Evidence(
        figure=figure,
        before=whole.before,
        after=whole.after,
        steady=False,
        contrast=None,
        reason=ABSENT if missing and reason not in {OTHER_WORK, NO_PRICE} else reason,
        whole=whole,
    )


def each_run(step: Step, metric: str) -> list[float | None]:
    """Return a figure of each run over its whole recording."""
    return [
        next((each.value for each in measures([run.analysis], [run.gpu_hour_price]) if each.metric == metric), None)
        for run in step.runs
    ]


def average(values: Sequence[float]) -> float:
    """Return the mean of some values."""
    return fsum(values) / len(values)
