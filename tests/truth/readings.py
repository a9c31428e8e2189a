"""What nvidia-smi and a host logger read off a run, row by row."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tests.truth.physics import STEP, Course
from tests.truth.script import Script
from tests.truth.timeline import TICK, Floats, spread_over

_FINEST = 1e-3
_HICCUP = 0.002
_CLOCK_STEP_MHZ = 15
_LINK_SLEEPS_SECONDS = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The rows of one GPU: a series for each quantity, NaN where a cell says N/A."""

    seconds: Floats
    util: Floats
    controller: Floats
    memory: Floats
    watts: Floats
    celsius: Floats
    clock: Floats
    events: Floats
    generation: Floats
    errors: Floats


def moments(script: Script, rng: np.random.Generator) -> Floats:
    """Return when samples were taken: never quite on time, sometimes late, and not at all in the holes."""
    count = int(script.seconds / script.interval) + 1
    times = (np.arange(count) + rng.uniform(0.05, 0.3)) * script.interval * (1 + rng.normal(0, 2e-4))
    times += (
        np.abs(rng.normal(0, 0.012, count))
        + (rng.random(count) < _HICCUP) * rng.uniform(0.2, 1.2, count) * script.interval
    )
    times = np.maximum.accumulate(times + np.arange(count) * _FINEST * 0.01)
    for begin, length in script.holes:
        start = begin * script.seconds
        times = times[(times < start) | (times > start + length * script.seconds)]
    return np.asarray(times[times < script.seconds - 0.2], dtype=np.float64)


def gpu(  # noqa: PLR0913 - whose rows, and what they read
    script: Script, index: int, *, played: Course, used: Floats, times: Floats, rng: np.random.Generator
) -> Readings:
    if script.lost is not None and script.lost[0] == index:
        times = times[times < script.lost[1] * script.seconds]
    card = script.card
    done = np.concatenate([[0.0], np.cumsum(played.busy)]) * TICK
    phase = rng.uniform(0, card.window_seconds)
    fresh = np.floor((times - phase) / card.window_seconds) * card.window_seconds + phase
    util = np.round(100 * _average(done, TICK, fresh, card.window_seconds))
    joules = np.concatenate([[0.0], np.cumsum(played.watts)]) * STEP
    now = np.minimum((times / STEP).astype(np.int64), len(played.watts) - 1)
    awake = _average(done, TICK, times, _LINK_SLEEPS_SECONDS) > 0
    return Readings(
        seconds=times,
        util=_absent(util, script.absent, rng),
        controller=np.round(util * rng.uniform(0.4, 0.6)),
        memory=np.ceil(used[now]),
        watts=_absent(
            _average(joules, STEP, times, card.power_seconds) + rng.normal(0, 0.15, len(times)), script.absent, rng
        ),
        celsius=np.floor(played.celsius[now]),
        clock=np.round(played.clock[now] / _CLOCK_STEP_MHZ) * _CLOCK_STEP_MHZ,
        events=played.events[now].astype(np.float64),
        generation=np.where(awake, card.generation, 1.0),
        errors=script.ecc[0] + np.where(times > 0.55 * script.seconds, script.ecc[1], 0) * float(index == 0),
    )


def host(script: Script, rng: np.random.Generator) -> dict[str, Floats]:
    """Return the rows of the host log: a series a column, `seconds` among them."""
    every = max(script.interval, 1.0)
    count = int(script.seconds / every)
    late = np.abs(rng.normal(0, 0.02, count))
    times = np.asarray((np.arange(count) + 0.4) * every + late, dtype=np.float64)

    def of(values: list[float], shake: float) -> Floats:
        level = spread_over(script.parts, np.array(values), STEP)
        total = np.concatenate([[0.0], np.cumsum(level)]) * STEP
        noise = rng.gamma(9.0, shake / 3.0, len(times)) - 3.0 * shake
        return np.asarray(np.clip(_average(total, STEP, times, every) + noise, 0.0, 100.0), dtype=np.float64)

    return {
        "seconds": times,
        "cpu_percent": of([part.cpu for part in script.parts], 2.5),
        "cpu_max_core_percent": of([max(part.core, part.cpu) for part in script.parts], 1.0),
        "iowait_percent": of([part.iowait for part in script.parts], 0.6),
        "ram_percent": np.clip(script.ram + np.cumsum(rng.normal(0, 0.02, len(times))), 1.0, 99.0),
    }


def holes_of(script: Script) -> list[tuple[float, float]]:
    return [(begin * script.seconds, (begin + length) * script.seconds) for begin, length in script.holes]


def _average(total: Floats, every: float, at: Floats, window: float) -> Floats:
    """Return the mean over the window before each moment, from sums on a grid."""
    grid = np.arange(len(total)) * every
    begin = np.maximum(at - window, 0.0)
    spent: Floats = np.interp(at, grid, total) - np.interp(begin, grid, total)
    return np.asarray(np.clip(spent / np.maximum(np.minimum(at, grid[-1]) - begin, 1e-6), 0.0, None), dtype=np.float64)


def _absent(values: Floats, share: float, rng: np.random.Generator) -> Floats:
    """Return values of which a share is missing, mostly in runs of a few."""
    gone = rng.random(len(values)) < share / 3
    for row in np.flatnonzero(gone):
        gone[row : row + rng.integers(1, 5)] = True
    return np.where(gone, np.nan, values)


def parts_of(script: Script, index: int) -> list[tuple[float, float]]:
    ends = [0.0, *np.cumsum([part.seconds for part in script.of(index)]).tolist()]
    return list(pairwise(ends))
