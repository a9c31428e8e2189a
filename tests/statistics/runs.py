"""Analysed runs for comparisons, made by hand, and learning curves whose truth is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

import gpureport
from gpureport import Analysis, testing
from gpureport.testing import Delta, Device, Finding, Floats, NotJudged, Work

UTILISATION, IDLE, POWER, MEMORY = "gpu_utilization_ratio", "idle_ratio", "gpu_power_watts", "gpu_memory_used_bytes"
PER_WORK, WORK_RATE, TRAINING_RATE = "gpu_seconds_per_1000_work", "work_rate_hertz", "training_rate_hertz"
COST_PER_WORK, ENERGY_PER_WORK = "cost_per_1000_work", "energy_joules_per_1000_work"
Points = Sequence[tuple[float, int, str, float]]
"""Seconds, step, name and value of training metrics."""


def made(  # noqa: PLR0913 - each argument is something a test varies
    name: str,
    *,
    step: str | None = None,
    work: Work | None = None,
    params: Mapping[str, str] | None = None,
    device: Device | None = None,
    training: Points = (),
    price: float | None = None,
    every: float = 1.0,
    info: Mapping[str, Any] | None = None,
    **series: npt.ArrayLike,
) -> Analysis:
    bare = testing.recording(every=every, **series)  # type: ignore[arg-type]  # series are arrays
    run = replace(
        bare.run, id=name, name=name, step=step, work=work, params=tuple((params or {}).items()), **(info or {})
    )
    if device is not None:
        run = replace(run, devices=tuple(replace(device, id=gpu.id, index=gpu.index) for gpu in run.devices))
    recording = trained(replace(bare, run=run), training)
    prices = {"prices": {"gpu_hour": price, "currency": "EUR", "date": "2026-11-01"}} if price is not None else None
    return gpureport.analyze(recording, settings=prices)


def thrice(make: Callable[[Any, int], dict[str, Any]], steps: Mapping[str, Any]) -> list[Analysis]:
    """Return three runs of each step, made of what the step is given and of the number of the run."""
    return [made(f"{step}{k}", step=step, **make(given, k)) for step, given in steps.items() for k in range(3)]


def trained(recording: testing.Recording, points: Points) -> testing.Recording:
    return testing.with_training(
        recording, [(seconds, name, value) for seconds, _, name, value in points], [each[1] for each in points]
    )


def judged(
    run: Analysis, *findings: Finding, not_judged: Sequence[NotJudged] = (), info: Mapping[str, Any] | None = None
) -> Analysis:
    return replace(run, run=replace(run.run, **(info or {})), findings=findings, not_judged=tuple(not_judged))


def compared(*runs: Analysis, **options: Any) -> Any:
    """Return the comparison; tests read what may be None and fail where it is, so that it has no type."""
    return gpureport.compare(runs, **options)


def document(*runs: Analysis, **options: Any) -> Any:
    return testing.comparison_document(compared(*runs, **options))


def delta(comparison: Any, metric: str = UTILISATION, between: tuple[int, int] = (0, 1)) -> Any:
    base, step = (comparison.steps[place].label for place in between)
    return next(each for each in comparison.between(base, step) if each.metric == metric)


def reason(found: Delta) -> str:
    return "" if found.reason is None else found.reason.check or found.reason.kind.value


def level(mean: float, count: int = 1200, seed: int = 0, scatter: float = 2.0) -> npt.NDArray[np.float64]:
    return np.clip(np.round(mean + np.random.default_rng(seed).normal(0, scatter, count)), 0, 100)


def rates(rate: float, seconds: int = 1200, seed: int = 0, name: str = "train/samples_per_second") -> Points:
    scatter = np.random.default_rng(seed).normal(1, 0.02, seconds // 5)
    return [(k * 5 + 1.0, k * 10, name, rate * float(by)) for k, by in enumerate(scatter)]


SECONDS = 600
"""Length of a run."""
_PLAIN = made("plain", util=level(90, SECONDS // 10), every=10.0)
_PRICED = made("priced", util=level(90, SECONDS // 10), every=10.0, price=2.0)


@dataclass(frozen=True, kw_only=True)
class LearningCurve:
    """An accuracy, or a loss that falls, which approaches a level exponentially."""

    end: float  # level that it approaches
    start: float = 0.1  # at the start of the job
    constant: float = 80.0  # seconds in which the distance to the level falls to 1/e
    points: int = 30  # how often it is logged
    scatter: float = 0.005  # standard deviation of a single value
    between: float = 0.005  # standard deviation of the level between runs

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
