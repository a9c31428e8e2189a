"""Why the stamps of a log run backwards, found over the whole log, and where its rows belong in time.

Numbers in, numbers out: nothing here knows of files or of the columns of a log.
"""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import CLOCK_SET_BACK, gap_seconds
from gpureport.importers.ordering import repeated_stretches
from gpureport.importers.timebase import dst_set_back
from gpureport.importers.timebase.row_order import RowOrder, split_at, stamps_before_gap
from gpureport.importers.timebase.time_index import CoveredTime, TimeIndex

DAYLIGHT_SAVING = "daylight saving"
RESTARTED = "log restarted"
_SERVER = 1_000 * 1_000_000
"""ntpd never steps a clock further than this (its panic threshold).

If stamps fall further with no break in the log, a different recording begins.
"""
_HALF_HOUR = 1_800 * 1_000_000
_ZONES = 26 * 3_600 * 1_000_000
"""Zones differ by half hours, and by 26 hours at most (the zone database's quarter hours are three small places)."""
_PUNCTUAL = 3
"""Half intervals by which the row after such a change may come early or late (pragmatic)."""
_RESET = 7 * 86_400 * 1_000_000
"""Where nothing stands between them, recordings a week apart are one whose clock was reset (pragmatic)."""
_EPOCHS_END = 40 * 365 * 86_400 * 1_000_000
"""End of 2009: clocks that lost their battery start at 1970, 1980, 2000 or some year before that, and no GPU that
nvidia-smi logs was sold then, so that an earlier stamp is no date of a recording (pragmatic)."""
_DISJOINT = 0.1
"""Share of the shorter one's rows up to which two recordings share no time (pragmatic)."""
_SAME_TIME_SHARE = 0.8
"""Share of the shorter one's rows from which two recordings are of the same time, by two recorders (pragmatic)."""
_LONGER = 2
"""Rows of a second recording without a header that begins with the first, as a multiple of those before it; a clock set
back to the beginning of the log goes on for longer (pragmatic)."""
_TOO_OFTEN, _SOME = 0.2, 10
"""A log in which more rows than this share, and than these, run back is not sorted by time at all (pragmatic)."""
_OVERLAP = 0.1
"""Share of the rows after the first reversal that lie in time already covered: about a third in a genuine log of two
writers, half in theory; what a time server sets back is far less (pragmatic)."""
_MANY = 4
"""Reversals with such an overlap that need no torn lines to be believed (pragmatic)."""
_LEAP = 3
"""Intervals up to which a writer goes on after its last row; a longer one is a leap forward (pragmatic)."""
_SCATTERED = 5_000
"""Stretches of time beyond which rows are shuffled, and looking further would take for ever (pragmatic)."""
_TURNED = 3
"""Where rows fall more often than so many times for each that rises, the log has its newest row first; where two or
three processes write a row each in turn, it is twice at most (pragmatic)."""


@dataclass(frozen=True, slots=True)
class BackwardStep:
    """A reversal of one device: the row after it, how far the stamp fell and by how much it was shifted."""

    row: int
    device: int
    step: int
    shift: int
    cause: str


@dataclass(frozen=True, slots=True)
class RowTimes:
    """Where rows belong.

    Attributes:
        times: time of each row, in microseconds; rows of a device are not in its order where recordings are not.
        copies: rows that repeat an earlier one.
        steps: reversals that are no copy's and no writer's.
        several: whether several processes wrote the log, each over the time of the others.
        shuffled: reversals of a log in which they are too many to say why.
    """

    times: IntArray
    copies: BoolArray
    steps: list[BackwardStep] = field(default_factory=list)
    several: bool = False
    shuffled: int = 0


def place_rows(track: RowOrder, zone: ZoneInfo | None) -> RowTimes:
    """Return where the rows of a log belong in time.

    Args:
        track: all rows with their stamps as written.
        zone: zone of the stamps, None when unknown; with one, the times are UTC.
    """
    if not len(track):
        return RowTimes(track.stamps, _none(track))
    differences = track.differences()
    falls, rises = int((differences < 0).sum()), int((differences > 0).sum())
    if falls > max(_TURNED * rises, _SOME):
        return _turn_round(place_rows(track.reversed(), zone), falls)
    pace = track.pace()
    cuts = track.reversals(pace)
    return _place_by_device(track, zone) if cuts is None else _place_by_one_clock(track, cuts, pace, zone)


