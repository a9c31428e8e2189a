"""Evidence on one figure of two steps, from whole recordings where nothing better is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from gpureport.comparison.statistics.difference_estimate import DifferenceEstimate
from gpureport.comparison.steps.compared_figures import Figure
from gpureport.comparison.steps.counted_runs import ShortRun
from gpureport.comparison.steps.step_figures import SHORTEST_SECONDS, measures, observed_seconds
from gpureport.comparison.steps.steps import Step, WholeRecordingFigure
from gpureport.comparison.steps.verdict_reason import Reason, ReasonKind

_SURE_WITHOUT_FIGURES = {
    ReasonKind.OTHER_WORK_UNIT,
    ReasonKind.UNFINISHED,
    ReasonKind.NO_PRICE,
    ReasonKind.TARGET_NOT_REACHED,
}
"""Reasons that hold although a figure is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """One figure of two steps.

    Attributes:
        figure: the figure.
        before: value in the earlier step, a mean over its runs; None when not recorded.
        after: value in the later step.
        steady: whether the values are of what had settled, not of whole recordings.
        contrast: the difference and how sure it is; None where that cannot be told.
        reason: why it cannot, or why nothing but a large difference shows; None where neither is so.
        whole: the figure over whole recordings.
        figures: one value on each side for every run that counts.
        seconds: shortest steady time of a run, where the interval rests on what lies within runs.
        lone: whether it is one figure a run, of one run on each side, without an interval.
        unseen: seconds of the shorter run without any gap; None where both have some, or where runs are the unit.
        left_out: runs too short to count beside others of their step.
        brief: why the values of `lone` runs say little; None where both recordings last a minute.
    """

    figure: Figure
    before: float | None
    after: float | None
    steady: bool
    contrast: DifferenceEstimate | None
    reason: Reason | None
    whole: WholeRecordingFigure
    figures: tuple[tuple[float, ...], tuple[float, ...]] = ((), ())
    seconds: float | None = None
    lone: bool = False
    unseen: float | None = None
    left_out: tuple[ShortRun, ...] = ()
    brief: Reason | None = None

    @property
    def difference(self) -> float | None:
        """How far the values are apart; None when either is missing, or one cannot be taken from the other."""
        return replace(self.whole, before=self.before, after=self.after).difference


def read_whole_recordings(base: Step, step: Step, figure: Figure) -> WholeRecordingFigure:
    """Return a figure over whole recordings."""
    return WholeRecordingFigure(before=base.value(figure.metric), after=step.value(figure.metric))


def compare_whole_recordings(base: Step, step: Step, figure: Figure, reason: Reason | ReasonKind) -> Evidence:
    """Return whole recordings side by side, with the reason why nothing more is known of their difference."""
    reason = reason if isinstance(reason, Reason) else Reason(kind=reason)
    whole = replace(read_whole_recordings(base, step, figure), comparable=reason.kind is not ReasonKind.OTHER_WORK_UNIT)
    missing = whole.before is None or whole.after is None
    return Evidence(
        figure=figure,
        before=whole.before,
        after=whole.after,
        steady=False,
        contrast=None,
        reason=Reason(kind=ReasonKind.NOT_RECORDED) if missing and reason.kind not in _SURE_WITHOUT_FIGURES else reason,
        whole=whole,
    )


def read_each_run(step: Step, metric: str) -> list[float | None]:
    """Return a figure of each run over its whole recording."""
    return [
        next((each.value for each in measures([run.analysis], [run.gpu_hour_price]) if each.metric == metric), None)
        for run in step.runs
    ]


def compute_mean(values: Sequence[float]) -> float:
    """Return the mean of some values."""
    return fsum(values) / len(values)


def find_brief_recording(base: Step, step: Step) -> Reason | None:
    """Return the shortest recording of two steps as a reason, where it is under a minute; None elsewhere."""
    lengths = [(observed_seconds([run.analysis]), run.analysis.run.name) for run in (*base.runs, *step.runs)]
    seconds, name = min(lengths)
    if seconds >= SHORTEST_SECONDS:
        return None
    return Reason(kind=ReasonKind.SHORT_RUN, run=name, amount=seconds, least=SHORTEST_SECONDS)
