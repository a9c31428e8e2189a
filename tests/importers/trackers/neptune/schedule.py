"""A run with a known schedule, as Neptune's client sees it: a tick every ten seconds, zeros dropped."""

from dataclasses import dataclass, field

START = 1_773_480_413_123_000
"""First tick, 2026-03-14 09:26:53.123 UTC, in microseconds."""
TICK = 10_000_000
GIB = 2**30
HOST_MEMORY, GPU_MEMORY = 5.25, 12.5
"""In GiB, as the client counts."""

Points = list[tuple[int, float]]


@dataclass(frozen=True, kw_only=True)
class Schedule:
    utilization: list[list[float]]
    cpu: list[float] = field(default_factory=list)
    namespace: str = "monitoring/training"
    start: int = START
    numbers: tuple[int, ...] | None = None

    @property
    def ticks(self) -> list[int]:
        return [self.start + TICK * place for place in range(len(self.utilization[0]))]

    def names(self) -> list[str]:
        if self.numbers is None:
            return [f"_{index}" for index in range(len(self.utilization))]
        return [f"_{number}" for number in self.numbers] or [""]

    def series(self) -> dict[str, Points]:
        ticks = self.ticks
        cpu = [0.0, *(self.cpu or [50.0] * len(ticks))[1:]]
        found = {"cpu": cpu, "memory": [HOST_MEMORY] * len(ticks)}
        for end, values in zip(self.names(), self.utilization, strict=True):
            found |= {f"gpu{end}": values, f"gpu_memory{end}": [GPU_MEMORY] * len(ticks)}
            found[f"gpu_power{end}"] = [60.0 + 2 * value for value in values]
        return {
            f"{self.namespace}/{leaf}": [(at, value) for at, value in zip(ticks, values, strict=True) if value]
            for leaf, values in found.items()
        }


def square(*, busy: int, idle: int, ticks: int, high: float = 97.0) -> list[float]:
    whole = [high] * busy + [0.0] * idle
    return [whole[place % len(whole)] for place in range(ticks)]


def loss(start: int, count: int, every: int = 5_000_000) -> Points:
    return [(start + every * place, 1.0 / (1 + place)) for place in range(count)]