def _turn_round(verdict: RowTimes, shuffled: int) -> RowTimes:
    """Return what is true of a log with its newest row first that was judged from the last row to the first."""
    steps = [replace(step, row=len(verdict.times) - 1 - step.row) for step in reversed(verdict.steps)]
    return replace(verdict, times=verdict.times[::-1], copies=verdict.copies[::-1], steps=steps, shuffled=shuffled)


def _place_by_one_clock(track: RowOrder, cuts: IntArray, pace: int, zone: ZoneInfo | None) -> RowTimes:
    """Return where the rows belong of a log with one clock."""
    doubled = dst_set_back.find_dst_overlaps(track, cuts, pace, zone)
    copied = repeated_stretches.find_copies(track, cuts, doubled, pace)
    doubled &= ~copied[cuts]
    times = dst_set_back.undo_dst_overlaps(track, cuts, doubled, pace, zone)
    steps: list[BackwardStep] = []
    before = track.previous_rows() if doubled.any() else times
    for cut in cuts[doubled].tolist():
        shift = int(times[cut] - track.stamps[cut]) if zone is None else 0
        steps += _steps_of_segment(track, before, (cut, len(track)), shift, DAYLIGHT_SAVING)
    kept = np.flatnonzero(~copied)
    rest = _place_without_copies(track.select(~copied).with_stamps(times[kept]), pace)
    whole = times.copy()
    whole[kept] = rest.times
    steps += [replace(step, row=int(kept[step.row])) for step in rest.steps]
    return RowTimes(whole, copied, sorted(steps, key=lambda step: step.row), rest.several, rest.shuffled)


def _place_by_device(track: RowOrder, zone: ZoneInfo | None) -> RowTimes:
    """Judge devices one by one, because each has a clock of its own."""
    times, copies = track.stamps.copy(), _none(track)
    several = False
    steps: list[BackwardStep] = []
    shuffled = 0
    order = np.argsort(track.devices, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(track.devices[order])) + 1):
        verdict = place_rows(track.select(rows), zone)
        times[rows], copies[rows] = verdict.times, verdict.copies
        steps += [replace(step, row=int(rows[step.row])) for step in verdict.steps]
        several |= verdict.several
        shuffled += verdict.shuffled
    return RowTimes(times, copies, steps, several, shuffled)


def _place_without_copies(track: RowOrder, pace: int) -> RowTimes:
    """Return where rows belong that are no copies, daylight saving set aside."""
    cuts = track.reversals(pace)
    none = _none(track)
    if cuts is None or not len(cuts):
        return RowTimes(track.hold_jitter(np.ones(len(track), dtype=np.int64)), none)
    if pace and _are_interleaved(track, cuts, pace):
        return RowTimes(track.stamps, none, several=True)
    if len(cuts) > max(_TOO_OFTEN * len(track), _SOME):
        return RowTimes(track.stamps, none, shuffled=len(cuts))
    return _place_segments(track, cuts, pace)


def _none(track: RowOrder) -> BoolArray:
    return np.zeros(len(track), dtype=bool)


def _are_interleaved(track: RowOrder, cuts: IntArray, pace: int) -> bool:
    """Return whether several processes wrote the log in turn, each a block of rows over the time of the others."""
    torn = 2 * int(track.after_line_gaps()[cuts].sum()) >= len(cuts)
    believed = torn or (len(cuts) >= _MANY and _go_on(track, cuts, pace))
    return believed and _overlap(track, cuts, pace) >= _OVERLAP


def _go_on(track: RowOrder, cuts: IntArray, pace: int) -> bool:
    """Return whether at most reversals a stretch goes on where an earlier one stopped, unlike a clock set back."""
    leaps = np.flatnonzero(track.differences() > _LEAP * pace)
    ends = np.sort(track.stamps[np.concatenate([cuts, leaps]) - 1])
    starts = track.stamps[cuts]
    places = np.searchsorted(ends, starts)
    near = (places > 0) & (starts - ends[places - 1] <= _LEAP * pace)
    return 2 * int(near.sum()) >= len(cuts)


