"""A run before it is played: its card, its parts, its setting, and the share of time in which kernels run."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Card:
    name: str  # as nvidia-smi prints it
    memory_mib: int  # memory installed
    reserved_mib: int  # memory the driver keeps
    limit_watts: float  # default power limit
    idle_watts: float  # power with no process on it
    ready_watts: float  # power with a process and nothing running
    clock_mhz: int  # highest clock of the multiprocessors
    idle_clock_mhz: int  # clock with no process
    slowdown_celsius: float  # temperature from which clocks are lowered
    generation: int  # highest PCIe generation
    window_seconds: float  # what a utilisation reading averages over; the driver takes a new one as often
    power_seconds: float  # what a power reading averages over


V100 = Card("Tesla V100-SXM2-32GB", 32768, 267, 300.0, 41.0, 56.0, 1530, 135, 83.0, 3, 1 / 6, 0.025)
RTX3090 = Card("NVIDIA GeForce RTX 3090", 24576, 312, 350.0, 21.0, 105.0, 2100, 210, 93.0, 4, 0.2, 1.0)
L4 = Card("NVIDIA L4", 23034, 556, 72.0, 12.0, 28.0, 2040, 210, 86.0, 4, 0.5, 1.0)
A100 = Card("NVIDIA A100-SXM4-80GB", 81920, 616, 400.0, 55.0, 84.0, 1410, 210, 85.0, 4, 1.0, 0.025)
H100 = Card("NVIDIA H100 80GB HBM3", 81559, 551, 700.0, 70.0, 118.0, 1980, 345, 87.0, 5, 0.5, 1.0)
CARDS = (V100, RTX3090, L4, A100, H100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    seconds: float  # its length
    label: str = ""  # the kind a reader should find here; empty for work that is in order
    texture: str = "steps"  # `steps`, `requests`, `spin` (one kernel throughout) or `still`
    step: float = 0.35  # mean seconds a step computes
    duty: float = 1.0  # share of the time a kernel runs, below 1 because the next batch is late
    spread: float = 0.5  # how unevenly batches arrive, the standard deviation of their logarithm
    rate: float = 0.0  # requests a second, for requests
    swing: float = 0.0  # how far the rate follows the time of day, 0 to 1
    heat: float = 0.8  # power above readiness while a kernel runs, as a share of what a heavy one takes
    slow: float = 1.0  # what the machine makes of the clock: 1, or less while it asserts a slowdown
    held: float = 1.0  # the same where nothing in the log says that it is held
    cpu: float = 17.0  # mean use of all cores in per cent
    core: float = 48.0  # use of the busiest core in per cent
    iowait: float = 0.4  # time waiting for storage in per cent


Parts = tuple[Part, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """How much memory a job takes, in shares of what is installed."""

    first: float = 0.3  # taken when it begins
    grown: float = 0.62  # taken in the end of the warm-up, in ever rarer chunks
    leak: float = 0.0  # taken more in each second of the job
    chunk: float = 0.006  # size of one chunk
    swing: float = 0.0  # highest extra that batches of changing length need
    kept: float = 0.0  # share of the peak that stays after the job


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    parts: Parts  # what every GPU does
    own: Mapping[int, Parts] = field(default_factory=dict)  # what single GPUs do instead, by index
    card: Card = A100  # the kind of GPU
    gpus: int = 1  # how many
    interval: float = 1.0  # seconds between samples
    columns: str = "common"  # name of the column set
    memory: Memory = field(default_factory=Memory)  # what the job takes
    kelvin: float = 42.0  # degrees a watt makes the card warmer, times the power limit
    fails: float | None = None  # share of the run from which the air no longer flows; None when it always does
    clock: float = 1.0  # highest clock the operator allows, as a share
    ram: float = 45.0  # use of the host's memory in per cent
    lanes: int = 16  # PCIe lanes in use under load of the 16 there are
    ecc: tuple[int, int] = (0, 0)  # errors counted before the run and in it
    holes: tuple[tuple[float, float], ...] = ()  # (begin, length) of stretches without samples, in shares of the run
    absent: float = 0.0  # share of cells that say N/A
    whole: tuple[str, ...] = ()  # kinds that hold for the whole run
    period: float | None = None  # seconds between starts of pauses that recur
    trap: bool = False  # whether nobody has to act on anything here
    clean: bool = False  # whether nothing but information may be said

    @property
    def seconds(self) -> float:
        return sum(part.seconds for part in self.parts)

    def of(self, gpu: int) -> Parts:
        return self.own.get(gpu, self.parts)


_STRETCH = {0.1: 0.4, 1.0: 1.0, 5.0: 3.0, 30.0: 13.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    interval: float  # seconds between samples
    card: Card  # the kind of GPU
    rng: np.random.Generator  # source of chance

    def long(self, seconds: float) -> float:
        """Return a length that grows with the sampling interval, a whole number of seconds."""
        return float(round(seconds * _STRETCH[self.interval] * self.rng.uniform(0.85, 1.15)))

    def brief(self, low: float, high: float) -> float:
        """Return the length of a pause; it is longer in jobs that are logged coarsely, for else none would show."""
        factor = {0.1: 0.8, 1.0: 1.0, 5.0: 1.8, 30.0: 7.0}[self.interval]
        return round(self.rng.uniform(low, high) * factor, 2)

    def pause(self, low: float, high: float, cpu: float = 12.0) -> Part:
        return Part(seconds=self.brief(low, high), texture="still", cpu=cpu, core=60.0)

    def started(self, low: float = 25.0, high: float = 60.0) -> Part:
        seconds = self.brief(low, high)
        return Part(seconds=seconds, label="startup_idle", texture="still", cpu=9.0, core=97.0, iowait=3.0)

    def over(self, low: float = 14.0, high: float = 40.0) -> Part:
        return Part(seconds=self.brief(low, high), label="tail_idle", texture="still", cpu=4.0, core=30.0)

    def job(self, *parts: Part) -> Parts:
        return (self.started(), *parts, self.over())

    def work(self, seconds: float, **changes: float | str) -> Part:
        step = float(self.rng.uniform(0.12, 0.7))
        heat = float(self.rng.uniform(0.68, 0.88))
        given: dict[str, float | str] = {"step": step, "heat": heat, **changes}
        return Part(seconds=self.long(seconds), **given)  # type: ignore[arg-type]  # each caller names real fields


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
