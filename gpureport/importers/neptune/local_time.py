"""Times of an export that may be local time of the exporting machine, labelled as UTC.

The exporter takes times of runs of Neptune 2 from a client that gives them in the zone of the machine it runs on, and
writes them unchanged. The time at which a run was made is not shifted, which is how it can be told.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.clock import fold_sizes, load_zone, to_utc
from gpureport.importers.neptune.hardware import Series
from gpureport.importers.neptune.stored import Content

_HOUR = 3_600_000_000
_QUARTER = _HOUR // 4
_NEAR = 120_000_000
"""How far a first sample may lie from a whole offset: monitoring begins with the run, give or take (pragmatic)."""
_MOST = 14 * _HOUR
_LAG = 3
"""Intervals that may lie between the last sample before clocks are set back and the first after it (pragmatic)."""


class _Ticks(NamedTuple):
    """Ticks of one process: as they are in the export, as they are put right, and where clocks were set back."""

    walls: IntArray
    right: IntArray
    back: IntArray


def correct_local_times(
    content: Content, processes: Sequence[Sequence[str]], tz: str | None
) -> tuple[Content, tuple[int, ...]]:
    """Return a run with local times as UTC where a zone is given, and notes on them; and when clocks were set back.

    Args:
        content: a run whose times may be local.
        processes: paths of the hardware series of each process.
        tz: zone of the machine that exported.
    """
    zone, made = load_zone(tz) if tz else None, content.moments.get("sys/creation_time")
    # the series of each process with the most points has its ticks
    longest = [max((content.series[path] for path in paths), key=lambda each: len(each.times)) for paths in processes]
    ticks = [_find_ticks(_by_step(series).times, zone, made) for series in longest if len(series.times)]
    if not ticks:
        # all of their times are none that a clock shows
        return content, ()
    back = tuple(int(each.right[row]) for each in ticks for row in each.back)
    notes = list(content.notes)
    if back and zone is None:
        what = "clocks were set back by an hour within this run: later times are moved on"
        notes.append(f"{what}, --tz ZONE makes them UTC")
    off = 0 if made is None else min(int(each.right.min()) for each in ticks) - made
    whole = round(off / _QUARTER) * _QUARTER
    if whole and abs(off - whole) < _NEAR and abs(whole) <= _MOST:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        why = "so times are local time of the machine that exported, taken for UTC: give its zone with --tz"
        if tz:
            why = f"with --tz {tz} as well: the export was made in another zone, or monitoring began that late"
        notes.append(f"the first sample lies {hours} the time at which the run was made, {why}")
    series = content.series
    if zone is not None or back:
        ordered = {path: _by_step(each) for path, each in series.items()}
        series = {path: replace(each, times=_correct(each.times, ticks, zone)) for path, each in ordered.items()}
    return replace(content, series=series, notes=tuple(notes)), back


def _by_step(series: Series) -> Series:
    """Return points in the order of their steps; those without one stay as they are."""
    return series.taken(np.argsort(series.steps, kind="stable"))


def _find_ticks(walls: IntArray, zone: ZoneInfo | None, made: int | None) -> _Ticks:
    """Put the ticks of a process right: UTC where the zone is known, else with the hours put back that were taken."""
    steps = np.diff(walls)
    pace = int(np.median(steps[steps > 0])) if (steps > 0).any() else 0
    back = np.flatnonzero((np.abs(steps + _HOUR - pace) <= _LAG * max(pace, 1)) & (steps < 0)) + 1
    if zone is None:
        return _Ticks(walls, walls + _HOUR * np.searchsorted(back, np.arange(len(walls)), side="right"), back)
    twice = fold_sizes(walls, zone) > 0
    right = to_utc(walls, zone, second=twice & _after(back, len(walls)))
    if made is not None and len(back) == 0 and twice[0] and abs(right[0] + _HOUR - made) < abs(right[0] - made):
        # it began in the second of two equal hours
        right = to_utc(walls, zone, second=np.logical_and.accumulate(twice))
    return _Ticks(walls, right, back)


def _after(back: IntArray, length: int) -> BoolArray:
    """Return the points from the first step back on."""
    after: BoolArray = np.arange(length) >= (back[0] if len(back) else length)
    return after


def _correct(times: IntArray, ticks: Sequence[_Ticks], zone: ZoneInfo | None) -> IntArray:
    """Return where times belong: as the tick at the same time, else by the zone, else as ticks nearby."""
    walls, right = (np.concatenate([getattr(each, part) for each in ticks]) for part in ("walls", "right"))
    order = np.argsort(walls, kind="stable")
    known = walls[order]
    again = _after(np.flatnonzero(np.diff(times) < 0) + 1, len(times))
    # of two ticks at one local time the later one is meant once the series itself has run back
    later = np.searchsorted(known, times, side="right") - 1
    rows = np.where(again, later, np.minimum(np.searchsorted(known, times), len(known) - 1))
    if zone is not None:
        alone = to_utc(times, zone, second=again & (fold_sizes(times, zone) > 0))
    else:
        sure = min(int(each.walls[: each.back[0]].max()) for each in ticks if len(each.back))
        alone = times + np.where(again | (times > sure), _HOUR, 0)
    return np.where(known[rows] == times, right[order][rows], alone)
