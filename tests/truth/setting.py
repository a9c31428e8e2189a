"""What a scenario is given, and the parts most of them share."""

from dataclasses import dataclass

import numpy as np

from tests.truth.cards import Card
from tests.truth.script import Part, Parts

_STRETCH = {0.1: 0.4, 1.0: 1.0, 5.0: 3.0, 30.0: 13.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """How a scenario is to be logged."""

    interval: float  # seconds between samples
    card: Card  # the kind of GPU
    rng: np.random.Generator  # source of chance

    def long(self, seconds: float) -> float:
        """Return a length that grows with the sampling interval, a whole number of seconds."""
        return float(round(seconds * _STRETCH[self.interval] * self.rng.uniform(0.85, 1.15)))

    def brief(self, low: float, high: float) -> float:
        """Return the length of a pause; it is longer in jobs that are logged coarsely, for else none would show."""
        factor = {0.1: 0.8, 1.0: 1.0, 5.0: 1.8, 30.0: 7.0}[self.interval]
        return round(self.rng.uniform(low, high) * factor, 2)

    def pause(self, low: float, high: float, cause: str, cpu: float = 12.0) -> Part:
        return Part(seconds=self.brief(low, high), texture="still", cause=cause, cpu=cpu, core=60.0)

    def started(self, low: float = 25.0, high: float = 60.0) -> Part:
        seconds = self.brief(low, high)
        return Part(seconds=seconds, label="startup_idle", texture="still", cpu=9.0, core=97.0, iowait=3.0)

    def over(self, low: float = 14.0, high: float = 40.0) -> Part:
        return Part(seconds=self.brief(low, high), label="tail_idle", texture="still", cpu=4.0, core=30.0)

    def job(self, *parts: Part) -> Parts:
        return (self.started(), *parts, self.over())

    def work(self, seconds: float, **changes: float | str) -> Part:
        step = float(self.rng.uniform(0.12, 0.7))
        heat = float(self.rng.uniform(0.68, 0.88))
        given: dict[str, float | str] = {"step": step, "heat": heat, **changes}
        return Part(seconds=self.long(seconds), **given)  # type: ignore[arg-type]  # each caller names real fields
