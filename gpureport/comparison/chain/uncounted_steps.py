"""Steps of the training loop that its log tells of, and that do not count as work of the recording."""

from dataclasses import dataclass
from math import isclose

from gpureport.comparison.steps.sampled_run import SampledRun

_NOTABLE = 0.01
"""Share of the logged steps from which it is worth a word; less is how stamps fall between samples."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncountedSteps:
    """How many of the logged steps of a run count, and why not all of them.

    Attributes:
        run: name of the run.
        logged: steps that the counter tells of, from 0 on.
        counted: those that count as its work.
        undated: those before the first line of the training log, of which nothing tells when they were done.
        earlier: those before it that were done in an earlier run, since the counter is far ahead.
        outside: those done before the first sample of the GPUs, or after the last.
    """

    run: str
    logged: float
    counted: float
    undated: float
    earlier: float
    outside: float


def find_uncounted_steps(run: SampledRun) -> UncountedSteps | None:
    """Return which logged steps do not count; None where all do, work was stated, or no step counter tells it."""
    info, speed = run.analysis.run, run.throughput
    counter = speed.counter if speed is not None else None
    if speed is None or counter is None or info.work is None or counter.rise <= 0:
        return None
    within = speed.work.within(info.started, info.ended)
    if not isclose(within, info.work.amount, rel_tol=1e-6):
        return None
    # work may be given in samples, of which each step takes as many
    samples = float(speed.work.amounts[1:].sum()) / counter.rise
    placed, first = speed.work.amount / samples, float(speed.work.amounts[0]) / samples
    logged, counted = counter.first + counter.rise, within / samples
    if logged - counted < max(_NOTABLE * logged, 1.0):
        return None
    before = max(counter.first - first, 0.0)
    return UncountedSteps(
        run=info.name,
        logged=logged,
        counted=counted,
        undated=0.0 if first else before,
        earlier=before if first else 0.0,
        outside=placed - counted,
    )
