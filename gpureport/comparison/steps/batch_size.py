"""How many samples a step takes, as params say, and work counted in samples where steps differ in that."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.throughput import STEPS
from gpureport.recording import Run
from gpureport.training_names import normalise_work_unit

_SAMPLES = "samples"
_NAMES = (
    re.compile(r"(?:^|[^a-z])(?:global|effective|total)_?(?:train_?)?batch_?size$"),
    re.compile(r"(?:^|[^a-z])train_?batch_?size$"),
    re.compile(r"(?:^|[^a-z])(?:batch_?size|bs)$"),
    # without "size" no more than the whole name, or its last part, will do: "log_every_batch" counts something else
    re.compile(r"(?:^|[./])(?:(?:global|effective|total)_)?(?:train_)?batch$"),
)
_PER_DEVICE = re.compile(r"per_(?:device|gpu)_(?:train_)?batch_size$")
_ACCUMULATED = re.compile(r"(?:^|[^a-z])(?:gradient_accumulation_steps|accumulate_grad_batches|grad_accum(?:_steps)?)$")


def batch_size(run: Run) -> float | None:
    """Return how many samples a step of a run takes over all its GPUs; None where no param says."""
    params = {key.lower(): value for key, value in run.params}
    each = _number(params, _PER_DEVICE)
    if each is not None:
        return each * max(len(run.gpus), 1) * (_number(params, _ACCUMULATED) or 1.0)
    known = (_number(params, pattern) for pattern in _NAMES)
    return next((size for size in known if size is not None), None)


def _number(params: dict[str, str], pattern: re.Pattern[str]) -> float | None:
    for key in sorted(params):
        if pattern.search(key) and not ("eval" in key or "val_" in key or "test" in key):
            try:
                value = float(params[key])
            except ValueError:
                continue
            return value if 0 < value < float("inf") else None
    return None


def convert_work_to_samples(runs: Sequence[SampledRun]) -> list[SampledRun]:
    """Return runs with work counted in samples where all count steps, and a step is not of one size in all of them."""
    sizes = [batch_size(run.analysis.run) for run in runs]
    if len(set(sizes)) < 2 or None in sizes or any(run.work_unit != STEPS for run in runs):  # noqa: PLR2004 - differ
        return list(runs)
    return [_counted(run, size) for run, size in zip(runs, sizes, strict=True) if size is not None]


def unify_work_units(runs: Sequence[SampledRun]) -> list[SampledRun]:
    """Return runs with one name for their unit of work where it has several: images that were stated are samples."""
    units = {run.work_unit for run in runs if run.work_unit is not None}
    several = len(units) > 1 and len(set(map(normalise_work_unit, units))) == 1
    return [_renamed(run) for run in runs] if several else list(runs)


def _renamed(run: SampledRun) -> SampledRun:
    info = run.analysis.run
    work = None if info.work is None else replace(info.work, unit=normalise_work_unit(info.work.unit))
    return replace(run, analysis=replace(run.analysis, run=replace(info, work=work)))


def _counted(run: SampledRun, size: float) -> SampledRun:
    info, speed = run.analysis.run, run.throughput
    work = None if info.work is None else replace(info.work, amount=info.work.amount * size, unit=_SAMPLES)
    if speed is not None and speed.unit == STEPS:
        done = replace(speed.work, amounts=speed.work.amounts * size)
        speed = replace(speed, unit=_SAMPLES, rates=speed.rates * size, work=done)
    return replace(run, analysis=replace(run.analysis, run=replace(info, work=work)), throughput=speed)
