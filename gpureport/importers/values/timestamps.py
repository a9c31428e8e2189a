"""Single time stamps of any writer to integer microseconds, and whether they are UTC."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from gpureport.importers.values.quantities import parse_number
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND

_ISO = re.compile(
    r"(\d{4})([-/])(\d{1,2})\2(\d{1,2})[ T](\d{1,2}):(\d\d)(?::(\d\d)(?:[.,](\d{1,9}))?)?"
    r" ?(Z|UTC|GMT|([+-])(\d\d):?(\d\d))?",
    re.ASCII,
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCHS = {"s": 10**6, "ms": 10**3, "us": 1, "ns": 10**-3}
"""Microseconds in the units that seconds since 1970 are counted in."""
_SMALLEST = 10**8
"""No recording is older than 1973, so that the unit of a count since 1970 shows in its size."""
_STEP = 10**3


@dataclass(frozen=True, slots=True)
class Moment:
    """A time in microseconds since 1970-01-01, in UTC or else in the local time of whoever wrote it."""

    micros: int
    utc: bool


def parse_iso_time(text: str) -> Moment | None:
    """Return a stamp of year, month, day and time, with an offset or without; None when it is none."""
    match = _ISO.fullmatch(text.strip())
    if match is None:
        return None
    year, _, month, day, hour, minute, second, fraction, zone, sign, hours, minutes = match.groups()
    leap = second == "60"
    try:
        date = int(year), int(month), int(day)
        moment = datetime(*date, int(hour), int(minute), 59 if leap else int(second or 0), tzinfo=UTC)
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
        micros = (moment - offset - _EPOCH) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        return None
    micros += int((fraction or "0").ljust(6, "0")[:6]) + leap * 1_000_000
    return Moment(micros, zone is not None) if FIRST_MICROSECOND <= micros < LAST_MICROSECOND else None


def parse_epoch_time(cell: object, unit: str | None = None) -> Moment | None:
    """Return a count since 1970 as a time, None when it is none that can be.

    Args:
        cell: a number, or text that is one.
        unit: one of EPOCHS; the size of the number tells when None.
    """
    count = parse_number(cell)
    if count is None or count < 0:
        return None
    unit = unit or _unit(count)
    if unit is None:
        return None
    micros = count * EPOCHS[unit]
    return Moment(round(micros), utc=True) if micros < LAST_MICROSECOND else None


def _unit(count: float) -> str | None:
    for place, unit in enumerate(EPOCHS):
        if _SMALLEST * _STEP**place <= count < _SMALLEST * _STEP ** (place + 1):
            return unit
    return None


def parse_timestamp(text: str) -> Moment | None:
    """Return what a text states of a time: a count since 1970, or a date and a time; None where it states none."""
    return parse_epoch_time(text) or parse_iso_time(text)
