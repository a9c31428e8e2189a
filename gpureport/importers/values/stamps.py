"""Time stamps as text to integer microseconds, a whole column at a time."""

import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray, present
from gpureport.importers.values.day_first import WIDTHS, year_first
from gpureport.importers.values.numbers import letters, text_bytes
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND

_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MINUTES = len("2026/03/14 09:26")
_SECONDS = len("2026/03/14 09:26:53")
_LONGEST = len("2026/03/14 09:26:53.123456")
_COMPACT = len("20260314 09:26:53")
_MONTH_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)
STAMP = re.compile(r"(?:\d{4}([/-])\d\d\1\d\d[ T]|\d{8}[ T])\d\d:\d\d:\d\d(?:[.,]\d{1,6})?")
"""A stamp as nvidia-smi writes it, found anywhere in a line; its monitors leave out what parts a date."""


def _days(year: IntArray, month: IntArray, day: IntArray) -> IntArray:
    """Return days since 1970-01-01 in the proleptic Gregorian calendar.

    Counts from 1 March, so that the leap day is the last of its year (Hinnant, "chrono-compatible low-level
    date algorithms", days_from_civil).
    """
    year = year - (month <= 2).astype(np.int64)  # noqa: PLR2004 - February
    era_year = year % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (year // 400) * 146097 + era_year * 365 + era_year // 4 - era_year // 100 + day_of_year - 719468


def _number(digits: npt.NDArray[np.uint8]) -> tuple[IntArray, BoolArray]:
    """Return the decimal numbers whose letters are the columns of an array, and where all of these are digits."""
    found = digits - np.uint8(ord("0"))
    value = found[0].astype(np.int64)
    for digit in found[1:]:
        value *= 10
        value += digit
    good: BoolArray = np.all(found <= 9, axis=0)  # noqa: PLR2004 - a decimal digit
    return value, good


def _is_either(column: npt.NDArray[np.uint8], characters: tuple[str, str]) -> BoolArray:
    one, other = characters
    either: BoolArray = (column == ord(one)) | (column == ord(other))
    return either


def _minutes(text: npt.NDArray[np.uint8]) -> tuple[IntArray, BoolArray]:
    """Parse `YYYY/MM/DD HH:MM`, with `-` and `T` allowed as separators, to microseconds."""
    text = np.ascontiguousarray(text[:, :_MINUTES].T)
    parts = [_number(text[start:stop]) for start, stop in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16))]
    (year, month, day, hour, minute) = (part[0] for part in parts)
    good = np.logical_and.reduce([part[1] for part in parts])
    good &= _is_either(text[4], ("/", "-")) & (text[7] == text[4]) & _is_either(text[10], (" ", "T"))
    good &= text[13] == ord(":")
    good &= (year >= 1970) & (year < 9999) & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60)  # noqa: PLR2004 - the calendar
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= day <= _MONTH_DAYS[np.clip(month, 0, 12)] - ((month == 2) & ~leap)  # noqa: PLR2004 - February
    return (_days(year, month, day) * 1440 + hour * 60 + minute) * 60_000_000, good


def _fixed_width(text: npt.NDArray[np.uint8]) -> tuple[IntArray, BoolArray]:
    """Parse rows of one width: `YYYY/MM/DD HH:MM:SS[.ffffff]`; what is before the seconds once a minute."""
    words = np.ascontiguousarray(text[:, :_MINUTES]).view(np.uint64)
    changes = words[1:] != words[:-1]
    starts = np.flatnonzero(np.concatenate([[True], changes[:, 0] | changes[:, 1]]))
    counts = np.diff(np.append(starts, len(text)))
    minutes, good_minutes = _minutes(text[starts])
    rest = np.ascontiguousarray(text[:, _MINUTES:].T)
    micros, good = _number(rest[1:3])
    good &= (micros < 61) & (rest[0] == ord(":")) & np.repeat(good_minutes, counts)  # noqa: PLR2004 - a leap second
    micros *= 1_000_000
    if text.shape[1] > _SECONDS:
        fraction, digits = _number(rest[4:])
        good &= digits & _is_either(rest[3], (".", ","))
        micros += fraction * 10 ** (_LONGEST - text.shape[1])
    micros += np.repeat(minutes, counts)
    return micros, good


def parse(texts: Any, *, day_first: bool = False) -> tuple[IntArray, BoolArray]:
    """Return microseconds since 1970-01-01 as written, without any zone, and where the text is a stamp.

    Args:
        texts: an Arrow string array without nulls; blanks around a stamp are allowed.
        day_first: whether stamps as a spreadsheet shows them, day, month, year, are read as well.
    """
    data, offsets = text_bytes(texts)
    if _padded(data, offsets):
        import pyarrow.compute as pc  # noqa: PLC0415 - takes a tenth of a short start, and few logs need it

        data, offsets = text_bytes(pc.utf8_trim_whitespace(texts))
    lengths = np.diff(offsets)
    stamps, good = np.zeros(len(lengths), dtype=np.int64), np.zeros(len(lengths), dtype=np.bool_)
    for width in np.flatnonzero(np.bincount(lengths)).tolist() if len(lengths) else ():
        if width == _COMPACT or (_SECONDS <= width <= _LONGEST and width != _SECONDS + 1):
            rows = np.flatnonzero(lengths == width)
            text = _matrix(data, offsets, rows, width)
            stamps[rows], good[rows] = _fixed_width(_parted(text) if width == _COMPACT else text)
    if day_first and not good.all():
        _read_day_first(data, offsets, stamps, good)
    return stamps, good


@lru_cache(64)
def read(text: str) -> int | None:
    """Return microseconds since 1970-01-01 of one stamp as written, None where the text is none."""
    if STAMP.fullmatch(text) is None:
        return None
    try:
        moment = datetime.fromisoformat(text.replace("/", "-").replace(",", "."))
    except ValueError:
        return None
    since = (moment - _EPOCH) // _MICROSECOND
    return since if FIRST_MICROSECOND <= since < LAST_MICROSECOND else None


def _padded(data: npt.NDArray[np.uint8], offsets: IntArray) -> bool:
    if len(offsets) <= 1 or offsets[-1] == offsets[0]:
        return False
    inside = np.flatnonzero(np.diff(offsets))
    first, last = data[offsets[inside]], data[offsets[inside + 1] - 1]
    return bool((first <= ord(" ")).any() or (last <= ord(" ")).any() or (first > 127).any())  # noqa: PLR2004 - the end of ASCII


def _read_day_first(data: npt.NDArray[np.uint8], offsets: IntArray, stamps: IntArray, good: BoolArray) -> None:
    lengths = np.diff(offsets)
    for width in WIDTHS.intersection(present(lengths[~good])):
        left = np.flatnonzero(~good & (lengths == width))
        found, texts = year_first(_matrix(data, offsets, left, width))
        if len(found):
            stamps[left[found]], good[left[found]] = _fixed_width(texts)


def _parted(text: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return stamps of the form `YYYYMMDD HH:MM:SS` with their dates parted."""
    slash = np.full((len(text), 1), ord("/"), dtype=np.uint8)
    return np.concatenate([text[:, :4], slash, text[:, 4:6], slash, text[:, 6:]], axis=1)


def _matrix(data: npt.NDArray[np.uint8], offsets: IntArray, rows: IntArray, width: int) -> npt.NDArray[np.uint8]:
    if len(rows) == len(offsets) - 1:
        return data[offsets[0] : offsets[-1]].reshape(len(rows), width)
    return letters(data, offsets[rows], width).T
