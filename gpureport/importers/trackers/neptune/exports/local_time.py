"""Times of an export that may be local time of the exporting machine, labelled as UTC.

The exporter takes times of runs of Neptune 2 from a client that gives them in the zone of the machine it runs on, and
writes them unchanged. The time at which a run was made is not shifted, which is how it can be told.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.timebase import zones
from gpureport.importers.trackers.neptune.run_content import RunContent
from gpureport.importers.trackers.neptune_hardware.point_series import Series

_QUARTER = 900_000_000
_NEAR = 120_000_000
"""How far a first sample may lie from a whole offset: monitoring begins with the run, give or take (pragmatic)."""
_HOUR = 3_600_000_000
_LAG = 3
"""Intervals that may lie between the last sample before clocks are set back and the first after it (pragmatic)."""
_MOST = 14 * _HOUR
_CREATED = "sys/creation_time"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedContent:
    """A run with its times put right as far as that can be done.

    Attributes:
        content: the run.
        notes: what was found out about its times.
        back: when clocks were set back within it, on its new times, in microseconds.
    """

    content: RunContent
    notes: tuple[str, ...] = ()
    back: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Ticks:
    """Ticks of one process: as they are in the export, as they are put right, and where clocks were set back."""

    walls: IntArray
    right: IntArray
    back: IntArray


def correct_local_times(content: RunContent, processes: Sequence[Sequence[str]], tz: str | None) -> TimedContent:
    """Return a run with its local times as UTC where a zone is given, and what its times look like where none is.

    Args:
        content: the run; one whose times cannot be local stays as it is.
        processes: paths of the hardware series of each process.
        tz: zone of the machine that exported.
    """
    if not content.maybe_local or not processes:
        return TimedContent(content=content)
    zone, made = zones.load_zone(tz) if tz else None, content.moments.get(_CREATED)
    measured = [[each for path in paths if len((each := content.series[path]).times)] for paths in processes]
    ticks = [_ticks(series, zone, made) for series in measured if series]
    if not ticks:
        # all of their times are none that a clock shows
        return TimedContent(content=content)
    back = tuple(int(each.right[row]) for each in ticks for row in each.back)
    if zone is not None or back:
        ordered = {path: each.by_step() for path, each in content.series.items()}
        moved = {path: each.at(_correct_times(each.times, ticks, zone)) for path, each in ordered.items()}
        content = replace(content, series=moved)
    first = min(int(each.right.min()) for each in ticks)
    return TimedContent(content=content, notes=tuple(_notes(made, first, tz, back)), back=back)


def _ticks(series: Sequence[Series], zone: ZoneInfo | None, made: int | None) -> _Ticks:
    """Return the times of the series with the most points, in the order they were logged."""
    longest = max(series, key=lambda each: len(each.times))
    walls = longest.by_step().times
    back = _find_set_backs(walls)
    return _Ticks(walls, _correct_ticks(walls, back, zone, made), back)


def _find_set_backs(ticks: IntArray) -> IntArray:
    steps = np.diff(ticks)
    pace = int(np.median(steps[steps > 0])) if (steps > 0).any() else 0
    near = np.abs(steps + _HOUR - pace) <= _LAG * max(pace, 1)
    return np.flatnonzero(near & (steps < 0)) + 1


def _correct_ticks(ticks: IntArray, back: IntArray, zone: ZoneInfo | None, made: int | None) -> IntArray:
    """Return the times of ticks: UTC where the zone is known, else with the hours put back that were taken."""
    if zone is None:
        return ticks + _HOUR * np.searchsorted(back, np.arange(len(ticks)), side="right")
    folded = _second_halves(ticks, back, zone)
    right = zones.to_utc(ticks, zone, folded)
    both = zones.fold_size(ticks, zone) > 0
    if made is not None and len(back) == 0 and both[0] and abs(right[0] + _HOUR - made) < abs(right[0] - made):
        # it began in the second of two equal hours
        right = zones.to_utc(ticks, zone, np.logical_and.accumulate(both))
    return right


def _second_halves(ticks: IntArray, back: IntArray, zone: ZoneInfo) -> BoolArray:
    """Return the ticks that were taken when an hour came for the second time."""
    after = np.arange(len(ticks)) >= (back[0] if len(back) else len(ticks))
    result: BoolArray = after & (zones.fold_size(ticks, zone) > 0)
    return result


def _correct_times(times: IntArray, ticks: Sequence[_Ticks], zone: ZoneInfo | None) -> IntArray:
    """Return where times belong: as the tick at the same time, else by the zone, else as ticks nearby."""
    walls = np.concatenate([each.walls for each in ticks])
    right = np.concatenate([each.right for each in ticks])
    order = np.argsort(walls, kind="stable")
    known = walls[order]
    # of two ticks at one local time the later one is meant once the series itself has run back
    later = np.searchsorted(known, times, side="right") - 1
    rows = np.where(_after_backward_step(times), later, np.minimum(np.searchsorted(known, times), len(known) - 1))
    alone = (
        times + _added_hour(times, ticks)
        if zone is None
        else zones.to_utc(times, zone, _second_halves_of_series(times, zone))
    )
    return np.where(known[rows] == times, right[order][rows], alone)


def _second_halves_of_series(times: IntArray, zone: ZoneInfo) -> BoolArray:
    """Return which points of a series were logged in the second of two equal hours, by its own steps back."""
    return _second_halves(times, np.flatnonzero(np.diff(times) < 0) + 1, zone)


def _added_hour(times: IntArray, ticks: Sequence[_Ticks]) -> IntArray:
    """Return by how much other points are moved: as the ticks once the clock was surely set back."""
    sure = min(int(each.walls[: each.back[0]].max()) for each in ticks if len(each.back))
    return np.where(_after_backward_step(times) | (times > sure), _HOUR, 0)


def _after_backward_step(times: IntArray) -> BoolArray:
    """Return the points of a series before which its times ran back."""
    result: BoolArray = np.cumsum(np.diff(times, prepend=times[:1]) < 0) > 0
    return result


def _notes(made: int | None, first: int, tz: str | None, back: Sequence[int]) -> list[str]:
    notes = []
    if back and tz is None:
        notes.append(
            "clocks were set back by an hour within this run: later times are moved on, --tz ZONE makes them UTC"
        )
    off = 0 if made is None else first - made
    whole = round(off / _QUARTER) * _QUARTER
    if whole and abs(off - whole) < _NEAR and abs(whole) <= _MOST:
        hours = f"{abs(whole) / _HOUR:g} h {'before' if whole < 0 else 'after'}"
        what = f"the first sample lies {hours} the time at which the run was made"
        notes.append(f"{what}, {_explain_offset(tz)}")
    return notes


def _explain_offset(tz: str | None) -> str:
    if tz:
        return f"with --tz {tz} as well: the export was made in another zone, or monitoring began that late"
    return "so times are local time of the machine that exported, taken for UTC: give its zone with --tz"
