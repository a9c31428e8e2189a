"""Every figure that steps are compared by: which way is better, and how far runs of one and the same job lie apart."""

from dataclasses import dataclass
from enum import StrEnum

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)

POINTS = 0.02
"""Two points: what repeating a run commonly changes a share by; also the half-width that planning aims at."""

SHARE = 0.03
"""Three per cent: what repeating a run commonly changes any other figure by."""

UTILISATION, IDLE, POWER = "gpu_utilization_ratio", "idle_ratio", "gpu_power_watts"
SM_CLOCK, GRAPHICS_CLOCK, MEMORY = "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz", "gpu_memory_used_bytes"
GPU_SECONDS, ENERGY = "gpu_seconds", "energy_joules"


class FigureRole(StrEnum):
    """How a figure comes about, which decides how sure it can be.

    A mean over time scatters within a run. A peak and a total are one figure a run. So is a figure per unit of work,
    but for the rate of training alone where training metrics tell it. Figures of work are compared as ratios.
    """

    MEAN = "mean"
    PEAK = "peak"
    TOTAL = "total"
    WORK = "work"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure.

    Attributes:
        metric: its name, as in `measures`.
        unit: its base unit.
        kind: how it comes about.
        better: 1 where more is better, -1 where less is, 0 where neither is by itself.
        finest: step in which logs write it down, in its base unit.
        usual_noise: part of itself by which two runs of one job commonly lie apart.
    """

    metric: str
    unit: str
    kind: FigureRole
    better: int
    finest: float = 0.0
    usual_noise: float = SHARE

    def margin(self, before: float) -> float:
        """Return how far two runs of one job commonly lie apart, in the figure's unit."""
        return POINTS if self.is_share else self.usual_noise * abs(before)

    @property
    def is_share(self) -> bool:
        """Whether it lies between 0 and 1."""
        return self.metric in {UTILISATION, IDLE}

    def clip(self, interval: tuple[float, float], before: float | None) -> tuple[float, float]:
        """Return the ends of a difference within what is possible: no share falls below 0 or rises above 1.

        Zero stays on the side on which it is, so no verdict depends on this.

        Args:
            interval: both ends, in the figure's unit.
            before: the earlier value, from which the difference is.
        """
        if not self.is_share or before is None:
            return interval
        low, high = interval
        return max(low, 0.0 - before), min(high, 1 - before)


FIGURES: tuple[Figure, ...] = (
    Figure(metric=WORK_RATE, unit="1/s", kind=FigureRole.WORK, better=1),
    Figure(metric=TRAINING_RATE, unit="1/s", kind=FigureRole.WORK, better=1),
    Figure(metric=PER_WORK, unit="s", kind=FigureRole.WORK, better=-1),
    Figure(metric=COST_PER_WORK, unit="currency", kind=FigureRole.WORK, better=-1),
    Figure(metric=GPU_SECONDS, unit="s", kind=FigureRole.TOTAL, better=-1),
    Figure(metric=ENERGY_PER_WORK, unit="J", kind=FigureRole.WORK, better=-1),
    Figure(metric=ENERGY, unit="J", kind=FigureRole.TOTAL, better=-1),
    Figure(metric=IDLE, unit="1", kind=FigureRole.MEAN, better=-1, finest=0.01),
    Figure(metric=UTILISATION, unit="1", kind=FigureRole.MEAN, better=1, finest=0.01),
    Figure(metric=POWER, unit="W", kind=FigureRole.MEAN, better=0, finest=0.01),
    Figure(metric=SM_CLOCK, unit="Hz", kind=FigureRole.MEAN, better=0, finest=1e6),
    Figure(metric=GRAPHICS_CLOCK, unit="Hz", kind=FigureRole.MEAN, better=0, finest=1e6),
    Figure(metric=MEMORY, unit="By", kind=FigureRole.PEAK, better=0, finest=2.0**20),
)
"""Every figure, in the order shown."""

TIME_TO_TARGET = Figure(metric=SECONDS_TO_TARGET, unit="s", kind=FigureRole.TOTAL, better=-1, usual_noise=0.2)
"""Time to the quality that a person named, where one was: seeds alone commonly change it by a fifth (pragmatic)."""

BY_METRIC = {figure.metric: figure for figure in (*FIGURES, TIME_TO_TARGET)}
"""Every figure by its name, the time to a target among them."""
