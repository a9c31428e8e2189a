"""Memory in use as an allocator takes it: a context, the model, then ever rarer chunks."""

import numpy as np

from tests.truth.physics import STEP
from tests.truth.script import Floats, Script

_CONTEXT = 0.006
_BARE_MIB = 4.0
_WARM_SECONDS = 70.0
_LOADED = 0.6
_TRIES_SECONDS = 15.0


def used(script: Script, ran: Floats, rng: np.random.Generator) -> Floats:
    """Return the MiB in use on one GPU, one value a step of 0.1 s.

    Args:
        script: the run.
        ran: share of each step in which a kernel ran; a GPU that never works holds nothing.
        rng: source of chance.
    """
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
