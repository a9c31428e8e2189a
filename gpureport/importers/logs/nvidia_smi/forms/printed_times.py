"""Parses times as nvidia-smi's human-readable outputs, `date` and job scripts print them."""

import re
from datetime import datetime, timedelta
from functools import lru_cache

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = f"(?P<month>{'|'.join(_MONTHS)})"
_CLOCK = r"(?P<clock>\d{1,2}:\d\d:\d\d)(?: (?P<half>AM|PM))?"
_ZONE = r"(?: (?P<zone>[A-Z]{2,5}|[+-]\d\d(?:\d\d)?))?"
ASCTIME = re.compile(rf"{_DAY} {_MONTH} +(?P<day>\d{{1,2}}) (?P<clock>\d\d:\d\d:\d\d) (?P<year>\d{{4}})", re.ASCII)
"""What C's asctime writes: nvidia-smi's own line above a table and in its `-q` outputs."""
_ASCTIME_LINE = re.compile(rf"\s*{_DAY} ({'|'.join(_MONTHS)}) +(\d{{1,2}}) (\d\d):(\d\d):(\d\d) (\d{{4}})\s*".encode())
_DATES = (
    re.compile(rf"{_DAY},? {_MONTH} +(?P<day>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<year>\d{{4}})", re.ASCII),
    re.compile(rf"{_DAY},? (?P<day>\d{{1,2}}) {_MONTH} (?P<year>\d{{4}}) {_CLOCK}{_ZONE}", re.ASCII),
)
"""What `date` writes, in the C locale and in English ones."""
_ISO = re.compile(r"(?<!\d)(\d{4})([-/])(\d\d)\2(\d\d)[ T](\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)", re.ASCII)
_ISO_ZONE = re.compile(r" ?(?:Z\b|UTC\b|[+-]\d\d:?\d\d\b)")
_EPOCH = datetime(1970, 1, 1)
_LATEST = datetime(9999, 1, 1) - _EPOCH
_NOON = 12
_LAST_HOUR, _LAST_MINUTE = 23, 59
_LAST_SECOND = 60
"""A leap second, which is taken for the next minute."""


def parse_asctime(line: bytes) -> int | None:
    """Return the time of a line that is nothing but one as C writes it, as `moment` does; None for another line."""
    match = _ASCTIME_LINE.fullmatch(line)
    if match is None:
        return None
    month, day, hours, minutes, seconds, year = match.groups()
    midnight = _midnight(month, day, year)
    if midnight is None or int(hours) > _LAST_HOUR or int(minutes) > _LAST_MINUTE or int(seconds) > _LAST_SECOND:
        return None
    return midnight + ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000


@lru_cache(64)
def _midnight(month: bytes, day: bytes, year: bytes) -> int | None:
    return _micros(f"{year.decode()}-{_MONTHS.index(month.decode()) + 1:02d}-{int(day):02d}", "00:00:00")


@lru_cache(64)
def parse_printed_time(text: str) -> int | None:
    """Return the time a text holds, in microseconds as written, whatever zone it names; None where it holds none."""
    for pattern in (ASCTIME, *_DATES):
        match = pattern.search(text)
        if match is not None:
            parts = match.groupdict()
            day = f"{parts['year']}-{_MONTHS.index(parts['month']) + 1:02d}-{int(parts['day']):02d}"
            return _micros(day, parts["clock"], parts.get("half"))
    stamp = _ISO.search(text)
    return None if stamp is None else _micros(f"{stamp[1]}-{stamp[3]}-{stamp[4]}", stamp[5].replace(",", "."))


def _micros(day: str, clock: str, half: str | None = None) -> int | None:
    hours, minutes, seconds = clock.split(":")
    hour = int(hours) if half is None else int(hours) % _NOON + _NOON * (half == "PM")
    whole, _, fraction = seconds.partition(".")
    try:
        at = datetime.fromisoformat(f"{day}T{hour:02d}:{minutes}:00")
    except ValueError:
        return None
    since = at - _EPOCH + timedelta(seconds=int(whole), microseconds=int(fraction.ljust(6, "0") or 0))
    usable = int(whole) <= _LAST_SECOND and timedelta(0) <= since < _LATEST
    return since // timedelta(microseconds=1) if usable else None


def names_zone(text: str) -> bool:
    """Return whether the time a text holds names a zone."""
    found = next((match for pattern in _DATES if (match := pattern.search(text)) is not None), None)
    if found is not None:
        return found["zone"] is not None
    stamp = _ISO.search(text)
    return stamp is not None and _ISO_ZONE.match(text, stamp.end()) is not None
