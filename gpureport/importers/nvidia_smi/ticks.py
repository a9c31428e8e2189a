"""Rows of a query log in which no column names a GPU: each place in a tick is one GPU.

At every tick nvidia-smi writes one row a GPU, always in the same order, and then waits. So rows come in ticks of one
size, told by the gaps between their stamps; where a tick takes so long that gaps tell nothing, a slow column such as
the memory in use repeats itself after as many rows as there are GPUs.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.columns import NAMES, Rows, Texts
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


LEFT_OUT = -1
"""Position of a row in a tick of an unusual size, where no position stands for a GPU."""


@dataclass(slots=True)
class TickPositions:
    """Gives each row its place in its tick, from 0, or LEFT_OUT where the tick has another number of rows.

    A tick that goes on in the next block is judged by what is known of it, so that no row is held back.
    """

    ticks: Ticks
    _last: int | None = None
    _before: int = 0

    def assign(self, times: IntArray, *, ended: bool) -> IntArray:
        """Return the positions of the next rows.

        Args:
            times: their stamps as written, in microseconds.
            ended: whether no row follows.
        """
        known = times[:1] if self._last is None else np.array([self._last], dtype=np.int64)
        apart = np.abs(np.diff(np.concatenate([known, times]))) > (self.ticks.gap or 0)
        apart[0] |= self._last is None
        tick = np.cumsum(apart) - apart[0]
        sizes, before = np.bincount(tick), 0 if apart[0] else self._before
        places = np.arange(len(times)) - np.searchsorted(tick, tick) + np.where(tick == 0, before, 0)
        sizes[0] += before
        fits = sizes == self.ticks.size
        if before:
            fits[0] = sizes[0] <= self.ticks.size
        if not ended:
            fits[-1] = sizes[-1] <= self.ticks.size
        self._last, self._before = int(times[-1]), int(sizes[-1])
        return np.where(fits[tick], places, LEFT_OUT)


_HEAD = 50_000
"""Rows that are looked at for ticks."""
MIXED_NOTE = (
    "Several rows come at a time, so several GPUs were logged, and neither a column nor their order tells them apart: "
    "they are kept as one device of which nothing is judged. --gpus-per-tick says how many there are."
)
_ONE_GPU_NOTE = (
    "No column names a GPU and there are no time stamps to tell by: one GPU is assumed; --gpus-per-tick says otherwise."
)


def names_gpus(rows: Rows) -> bool:
    """Return whether a column names the GPU of any row; a model names none."""
    columns = (rows.data.get(name) for name in NAMES if name != "model")
    return any(isinstance(column, Texts) and bool((column.codes >= 0).any()) for column in columns)


@dataclass(slots=True)
class TickAssignment:
    """Gives each row its position in its tick, where nothing else names the GPU.

    Attributes:
        per_tick: rows of a tick as a person gave them, or None.
        notes: what a reader must know.
        mixed: whether rows come several at a time, and nothing tells of which GPU each is.
        named: whether a column names GPUs anywhere.
        damaged: numbers of the lines that were rows, and are rejected: they count in the tick, other text does not.
    """

    per_tick: int | None
    notes: dict[str, None] = field(default_factory=dict)
    mixed: bool = False
    named: bool = False
    damaged: list[int] = field(default_factory=list)

    def assign(self, parts: Iterable[Rows], ended: Callable[[], bool]) -> Iterator[tuple[Rows, IntArray | None]]:
        """Yield rows with their positions, None where columns name GPUs or only one is logged.

        Rows up to the next ones in which a column names GPUs have ticks of one size.

        Args:
            parts: the rows of the log.
            ended: whether what was read so far is all of it.
        """
        ticks: Ticks | None = None
        positions: TickPositions | None = None
        begun, counted = False, 0
        for rows in parts:
            if names_gpus(rows):
                self.named, begun = True, False
                yield rows, None
                continue
            if not begun:
                begun, counted, ticks = True, 0, self._ticks(rows, whole=ended())
                positions = TickPositions(ticks) if ticks is not None and ticks.gap is not None else None
                if ticks is not None:
                    self.notes[
                        f"No column tells the GPUs apart: each is a place in the tick ({ticks.evidence}; "
                        f"{ticks.confidence} confidence)."
                    ] = None
            elif ticks is None and self.per_tick is None and rows.times is not None:
                self.mixed |= infer_ticks(rows.times[:_HEAD], whole=False) is not None
            if ticks is None:
                yield rows, None
            elif positions is not None and rows.times is not None:
                yield rows, positions.assign(rows.times, ended=ended())
            else:
                # what was torn off stands before the row that was kept of its line
                before = np.searchsorted(np.unique(np.array(self.damaged, dtype=np.int64)), rows.lines, side="right")
                yield rows, (counted + np.arange(len(rows)) + before) % ticks.size
                counted += len(rows)

    def _ticks(self, rows: Rows, *, whole: bool) -> Ticks | None:
        """Return the ticks of a log by its first rows."""
        if self.per_tick == 1:
            return None
        found = None
        if rows.times is not None:
            shown = [
                values.codes[:_HEAD] if isinstance(values, Texts) else np.nan_to_num(values[:_HEAD])
                for values in rows.data.values()
            ]
            found = infer_ticks(rows.times[:_HEAD], shown, whole=whole and len(rows) <= _HEAD)
        elif self.per_tick is None:
            self.notes[_ONE_GPU_NOTE] = None
        if self.per_tick is None:
            return found
        if found is not None and found.size == self.per_tick and found.gap is not None:
            return replace(found, confidence="high", evidence=f"--gpus-per-tick {self.per_tick}, and {found.evidence}")
        said = f"--gpus-per-tick {self.per_tick}, rows counted through"
        if found is not None:
            said = f"--gpus-per-tick {self.per_tick}, although {found.evidence}"
        return Ticks(size=self.per_tick, confidence="low", evidence=said)
