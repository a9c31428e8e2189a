"""A card that is played: its kernels, its heat, its clock, and memory as an allocator takes it."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tests.truth.script import TICK, Floats, Parts, Script, blocks, spread_over

STEP = 0.1
"""Seconds of one step of this model."""
IDLE, POWER_CAP, SW_THERMAL, HW_SLOWDOWN, HW_THERMAL, POWER_BRAKE = 0x1, 0x4, 0x20, 0x8, 0x40, 0x80
_HEAVY = 0.94
_LAG_SECONDS = 0.14
_HEAT_SECONDS, _DIE_SECONDS = 55.0, 2.5
_DIE_SHARE = 0.3
_INLET_CELSIUS = 27.0
_FAILED = 2.3
_LOWEST = 0.42
_EVERY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What one GPU did: `busy` on the fine grid, the rest one value a step of 0.1 s."""

    busy: Floats
    watts: Floats
    celsius: Floats
    clock: Floats
    events: npt.NDArray[np.int64]


def course(script: Script, parts: Parts, busy: Floats, rng: np.random.Generator) -> Course:
    """Return how a card fares with its kernels, which run in a share of each cell of 10 ms."""
    card, ran = script.card, blocks(busy, round(STEP / TICK))
    heat = ran * spread_over(parts, np.array([part.heat for part in parts]), STEP)[: len(ran)]
    heat = heat * _wander(len(heat), rng) * rng.normal(1.0, 0.02)
    slow = spread_over(parts, np.array([part.slow for part in parts]), STEP)[: len(ran)]
    quiet = spread_over(parts, np.array([part.held for part in parts]), STEP)[: len(ran)]
    held = ran > 0
    held = np.maximum.accumulate(held) & np.maximum.accumulate(held[::-1])[::-1]
    base = np.where(held, card.ready_watts, card.idle_watts)
    span = _HEAVY * card.limit_watts - card.ready_watts
    allowed, limit = np.minimum(slow, script.clock) * quiet, card.limit_watts
    asked = base + span * _smooth(heat, 1.0) * allowed**2
    room = np.maximum(limit - base, 1.0) / np.maximum(asked - base, 1e-9)
    capped = asked > limit
    clock = allowed * np.where(capped, np.sqrt(np.minimum(room, 1.0)), 1.0)
    clock, celsius, hot = _warm(script, base, span * heat, clock)
    watts = _smooth(base + span * heat * clock**2, _LAG_SECONDS)
    events = IDLE * (_smooth(ran, 1.0) < 0.005) | POWER_CAP * (capped & ~hot & (ran > 0)) | SW_THERMAL * hot
    events = events | POWER_BRAKE * ((slow < 1) & (ran > 0))
    shown = np.where(held, clock * card.clock_mhz, card.idle_clock_mhz)
    return Course(busy=busy, watts=watts, celsius=celsius, clock=shown, events=events.astype(np.int64))


def _warm(script: Script, base: Floats, dynamic: Floats, clock: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Play the temperature of sink and die through, half a second a turn; also the clock it leaves, and where."""
    card = script.card
    blown = np.inf if script.fails is None else script.fails * len(base)
    kelvin = script.kelvin / card.limit_watts
    mean_base, mean_work, before = (blocks(each, _EVERY) for each in (base, dynamic, clock))
    share, sink, die, seconds = 1.0, 0.0, 0.0, STEP * _EVERY
    shares, temperatures, hot = (np.zeros(len(mean_base)) for _ in range(3))
    for turn in range(len(mean_base)):
        worse = _FAILED if turn * _EVERY >= blown else 1.0
        watts = mean_base[turn] + mean_work[turn] * min(before[turn], share) ** 2
        sink += (watts * kelvin * worse * (1 - _DIE_SHARE) - sink) * seconds / _HEAT_SECONDS
        die += (watts * kelvin * _DIE_SHARE - die) * seconds / _DIE_SECONDS
        celsius = _INLET_CELSIUS + sink + die
        share = _governed(share, celsius - card.slowdown_celsius)
        shares[turn], temperatures[turn] = share, celsius
        hot[turn] = share < before[turn] - 0.003 and mean_work[turn] > 0
    wide = [
        np.pad(np.repeat(each, _EVERY), (0, len(base) - len(each) * _EVERY), mode="edge")
        for each in (shares, temperatures, hot)
    ]
    return np.minimum(clock, wide[0]), wide[1], wide[2] > 0


def _governed(share: float, over: float) -> float:
    """Return the share of the clock that heat leaves, given how far the limit is exceeded."""
    if over >= 0:
        return max(share - 0.004 - 0.006 * over, _LOWEST)
    return min(share + (0.0015 if over < -1 else 0.0), 1.0)


def _wander(count: int, rng: np.random.Generator) -> Floats:
    """Return a factor around 1 that drifts over half a minute and shakes within a second."""
    coarse = rng.normal(1.0, 0.025, count // 300 + 3)
    slow = np.interp(np.arange(count), np.arange(len(coarse)) * 300.0, coarse)
    return np.asarray(slow * rng.gamma(400.0, 1 / 400.0, count))


def _smooth(values: Floats, seconds: float) -> Floats:
    weights = np.exp(-np.arange(round(6 * seconds / STEP) + 1) * STEP / seconds)
    padded = np.concatenate([np.full(len(weights) - 1, values[0]), values])
    return np.convolve(padded, weights / weights.sum(), mode="valid")


_CONTEXT = 0.006
_BARE_MIB = 4.0
_WARM_SECONDS = 70.0
_LOADED = 0.6
_TRIES_SECONDS = 15.0


def used(script: Script, ran: Floats, rng: np.random.Generator) -> Floats:
    """Return the MiB in use on one GPU, one value a step of 0.1 s; a GPU that never works holds nothing."""
    asked, total = script.memory, script.card.memory_mib
    at_work = np.flatnonzero(ran > 0.7)
    if not len(at_work):
        return np.full(len(ran), _BARE_MIB)
    first, last = int(at_work[0]), int(at_work[-1])
    seconds = np.maximum((np.arange(len(ran)) - first) * STEP, 0.0)
    share = asked.first + (asked.grown - asked.first) * (1 - np.exp(-seconds / _WARM_SECONDS))
    share = share + asked.leak * seconds + _longest_batch(asked.swing, seconds, rng)
    share = np.floor(share / asked.chunk) * asked.chunk
    share[:first] = asked.first if asked.first == asked.grown else _CONTEXT
    share[: int(first * _LOADED)] = 0.0
    share = np.minimum(np.maximum.accumulate(share), 1 - script.card.reserved_mib / total)
    share[last + 5 :] = asked.kept * share.max()
    return np.asarray(np.maximum(share * total, _BARE_MIB), dtype=np.float64)


def _longest_batch(swing: float, seconds: Floats, rng: np.random.Generator) -> Floats:
    """Return what the longest batch so far needs more: it grows, ever more rarely."""
    tries = np.minimum(rng.exponential(swing / 4, int(seconds[-1] / _TRIES_SECONDS) + 2), swing)
    longest = np.maximum.accumulate(tries)[(seconds / _TRIES_SECONDS).astype(np.int64)]
    return np.asarray(longest, dtype=np.float64)
