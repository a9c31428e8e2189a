"""Series of known mean that look like utilisation, for tests and simulations of intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
States = Sequence[tuple[float, float, float]]
"""Value, mean seconds and gamma shape of each state that follow each other in turn."""

_WARM = 4000
GAP_EVERY, GAP_SECONDS, BUSY = 600.0, 20, 85.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process sampled once a second: its name, its mean in points, and how to make a series of so many samples."""

    name: str
    mean: float
    make: Callable[[int, np.random.Generator], Floats]


def autoregressive(count: int, phi: float, deviation: float, rng: np.random.Generator) -> Floats:
    noise = rng.standard_normal(count) * deviation * np.sqrt(1 - phi**2)
    noise[0] = rng.standard_normal() * deviation
    return np.fromiter(accumulate(noise.tolist(), lambda last, new: new + phi * last), dtype=np.float64)


def _lengths(count: int, mean: float, shape: float, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    drawn = rng.gamma(shape, mean / shape, count)
    return np.maximum(np.rint(drawn), 1).astype(np.int64)


def alternating(count: int, states: States, rng: np.random.Generator) -> Floats:
    rounds = int((count + _WARM) / sum(seconds for _, seconds, _ in states)) * 2 + 10
    lengths = np.stack([_lengths(rounds, seconds, shape, rng) for _, seconds, shape in states], axis=1).ravel()
    values = np.repeat(np.tile([value for value, _, _ in states], rounds), lengths)
    start = len(values) - count - int(rng.integers(0, _WARM))
    return values[start : start + count]


def alternating_mean(states: States) -> float:
    rng = np.random.default_rng(99)
    seconds = [float(_lengths(1_000_000, mean, shape, rng).mean()) for _, mean, shape in states]
    return float(np.dot(seconds, [value for value, _, _ in states]) / sum(seconds))


def _rare_gaps(count: int, rng: np.random.Generator) -> Floats:
    series = BUSY + autoregressive(count, 0.5, 3.0, rng)
    place = rng.exponential(GAP_EVERY)
    while place < count:
        series[int(place) : int(place) + GAP_SECONDS] = 1.0
        place += GAP_SECONDS + rng.exponential(GAP_EVERY)
    return series


def _ar(phi: float) -> Process:
    return Process(name=f"AR(1), {phi:g}", mean=50.0, make=lambda n, rng: 50.0 + autoregressive(n, phi, 5.0, rng))


def _states(name: str, states: States) -> Process:
    return Process(name=name, mean=alternating_mean(states), make=lambda n, rng: alternating(n, states, rng))


def processes() -> tuple[Process, ...]:
    gaps = (GAP_EVERY * BUSY + GAP_SECONDS) / (GAP_EVERY + GAP_SECONDS)
    return (
        _ar(0.5),
        _ar(0.9),
        _ar(0.98),
        _states("on 20 s, off 5 s", [(90, 20, 1.5), (2, 5, 1.5)]),
        _states("bursts 8 s, 8 s", [(95, 8, 1.5), (40, 8, 1.5)]),
        _states("slow 300 s, 100 s", [(90, 300, 2), (50, 100, 2)]),
        Process(name="gaps of 20 s, one in 600 s", mean=gaps, make=_rare_gaps),
    )
