"""Compares training metrics after equal amounts of work, since a faster run gets further in the same time.

Work is counted in steps of one size, in samples if step sizes differ and are known, or in epochs. Runs are compared at
the largest amount of work that all reached, using the mean of the values just before it. If values are far
apart, the value is interpolated, with a larger error.
"""

import re
from collections.abc import Sequence
from enum import StrEnum
from math import sqrt
from typing import NamedTuple

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.comparison.run import SampledRun
from gpureport.comparison.work import TrainingCurve, batch_size

_STEPS, _SAMPLES, _EPOCHS = "steps", "samples", "epochs"
# Amounts of work within this ratio count as equal, so the ends of the runs are compared.
_ALIKE = 1.02
_NEAR = 0.85  # Values are averaged only if they lie beyond this share of the common work.
# A metric's steps count as epochs if another metric's steps exceed them by this factor.
_EPOCH_RATIO = 5.0
_SAME_SIZE = 1.1  # Maximum ratio of measured step sizes that count as equal.
_LAST, _FEWEST = 0.1, 3
"""Share and minimum number of last values whose mean is the final value, since single values scatter. If there are
few values, half are used."""
_SPREAD_SHARE, _SPREAD_VALUES = 0.2, 5
"""Share and minimum number of final values from which the spread is measured."""
_INDEPENDENT = 4
"""Maximum number of final values that count as independent, since neighbours in a smoothed metric are similar."""
_JOB_EPOCHS = re.compile(r"(?:^|[^a-z])(?:(?:max|num|n|total|train|training|num_train)_)?epochs$")
_COUNTERS = {_SAMPLES: {"consumed samples"}, _EPOCHS: {"epoch", "epochs"}}
"""Last components of the names of metrics that count work."""


class NoWork(StrEnum):
    NOT_LOGGED = "work_not_logged"
    OTHER_UNIT = "other_work_unit"
    NO_OVERLAP = "no_common_work"


class Reading(NamedTuple):
    value: float
    error: float
    bias: float = 0.0


class EqualWork(NamedTuple):
    work: float
    unit: str
    at_end: bool
    readings: tuple[Reading, ...]


Runs = Sequence[tuple[SampledRun, TrainingCurve]]


def read_at_equal_work(runs: Runs) -> list[EqualWork] | NoWork:
    # if all runs specify their step sizes and these differ, compare the runs after equal numbers of samples and of
    # steps, since a larger batch learns more per step but less per sample
    axes = _find_axes(runs)
    found = [] if isinstance(axes, NoWork) else [_read(runs, unit, works) for unit, works in axes]
    read = [each for each in found if each is not None]
    if read and len(read) == len(found):
        return read
    # if no work is logged with a metric, compare the ends of runs whose total work is equal
    works = [run.info.work for run, _ in runs]
    amounts, units = [work.amount for work in works if work], {work and work.unit for work in works}
    if len(amounts) == len(runs) and len(units) == 1 and 0 < max(amounts) <= _ALIKE * min(amounts):
        return [EqualWork(work=min(amounts), unit=str(units.pop()), at_end=True, readings=_read_ends(runs))]
    return axes if isinstance(axes, NoWork) else NoWork.NO_OVERLAP


def _read(runs: Runs, unit: str, works: Sequence[FloatArray]) -> EqualWork | None:
    """Return a metric at the largest amount of work that all runs reached. `works` gives the work at each value."""
    points = []
    for (_, curve), each in zip(runs, works, strict=True):
        # sort by work, and keep the last value logged for each amount
        rows = np.flatnonzero(np.isfinite(each) & np.isfinite(curve.values))[::-1]
        amounts, last = np.unique(each[rows], return_index=True)
        points.append((amounts, curve.values[rows[last]]))
    if not all(len(work) for work, _ in points):
        return None
    common, most = (choose(float(work[-1]) for work, _ in points) for choose in (min, max))
    if most <= _ALIKE * common:
        return EqualWork(work=common, unit=unit, at_end=True, readings=_read_ends(runs))
    if common <= 0 or max(float(work[0]) for work, _ in points) > common:
        return None
    parts = [(work, values, int(np.searchsorted(work, common, side="right"))) for work, values in points]
    dense = all(
        count >= _SPREAD_VALUES and work[count - _count_last(count)] >= _NEAR * common for work, _, count in parts
    )
    readings = (
        read_end(values[:count]) if dense else _interpolate(work, values, common) for work, values, count in parts
    )
    return EqualWork(work=common, unit=unit, at_end=False, readings=tuple(readings))


def _find_axes(runs: Runs) -> list[tuple[str, list[FloatArray]]] | NoWork:
    steps = [_find_steps(run, curve) for run, curve in runs]
    ends = [float(np.nanmax(each, initial=0)) for each in steps]
    counted = min(ends) > 0
    kinds = {_name_counter(run, end) for (run, _), end in zip(runs, ends, strict=True)} if counted else set()
    sizes = [batch_size(run.info) for run, _ in runs]
    known = [size for size in sizes if size is not None]
    if kinds == {_EPOCHS}:
        return [(_EPOCHS, steps)]
    if kinds == {_STEPS} and len(known) == len(sizes):
        samples = [each * size for each, size in zip(steps, known, strict=True)]
        return [(_SAMPLES, samples), (_STEPS, steps)] if len(set(known)) > 1 else [(_STEPS, steps)]
    # if no run specifies a step size, the number of steps counts as the intended work
    if kinds == {_STEPS} and not known and (_are_steps_alike(runs) or max(ends) <= _ALIKE * min(ends)):
        return [(_STEPS, steps)]
    for unit, names in _COUNTERS.items():
        joined = [each for run, curve in runs if (each := _join_counter(run, curve, names)) is not None]
        if len(joined) == len(runs):
            return [(unit, joined)]
    return NoWork.OTHER_UNIT if counted else NoWork.NOT_LOGGED