def _overlap(track: RowOrder, cuts: IntArray, pace: int) -> float:
    """Return the share of the rows after the first reversal that lie in time that earlier segments cover."""
    limit = gap_seconds(pace / 1e6) * 1e6
    covered = CoveredTime()
    inside = 0
    for start, end in split_at(cuts, len(track)):
        times = np.sort(track.stamps[start:end])
        if len(covered) > _SCATTERED:
            return 0.0
        inside += covered.count_within(times)
        gaps = np.flatnonzero(np.diff(times) > limit) + 1
        for first, last in split_at(gaps, len(times)):
            covered.add(int(times[first]), int(times[last - 1]))
    return inside / (len(track) - int(cuts[0]))


def _place_segments(track: RowOrder, cuts: IntArray, pace: int) -> RowTimes:
    """Return the times of segments of one writer: shifted after a clock was set back, kept after a restart.

    A segment over the same time as those before it is that of another writer.
    """
    times = track.hold_jitter(np.searchsorted(cuts, np.arange(len(track)), "right"))
    before, line_gaps = track.previous_rows(), track.after_line_gaps()
    steps: list[BackwardStep] = []
    shift = 0
    earlier = TimeIndex()
    several = False
    segments = split_at(cuts, len(track))
    for (begin, start), (_, end) in pairwise(segments):
        earlier.add(track.stamps[begin:start])
        fall = int(track.stamps[start - 1] - track.stamps[start])
        line_gap = bool(line_gaps[start])
        zoned = _is_zone_change(fall, pace)
        separate = line_gap or (fall > _SERVER and not zoned)
        begins_again = abs(int(track.stamps[start] - track.stamps[0])) <= _PUNCTUAL * pace
        begins_again &= end - start <= _LONGER * start
        candidate = (separate or begins_again) and not zoned
        if candidate and _is_second_recorder(earlier, track.stamps[:start], track.stamps[start:end]):
            several, shift = True, 0
            continue
        if separate and _is_restart(
            earlier, start, stamps_before_gap(track.stamps[start:end], pace), line_gap=line_gap
        ):
            cause, shift = RESTARTED, 0
        else:
            # had the clock gone on, the row would lie one interval after the one before of its device
            last = before[start] if before[start] >= 0 else start - 1
            cause, shift = CLOCK_SET_BACK, int(times[last]) + pace - int(track.stamps[start])
        times[start:end] += shift
        steps += _steps_of_segment(track, before, (start, end), shift, cause)
    return RowTimes(times, _none(track), steps, several)


def _is_second_recorder(earlier: TimeIndex, before: IntArray, own: IntArray) -> bool:
    """Return whether a segment is of the same time as those before it, as a second recorder's is.

    Args:
        earlier: the stamps before it, to be looked up.
        before: the same.
        own: its own stamps.
    """
    low, high = int(own.min()), int(own.max())
    shared = int(((own >= before.min()) & (own <= before.max())).sum())
    if len(own) <= len(before):
        return shared >= _SAME_TIME_SHARE * len(own) and earlier.count_within(low, high) >= _SAME_TIME_SHARE * len(own)
    return earlier.count_within(low, high) >= _SAME_TIME_SHARE * len(before)


def _is_zone_change(fall: int, pace: int) -> bool:
    """Return whether a clock went back by whole half hours and the log went on: its zone was set, or summer time ended.

    An earlier recording below a later one begins at any second.
    """
    rest = (fall + pace) % _HALF_HOUR
    return fall <= _ZONES and 2 * min(rest, _HALF_HOUR - rest) <= _PUNCTUAL * pace


def _is_restart(earlier: TimeIndex, count: int, head: IntArray, *, line_gap: bool) -> bool:
    """Return whether a segment is another recording: it shares no time with what comes before it in the log.

    Args:
        earlier: the stamps before it.
        count: how many they are.
        head: its own stamps up to the first gap.
        line_gap: whether a header or a broken line stands before it.
    """
    low, high = int(head.min()), int(head.max())
    if earlier.count_within(low, high) > _DISJOINT * min(len(head), count):
        return False
    return (line_gap and low > _EPOCHS_END) or earlier.distance_to(low, high) <= _RESET


def _steps_of_segment(
    track: RowOrder, before: IntArray, span: tuple[int, int], shift: int, cause: str
) -> list[BackwardStep]:
    """Return the step of each device that has rows in a segment and before it."""
    start, end = span
    devices, first = np.unique(track.devices[start:end], return_index=True)
    return [
        BackwardStep(row, device, int(track.stamps[row] - track.stamps[before[row]]), shift, cause)
        for device, row in zip(devices.tolist(), (start + first).tolist(), strict=True)
        if before[row] >= 0
    ]
