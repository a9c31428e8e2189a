"""When kernels run, on a grid of 10 ms: the latent truth that readings average over."""

import numpy as np
import numpy.typing as npt

from tests.truth.script import Part, Parts

Floats = npt.NDArray[np.float64]
Edges = tuple[Floats, Floats]

TICK = 0.01
"""Seconds of one cell of the grid."""
_SPREAD_OF_STEPS = 0.12
_LAUNCH_SECONDS = 0.006
_STRAYS_PER_SECOND = 0.012
_DAYS_PER_RUN = 3


def busy(parts: Parts, rng: np.random.Generator) -> Floats:
    """Return the share of each cell of the grid in which a kernel ran."""
    begin, starts, ends = 0.0, [], []
    for part in parts:
        start, end = _kernels(part, rng)
        inside = start < part.seconds
        starts.append(begin + start[inside])
        ends.append(begin + np.minimum(end[inside], part.seconds))
        begin += part.seconds
    first, last = np.concatenate(starts), np.concatenate(ends)
    knots = np.column_stack([first, last]).ravel()
    ran = np.column_stack([np.zeros(len(first)), last - first]).ravel()
    edges = np.arange(round(begin / TICK) + 1) * TICK
    if not len(knots):
        return np.zeros(len(edges) - 1)
    shares: Floats = np.clip(np.diff(np.interp(edges, knots, np.cumsum(ran))) / TICK, 0.0, 1.0)
    return shares


def spread_over(parts: Parts, values: Floats, every: float) -> Floats:
    """Return one value a part as a series with one value each `every` seconds."""
    ends = np.cumsum([part.seconds for part in parts])
    moments = (np.arange(round(float(ends[-1]) / every)) + 0.5) * every
    return values[np.minimum(np.searchsorted(ends, moments, side="right"), len(values) - 1)]


def blocks(values: Floats, cells: int) -> Floats:
    whole = len(values) // cells * cells
    means: Floats = values[:whole].reshape(-1, cells).mean(axis=1)
    return means


def _kernels(part: Part, rng: np.random.Generator) -> Edges:
    if part.texture == "spin":
        return np.zeros(1), np.full(1, part.seconds)
    if part.texture == "still":
        return _strays(part, rng)
    return _requests(part, rng) if part.texture == "requests" else _steps(part, rng)


def _strays(part: Part, rng: np.random.Generator) -> Edges:
    count = rng.poisson(_STRAYS_PER_SECOND * part.seconds)
    start = np.sort(rng.uniform(1.0, max(part.seconds - 1.0, 1.001), count))
    start = start[np.diff(start, prepend=-10.0) > 3.0]
    return start, start + rng.uniform(0.01, 0.06, len(start))


def _steps(part: Part, rng: np.random.Generator) -> Edges:
    """Return steps, each of which begins when its batch is there and the step before has ended."""
    count = int(part.seconds / part.step * 1.6) + 8
    compute = part.step * rng.lognormal(-(_SPREAD_OF_STEPS**2) / 2, _SPREAD_OF_STEPS, count)
    ready = np.zeros(count)
    if part.duty < 1:
        wait = rng.lognormal(-(part.spread**2) / 2, part.spread, count)
        ready = np.cumsum(np.concatenate([[0.0], part.step / part.duty * wait[1:]]))
    return _queue(ready, compute, _LAUNCH_SECONDS)


def _requests(part: Part, rng: np.random.Generator) -> Edges:
    """Return requests that come by chance, more of them by day than by night."""
    most = part.rate * (1 + part.swing)
    arrivals = np.cumsum(rng.exponential(1 / most, int(most * part.seconds * 1.2) + 30))
    phase = 2 * np.pi * _DAYS_PER_RUN * arrivals / part.seconds
    wanted = part.rate * (1 + part.swing * np.sin(phase)) / most
    arrivals = arrivals[(rng.random(len(arrivals)) < wanted) & (arrivals < part.seconds)]
    served = part.step * rng.lognormal(-0.18, 0.6, len(arrivals))
    return _queue(arrivals, served, 0.0)


def _queue(ready: Floats, length: Floats, between: float) -> Edges:
    """Return when each of a row of jobs begins and ends that one server does in turn."""
    done = np.cumsum(length + between)
    end = np.maximum.accumulate(ready + length - done) + done
    return end - length, end