def _are_steps_alike(runs: Runs) -> bool:
    """Return whether steps of unknown size seem equal, judging by logged rates or else by GPU counts."""
    measured = [_measure_step(run) for run, _ in runs]
    sizes = [found[1] for found in measured if found is not None]
    if len(sizes) == len(measured):
        return len({found[0] for found in measured if found}) == 1 and max(sizes) <= _SAME_SIZE * min(sizes)
    return len({len(run.info.gpus) for run, _ in runs}) == 1


def _measure_step(run: SampledRun) -> tuple[str, float] | None:
    speed = run.throughput
    curve = next((each for each in run.training if speed is not None and each.name == speed.name), None)
    if speed is None or curve is None or speed.unit not in {_SAMPLES, "tokens"}:
        return None
    steps, done = curve.steps[np.isfinite(curve.steps)], float(speed.work.amounts[1:].sum())
    passed = float(np.ptp(steps)) if len(steps) else 0.0
    return (speed.unit, done / passed) if passed > 0 and done > 0 else None


def _find_steps(run: SampledRun, curve: TrainingCurve) -> FloatArray:
    if np.nanmax(curve.steps, initial=0) > 0:
        return curve.steps
    others = [each for each in run.training if len(each.times) and np.nanmax(each.steps, initial=0) > 0]
    if not others or not len(curve.times):
        return np.full(len(curve.values), np.nan)
    longest = max(others, key=lambda each: float(np.nanmax(each.steps)))
    return _join(curve.times, longest.times, longest.steps)


def _join(places: FloatArray | IntArray, known: FloatArray | IntArray, counts: FloatArray) -> FloatArray:
    rows = np.isfinite(counts) & np.isfinite(known)
    return np.interp(places, known[rows], counts[rows]) if rows.any() else np.full(len(places), np.nan)


def _join_counter(run: SampledRun, curve: TrainingCurve, names: set[str]) -> FloatArray | None:
    for each in run.training:
        if each.name.lower().rpartition("/")[2] in names:
            timed = len(each.times) and len(curve.times)
            places, known = (curve.times, each.times) if timed else (curve.steps, each.steps)
            work = _join(places, known, each.values)
            return work if np.isfinite(work).any() else None
    return None


def _name_counter(run: SampledRun, last: float) -> str:
    """Return `epochs` if the last step is the job's epoch count or far below other metrics' steps, else `steps`."""
    lengths, work = {value for key, value in run.info.params if _JOB_EPOCHS.search(key.lower())}, run.info.work
    if work is not None and work.unit == _EPOCHS:
        lengths.add(f"{work.amount:g}")
    others = max(float(np.nanmax(each.steps, initial=0)) for each in run.training)
    is_epochs = others > _EPOCH_RATIO * (last + 1) or not lengths.isdisjoint({f"{last:g}", f"{last + 1:g}"})
    return _EPOCHS if is_epochs else _STEPS


def _read_ends(runs: Runs) -> tuple[Reading, ...]:
    return tuple(read_end(curve.known) for _, curve in runs)


def read_end(values: FloatArray) -> Reading:
    """Return the mean of the last values, with a standard error based on their spread."""
    count, spread = _count_last(len(values)), measure_spread(values)
    error = 0.0 if spread is None else spread / sqrt(min(count, _INDEPENDENT))
    return Reading(value=float(values[-count:].mean()), error=error)


def _interpolate(work: FloatArray, values: FloatArray, common: float) -> Reading:
    """Return an interpolated value. The error depends on how well neighbours predict each other."""
    # a value deviates from the line between its neighbours because of scatter and curvature; between a value and one
    # neighbour, curvature has a quarter of this effect
    after = int(np.searchsorted(work, common))
    value = float(np.interp(common, work, values))
    if len(values) < _FEWEST:
        return Reading(value=value, error=0.0, bias=float(np.ptp(values)) / 2)
    share = (work[1:-1] - work[:-2]) / (work[2:] - work[:-2])
    off = np.abs(values[1:-1] - values[:-2] - share * (values[2:] - values[:-2]))
    near = off[max(after - 3, 0) : after + 1]
    bend = float(near.max())
    if after == 1:
        # the curve bends most before the second value, by an unknown amount
        bend = max(bend, abs(float(values[1] - values[0])))
    bias = 0.0 if work[after] == common else bend / 4
    return Reading(value=value, error=sqrt(float((near**2).mean()) / 1.5), bias=bias)


def _count_last(count: int) -> int:
    """Return how many last values to average: a tenth but at least three, or half if there are few."""
    return max(round(count * _LAST), min(_FEWEST, (count + 1) // 2), min(2, count))


def measure_spread(values: FloatArray) -> float | None:
    """Return the standard deviation of the last values about their trend line."""
    if len(values) < _FEWEST:
        return None
    last = values[-max(round(len(values) * _SPREAD_SHARE), _SPREAD_VALUES) :]
    place = np.arange(len(last)) - (len(last) - 1) / 2
    slope = float(place @ last) / float(place @ place)
    residuals = last - last.mean() - slope * place
    return sqrt(float(residuals @ residuals) / (len(last) - 2))
