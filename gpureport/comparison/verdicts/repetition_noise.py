"""How far repetitions of a step differ: the smallest difference that a pair of runs can show."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, fsum, sqrt

from gpureport.comparison.statistics import quantiles
from gpureport.comparison.statistics.difference_estimate import LEVEL


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricNoise:
    """How far runs of one step scatter in one figure.

    Attributes:
        metric: name of the figure.
        relative: whether it is a share of the figure, told from logarithms.
        deviation: standard deviation between runs of one step, pooled over steps.
        degrees: degrees of freedom it rests on.
        groups: how many steps have repetitions.
    """

    metric: str
    relative: bool
    deviation: float
    degrees: int
    groups: int

    @property
    def margin(self) -> float:
        """Difference that two runs of one step exceed once in twenty times; of a relative one a share."""
        size = quantiles.student((1 + LEVEL) / 2, self.degrees) * self.deviation * sqrt(2)
        return exp(size) - 1 if self.relative else size


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """The scatter of repetitions, figure by figure."""

    metrics: tuple[MetricNoise, ...]

    def noise_of(self, metric: str) -> MetricNoise | None:
        """Return the scatter of one figure, None where no repetitions tell."""
        return next((each for each in self.metrics if each.metric == metric), None)

    def margin(self, metric: str, before: float) -> float | None:
        """Return the difference that two runs of one step rarely exceed, None where no repetitions tell."""
        found = self.noise_of(metric)
        return None if found is None else found.margin * abs(before) if found.relative else found.margin


def pool_noise(metric: str, groups: Sequence[Sequence[float]], *, relative: bool) -> MetricNoise | None:
    """Return the scatter of a figure within groups of repetitions; None without two runs in any.

    Args:
        metric: name of the figure.
        groups: one value a run, their logarithms where the scatter is relative.
        relative: whether it is.
    """
    repeated = [group for group in groups if len(group) > 1]
    degrees = sum(len(group) - 1 for group in repeated)
    if degrees == 0:
        return None
    squares = fsum((value - fsum(group) / len(group)) ** 2 for group in repeated for value in group)
    return MetricNoise(
        metric=metric, relative=relative, deviation=sqrt(squares / degrees), degrees=degrees, groups=len(repeated)
    )
