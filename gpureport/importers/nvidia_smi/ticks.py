"""Numbers the GPUs in a query log without a column that identifies them: each position in a tick is one GPU.

At every tick nvidia-smi writes one row per GPU, always in the same order, and then waits. The
stamps show where ticks begin. If they do not, a slowly changing column such as memory in use
shows it, because its values repeat every tick.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.columns import IntArray
from gpureport.importers.account import NO_TIME, WRONG_TICK
from gpureport.importers.clock import parse_printed_time
from gpureport.importers.columns import Rows, Texts
from gpureport.importers.nvidia_smi.query import QueryLines, names_gpus

_MOST = 32
_FEWEST_TICKS, _HALF, _LARGER = 3, 0.5, 0.05
"""The fewest ticks, the least share of ticks with the usual size, and the largest share of larger ones (pragmatic)."""
_SILENCE, _TOGETHER = 4, 60_000
"""Gaps between ticks: least ratio to gaps within, and largest median of the latter (1 to 6 ms, 50 under load)."""
_REPEATED, _CLEARLY = 0.9, 0.2
"""The least share of rows that repeat after a tick, and its lead over other distances."""
_HEAD = 50_000
"""The number of rows in which ticks are looked for (pragmatic)."""
_MIXED = (
    "Several rows come at a time, so several GPUs were logged, and neither a column nor their order tells them apart: "
    "they are kept as one device of which nothing is judged. --gpus-per-tick says how many there are."
)
_ONE_GPU = (
    "No column names a GPU and there are no time stamps to tell by: one GPU is assumed; --gpus-per-tick says otherwise."
)
_PLACES = "No column tells the GPUs apart: each is a place in the tick ({})."


class _Ticks(NamedTuple):
    size: int
    evidence: str
    gap: int | None = None


def _infer(rows: Rows, times: IntArray, at: IntArray) -> _Ticks | None:
    times = times[:_HEAD]
    if len(times) < 2 * _FEWEST_TICKS:
        return None
    held = [values[:_HEAD] for values in rows.data.values()]
    shown = [values.codes if isinstance(values, Texts) else np.nan_to_num(values) for values in held]
    columns = [column for column in shown if (column != column[0]).any()]
    gaps, best, most = np.abs(np.diff(times)), None, _HALF
    resolution = int(np.gcd.reduce(np.abs(times - times[0])))
    for limit in np.rint(1000 * 2 ** np.arange(0, max(1, int(gaps.max()) // 1000).bit_length(), 0.5)).tolist():
        apart = gaps > limit
        inside, between = gaps[~apart], gaps[apart]
        # whole seconds do not show whether the rows of one second are a single tick
        told = len(between) >= _FEWEST_TICKS and np.median(between) >= _SILENCE * max(limit, resolution)
        if not told or not len(inside) or np.median(inside) > _TOGETHER:
            continue
        # the last tick may be incomplete, so it does not count
        sizes = np.diff(np.flatnonzero(np.concatenate([[True], apart])))
        size = int(np.bincount(sizes).argmax())
        alike = float((sizes == size).mean())
        # among equally good limits, the largest allows the longest pause within a tick
        if 1 < size <= _MOST and alike >= most and (sizes > size).mean() <= _LARGER:
            best = _Ticks(size, f"{alike:.1%} of the ticks hold {size} rows", int(limit))
            most = alike
    if best is None:
        return _infer_from_repetition(gaps, columns, at[: len(gaps)])
    # if rows are equal within each tick, they are about one GPU, written several times
    copies = columns and not any((column[1:] != column[:-1])[gaps <= best.gap].any() for column in columns)
    return None if copies else best


def _infer_from_repetition(gaps: IntArray, columns: list[npt.NDArray[Any]], at: IntArray) -> _Ticks | None:
    most = min(2 * _MOST, (len(gaps) + 1) // _FEWEST_TICKS)
    share, size = _REPEATED, 0
    for column in columns:
        shares = np.array([(column[lag:] == column[:-lag]).mean() for lag in range(1, most + 1)])
        for lag in range(2, min(_MOST, most) + 1):
            others = np.delete(shares, np.arange(lag - 1, most, lag))
            if shares[lag - 1] > share and shares[lag - 1] >= others.max() + _CLEARLY:
                share, size = float(shares[lag - 1]), lag
    medians = [float(np.median(gaps[at % size == place])) for place in range(size)]
    if not size or not medians[-1] or medians[-1] < _SILENCE * max(medians[:-1]):
        return None
    return _Ticks(size, f"a column repeats itself after {size} rows, in {share:.1%} of them")


def number_gpus(parts: Iterable[Rows], per_tick: int | None, log: QueryLines) -> Iterator[Rows]:
    """Yield the rows; unless a column identifies the GPU, its index is the position in the tick."""
    account = log.account
    account.mixed_note = "" if per_tick == 1 else _MIXED
    ticks: _Ticks | None = None
    begun, counted, last, before = False, 0, 0, 0
    for rows in parts:
        if names_gpus(rows) or per_tick == 1:
            begun = False
            yield rows
            continue
        first, times, count = not begun, rows.times, np.arange(len(rows))
        # in a torn line, the lost row comes before the row that is kept
        lost = np.searchsorted(np.unique(np.array(log.damaged, dtype=np.int64)), rows.lines, side="right")
        if first:
            begun, counted = True, 0
            ticks = None if times is None else _infer(rows, times, count + lost)
            if per_tick is not None:
                gap = ticks.gap if ticks is not None and ticks.size == per_tick else None
                ticks = _Ticks(per_tick, f"--gpus-per-tick {per_tick}", gap)
            if ticks is not None or times is None:
                account.note(_PLACES.format(ticks.evidence) if ticks else _ONE_GPU)
        if ticks is None:
            yield rows
            continue
        if ticks.gap is not None and times is not None:
            starts = np.abs(np.diff(times, prepend=times[0] if first else last)) > ticks.gap
            starts[0] |= first
            tick = np.cumsum(starts) - starts[0]
            before = 0 if starts[0] else before
            sizes = np.bincount(tick)
            places = count - np.searchsorted(tick, tick) + np.where(tick == 0, before, 0)
            sizes[0] += before
            fits = sizes == ticks.size
            # the first and the last tick may continue in the previous and the next rows
            fits[0] |= bool(before) and sizes[0] <= ticks.size
            fits[-1] |= not log.ended and sizes[-1] <= ticks.size
            last, before, kept = int(times[-1]), int(sizes[-1]), fits[tick]
            account.reject_rows(WRONG_TICK, rows.lines[~kept])
            rows, places = rows.select(kept), places[kept]  # noqa: PLW2901
        else:
            places = (counted + count + lost) % ticks.size
            counted += len(rows)
        rows.data["index"] = _name_places(places, ticks.size)
        yield rows


def _name_places(places: IntArray, size: int) -> Texts:
    return Texts(places.astype(np.int32), [str(place) for place in range(size)])


def date_rows(rows: Rows, log: QueryLines) -> Rows:
    """Return rows with the date above them as time and, unless the GPU is identified, the position below it as GPU."""
    dates = [(line, *time) for line, text in log.dates.items() if (time := parse_printed_time(text)) is not None]
    if not dates:
        return rows
    lines, times, zoned = np.array(dates, dtype=np.int64).T
    if zoned.any():
        log.account.note("Dates above the rows name a zone: they are taken as written.")
    ticks = np.searchsorted(lines, rows.lines) - 1
    log.account.reject_rows(NO_TIME, rows.lines[ticks < 0])
    rows, ticks = replace(rows, times=times[ticks]).select(ticks >= 0), ticks[ticks >= 0]
    sizes = np.bincount(ticks, minlength=1)
    usual = int(np.bincount(sizes[sizes > 0], minlength=2).argmax())
    if usual > 1 and not names_gpus(rows):
        places = np.arange(len(rows)) - np.searchsorted(ticks, ticks)
        log.account.note(_PLACES.format(f"a date stands above each {usual} rows"))
        rows.data["index"] = _name_places(np.where(sizes[ticks] == usual, places, -1), usual)
    return rows
