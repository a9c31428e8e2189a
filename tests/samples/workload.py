"""A training job as the stretches of time in which each of its GPUs has a kernel running.

Only uniform draws and basic arithmetic are used, so that every machine produces the same numbers.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


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
