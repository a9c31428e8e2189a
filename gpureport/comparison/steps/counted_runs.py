"""Which runs of a step count as observations of a figure, and which are too short beside the others."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import observed_seconds

STEADY_SECONDS = 60.0
"""Steady time from which a run counts whatever the others hold (pragmatic: start and end weigh little in a minute)."""

SHORTEST_STEADY_SECONDS = 20.0
"""Steady time below which a run never counts (pragmatic: samples a second apart miss a tenth of it at its ends)."""

_FEWEST_SAMPLES = 6
"""Samples below which a run shorter than a minute never counts (pragmatic: so many trackers take in a minute)."""

_LIKE = 1 / 3
"""Share of the longest run of the step from which a shorter run counts.

A shorter run has a less certain mean. Simulated with 100,000 comparisons of three runs and three, of which one is
shorter, by runs that scatter as much as within themselves, or not at all: with a third of the length counting it shows
a difference of four standard deviations in 87 and 83% and leaving it out in 82%; with a tenth in 74 and 64%. The
intervals of the three hold the difference in 96 to 97% at any length.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortRun:
    """A run that holds too little steady state to count.

    Attributes:
        run: its name.
        seconds: steady time it holds; how long it is recorded where it stopped early.
        least: time it needs to count in its step.
        stopped: whether it ended early, with a small part of the work of others.
    """

    run: str
    seconds: float
    least: float
    stopped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRuns:
    """The runs of a step that count, and those that are left out, each in order."""

    counted: tuple[SampledRun, ...]
    left_out: tuple[ShortRun, ...]


def count_runs(runs: Sequence[SampledRun], metric: str, interval: float) -> CountedRuns:
    """Return which runs of a step count as observations of the steady mean of a metric.

    Runs that are all short count all the same where they are about as long as each other: the run is the observation,
    however long it is.

    Args:
        runs: of one step.
        metric: the metric.
        interval: seconds between samples to which finer logs are thinned.
    """
    seconds = [run.steady_seconds(metric, interval) for run in runs]
    sampled = min(STEADY_SECONDS, _FEWEST_SAMPLES * interval)
    least = max(SHORTEST_STEADY_SECONDS, sampled, min(STEADY_SECONDS, max(seconds) * _LIKE))
    pairs = list(zip(runs, seconds, strict=True))
    return CountedRuns(
        counted=tuple(run for run, held in pairs if held >= least),
        left_out=tuple(
            ShortRun(run=run.analysis.run.name, seconds=min(held, _length(run)), least=least)
            for run, held in pairs
            if held < least
        ),
    )


def count_jobs(runs: Sequence[SampledRun]) -> CountedRuns:
    """Return which runs of a step count as observations of a whole job: none that stopped long before the others.

    In less than a minute, less than a third of the longest recording and less than a third of the most work, start-up
    weighs otherwise than in the others. A run that did all the work counts, however fast it was.
    """
    seconds = [observed_seconds([run.analysis]) for run in runs]
    works = [run.analysis.run.work for run in runs]
    amounts = [work.amount if work else 0.0 for work in works]
    least = min(STEADY_SECONDS, max(seconds) * _LIKE)
    stopped = [held < least and amount < max(amounts) * _LIKE for held, amount in zip(seconds, amounts, strict=True)]
    return CountedRuns(
        counted=tuple(run for run, early in zip(runs, stopped, strict=True) if not early),
        left_out=tuple(
            ShortRun(run=run.analysis.run.name, seconds=held, least=least, stopped=True)
            for run, held, early in zip(runs, seconds, stopped, strict=True)
            if early
        ),
    )


def _length(run: SampledRun) -> float:
    """Return the seconds from first to last sample: samples far apart stand for more."""
    return (run.analysis.run.ended - run.analysis.run.started) / 1e6
