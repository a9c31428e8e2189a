"""Runs with learning curves whose truth is known: an approach to a level, with scatter of values and of runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from gpureport import Analysis
from gpureport.testing import Floats
from tests.statistics.runs import level, made, trained

SECONDS = 600
"""Length of a run."""
_PLAIN = made("plain", util=level(90, SECONDS // 10), every=10.0)
_PRICED = made("priced", util=level(90, SECONDS // 10), every=10.0, price=2.0)


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
        return self.start > self.end

    def seconds(self) -> Floats:
        return np.asarray((np.arange(self.points) + 1) * (SECONDS / self.points), dtype=np.float64)

    def values(self, rng: np.random.Generator) -> Floats:
        end = self.end + rng.normal(0, self.between) * (self.end if self.is_loss else 1)
        trend = end + (self.start - end) * np.exp(-self.seconds() / self.constant)
        noise = rng.normal(0, self.scatter, self.points)
        return np.asarray(trend * (1 + noise) if self.is_loss else np.clip(trend + noise, 0, 1), dtype=np.float64)


def learning(
    name: str,
    curves: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]],
    *,
    step: str | None = None,
    is_priced: bool = False,
) -> Analysis:
    points = [
        (float(second), place, metric, float(value))
        for metric, (seconds, values) in curves.items()
        for place, (second, value) in enumerate(zip(np.asarray(seconds), np.asarray(values), strict=True))
    ]
    plain = _PRICED if is_priced else _PLAIN
    run = replace(plain.run, id=name, name=name, step=step)
    return replace(plain, run=run, recording=trained(replace(plain.recording, run=run), points))


def learning_step(label: str, *runs: Mapping[str, npt.ArrayLike]) -> list[Analysis]:
    return [
        learning(
            f"{label}-{place}",
            {name: (np.arange(np.size(values)) * 60.0 + 1, values) for name, values in run.items()},
            step=label,
        )
        for place, run in enumerate(runs)
    ]
