"""Runs with learning curves whose truth is known: an approach to a level, with scatter of values and of runs."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import numpy.typing as npt

from gpureport import testing
from gpureport.columns import FloatArray
from gpureport.comparison.quality.quality_change import QualityChange, compare_quality
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.steps import Step
from gpureport.comparison.training.training_curves import TrainingCurve
from gpureport.comparison.training.training_goals import NO_GOALS, TrainingGoals
from tests.comparison.runs import level, sampled

SECONDS = 600
"""Length of a run."""


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """An accuracy, or a loss that falls, which approaches a level exponentially.

    Attributes:
        end: level that it approaches.
        start: its value at the start of the job.
        constant: seconds in which the distance to the level falls to 1/e.
        points: how often it is logged.
        scatter: standard deviation of a single value.
        between: standard deviation of the level between runs.
    """

    end: float
    start: float = 0.1
    constant: float = 80.0
    points: int = 30
    scatter: float = 0.005
    between: float = 0.005

    @property
    def is_loss(self) -> bool:
        """Whether it falls: its values scatter, and its level varies, in proportion to them."""
        return self.start > self.end

    def seconds(self) -> FloatArray:
        """Return when it is logged."""
        return np.asarray((np.arange(self.points) + 1) * (SECONDS / self.points), dtype=np.float64)

    def values(self, rng: np.random.Generator) -> FloatArray:
        """Return one run of it."""
        end = self.end + rng.normal(0, self.between) * (self.end if self.is_loss else 1)
        trend = end + (self.start - end) * np.exp(-self.seconds() / self.constant)
        noise = rng.normal(0, self.scatter, self.points)
        return np.asarray(trend * (1 + noise) if self.is_loss else np.clip(trend + noise, 0, 1), dtype=np.float64)


@cache
def plain_run(name: str) -> SampledRun:
    """Return a run of ten minutes without training metrics."""
    return sampled(name, util=level(90, SECONDS), power=300.0)


def run_with_curves(name: str, **curves: tuple[npt.ArrayLike, npt.ArrayLike]) -> SampledRun:
    """Return a run with training metrics, each as seconds and values."""
    training = tuple(
        TrainingCurve(
            name=metric,
            times=np.array([testing.at(float(each)) for each in np.asarray(seconds)], dtype=np.int64),
            values=np.asarray(values, dtype=np.float64),
        )
        for metric, (seconds, values) in curves.items()
    )
    return replace(plain_run(name), training=training)


def step_of(label: str, curve: LearningCurve, runs: int, rng: np.random.Generator) -> Step:
    """Return a step whose runs learn along a curve."""
    made = tuple(
        run_with_curves(
            f"{label}-{place}",
            **{"val_loss" if curve.is_loss else "val_accuracy": (curve.seconds(), curve.values(rng))},
        )
        for place in range(runs)
    )
    return Step(label=label, runs=made, measures=())


def compared_quality(base: Step, step: Step, goals: TrainingGoals = NO_GOALS) -> tuple[QualityChange, ...]:
    """Return how well two steps trained."""
    return compare_quality(base, step, goals)
