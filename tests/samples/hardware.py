"""A card and a job that are played through for a sample."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

TICK = 0.1
"""Seconds one step of the model covers."""

IDLE_BIT, CLOCKS_SETTING_BIT, POWER_CAP_BIT, SW_THERMAL_BIT = 0x1, 0x2, 0x4, 0x20
POWER_BRAKE_BITS = 0x88
"""Power brake, with the hardware slowdown that comes with it."""
_SETTLE_TICKS = 40
_TICKS_PER_SECOND = round(1 / TICK)
_FALL_MHZ, _RISE_MHZ = 3.0, 1.0
_BRAKED = 0.4


@dataclass(frozen=True, slots=True)
class Model:
    name: str  # as nvidia-smi prints it
    memory_mib: int  # memory installed
    reserved_mib: int  # memory the driver keeps
    limit_watts: float  # power limit
    idle_watts: float  # power with no context
    ready_watts: float  # power at full clock with nothing running
    clock_mhz: int  # highest clock of the multiprocessors
    idle_clock_mhz: int  # clock with no context
    slowdown_celsius: float  # temperature at which software lowers the clock
    window_seconds: float = 1.0  # what a power reading averages over
    # highest clock it could run at, where somebody locked it to `clock_mhz`; None where nobody did
    highest_mhz: int | None = None
    default_watts: float | None = None  # limit the board ships with, where somebody changed it; None where nobody did


A10G = Model("NVIDIA A10G", 23028, 496, 300.0, 16.0, 58.0, 1710, 210, 88.0)
L4 = Model("NVIDIA L4", 23034, 556, 72.0, 12.6, 28.0, 2040, 210, 86.0)
A100 = Model("NVIDIA A100-SXM4-80GB", 81920, 616, 400.0, 57.0, 92.0, 1410, 210, 85.0, window_seconds=TICK)
H100 = Model("NVIDIA H100 80GB HBM3", 81559, 551, 700.0, 69.0, 121.0, 1980, 345, 87.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cooling:
    inlet_celsius: float  # air at the card
    kelvin_per_watt: float  # how much warmer a watt makes it in the long run
    seconds: float = 45.0  # time constant of card and heat sink
    fails_at: float | None = None  # second from which the air no longer flows freely; None when it always does
    failed_kelvin_per_watt: float = 0.0  # what a watt does from then on
    # seconds between which the power supply asserts its brake; None when it never does
    braked: tuple[float, float] | None = None
    # second from which something that the driver does not tell keeps the clock, and about how many MHz it keeps it at
    held: tuple[float, float] | None = None

    @property
    def disturbed(self) -> bool:
        return self.fails_at is not None or self.braked is not None

    def brakes(self, second: float) -> bool:
        return self.braked is not None and self.braked[0] <= second < self.braked[1]

    def hold(self, second: float, clock: float) -> float:
        is_held = self.held is not None and second >= self.held[0]
        return min(clock, self.held[1] + 15.0 * (int(second) % 3)) if self.held and is_held else clock

    def resistance(self, second: float) -> float:
        failed = self.fails_at is not None and second >= self.fails_at
        return self.failed_kelvin_per_watt if failed else self.kelvin_per_watt


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    watts: FloatArray
    celsius: FloatArray
    clock_mhz: FloatArray
    events: IntArray


class _Card:
    """A card while it is played through: its temperature, the clock heat allows it, and how long it has been quiet."""

    def __init__(self, model: Model, cooling: Cooling, intensity: float) -> None:
        self.model = model
        self.cooling = cooling
        self.dynamic_watts = intensity * (model.limit_watts - model.ready_watts)
        self.intensity = intensity
        self.celsius = cooling.inlet_celsius + cooling.kelvin_per_watt * model.idle_watts
        self.thermal_mhz = float(model.clock_mhz)
        self.quiet = _SETTLE_TICKS

    def advance(self, second: float, work: float, load: float, *, context: bool) -> tuple[float, float, float, int]:
        model = self.model
        self.quiet = 0 if work > 0 else self.quiet + 1
        asleep = not context and self.quiet >= _SETTLE_TICKS
        self._follow_heat()
        capped = model.clock_mhz / sqrt(max(1.0, load * self.intensity))
        power_bound = capped < model.clock_mhz
        hot = self.thermal_mhz < capped and load > 0
        braked = self.cooling.brakes(second) and load > 0
        clock = _BRAKED * model.clock_mhz if braked else min(self.thermal_mhz, capped)
        clock = self.cooling.hold(second, clock)
        base = model.idle_watts if asleep else model.ready_watts
        watts = base + self.dynamic_watts * work * (clock / model.clock_mhz) ** 2
        target = self.cooling.inlet_celsius + self.cooling.resistance(second) * watts
        self.celsius += (target - self.celsius) * TICK / self.cooling.seconds
        idle = self.quiet >= _TICKS_PER_SECOND
        events = IDLE_BIT * idle | SW_THERMAL_BIT * hot | POWER_CAP_BIT * (power_bound and not hot)
        if model.highest_mhz and not idle and not power_bound:
            events |= CLOCKS_SETTING_BIT
        if braked:
            events = POWER_BRAKE_BITS
        return watts, self.celsius, float(model.idle_clock_mhz if asleep else clock), events

    def _follow_heat(self) -> None:
        """Lower the clock while the card is at its limit, raise it slowly once it is a little cooler."""
        if self.celsius >= self.model.slowdown_celsius:
            self.thermal_mhz = max(self.thermal_mhz - _FALL_MHZ, 0.45 * self.model.clock_mhz)
        elif self.celsius < self.model.slowdown_celsius - 1.0:
            self.thermal_mhz = min(self.thermal_mhz + _RISE_MHZ, float(self.model.clock_mhz))


def simulate(model: Model, cooling: Cooling, work: FloatArray, context: FloatArray, intensity: float) -> Trace:
    """Play a GPU through.

    `work` is the share of each tick in which a kernel computed, where waiting inside a kernel counts in part, `context`
    is 1 in those in which a process held one. The intensity is the dynamic power at full clock, as a share of what the
    limit leaves; above 1 it meets the cap.
    """
    card = _Card(model, cooling, intensity)
    done = np.concatenate([np.zeros(_TICKS_PER_SECOND), np.cumsum(work)])
    load = (done[_TICKS_PER_SECOND:] - done[:-_TICKS_PER_SECOND]) / _TICKS_PER_SECOND
    rows = [
        card.advance(tick * TICK, float(work[tick]), float(load[tick]), context=bool(context[tick]))
        for tick in range(len(work))
    ]
    watts, celsius, clock_mhz, events = (list(column) for column in zip(*rows, strict=True))
    return Trace(
        watts=np.array(watts), celsius=np.array(celsius), clock_mhz=np.array(clock_mhz), events=np.array(events)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    steps: int  # optimizer steps in all
    first: float  # seconds from the start of the log to the first step
    compute_seconds: float  # mean time one step keeps a GPU busy
    load_seconds: float  # mean time the loader needs for one batch
    load_spread: float = 0.2  # how far one batch's loading time may lie from the mean, as a share of it
    shard_spread: float = 0.0  # how far a whole shard's loading time may lie from the mean, as a share of it
    launch_seconds: float = 0.012  # time between two steps in which no kernel runs
    prefetch: int = 4  # batches the loader keeps ready
    stall_steps: int = 0  # batches between two waits for storage; 0 for none
    stall_seconds: float = 0.0  # mean length of such a wait
    epoch_steps: int = 0  # steps between two pauses; 0 for none
    pause_seconds: float = 0.0  # length of such a pause
    slower: tuple[int, float] | None = None  # a step, and how many times as long each computes from there on


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    starts: FloatArray  # when each step began on all GPUs
    ends: FloatArray  # when each step ended on all GPUs
    loaded: FloatArray  # when each batch was ready
    stalls: FloatArray  # how long storage kept each batch waiting, at the beginning of its loading

    def busy(self, at: npt.NDArray[np.floating]) -> FloatArray:
        edges = np.column_stack([self.starts, self.ends]).ravel()
        gained = np.column_stack([np.zeros(len(self.starts)), self.ends - self.starts]).ravel()
        seconds: FloatArray = np.interp(at, edges, np.cumsum(gained))
        return seconds

    def stalled(self, at: FloatArray) -> FloatArray:
        which = np.flatnonzero(self.stalls)
        if not len(which):
            return np.zeros(len(at))
        begins = self.loaded[which - 1]
        edges = np.column_stack([begins, begins + self.stalls[which]]).ravel()
        waited = np.column_stack([np.zeros(len(which)), self.stalls[which]]).ravel()
        seconds: FloatArray = np.interp(at, edges, np.cumsum(waited))
        return seconds

    def batches(self, at: FloatArray) -> FloatArray:
        """Return how many batches were loaded up to each moment, fractions of a batch included."""
        edges = np.concatenate([[self.loaded[0] - (self.loaded[1] - self.loaded[0])], self.loaded])
        return np.interp(at, edges, np.arange(len(edges), dtype=np.float64))


def around(rng: np.random.Generator, spread: float, count: int) -> FloatArray:
    """Return factors with mean 1 and a triangular distribution that ends at 1 - spread and 1 + spread."""
    factors: FloatArray = 1.0 + spread * (rng.random(count) + rng.random(count) - 1.0)
    return factors


def run(job: Job, rng: np.random.Generator, slowness: FloatArray | None = None) -> Course:
    """Play a job through step by step: a step begins when its batch is ready and the step before has ended.

    `slowness` is a factor on the computing time in each second of the log.
    """
    compute = job.compute_seconds * around(rng, 0.08, job.steps)
    if job.slower is not None:
        compute[job.slower[0] :] *= job.slower[1]
    shards = np.repeat(around(rng, job.shard_spread, job.steps // 25 + 1), 25)[: job.steps]
    stalls = np.zeros(job.steps)
    if job.stall_steps:
        at = np.arange(job.stall_steps, job.steps, job.stall_steps)
        stalls[at] = job.stall_seconds * around(rng, 0.2, len(at))
    load = job.load_seconds * around(rng, job.load_spread, job.steps) * shards + stalls
    starts, ends, loaded = (np.zeros(job.steps) for _ in range(3))
    end, ready = job.first - job.launch_seconds, job.first - job.load_seconds
    for step in range(job.steps):
        slot_free = starts[step - job.prefetch] if step >= job.prefetch else 0.0
        ready = max(ready, slot_free) + load[step]
        begin = max(end + job.launch_seconds, ready)
        factor = 1.0 if slowness is None else slowness[min(int(begin), len(slowness) - 1)]
        end = begin + compute[step] * factor
        starts[step], ends[step], loaded[step] = begin, end, ready
        if job.epoch_steps and (step + 1) % job.epoch_steps == 0:
            end += job.pause_seconds
    return Course(starts=starts, ends=ends, loaded=loaded, stalls=stalls)
