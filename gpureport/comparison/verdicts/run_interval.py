"""The interval of a judged change between runs, as a measure of what more data would bring."""

from gpureport.comparison.statistics.more_data import RunInterval
from gpureport.comparison.steps.steps import Delta, Step
from gpureport.comparison.verdicts.work_resolution import find_least_half_width


def measure_run_interval(
    delta: Delta, interval: tuple[float, float], base: Step, step: Step, *, repeat_base: bool
) -> RunInterval:
    """Return the interval of a change with what narrows it.

    Args:
        delta: the change.
        interval: of it.
        base: the step before.
        step: the step after.
        repeat_base: whether the step before can get more runs, else the one after.
    """
    low, high = interval
    before, after = delta.runs
    return RunInterval(
        counts=(before, after) if repeat_base else (after, before),
        half_width=(high - low) / 2,
        least=find_least_half_width(base, step, delta.metric, delta.before or 0.0),
    )
