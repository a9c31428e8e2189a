"""Where rows belong in a log whose stamps run backwards: copies are dropped, clock steps made good."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import CLOCK_SET_BACK
from gpureport.importers.account import format_count
from gpureport.importers.clock import fold_sizes, to_utc
from gpureport.importers.columns import Texts, Values

_FURTHEST, _MOST_STEPS = 2 * 3_600 * 1_000_000, 4
"""Neither a time server nor the end of summer time sets a clock back further, and none does more often."""
_PUNCTUAL, _MANY = 3, 20
"""Intervals from its first stamp at which a log begins again, and rows above that show where it began (pragmatic)."""
_LATE = 3
"""Rows that come late together at most (pragmatic); more are of a clock that was set back."""
RESTARTED, SUMMER_TIME = "log restarted", "daylight saving"
Step = tuple[int, int, int, str]
"""A step of a clock: when, by how much, by how much later rows are shifted, in microseconds, and its cause."""


class Order(NamedTuple):
    """The rows by rising `lines`: times, copies of earlier ones, `steps` by device, and whether they are `shuffled`."""

    lines: npt.NDArray[Any]
    times: IntArray
    copies: BoolArray
    steps: dict[int, list[Step]]
    notes: list[str]
    shuffled: bool


def hash_values(columns: Mapping[str, Values], length: int) -> npt.NDArray[np.uint64]:
    """Return a number per row for all its values, in any order of columns."""
    hashes = np.zeros(length, dtype=np.uint64)
    for name, values in columns.items():
        if isinstance(values, Texts):
            known = np.array([*(crc32(str(text).encode()) for text in values.texts), 0], dtype=np.uint64)
            bits, valid = known[values.codes], values.codes >= 0
        else:
            # 0.0 and -0.0 are one value
            bits, valid = (values + 0.0).view(np.uint64), ~np.isnan(values)
        # each column is mixed by itself, so that column order does not matter
        salt = np.uint64(crc32(name.encode()) | 1)
        mixed = (bits ^ (bits >> np.uint64(29)) ^ salt) * np.uint64(0xBF58476D1CE4E5B9) * salt
        hashes += np.where(valid, mixed ^ (mixed >> np.uint64(32)), np.uint64(0))
    return hashes


def put_in_order(
    lines: npt.NDArray[Any],
    stamps: IntArray,
    devices: npt.NDArray[Any],
    hashes: npt.NDArray[Any],
    zone: ZoneInfo | None,
) -> Order:
    """Return where rows belong: copies are left out, rows after a clock was set back move on.

    Rows come by rising lines, with their stamps as written, the place of their device, and a number for their content;
    `zone` is None where it is unknown or they are UTC. See docs/explanation/rows-out-of-order.md.
    """
    times, copies = np.zeros(len(lines), dtype=np.int64), np.zeros(len(lines), dtype=np.bool_)
    steps, shuffled, notes = dict[int, list[Step]](), 0, list[str]()
    for device in np.unique(devices).tolist():
        own = np.flatnonzero(devices == device)
        copies[own] = _find_copies(stamps[own], hashes[own], zone)
        own = own[~copies[own]]
        times[own], steps[device], unsorted = _on_one_clock(lines[own], stamps[own], zone)
        shuffled += unsorted
    if copied := int(copies.sum()):
        notes.append(
            f"{format_count(copied, 'row')} {'says' if copied == 1 else 'say'} again what earlier ones say, the same "
            "GPU, stamp and values, as where a log was appended to itself; they were left out."
        )
    if any(cause == RESTARTED for found in steps.values() for *_, cause in found):
        notes.append("The log holds recordings out of the order of time: rows keep their stamps and were put in order.")
    if shuffled:
        notes.append(f"Stamps run backwards {shuffled:,} times, too often for a clock: rows were put in order by them.")
    return Order(lines, times, copies, steps, notes, shuffled > 0)


def _find_copies(stamps: IntArray, hashes: npt.NDArray[Any], zone: ZoneInfo | None) -> BoolArray:
    """Return which rows of a device repeat rows above a step back, as most of their stretch do."""
    stretch = np.cumsum(np.diff(stamps, prepend=stamps[:1]) < 0)

    def repeats(keys: IntArray) -> BoolArray:
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        found: BoolArray = stretch[first[which]] < stretch
        return found

    place = repeats(stamps)
    again = place & repeats(hashes.astype(np.int64) ^ stamps * 0x1E3779B97F4A7C15)
    among, values = stretch[again], hashes[again].astype(np.int64)
    _, distinct = np.unique(among * 0x1E3779B97F4A7C15 ^ values, return_index=True)
    rows, met, repeated = (np.bincount(stretch, each) for each in (None, place, again))
    # if a stretch goes on behind the copy, only values met before count, where they vary
    varied = np.bincount(among[distinct], minlength=len(rows)) > _LATE
    # a copy of which the last cell was cut off is one nevertheless
    copies: BoolArray = place & (repeated >= 0.5 * np.where(varied, met, rows))[stretch]
    begins = stamps[np.diff(stretch, prepend=-1) > 0]
    return copies if zone is None else copies & (fold_sizes(begins, zone) == 0)[stretch]


def _on_one_clock(lines: npt.NDArray[Any], stamps: IntArray, zone: ZoneInfo | None) -> tuple[IntArray, list[Step], int]:
    """Return a device's times, its clock's steps, and how often it is shuffled."""
    times = stamps.copy() if zone is None else to_utc(stamps, zone)
    apart, falls = np.diff(lines), np.diff(stamps)
    pace = int(np.median(falls[falls > 0])) if (falls > 0).any() else 0
    if 2 * (falls < 0).sum() > len(stamps):
        # the newest row stands first
        return times, [], 0
    usual = np.median(apart) if len(apart) else 0
    near, steps, others = list[tuple[int, int, bool]](), list[Step](), 0
    for cut in (np.flatnonzero(falls < -1.5 * pace) + 1).tolist():
        fall = -int(falls[cut - 1])
        until = min(cut + min(max(1, fall // max(pace, 1) - 1), _LATE), len(stamps) - 1)
        if until == cut or stamps[cut : until + 1].max() >= stamps[cut - 1] or stamps[cut] > stamps[max(cut - 2, 0)]:
            # a row that comes late, or early, is one among rows in order
            continue
        before, after = (0, 0) if zone is None else fold_sizes(stamps[cut - 1 : cut + 1], zone).tolist()
        # the doubled hour repeats a whole fold; a time server sets a clock back by seconds
        is_fold = before > 0 and 0 < after < 2 * fall and fall <= after + pace
        if cut >= _MANY and abs(int(stamps[cut] - stamps[0])) <= _PUNCTUAL * pace and not is_fold:
            # another writer's rows of the same time
            others += 1
        # more lines than usual between two rows, as a header, may begin another recording
        elif fall >= _FURTHEST or (apart[cut - 1] > usual and stamps[cut:].max() < stamps[:cut].min()):
            steps.append((int(times[cut]), -fall, 0, RESTARTED))
        else:
            near.append((cut, fall, is_fold))
    if others or len(near) > _MOST_STEPS:
        # a second writer's rows often repeat what was at the same times
        return times, steps, len(near) + others
    for cut, fall, is_fold in near:
        shift = 0
        if is_fold and zone is not None:
            # after the doubled hour, the next one begins with its first half again
            end = cut + int(np.logical_and.accumulate(fold_sizes(stamps[cut:], zone) > 0).sum())
            times[cut:end] = to_utc(stamps[cut:end], zone, second=True)
        else:
            shift = int(times[cut - 1]) + pace - int(times[cut])
            times[cut:] += shift
            shift = shift if zone else int(times[cut] - stamps[cut])
        steps.append((int(times[cut]), -fall, shift, SUMMER_TIME if is_fold else CLOCK_SET_BACK))
    return times, sorted(steps), 0
