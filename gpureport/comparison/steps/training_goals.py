"""What a person says of training metrics: which way some get better, and the quality a run is to reach."""

from dataclasses import dataclass

from gpureport.training_names import QUALITY_ROLES, recognise_metric


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityTarget:
    """A value that a training metric is to reach."""

    name: str
    value: float

    @property
    def text(self) -> str:
        """The target as it is written on a command line."""
        return f"{self.name}={self.value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingGoals:
    """What a person says of training metrics.

    Attributes:
        better: metrics that were named, each with whether a higher value is the better one.
        target: the value to reach; None where none was given.
    """

    better: tuple[tuple[str, bool], ...] = ()
    target: QualityTarget | None = None

    def is_higher_better(self, name: str) -> bool | None:
        """Return whether a higher value of a metric is the better one, as given or by its name; None if not known."""
        given = dict(self.better).get(name)
        if given is not None:
            return given
        metric = recognise_metric(name)
        return None if metric is None or metric.role not in QUALITY_ROLES else not metric.falls

    def is_named(self, name: str) -> bool:
        """Return whether a person named the metric."""
        return name in dict(self.better) or (self.target is not None and self.target.name == name)


NO_GOALS = TrainingGoals()
"""What is known of training metrics by their names alone."""
