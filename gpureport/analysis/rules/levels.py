"""Levels that hold, in values that scatter: medians of blocks of time, and where they leave the highest of them."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpureport.analysis import phrases
from gpureport.analysis.rulebook import Limits
from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import FloatArray, IntArray

_PAUSE = 5.0
"""Usual distances between readings above which a pause lies between two, in which nothing is known."""
_ENOUGH = 8_192
"""Readings, evenly over the time, that show every level."""
_BLOCKS = 4.0
"""Blocks for which a level must hold where readings are dense; where they are not, it holds for two longer ones."""


class Change(NamedTuple):
    """A level that was left: the usual one, the lowest that held, the mean below; when each held; readings below."""

    usual: float
    level: float
    mean: float
    before: Spans
    spans: Spans
    readings: int

    @property
    def fall(self) -> float:
        """By which share the lowest level lies below the usual one."""
        return 1 - self.level / self.usual


def show(value: float, unit: str) -> str:
    """Return a figure in words, in the unit that a sentence names it in."""
    if unit in {"1", "Hz"}:
        return phrases.percent(value) if unit == "1" else phrases.megahertz(value)
    return f"{phrases.number(value)} {unit}".rstrip() if unit != "By/s" else f"{value / 1e6:.0f} MB/s"


def block_quartiles(places: IntArray, values: FloatArray, count: int, fewest: float) -> npt.NDArray[np.float64]:
    """Return the quartiles of the values in each block, NaN where it holds fewer; `places` never fall."""
    edges = np.searchsorted(places, np.arange(count + 1))
    numbers = np.diff(edges)
    ordered = np.append(values[np.lexsort((values, places))], np.nan)
    ranks = edges[:-1] + (np.array([[0.25], [0.5], [0.75]]) * (numbers - 1).clip(0)).astype(np.int64)
    return np.where(numbers >= fewest, ordered[ranks], np.nan)


def find_fall(
    times: IntArray, values: FloatArray, limits: Limits, *, least: float | None = None, later: bool = False
) -> Change | None:
    """Return where values stay below the highest level that held; None where they do not.

    Both levels hold for a part of the time, and for as long as a level must. The middle halves of what was read lie
    apart, and the levels differ by more than neighbouring blocks do: bursts, single moments, and phases that come
    again and again are no level.

    Args:
        times: stamps in microseconds, never falling.
        values: what was read then; without NaN, above 0.
        limits: `fall`, `part`, `shortest`, `longest`, `readings`, `noise` and `recurs`.
        least: share by which the other level lies below the usual one; `fall` of the limits when None.
        later: whether the usual level has to come first.
    """
    least = limits.fall if least is None else least
    if len(values) < 4 * limits.readings:
        return None
    every = max(len(values) // _ENOUGH, 1)
    times, values = times[::every], values[::every]
    distances = np.diff(times) / 1e6
    interval = max(float(np.median(distances)), 1e-3)
    passed = np.append(0.0, np.cumsum(np.minimum(distances, _PAUSE * interval)))
    hold = float(np.clip(limits.part * passed[-1], limits.shortest, limits.longest))
    length = max(hold / _BLOCKS, limits.readings * interval)
    count, held = int(passed[-1] / length), max(int(np.ceil(hold / length - 0.01)), 2)
    if count < 2 * held:
        return None
    places = np.minimum((passed / passed[-1] * count).astype(np.int64), count - 1)
    low, middle, high = block_quartiles(places, values, count, 1)
    if np.isnan(middle).any():
        return None
    windows = np.median(np.lib.stride_tricks.sliding_window_view(middle, held), axis=1)
    usual = np.full(count, windows.max())
    if later:
        usual = np.append(np.full(held, -np.inf), np.maximum.accumulate(windows)[: count - held])
    away = middle <= (1 - least) * usual
    first, stop = intervals.find_runs(away | (np.append(False, away[:-1]) & np.append(away[1:], False)))
    first, stop = first[stop - first >= held], stop[stop - first >= held]
    if not 0 < len(first) < limits.recurs:
        return None
    blocks, top = np.arange(count + 1), float(usual[first[0]])
    is_low = np.searchsorted(first, blocks[:-1], "right") > np.searchsorted(stop, blocks[:-1], "right")
    is_usual = (middle >= (1 - least / 2) * top) & ~is_low & ((blocks[:-1] < first[0]) | (not later))
    noise = limits.noise * float(np.median(np.abs(np.diff(middle))))
    if not is_usual.any() or np.median(low[is_usual]) <= max(
        np.median(high[is_low]), np.median(middle[is_low]) + noise
    ):
        return None
    lowest = float(windows[np.append(is_low[: len(windows)] & is_low[held - 1 :], False)[: len(windows)]].min())
    edges = np.searchsorted(places, blocks)
    begins = times[edges[:-1]]
    ends = np.minimum(np.append(begins[1:], times[-1]), times[edges[1:] - 1] + round(_PAUSE * interval * 1e6))
    before, spans = (intervals.rows_to_spans(begins, ends, rows) for rows in (is_usual, is_low))
    readings = every * int(np.diff(edges)[is_low].sum())
    return Change(top, lowest, float(middle[is_low].mean()), before, spans, readings)
