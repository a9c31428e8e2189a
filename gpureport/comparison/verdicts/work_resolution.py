"""How finely a figure per unit of work is known: no interval of it, or of its change, is finer."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from gpureport.comparison.steps.compared_figures import BY_METRIC, FigureRole
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import COST_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE, observed_seconds
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.steps.training_rate import TrainingBasis, steady_seconds

FINEST_RATIO = 0.003
"""Step in which figures per unit of work are known at best: work and time are both read off points in time."""

_USUAL_INTERVAL = 1.0
"""Seconds between samples of a run that does not tell it, as one of a single sample: what `gpureport record` takes."""

TIMED_FIGURES = {PER_WORK, COST_PER_WORK, WORK_RATE}
"""Figures that go by how long recordings last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolution:
    """How finely values are known, in their unit.

    Attributes:
        finest: step in which they are written down; runs that agree to the digit scatter by rounding at least.
        least: half-width of an interval that no number of runs narrows: what all runs may be off by alike.
    """

    finest: float = 0.0
    least: float = 0.0


EXACT = Resolution()
"""Of values that scatter alone tells of."""


def find_resolution(base: Step, step: Step, metric: str) -> Resolution:
    """Return how finely the logarithm of a figure per unit of work is known in both of two steps."""
    runs = (*base.runs, *step.runs)
    if metric != TRAINING_RATE:
        return Resolution(finest=FINEST_RATIO, least=find_sampling_step(runs) if metric in TIMED_FIGURES else 0.0)
    if base.training_source is not None and base.training_source.basis is TrainingBasis.SERIES:
        return Resolution(finest=FINEST_RATIO)
    # the steady phase begins and ends with a sample
    return Resolution(finest=max(_find_interval(run) / steady_seconds(run) for run in runs))


def find_sampling_step(runs: Sequence[SampledRun]) -> float:
    """Return the longest sampling interval as a share of its recording, which is known no better.

    A job begins and ends up to half an interval from the first and the last sample, which makes one interval in all.
    Runs of one job are off alike, since recordings begin with the job: repetitions do not average it out.
    """
    lengths = [(run, observed_seconds([run.analysis])) for run in runs]
    return max((_find_interval(run) / seconds for run, seconds in lengths if seconds > 0), default=0.0)


def find_least_half_width(base: Step, step: Step, metric: str, before: float) -> float:
    """Return the half-width of an interval between steps that no number of runs narrows, in the unit of the figure."""
    if BY_METRIC[metric].kind is not FigureRole.WORK:
        return 0.0
    return before * (exp(find_resolution(base, step, metric).least) - 1)


def _find_interval(run: SampledRun) -> float:
    """Return the seconds between the samples of a run; where that is not known, those of most logs."""
    interval = run.analysis.run.interval
    return _USUAL_INTERVAL if interval is None else interval
