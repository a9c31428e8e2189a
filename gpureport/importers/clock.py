"""Reads the times in a log: timestamps, time zones, intervals, gaps, and clock changes."""

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpureport import rates
from gpureport.columns import BoolArray, IntArray, integers, present, strings_to_arrow
from gpureport.data_quality import CLOCK_SET_BACK, ClockStep, LogGap, Quality, gap_seconds
from gpureport.errors import SettingsError
from gpureport.importers.account import format_count
from gpureport.parsing import FIRST_MICROSECOND, LAST_MICROSECOND

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_QUARTER = 15 * 60 * 1_000_000
"""Time zone offsets change only on the quarter hour."""
_SEVERAL = 3
"""Minimum number of timestamps in a skipped hour that shows the time zone is wrong."""


def load_zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError, RecursionError) as error:
        raise SettingsError(
            "--tz", f"no time zone {name!r}", "give a name such as Europe/Berlin or UTC", code="unknown_time_zone"
        ) from error


def _offsets(stamps: IntArray, zone: ZoneInfo) -> list[IntArray]:
    quarters, inverse = np.unique(stamps // _QUARTER, return_inverse=True)
    local = [(EPOCH + timedelta(microseconds=each * _QUARTER)).replace(tzinfo=zone) for each in quarters.tolist()]
    found = ([time.replace(fold=fold).utcoffset() or timedelta() for time in local] for fold in (0, 1))
    return [np.array([each // _MICROSECOND for each in fold], dtype=np.int64)[inverse] for fold in found]


def to_utc(stamps: IntArray, zone: ZoneInfo, *, second: bool = False) -> IntArray:
    """Convert local timestamps to UTC microseconds. If an hour repeats, assume its first (or `second`) occurrence."""
    first, later = _offsets(stamps, zone)
    skipped = np.unique(stamps[first < later])
    if len(skipped) >= _SEVERAL:
        shown = (EPOCH + timedelta(microseconds=int(skipped.min()))).strftime("%Y-%m-%d %H:%M:%S")
        what = f"{zone.key} skips {shown}, because clocks were set forward, but the log has rows in that hour"
        raise SettingsError("--tz", what, "give the machine's time zone, perhaps UTC", code="skipped_hours")
    # only a repeated hour uses the second offset; an hour skipped in spring uses the first
    return stamps - (np.minimum(first, later) if second else first)


def fold_sizes(stamps: IntArray, zone: ZoneInfo) -> IntArray:
    """Return how far clocks are set back at each local timestamp, or 0 if it is unambiguous."""
    first, later = _offsets(stamps, zone)
    sizes: IntArray = np.maximum(first - later, 0)
    return sizes


def local_span(span: tuple[int, int], zone: ZoneInfo) -> tuple[int, int]:
    start, end = ((EPOCH + timedelta(microseconds=time)).astimezone(zone).replace(tzinfo=UTC) for time in span)
    return (start - EPOCH) // _MICROSECOND, (end - EPOCH) // _MICROSECOND


def read_times(cells: Any) -> tuple[IntArray, BoolArray, str | None]:
    """Return times in microseconds, a mask of valid ones, and the time zone (`UTC`, or None if local)."""
    texts: Any = cells if isinstance(cells, pa.Array) else strings_to_arrow(list(cells))
    texts = texts if len(texts) and str(texts[0])[:1].isdigit() else pc.utf8_trim_whitespace(texts)
    slashes = bytes(texts.buffers()[2] or b"").count(b"/")
    if (
        slashes in {0, 2 * len(texts)}
        and not texts.null_count
        and (pc.min(pc.binary_length(texts)).as_py() or 0) >= _SECONDS
    ):
        with suppress(pa.ArrowInvalid):
            # nvidia-smi writes ISO stamps with slashes; Arrow parses a whole column at once
            times = integers(pc.replace_substring(texts, "/", "-").cast(pa.timestamp("us")))
            return times, (times >= FIRST_MICROSECOND) & (times < LAST_MICROSECOND), None
    moments = [parse_time(str(text)) for text in texts.to_pylist()]
    known = [moment for moment in moments if moment is not None]
    utc = 2 * sum(moment[1] for moment in known) > len(known)
    good = np.array([moment is not None and moment[1] == utc for moment in moments], dtype=np.bool_)
    times = np.array([moment[0] if moment else 0 for moment in moments], dtype=np.int64)
    return times, good, "UTC" if utc else None


_ISO = re.compile(
    r"(?<!\d)(?P<local>(?P<year>\d{4})([-/])(?P<month>\d{1,2})\3(?P<day>\d{1,2})[ T]"
    r"(?P<hour>\d{1,2})(?P<rest>:\d\d(?::\d\d(?:[.,]\d{1,9})?)?))(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)\b)?",
    re.ASCII,
)
_DAY_FIRST = re.compile(
    r"(?P<day>\d{1,2})([./])(?P<month>\d{1,2})\2(?P<year>\d{4}),? "
    r"(?P<hour>\d{1,2})(?P<rest>:\d\d(?::\d\d(?:[.,]\d{1,9})?)?)(?P<zone>)",
    re.ASCII,
)
"""Matches timestamps from spreadsheets, such as `14.03.2026 09:26:53,123` and `14/03/2026 9:26`."""
_WORDS = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:(?P<month>[A-Z][a-z][a-z]) +)?(?P<day>\d{1,2})"
    r"(?: (?P<name>[A-Z][a-z]{2}) (?P<year>\d{4}))? (?P<clock>\d{1,2}:\d\d:\d\d(?: [AP]M)?)"
    r"(?P<zone> (?:[A-Z]{2,5}|[+-]\d\d(?:\d\d)?))?(?: (?P<end>\d{4}))?",
    re.ASCII,
)
"""Matches timestamps from C's `asctime`, and from `date` in the C locale or in English."""
_MONTHS = ("", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_EPOCHS = ((1e17, 1e-3), (1e14, 1), (1e11, 1e3), (1e8, 1e6))
"""Smallest number read as ns, us, ms or s, and the length of that unit in microseconds."""
_SECONDS = len("2026/03/14 09:26:53")
DAY = 86_400_000_000
_TIME = re.compile(r"(\d{1,2}):([0-5]\d):([0-5]\d|60)(?: ([AP])M)?", re.ASCII | re.IGNORECASE)
"""Matches a time of day; a leap second is written as 60."""


def parse_time(text: str) -> tuple[int, bool] | None:
    """Return a time (ISO, epoch, nvidia-smi, asctime or spreadsheet) in microseconds, and whether it is UTC."""
    text = text.strip()
    if text[:8].isdecimal():
        if re.fullmatch(r"\d{8,19}(?:\.\d{1,9})?", text, re.ASCII):
            factor = next((factor for least, factor in _EPOCHS if float(text) >= least), math.inf)
            counted = float(text) * factor
            return (round(counted), True) if counted < LAST_MICROSECOND else None
        # the format of dmon
        text = f"{text[:4]}-{text[4:6]}-{text[6:]}"
    match = _ISO.fullmatch(text) or _DAY_FIRST.fullmatch(text)
    if match is None:
        words = _WORDS.fullmatch(text)
        found = parse_printed_time(text) if words and words["zone"] in {None, " UTC", " GMT"} else None
        return found and (found[0], False)
    part = match.groupdict(default="")
    stamp = f"{part['year']}-{part['month']:0>2}-{part['day']:0>2} {part['hour']:0>2}{part['rest']}"
    zone = part["zone"] if part["zone"][-1:].isdigit() else part["zone"] and "Z"
    try:
        moment = datetime.fromisoformat(stamp.replace(",", ".") + zone)
    except ValueError:
        return None
    at = (moment if zone else moment.replace(tzinfo=UTC)) - EPOCH
    return (at // _MICROSECOND, bool(zone)) if FIRST_MICROSECOND <= at // _MICROSECOND < LAST_MICROSECOND else None


@lru_cache(64)
def parse_printed_time(text: str) -> tuple[int, bool] | None:
    """Return the time in a text, in microseconds, and whether the text specifies a time zone."""
    match = _WORDS.search(text)
    if match is None:
        found = (match := _ISO.search(text)) and parse_time(match["local"])
        return match and found and (found[0], match["zone"] is not None)
    month, since = match["month"] or match["name"], parse_time_of_day(match["clock"])
    number = _MONTHS.index(month) if month in _MONTHS else 0
    midnight = parse_time(f"{match['year'] or match['end']}-{number}-{match['day']} 0:00")
    return None if midnight is None or since is None else (midnight[0] + since, match["zone"] is not None)


def parse_time_of_day(text: str) -> int | None:
    """Return a time such as `04:28:31 PM` in microseconds since midnight, or None."""
    if (match := _TIME.fullmatch(text)) is None:
        return None
    hour = int(match[1])
    if match[4]:
        hour = hour % 12 + 12 * (match[4].upper() == "P") if 0 < hour <= 12 else 24  # noqa: PLR2004 - a clock
    return ((hour * 60 + int(match[2])) * 60 + int(match[3])) * 1_000_000 if hour < 24 else None  # noqa: PLR2004 - as above


def count_days(clocks: IntArray, before: Sequence[int] = ()) -> IntArray:
    """Convert times of day to microseconds since the first midnight, continuing from `before`."""
    begun = before[-1] if before else int(clocks[0])
    moments: IntArray = clocks + begun // DAY * DAY
    steps = np.diff(moments, prepend=begun)
    # rows written around midnight may be out of order
    moments += DAY * np.cumsum((steps < -DAY // 2).astype(np.int64) - (steps > DAY // 2))
    return moments


_SECOND, _FEWEST = 1_000_000, 10
"""A second in microseconds, and the minimum number of seconds needed to spread rows."""


def share_seconds(stamps: IntArray, devices: IntArray) -> IntArray:
    """Spread rows evenly over each second if several share a whole-second timestamp."""
    if not len(stamps) or (stamps % _SECOND).any():
        return stamps
    shared = stamps.copy()
    for device in present(devices):
        own = np.flatnonzero(devices == device)
        seconds, bounds, sizes = np.unique(stamps[own], return_index=True, return_counts=True)
        usual = int(np.median(sizes))
        rises = (np.diff(bounds) == sizes[:-1]).all()
        if not rises or len(sizes) < _FEWEST or usual < 2 or np.median(np.diff(seconds)) != _SECOND:  # noqa: PLR2004 - several
            continue
        places = np.arange(len(own)) - np.repeat(bounds, sizes)
        # the first second may have begun before the log, and the last may continue after it
        places[: sizes[0]] += max(usual - int(sizes[0]), 0)
        shared[own] += places * _SECOND // np.maximum(np.repeat(sizes, sizes), usual)
    return shared


def find_wrong_dates(stamps: IntArray, devices: IntArray) -> BoolArray:
    """Mark misdated rows: those more than a day from both the device's previous and next rows."""
    wrong = np.zeros(len(stamps), dtype=np.bool_)
    if not len(stamps) or stamps.max() - stamps.min() <= DAY:
        return wrong
    for device in present(devices):
        own = np.flatnonzero(devices == device)
        steps = np.diff(stamps[own])
        far = np.abs(steps) > DAY
        wrong[own[1:-1]] = far[:-1] & far[1:] & (np.abs(steps[:-1] + steps[1:]) < DAY)
    return wrong


_DISTINCT = 50_000
_AT_ONCE = 8_192  # rows of one device to measure at once
TICK, _APART, _BUNCH = 60_000, 90_000, (1.9, 16.5)
"""Rows of several GPUs: 2 to 16 within 60 ms, then none for 90 ms. Ticks take 1 to 6 ms, or 50 ms under load."""


@dataclass(slots=True)
class Clock:
    """A device's times, measured as rows arrive; `duplicates` counts rows that repeat the last time."""

    device: str
    steps: list[ClockStep] = field(default_factory=list)
    first: int | None = None
    last: int | None = None
    duplicates: int = 0
    _unmeasured: list[IntArray] = field(default_factory=list)
    _ticks: Counter[int] = field(default_factory=Counter)
    _long: list[tuple[int, int]] = field(default_factory=list)
    _pairs: float | None = None

    def accept(self, times: IntArray) -> IntArray:
        if not len(times):
            return times
        times = np.maximum.accumulate(np.maximum(times, times[0] if self.last is None else self.last))
        self._unmeasured += [times] if self.last is None or self._unmeasured else [np.array([self.last]), times]
        self.first = int(times[0]) if self.first is None else self.first
        self.last = int(times[-1])
        if sum(map(len, self._unmeasured)) > _AT_ONCE:
            self.measure()
        return times

    def measure(self) -> None:
        if not self._unmeasured:
            return
        times, self._unmeasured = np.concatenate(self._unmeasured), []
        ticks = np.diff(times)
        moved = ticks[ticks > 0]
        self.duplicates += len(ticks) - len(moved)
        values, counts = np.unique(moved, return_counts=True)
        if len(self._ticks) + len(values) > _DISTINCT:
            values, counts = np.unique(moved // 1000 * 1000, return_counts=True)
        self._ticks.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
        self._pairs = self._pairs or rates.detect_paired_interval(moved)
        limit = gap_seconds(self.interval or 0.0) / 2 * 1e6
        self._long += [(int(times[row]), int(times[row + 1])) for row in np.flatnonzero(ticks > limit)]

    @property
    def interval(self) -> float | None:
        """The median positive difference between timestamps, in seconds, or None if there is none."""
        self.measure()
        return self._pairs or (_middle(sorted(self._ticks.items())) / 1e6 if self._ticks else None)

    def gaps(self) -> tuple[LogGap, ...]:
        interval = self.interval or 0.0
        far = np.array(self._long, np.int64).reshape(-1, 2)
        far = far[far[:, 1] - far[:, 0] > gap_seconds(interval) * 1e6]
        found = far[~rates.mark_slow_distances(far, interval)]
        return tuple(LogGap(device=self.device, start=start, end=end) for start, end in found.tolist())

    def bunched(self) -> bool:
        self.measure()
        apart = sorted((tick, count) for tick, count in self._ticks.items() if tick > TICK)
        if not apart or _middle(apart) < _APART:
            return False
        return _BUNCH[0] <= (self._ticks.total() + self.duplicates) / sum(count for _, count in apart) <= _BUNCH[1]


def _middle(ticks: Sequence[tuple[int, int]]) -> int:
    """Return the lower median of sorted values, given their counts."""
    upto = list(accumulate(count for _, count in ticks))
    return ticks[bisect_left(upto, (upto[-1] + 1) // 2)][0]


def measure(clocks: Sequence[Clock], quality: Quality) -> Quality:
    gaps = tuple(gap for clock in clocks for gap in clock.gaps())
    steps = (*quality.clock_steps, *(step for clock in clocks for step in clock.steps))
    spans = [(clock.first, clock.last) for clock in clocks if clock.first is not None and clock.last is not None]
    whole = max((end for _, end in spans), default=0) - min((start for start, _ in spans), default=0)
    sampled = sum(end - start for start, end in spans) - sum(gap.end - gap.start for gap in gaps)
    share = sampled / (whole * len(spans)) if whole else None
    copies = sum(clock.duplicates for clock in clocks)
    return replace(quality, gaps=gaps, duplicates=copies, clock_steps=steps, coverage_ratio=share)


_FURTHEST, _MOST_STEPS = 2 * 3_600 * 1_000_000, 4
"""Maximum size and number of backward clock changes."""
_PUNCTUAL, _MANY = 3, 20
"""A second writer starts within this many intervals of the first timestamp, and after at least this many rows."""
_LATE = 3
"""Maximum number of consecutive late rows; if there are more, the clock was set back."""
_RESTARTED, _SUMMER_TIME, _WRITERS = "log restarted", "daylight saving", "several writers"


class Order(NamedTuple):
    """Rows in line order: their times, the copies, and whether writers `shuffled` them."""

    lines: npt.NDArray[Any]
    times: IntArray
    copies: BoolArray
    clocks: dict[str, Clock]
    notes: list[str]
    shuffled: bool


def put_in_order(rows: Sequence[npt.NDArray[Any]], names: Sequence[str], zone: ZoneInfo | None) -> Order:
    """Return the order of `rows` (lines, timestamps, devices, hashes); see docs/explanation/rows-out-of-order.md."""
    lines, stamps, devices, hashes = rows
    times = np.zeros(len(lines), dtype=np.int64)
    copies = np.zeros(len(lines), dtype=np.bool_)
    clocks, shuffled = dict[str, Clock](), 0
    for place in np.unique(devices).tolist():
        own = np.flatnonzero(devices == place)
        copies[own] = _find_copies(stamps[own], hashes[own].astype(np.int64), zone)
        own = own[~copies[own]]
        clocks[names[place]] = clock = Clock(names[place])
        times[own], unsorted = _on_one_clock(lines[own], stamps[own], zone, clock)
        clock.accept(np.sort(times[own]))
        shuffled += unsorted
    copied = int(copies.sum())
    restarted = any(step.cause == _RESTARTED for clock in clocks.values() for step in clock.steps)
    notes: dict[str, object] = {
        f"{format_count(copied, 'row')} {'repeats' if copied == 1 else 'repeat'} earlier ones (same GPU, timestamp "
        "and values), as in a log that was appended to itself. The copies were left out.": copied,
        "The recordings in the log are not in time order. Their rows keep their timestamps and were sorted.": restarted,
        f"Timestamps jump back {shuffled:,} times, too often for a clock change; rows were sorted by time.": shuffled,
    }
    return Order(lines, times, copies, clocks, [note for note, holds in notes.items() if holds], shuffled > 0)


def _find_copies(stamps: IntArray, hashes: IntArray, zone: ZoneInfo | None) -> BoolArray:
    """Mark a device's repeated rows, in stretches that start with a backward step and are mostly copies."""
    stretch = np.cumsum(np.diff(stamps, prepend=stamps[:1]) < 0)

    def repeats(keys: IntArray) -> BoolArray:
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        found: BoolArray = stretch[first[which]] < stretch
        return found

    place = repeats(stamps)
    again = place & repeats(hashes ^ stamps * 0x1E3779B97F4A7C15)
    among = stretch[again]
    _, distinct = np.unique(among * 0x1E3779B97F4A7C15 ^ hashes[again], return_index=True)
    rows, met, repeated = (np.bincount(stretch, each) for each in (None, place, again))
    # if values vary, only repeated stamps count, since a stretch may continue after the copy
    varied = np.bincount(among[distinct], minlength=len(rows)) > _LATE
    # a row still counts as a copy if its last cell was cut off
    copies: BoolArray = place & (repeated >= 0.5 * np.where(varied, met, rows))[stretch]
    begins = stamps[np.diff(stretch, prepend=-1) > 0]
    return copies if zone is None else copies & (fold_sizes(begins, zone) == 0)[stretch]


def _on_one_clock(
    lines: npt.NDArray[Any], stamps: IntArray, zone: ZoneInfo | None, clock: Clock
) -> tuple[IntArray, int]:
    """Record clock steps. Return a device's times, and the number of other backward steps."""
    times = stamps.copy() if zone is None else to_utc(stamps, zone)
    apart, rises = np.diff(lines), np.diff(stamps)
    pace = int(np.median(rises[rises > 0])) if (rises > 0).any() else 0
    if 2 * (rises < 0).sum() > len(stamps):
        # the newest row comes first
        return times, 0
    found: list[tuple[int, int, str]] = []
    usual = np.median(apart) if len(apart) else 0
    for cut in (np.flatnonzero(rises < -1.5 * pace) + 1).tolist():
        fall = -int(rises[cut - 1])
        until = min(cut + min(max(1, fall // max(pace, 1) - 1), _LATE), len(stamps) - 1)
        if until == cut or stamps[cut : until + 1].max() >= stamps[cut - 1] or stamps[cut] > stamps[max(cut - 2, 0)]:
            # one late or early row among ordered rows is not a clock step
            continue
        before, after = (0, 0) if zone is None else fold_sizes(stamps[cut - 1 : cut + 1], zone).tolist()
        # the end of summer time repeats a whole fold; a time server sets clocks back by seconds
        doubled = before > 0 and 0 < after < 2 * fall and fall <= after + pace
        causes = {
            _WRITERS: not doubled and cut >= _MANY and abs(int(stamps[cut] - stamps[0])) <= _PUNCTUAL * pace,
            # extra lines between two rows, such as a header, may begin another recording
            _RESTARTED: fall >= _FURTHEST or (apart[cut - 1] > usual and stamps[cut:].max() < stamps[:cut].min()),
            _SUMMER_TIME: doubled,
        }
        found.append((cut, fall, next((cause for cause, fits in causes.items() if fits), CLOCK_SET_BACK)))
    others = [cause for *_, cause in found if cause != _RESTARTED]
    # two writers often record the same values at the same times
    doubted = len(others) if _WRITERS in others or len(others) > _MOST_STEPS else 0
    for cut, fall, cause in found:
        shift = 0
        if doubted and cause != _RESTARTED:
            continue
        if cause == _SUMMER_TIME and zone is not None:
            # another repeated hour starts with its first occurrence again
            end = cut + int(np.logical_and.accumulate(fold_sizes(stamps[cut:], zone) > 0).sum())
            times[cut:end] = to_utc(stamps[cut:end], zone, second=True)
        elif cause == CLOCK_SET_BACK:
            shift = int(times[cut - 1]) + pace - int(times[cut])
            times[cut:] += shift
            shift = shift if zone else int(times[cut] - stamps[cut])
        at, fell, moved = int(times[cut]), -fall / 1e6, shift / 1e6
        clock.steps.append(ClockStep(device=clock.device, at=at, step_seconds=fell, shift_seconds=moved, cause=cause))
    clock.steps.sort(key=lambda step: step.at)
    return times, doubted
