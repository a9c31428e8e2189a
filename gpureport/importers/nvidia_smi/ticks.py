"""Rows of a query log in which no column names a GPU: each place in a tick is one GPU.

At every tick nvidia-smi writes one row a GPU, always in the same order, and then waits. So rows come in ticks of one
size, told by the gaps between their stamps; where a tick takes so long that gaps tell nothing, a slow column such as
the memory in use repeats itself after as many rows as there are GPUs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.columns import IntArray
from gpureport.importers.account import Account
from gpureport.importers.columns import Rows, Texts
from gpureport.importers.note_text import format_count
from gpureport.importers.nvidia_smi.drawn_tables import parse_printed_time
from gpureport.importers.nvidia_smi.query_lines import QueryLines, names_gpus
from gpureport.importers.protocol.reject_reasons import NO_TIME, WRONG_TICK

_MOST = 32
"""Rows a tick can hold: twice the GPUs of the largest machine nvidia-smi lists as one (16)."""
_FEWEST_TICKS = 3
"""Two ticks of one size are a coincidence (pragmatic)."""
_ALIKE, _HALF = 0.95, 0.5
"""Share of the ticks that must hold the same number of rows to be sure (genuine logs: 0.998 and more), and at all,
where the others lack some and hold no more: one GPU sampled in bursts has bursts of any length (pragmatic)."""
_SILENCE = 4
"""The gap between ticks is at least this many times the largest gap inside one, else a stalled tick reads as two."""
_TOGETHER = 60_000
"""Half of the gaps inside a tick are at most this long, in microseconds: 1 to 6 ms in genuine logs, 50 under load."""
_REPEATED, _CLEARLY = 0.9, 0.2
"""Share of rows a slow column repeats at the right lag, and how much less at any lag that is no multiple of it."""
_HEAD = 50_000
"""Rows that are looked at for ticks."""
MIXED_NOTE = (
    "Several rows come at a time, so several GPUs were logged, and neither a column nor their order tells them apart: "
    "they are kept as one device of which nothing is judged. --gpus-per-tick says how many there are."
)
_ONE_GPU_NOTE = (
    "No column names a GPU and there are no time stamps to tell by: one GPU is assumed; --gpus-per-tick says otherwise."
)


class Ticks(NamedTuple):
    """How the rows of several GPUs follow each other: rows a tick, what shows it, and how.

    `gap` is the time between two rows beyond which they are of different ticks, None where gaps do not tell.
    """

    size: int
    evidence: str
    confidence: str = "low"
    gap: int | None = None


def infer_ticks(times: IntArray, columns: Sequence[npt.NDArray[Any]], *, whole: bool) -> Ticks | None:
    """Return how many rows a tick holds, None where nothing shows that it is more than one.

    Args:
        times: stamps of the rows at the head of a log as written, in microseconds.
        columns: other columns of these rows, as numbers or codes.
        whole: whether these rows are all of the log, so that they must fill their ticks.
    """
    if len(times) < 2 * _FEWEST_TICKS:
        return None
    gaps = np.abs(np.diff(times))
    columns = [column for column in columns if (column != column[0]).any()]
    found = _infer_from_gaps(times, gaps)
    if found is None:
        return _infer_from_repetition(gaps, columns, whole=whole)
    inside = gaps <= (found.gap or 0)
    # rows of a tick that never differ while those of different ticks do are of one GPU, written twice
    copies = columns and not any((column[1:] != column[:-1])[inside].any() for column in columns)
    return None if copies else found


def _infer_from_gaps(times: IntArray, gaps: IntArray) -> Ticks | None:
    """Return the ticks that gaps above some limit show, under the one of many limits that makes most of them alike."""
    resolution = int(np.gcd.reduce(np.abs(times - times[0])))
    best: tuple[float, Ticks] | None = None
    for limit in np.rint(1000 * 2 ** np.arange(0, max(1, int(gaps.max()) // 1000).bit_length(), 0.5)).tolist():
        apart = gaps > limit
        inside, between = gaps[~apart], gaps[apart]
        if len(between) < _FEWEST_TICKS or not len(inside) or np.median(inside) > _TOGETHER:
            continue
        # the last tick may be cut, so only those that another one follows count
        sizes = np.diff(np.flatnonzero(np.concatenate([[True], apart])))
        size = int(np.bincount(sizes).argmax())
        alike = float((sizes == size).mean())
        # stamps of whole seconds put all rows of a second together, whoever wrote them
        silent = np.median(between) >= _SILENCE * max(limit, resolution)
        if not silent or not 1 < size <= _MOST or alike < _HALF or (sizes > size).mean() > 1 - _ALIKE:
            continue
        evidence = f"{int((sizes == size).sum()):,} of {format_count(len(sizes), 'tick')} hold {size} rows"
        # of limits that part the rows equally well the largest bears the longest stall within a tick
        if best is None or alike >= best[0]:
            best = alike, Ticks(size, evidence, "high" if alike >= _ALIKE else "low", int(limit))
    return None if best is None else best[1]


def _infer_from_repetition(gaps: IntArray, columns: Sequence[npt.NDArray[Any]], *, whole: bool) -> Ticks | None:
    """Return the ticks after which a column repeats itself, if the longest gap lies there as well."""
    most, rows = min(2 * _MOST, (len(gaps) + 1) // _FEWEST_TICKS), len(gaps) + 1
    share, size = _REPEATED, 0
    for column in columns:
        shares = np.array([(column[lag:] == column[:-lag]).mean() for lag in range(1, most + 1)])
        for lag in range(2, min(_MOST, most) + 1):
            others = np.delete(shares, np.arange(lag - 1, most, lag))
            if shares[lag - 1] > share and shares[lag - 1] >= others.max() + _CLEARLY:
                share, size = float(shares[lag - 1]), lag
    medians = [float(np.median(gaps[place::size])) for place in range(size)]
    if not size or (whole and rows % size) or not medians[-1] or medians[-1] < _SILENCE * max(medians[:-1]):
        return None
    return Ticks(size, f"a column repeats itself after {size} rows, in {share:.1%} of them")


def number_gpus(parts: Iterable[Rows], per_tick: int | None, log: QueryLines, account: Account) -> Iterator[Rows]:
    """Yield rows, with their place in their tick as the index of the GPU where no column names one.

    Rows up to the next ones in which a column names GPUs have ticks of one size; a tick that goes on in the next block
    is judged by what is known of it, so that no row is held back.

    Args:
        parts: the rows of the log.
        per_tick: rows of a tick as a person gave them, or None.
        log: the lines of the log.
        account: counts the rows of ticks of another size.
    """
    account.mixed_note = "" if per_tick == 1 else MIXED_NOTE
    ticks: Ticks | None = None
    begun, counted, last, before = False, 0, 0, 0
    for rows in parts:
        if names_gpus(rows) or per_tick == 1:
            begun = False
            yield rows
            continue
        first = not begun
        if first:
            begun, counted, ticks = True, 0, _find_ticks(rows, per_tick, account, whole=log.ended)
        if ticks is None:
            yield rows
            continue
        if ticks.gap is not None and rows.times is not None:
            apart = np.diff(rows.times, prepend=rows.times[0] if first else last)
            starts = np.abs(apart) > ticks.gap
            starts[0] |= first
            tick = np.cumsum(starts) - starts[0]
            before = 0 if starts[0] else before
            sizes = np.bincount(tick)
            places = np.arange(len(rows)) - np.searchsorted(tick, tick) + np.where(tick == 0, before, 0)
            sizes[0] += before
            fits = sizes == ticks.size
            # what went before, and what is to come, is not known again
            fits[0] |= bool(before) and sizes[0] <= ticks.size
            fits[-1] |= not log.ended and sizes[-1] <= ticks.size
            last, before = int(rows.times[-1]), int(sizes[-1])
            account.reject_rows(WRONG_TICK, rows.lines[~fits[tick]])
            rows, places = rows.select(fits[tick]), places[fits[tick]]  # noqa: PLW2901
        else:
            # what was torn off stands before the row that was kept of its line
            lost = np.searchsorted(np.unique(np.array(log.damaged, dtype=np.int64)), rows.lines, side="right")
            places = (counted + np.arange(len(rows)) + lost) % ticks.size
            counted += len(rows)
        rows.data["index"] = Texts(places.astype(np.int32), [str(place) for place in range(ticks.size)])
        yield rows


def date_rows(rows: Rows, log: QueryLines) -> Rows:
    """Return rows without stamps with the time of the date that a script printed above them.

    Where no column names GPUs, each is a place below its date.
    """
    dates = [(line, time[0]) for line, text in log.dates.items() if (time := parse_printed_time(text)) is not None]
    if not dates:
        return rows
    lines, times = np.array(dates, dtype=np.int64).T
    ticks = np.searchsorted(lines, rows.lines) - 1
    log.account.reject_rows(NO_TIME, rows.lines[ticks < 0])
    rows, ticks = replace(rows, times=times[ticks]).select(ticks >= 0), ticks[ticks >= 0]
    sizes = np.bincount(ticks, minlength=1)
    usual = int(np.bincount(sizes[sizes > 0], minlength=2).argmax())
    if usual > 1 and not names_gpus(rows):
        places = np.arange(len(rows)) - np.searchsorted(ticks, ticks)
        codes = np.where(sizes[ticks] == usual, places, -1).astype(np.int32)
        rows.data["index"] = Texts(codes, [str(place) for place in range(usual)])
        said = f"a date stands above each {usual} rows; high confidence"
        log.account.note(f"No column tells the GPUs apart: each is a place in the tick ({said}).")
    return rows


def _find_ticks(rows: Rows, per_tick: int | None, account: Account, *, whole: bool) -> Ticks | None:
    """Return the ticks of a log by its first rows, and note what shows them."""
    found = None
    if rows.times is not None:
        shown = [
            values.codes[:_HEAD] if isinstance(values, Texts) else np.nan_to_num(values[:_HEAD])
            for values in rows.data.values()
        ]
        found = infer_ticks(rows.times[:_HEAD], shown, whole=whole and len(rows) <= _HEAD)
    elif per_tick is None:
        account.note(_ONE_GPU_NOTE)
    if per_tick is not None:
        agrees = found is not None and found.size == per_tick and found.gap is not None
        said = "rows counted through" if found is None else f"{'and' if agrees else 'although'} {found.evidence}"
        gap = found.gap if agrees and found is not None else None
        found = Ticks(per_tick, f"--gpus-per-tick {per_tick}, {said}", "high" if agrees else "low", gap)
    if found is not None:
        shown_by = f"{found.evidence}; {found.confidence} confidence"
        account.note(f"No column tells the GPUs apart: each is a place in the tick ({shown_by}).")
    return found
