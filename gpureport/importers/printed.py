"""Lines and times as programs print them for people: of day, without a date, and dates in words."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import time
from functools import lru_cache

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.account import Account
from gpureport.importers.columns import parse_time
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE
from gpureport.importers.source_text import damage

DAY = 86_400_000_000
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)", re.ASCII)
_USUAL = len("16:28:31")
_NOON, _HOURS, _MINUTES, _SECONDS = 12, 24, 60, 61


def whole_lines(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, str]]:
    """Yield all lines but damaged ones, also empty ones: number, and text without blanks at its end."""
    for number, line in enumerate(lines, first):
        reason = damage(line) or ("" if line.endswith("\n") else CUT_LAST_LINE)
        if reason and not line.isspace():
            account.reject(reason, number, line)
        else:
            yield number, line.rstrip()


def parse_time_of_day(text: str, half: str = "") -> int | None:
    """Return microseconds since midnight of `16:28:31`, or of `04:28:31` with `AM` or `PM`; None for other texts."""
    if not half and text[2:3] == text[5:6] == ":" and len(text) == _USUAL:
        with suppress(ValueError):
            # four times as fast
            usual = time.fromisoformat(text)
            return (usual.hour * 3600 + usual.minute * 60 + usual.second) * 1_000_000
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = map(int, match.groups())
    if half:
        hour = hour % _NOON + _NOON * (half.upper() == "PM") if 1 <= hour <= _NOON else _HOURS
    # a minute may have a leap second
    if hour >= _HOURS or minute >= _MINUTES or second >= _SECONDS:
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000


def count_days(clocks: IntArray, before: Sequence[int] = ()) -> IntArray:
    """Return microseconds since the first midnight of times of day in the order of a log, behind the moments before."""
    begun = before[-1] if before else int(clocks[0])
    moments: IntArray = clocks + begun // DAY * DAY
    steps = np.diff(moments, prepend=begun)
    # rows of one second may stand on either side of midnight
    moments += DAY * np.cumsum((steps < -DAY // 2).astype(np.int64) - (steps > DAY // 2))
    return moments


_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_CLOCK = r"\d{1,2}:\d\d:\d\d"
_ISO = re.compile(
    rf"(?<!\d)(?P<day>\d{{4}}([-/])\d\d\2\d\d)[ T](?P<clock>{_CLOCK}(?:[.,]\d{{1,6}})?)"
    r"(?P<zone> ?(?:Z|UTC|[+-]\d\d:?\d\d)\b)?",
    re.ASCII,
)
_WORDS = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? (?:(?P<month>[A-Z][a-z][a-z]) +(?P<day>\d{1,2})|"
    rf"(?P<first>\d{{1,2}}) (?P<next>[A-Z][a-z]{{2}}) (?P<year>\d{{4}})) (?P<clock>{_CLOCK})"
    r"(?: (?P<half>[AP]M))?(?P<zone> (?:[A-Z]{2,5}|[+-]\d\d(?:\d\d)?))?(?: (?P<end>\d{4}))?",
    re.ASCII,
)
"""What C's asctime writes, and `date` in the C locale and in English ones."""


@lru_cache(64)
def parse_printed_time(text: str) -> tuple[int, bool] | None:
    """Return the time a text holds, in microseconds as written, and whether it names a zone; None without a time."""
    match = _WORDS.search(text)
    if match is None:
        match = _ISO.search(text)
        found = match and parse_time(f"{match['day']} {match['clock']}")
        return match and found and (found[0], match["zone"] is not None)
    month, day = match["month"] or match["next"], match["day"] or match["first"]
    date = f"{match['year'] or match['end']}-{_MONTHS.find(month) // 3 + 1:02d}-{day:0>2}"
    midnight, since = parse_time(f"{date} 00:00:00"), parse_time_of_day(match["clock"], match["half"] or "")
    if month not in _MONTHS or midnight is None or since is None:
        return None
    return midnight[0] + since, match["zone"] is not None
