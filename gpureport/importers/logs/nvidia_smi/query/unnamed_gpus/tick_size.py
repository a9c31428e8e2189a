"""How many GPUs a log holds when no column names them: the rows nvidia-smi writes at a time.

At every tick nvidia-smi writes one row a GPU, always in the same order, and then waits. So rows come in ticks of
one size, told by the gaps between their stamps; where a tick takes so long that gaps tell nothing, a slow column
such as the memory in use repeats itself after as many rows as there are GPUs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.note_text import format_count

_MOST = 32
"""Rows a tick can hold: twice the GPUs of the largest machine nvidia-smi lists as one (16)."""
_FEWEST_TICKS = 3
"""Two ticks of one size are a coincidence (pragmatic)."""
_ALIKE = 0.95
"""Share of the ticks that must hold the same number of rows to be sure; genuine logs have 0.998 and more."""
_HALF = 0.5
"""Share of the ticks that must hold the same number of rows at all, where the others lack some and hold no more: one
GPU that is sampled in bursts has bursts of any length (pragmatic)."""
_SILENCE = 4
"""The gap between ticks is at least this many times the largest gap inside one, else a stalled tick reads as two."""
_TOGETHER = 60_000
"""Half of the gaps inside a tick are at most this long, in microseconds: 1 to 6 ms in genuine logs, 50 under load."""
_REPEATED, _CLEARLY = 0.9, 0.2
"""Share of rows a slow column repeats at the right lag, and how much less at any lag that is no multiple of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticks:
    """How the rows of several GPUs follow each other.

    Attributes:
        size: rows a tick, which is the number of GPUs.
        confidence: high where gaps in the stamps show the ticks and values differ between their places; low where
            one GPU that was sampled in bursts would look alike, or where a column only repeats itself.
        evidence: what shows it, in words.
        gap: microseconds between two rows beyond which they are of different ticks, None where gaps do not tell.
    """

    size: int
    confidence: Literal["high", "low"]
    evidence: str
    gap: int | None = None


def infer_ticks(times: IntArray, columns: Sequence[npt.NDArray[Any]] = (), *, whole: bool = True) -> Ticks | None:
    """Return how many rows a tick holds, None where nothing shows that it is more than one.

    Args:
        times: stamps of the rows at the head of a log as written, in microseconds.
        columns: other columns of these rows, as numbers or codes.
        whole: whether these rows are all of the log, so that they must fill their ticks.
    """
    if len(times) < 2 * _FEWEST_TICKS:
        return None
    gaps = np.abs(np.diff(times))
    informative = [column for column in columns if (column != column[0]).any()]
    found = _infer_from_gaps(times, gaps)
    if found is not None:
        apart = gaps > (found.gap or 0)
        if _are_copies(apart, informative):
            return None
        return found if _do_places_differ(apart, found.size, informative) else replace(found, confidence="low")
    return _infer_from_repetition(gaps, informative, whole=whole)


def _infer_from_gaps(times: IntArray, gaps: IntArray) -> Ticks | None:
    """Return the ticks that the gaps between stamps show, with the limit under which most of them are alike."""
    resolution = int(np.gcd.reduce(np.abs(times - times[0])))
    limits = np.rint(1000 * 2 ** np.arange(0, max(1, int(gaps.max()) // 1000).bit_length(), 0.5)).astype(np.int64)
    found = [shown for limit in limits.tolist() if (shown := _split_at_limit(gaps, limit, resolution)) is not None]
    # of limits that part the rows equally well the largest bears the longest stall within a tick
    return max(reversed(found), key=lambda shown: shown[0])[1] if found else None


def _split_at_limit(gaps: IntArray, limit: int, resolution: int) -> tuple[float, Ticks] | None:
    """Return the share of ticks of the usual size, and the ticks, when larger gaps than `limit` part them."""
    apart = gaps > limit
    inside, between = gaps[~apart], gaps[apart]
    if len(between) < _FEWEST_TICKS or not len(inside):
        return None
    # stamps of whole seconds put all rows of a second together, whoever wrote them
    if np.median(between) < _SILENCE * max(limit, resolution) or np.median(inside) > _TOGETHER:
        return None
    # the last tick may be cut, so only those that another one follows count
    sizes = np.diff(np.flatnonzero(np.concatenate([[True], apart])))
    size = int(np.bincount(sizes).argmax())
    alike = int((sizes == size).sum())
    more = int((sizes > size).sum())
    if not 1 < size <= _MOST or alike < _HALF * len(sizes) or more > (1 - _ALIKE) * len(sizes):
        return None
    verb = "holds" if alike == 1 else "hold"
    evidence = f"{alike:,} of {format_count(len(sizes), 'tick')} {verb} {size} rows"
    sure: Literal["high", "low"] = "high" if alike >= _ALIKE * len(sizes) else "low"
    return alike / len(sizes), Ticks(size=size, confidence=sure, evidence=evidence, gap=limit)


def _are_copies(apart: BoolArray, columns: list[npt.NDArray[Any]]) -> bool:
    """Return whether rows of a tick never differ while those of different ticks do: one GPU, written twice."""
    return bool(columns) and not any((column[1:] != column[:-1])[~apart].any() for column in columns)


def _do_places_differ(apart: BoolArray, size: int, columns: list[npt.NDArray[Any]]) -> bool:
    """Return whether some column tells two places of a tick apart nearly always, as two GPUs are and one is not."""
    starts = np.flatnonzero(np.concatenate([[True], apart]))
    starts = starts[:-1][np.diff(starts) == size]
    for column in columns:
        ticks = column[starts[:, None] + np.arange(size)].astype(np.float64)
        above, below = (ticks[:, 1:] > ticks[:, :1]).mean(axis=0), (ticks[:, 1:] < ticks[:, :1]).mean(axis=0)
        if max(above.max(), below.max()) >= _ALIKE:
            return True
    return False


def _infer_from_repetition(gaps: IntArray, columns: list[npt.NDArray[Any]], *, whole: bool) -> Ticks | None:
    """Return the ticks after which columns repeat themselves, if the stamps have their longest gap there as well."""
    most = min(2 * _MOST, (len(gaps) + 1) // _FEWEST_TICKS)
    best: tuple[float, int] = (_REPEATED, 0)
    for column in columns:
        shares = np.array([(column[lag:] == column[:-lag]).mean() for lag in range(1, most + 1)])
        for size in range(2, min(_MOST, most) + 1):
            others = np.delete(shares, np.arange(size - 1, most, size))
            if shares[size - 1] > best[0] and shares[size - 1] >= others.max() + _CLEARLY:
                best = (float(shares[size - 1]), size)
    share, size = best
    if not size or (whole and (len(gaps) + 1) % size) or not _is_longest_gap_between(gaps, size):
        return None
    evidence = f"a column repeats itself after {size} rows, in {share:.1%} of them"
    return Ticks(size=size, confidence="low", evidence=evidence)


def _is_longest_gap_between(gaps: IntArray, size: int) -> bool:
    """Return whether every row after `size` others follows a clearly longer gap than those between."""
    medians = [float(np.median(gaps[place::size])) for place in range(size)]
    return medians[-1] > 0 and medians[-1] >= _SILENCE * max(medians[:-1])
