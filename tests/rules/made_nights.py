"""Nights made by hand, and series shaped like the figures of a nightly job."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta

import numpy as np

from gpureport.columns import FloatArray
from gpureport.nightly.figures import FIGURES, Figure
from gpureport.nightly.records import NightlyRecord, NightlyRun, Params

FIRST = date(2026, 1, 1)
USUAL: Mapping[str, tuple[float, float]] = {
    "lost_ratio": (0.14, 0.008),
    "gpu_seconds_per_1000_work": (820.0, 9.0),
    "work_rate_hertz": (9.7, 0.1),
    "gpu_utilization_ratio": (0.88, 0.006),
    "idle_ratio": (0.08, 0.005),
    "waiting_ratio": (0.06, 0.006),
    "throttled_ratio": (0.004, 0.002),
    "startup_ratio": (0.012, 0.002),
    "gpu_seconds": (57_600.0, 500.0),
    "energy_joules": (1.9e7, 2.1e5),
    "energy_joules_per_1000_work": (2.7e5, 3.2e3),
    "cost_per_1000_work": (0.57, 0.007),
    "gpu_power_watts": (331.0, 3.0),
    "gpu_sm_clock_hertz": (1.71e9, 8e6),
    "gpu_memory_used_bytes": (6.1e10, 1e8),
    "gpu_temperature_celsius": (71.0, 1.6),
    "coverage_ratio": (0.9985, 0.0006),
    "findings_problem": (0.15, -1.0),
    "findings_warning": (2.2, -1.0),
    "findings_info": (4.0, -1.0),
}
"""Level of each figure, and how far it differs from night to night; a negative spread marks what is counted."""


def day(number: int) -> str:
    return (FIRST + timedelta(days=number)).isoformat()


def course(name: str, nights: int, rng: np.random.Generator, correlation: float = 0.3) -> FloatArray:
    """Return a figure over nights in which nothing changes: correlated, with tails heavier than normal ones."""
    level, spread = USUAL[name]
    if spread < 0:
        return np.asarray(rng.poisson(level, nights), dtype=np.float64)
    shocks = rng.standard_t(6, nights + 30) * np.sqrt(4 / 6 * (1 - correlation**2))
    held = np.zeros(nights + 30)
    for place in range(1, nights + 30):
        held[place] = correlation * held[place - 1] + shocks[place]
    values = level + spread * held[30:]
    kind = next(kind for kind in FIGURES if kind.name == name)
    return np.asarray(np.round(np.clip(values, 0, 1 if kind.unit == "1" else None), 12), dtype=np.float64)


def part(values: Mapping[str, float | None], number: int = 0, **fields: str | Params) -> NightlyRun:
    """Return a run of a night with some figures, the others not recorded."""
    figures = tuple(Figure(name=kind.name, value=values.get(kind.name)) for kind in FIGURES)
    given: dict[str, str | Params] = {"run_id": f"{number:08x}", "name": "bert", "model": "NVIDIA H100", **fields}
    return NightlyRun(source="gpu.csv", gpus=8, started=number * 86_400_000_000, figures=figures, **given)  # type: ignore[arg-type]  # each caller names real fields


def night(number: int, *parts: NightlyRun, label: str = "", recorded: int = 0) -> NightlyRecord:
    return NightlyRecord(
        date=day(number), label=label, command="gpureport nightly gpu.csv", version="1", runs=parts, recorded=recorded
    )


def nights(values: Mapping[str, Iterable[float]]) -> list[NightlyRecord]:
    rows = zip(*values.values(), strict=True)
    return [
        night(number, part(dict(zip(values, map(float, row), strict=True)), number)) for number, row in enumerate(rows)
    ]


def year(count: int = 365, seed: int = 1) -> list[NightlyRecord]:
    rng = np.random.default_rng(seed)
    return nights({name: course(name, count, rng) for name in USUAL})


def changed(count: int = 60) -> list[NightlyRecord]:
    """Return nights of which the 31st has other params and is worse from then on."""
    values = [0.9 + 0.003 * (number * 7 % 5 - 2) - (0.08 if number >= 30 else 0) for number in range(count)]
    return [
        night(
            number,
            part(
                {"gpu_utilization_ratio": value},
                number,
                params=(("workers", "8" if number < 30 else "2"), ("lr", "0.1")),
            ),
            label=f"build {number}",
        )
        for number, value in enumerate(values)
    ]
