"""How fast a step worked, or what a unit of work took in it, with an interval of its own."""

from math import exp, isfinite, log1p, sqrt

from gpureport.comparison.chain.step_summaries import Mean, geometric_mean_over_runs
from gpureport.comparison.statistics.difference_estimate import LEVEL
from gpureport.comparison.steps.compared_figures import BY_METRIC
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.verdicts.figure_evidence import Evidence
from gpureport.comparison.verdicts.step_evidence import gather_evidence
from gpureport.comparison.verdicts.work_resolution import find_resolution


def average_work_figure(step: Step, metric: str) -> Mean | None:
    """Return a rate, or what a batch of work took, a mean of logarithms over runs; None where it is not known.

    Args:
        step: the step.
        metric: a figure per unit of work, or the training rate.
    """
    own = gather_evidence(step, step, BY_METRIC[metric])
    if not own.before:
        return None
    values = own.figures[0]
    if len(values) > 1:
        return geometric_mean_over_runs(values, find_resolution(step, step, metric))
    return _within(own, own.before)


def _within(own: Evidence, value: float) -> Mean:
    """Return the figure of one run: set against itself, its interval is wider by the root of two."""
    if own.contrast is None or own.contrast.scatter:
        # what it allows for slow changes is of a difference, not of one run
        return Mean(value=value, interval=None, basis=None)
    half = log1p(own.contrast.interval(LEVEL)[1] / value) / sqrt(2)
    interval = (value * exp(-half), value * exp(min(half, 50.0))) if isfinite(half) else None
    return Mean(value=value, interval=interval, basis=interval and own.contrast.basis.value)
