"""Analysed runs for comparisons, made from recordings by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

import gpureport
from gpureport import Analysis, Comparison, testing
from gpureport.testing import Delta, Device, Finding, NotJudged, Work

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
    interval: float | None = None,
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
    if interval is not None:
        run = replace(run, interval=interval)
    recording = trained(replace(bare, run=run), training)
    prices = {"prices": {"gpu_hour": price, "currency": "EUR", "date": "2026-11-01"}} if price is not None else None
    return gpureport.analyze(recording, settings=prices)


def trained(recording: testing.Recording, points: Points) -> testing.Recording:
    return testing.with_training(
        recording, [(seconds, name, value) for seconds, _, name, value in points], [each[1] for each in points]
    )


def judged(
    run: Analysis, *findings: Finding, not_judged: Sequence[NotJudged] = (), info: Mapping[str, Any] | None = None
) -> Analysis:
    return replace(run, run=replace(run.run, **(info or {})), findings=findings, not_judged=tuple(not_judged))


def compared(*runs: Analysis, **options: Any) -> Comparison:
    return gpureport.compare(runs, **options)


def document(*runs: Analysis, **options: Any) -> Any:
    return testing.comparison_document(compared(*runs, **options))


def delta(comparison: Comparison, metric: str = UTILISATION, between: tuple[int, int] = (0, 1)) -> Delta:
    base, step = (comparison.steps[place].label for place in between)
    return next(each for each in comparison.between(base, step) if each.metric == metric)


def reason(found: Delta) -> str:
    return "" if found.reason is None else found.reason.check or found.reason.kind.value


def level(mean: float, count: int = 1200, seed: int = 0, scatter: float = 2.0) -> npt.NDArray[np.float64]:
    return np.clip(np.round(mean + np.random.default_rng(seed).normal(0, scatter, count)), 0, 100)


def rates(rate: float, seconds: int = 1200, seed: int = 0, name: str = "train/samples_per_second") -> Points:
    scatter = np.random.default_rng(seed).normal(1, 0.02, seconds // 5)
    return [(k * 5 + 1.0, k * 10, name, rate * float(by)) for k, by in enumerate(scatter)]
