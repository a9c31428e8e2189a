"""Runs as a comparison takes them, made by hand."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport import testing
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun, build_sampled_run
from gpureport.series_table import TRAINING_SCHEMA
from gpureport.testing import Comparison, Delta, Device, Work, analyze

Points = list[tuple[float, int, str, float]]
"""Seconds, step, name and value of training metrics."""
UTILISATION, IDLE, POWER = "gpu_utilization_ratio", "idle_ratio", "gpu_power_watts"


def sampled(  # noqa: PLR0913 - each argument is something a test varies
    name: str,
    *,
    step: str | None = None,
    work: Work | None = None,
    params: Sequence[tuple[str, str]] = (),
    device: Device | None = None,
    training: Sequence[tuple[float, int, str, float]] = (),
    every: float = 1.0,
    **series: npt.ArrayLike,
) -> SampledRun:
    """Return a run.

    Args:
        name: its name, and what its identity comes from.
        step: label of its step.
        work: what it did in all.
        params: what it was configured with.
        device: what its GPUs are like, where that matters.
        training: seconds, step, name and value of training metrics.
        every: seconds between samples.
        series: as in `testing.recording`.
    """
    made = testing.recording(every=every, **series)  # type: ignore[arg-type]  # series are arrays
    gpus = (
        made.run.devices if device is None else tuple(replace(device, id=g.id, index=g.index) for g in made.run.devices)
    )
    run = replace(made.run, id=name, name=name, step=step, work=work, params=tuple(params), devices=gpus)
    recording = replace(made, run=run, training=_table(training))
    return build_sampled_run(recording, analyze(recording))


def _table(points: Sequence[tuple[float, int, str, float]]) -> "pa.Table":
    seconds, steps, names, values = zip(*points, strict=True) if points else ((), (), (), ())
    columns: dict[str, Any] = {
        "timestamp": pa.array([testing.at(each) for each in seconds], pa.timestamp("us")),
        "step": pa.array(steps, pa.int64()),
        "name": pa.array(names, pa.string()).cast(pa.dictionary(pa.int32(), pa.string())),
        "value": pa.array(values, pa.float64()),
    }
    return pa.table(columns, schema=TRAINING_SCHEMA)


def level(mean: float, count: int = 1200, seed: int = 0, scatter: float = 2.0) -> npt.NDArray[np.float64]:
    """Return a utilisation that scatters around a level."""
    return np.clip(np.round(mean + np.random.default_rng(seed).normal(0, scatter, count)), 0, 100)


def delta(comparison: Comparison, metric: str = UTILISATION, between: tuple[int, int] = (0, 1)) -> Delta:
    """Return one figure of two steps, by their places in the chain."""
    base, step = (comparison.steps[place].label for place in between)
    return next(each for each in comparison.between(base, step) if each.metric == metric)


def compared(*runs: SampledRun) -> Comparison:
    """Return the comparison of runs."""
    return compare(runs)


def worked(name: str, seconds: float, steps: int = 600) -> SampledRun:
    """Return a run that took so long for its steps, sampled ten times a second."""
    run = sampled(name, util=level(95, round(seconds * 10), 1), every=0.1)
    work = replace(run.analysis.run, work=Work(amount=steps, unit="steps"))
    return replace(run, analysis=replace(run.analysis, run=work))
