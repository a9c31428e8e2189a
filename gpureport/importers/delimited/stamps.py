"""Time stamps as text to integer microseconds, a whole column at a time."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from gpureport.columns import BoolArray, IntArray

_SECONDS = len("2026/03/14 09:26:53")
_LONGEST = len("2026/03/14 09:26:53.123456")
_MONTH_DAYS = np.array([0, 31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], dtype=np.int64)


def _days(year: IntArray, month: IntArray, day: IntArray) -> IntArray:
    """Return days since 1970-01-01 in the proleptic Gregorian calendar.

    Counts from 1 March, so that the leap day is the last of its year (Hinnant, "chrono-compatible low-level
    date algorithms", days_from_civil).
    """
    year = year - (month <= 2).astype(np.int64)  # noqa: PLR2004 - February
    era_year = year % 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return (year // 400) * 146097 + era_year * 365 + era_year // 4 - era_year // 100 + day_of_year - 719468


def _number(text: npt.NDArray[np.uint8], start: int, stop: int) -> tuple[IntArray, BoolArray]:
    """Return the decimal number in columns start..stop of a character matrix, and where all are digits."""
    digits = text[:, start:stop] - np.uint8(ord("0"))
    weights = 10 ** np.arange(stop - start - 1, -1, -1, dtype=np.int64)
    return digits.astype(np.int64) @ weights, np.asarray((digits <= 9).all(axis=1))  # noqa: PLR2004 - a decimal digit


def _one_of(column: npt.NDArray[np.uint8], characters: str) -> BoolArray:
    return np.isin(column, np.frombuffer(characters.encode(), dtype=np.uint8))


def _fixed_width(text: npt.NDArray[np.uint8]) -> tuple[IntArray, BoolArray]:
    """Parse rows of one width: `YYYY/MM/DD HH:MM:SS[.ffffff]`, with `-` and `T` allowed as separators."""
    spans = ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19))
    parts = [_number(text, *span) for span in spans]
    (year, month, day, hour, minute, second) = (part[0] for part in parts)
    good = np.logical_and.reduce([part[1] for part in parts])
    good &= _one_of(text[:, 4], "/-") & (text[:, 7] == text[:, 4]) & _one_of(text[:, 10], " T")
    good &= (text[:, 13] == ord(":")) & (text[:, 16] == ord(":"))
    good &= (year >= 1970) & (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second < 61)  # noqa: PLR2004 - the calendar
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    good &= day <= _MONTH_DAYS[np.clip(month, 0, 12)] - ((month == 2) & ~leap)  # noqa: PLR2004 - February
    micros = np.zeros(len(text), dtype=np.int64)
    if text.shape[1] > _SECONDS:
        fraction, digits = _number(text, _SECONDS + 1, text.shape[1])
        good &= digits & (text[:, _SECONDS] == ord("."))
        micros = fraction * 10 ** (_LONGEST - text.shape[1])
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    return seconds * 1_000_000 + micros, good


def parse(column: "pa.Array[Any]") -> tuple[IntArray, BoolArray]:
    """Return microseconds since 1970-01-01 as written, without any zone, and where the text is a stamp.

    Args:
        column: strings; blanks around a stamp are allowed.
    """
    text: Any = pc.utf8_trim_whitespace(column)
    offsets = np.frombuffer(text.buffers()[1], dtype=np.int32)[text.offset : text.offset + len(text) + 1].astype(
        np.int64
    )
    data = np.frombuffer(text.buffers()[2] or b"", dtype=np.uint8)
    lengths = np.diff(offsets)
    stamps, good = np.zeros(len(text), dtype=np.int64), np.zeros(len(text), dtype=np.bool_)
    for width in np.unique(lengths):
        if _SECONDS <= width <= _LONGEST and width != _SECONDS + 1:
            rows = np.flatnonzero(lengths == width)
            stamps[rows], good[rows] = _fixed_width(_matrix(data, offsets, rows, int(width)))
    return stamps, good


def _matrix(data: npt.NDArray[np.uint8], offsets: IntArray, rows: IntArray, width: int) -> npt.NDArray[np.uint8]:
    """Return the characters of texts of one width, one text a row; a view where they are all texts there are."""
    if len(rows) == len(offsets) - 1:
        return data[offsets[0] : offsets[-1]].reshape(len(rows), width)
    gathered: npt.NDArray[np.uint8] = data[offsets[rows][:, None] + np.arange(width)]
    return gathered
