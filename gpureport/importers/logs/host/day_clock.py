"""Adds dates to times of day: a date may stand elsewhere in the log or be missing, and midnight may pass."""

import re
from collections.abc import Hashable
from contextlib import suppress
from datetime import UTC, datetime

DAY = 86_400_000_000
_EARLIER = 2 * 3_600_000_000
"""A clock that falls by more has passed midnight; one that falls by less was set back, as when summer time ends."""
_YEAR_FIRST = re.compile(r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})", re.ASCII)
_YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d\d)", re.ASCII)
_TIME = re.compile(r"(\d{1,2}):(\d\d):(\d\d)", re.ASCII)
_NOON = 12


def parse_time_of_day(text: str, half: str = "") -> int | None:
    """Return microseconds since midnight, None where the text is no time of day.

    Args:
        text: `16:28:31`, or `04:28:31` with
        half: `AM` or `PM`.
    """
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = map(int, match.groups())
    if half:
        hour = hour % _NOON + _NOON * (half.upper() == "PM") if 1 <= hour <= _NOON else 24
    if hour > 23 or minute > 59 or second > 60:  # noqa: PLR2004 - the clock, with a leap second
        return None
    return ((hour * 60 + minute) * 60 + second) * 1_000_000


def find_dates(text: str) -> list[int]:
    """Return the days a date may mean, as their first moments; the more usual reading first."""
    if match := _YEAR_FIRST.fullmatch(text):
        return _days([(match[1], match[3], match[4])])
    if match := _YEAR_LAST.fullmatch(text):
        one, sign, other, year = match.groups()
        year = year if len(year) > 2 else f"20{year}"  # noqa: PLR2004 - a year of two digits
        day_first, month_first = (year, other, one), (year, one, other)
        return _days([day_first] if sign == "." else [month_first, day_first] if sign == "/" else [day_first])
    return []


def _days(parts: list[tuple[str, str, str]]) -> list[int]:
    found = []
    for year, month, day in parts:
        with suppress(ValueError):
            found.append(int(datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp()) * 1_000_000)
    return list(dict.fromkeys(day for day in found if day >= 0))


class DayClock:
    """Turns times of day into moments.

    Each table of a log has a clock of its own: `sar` prints one table for the whole day, then the next one. What falls
    by more than two hours has passed midnight.

    Attributes:
        note: what a reader must know of the date, empty when it is certain.
    """

    def __init__(self, around: tuple[int, int] | None) -> None:
        """Start without a date; `around` are the first and last local time of the log this one lies beside."""
        self._around = around
        self._day: int | None = None
        self._last: dict[Hashable, int] = {}
        self.note = ""

    def date(self, text: str) -> bool:
        """Take the date a banner states; return whether it is one."""
        days = find_dates(text)
        if not days:
            return False
        near = [day for day in days if self._around and self._around[0] - DAY <= day <= self._around[1]]
        self._day = near[0] if len(near) == 1 else days[0]
        if len(days) > 1 and len(near) != 1:
            said = datetime.fromtimestamp(self._day / 1e6, UTC).strftime("%Y-%m-%d")
            self.note = f"The date {text} is taken for {said}, the month first."
        self._last = {}
        return True

    def at(self, since_midnight: int, table: Hashable = None) -> int | None:
        """Return the moment of a time of day in a table, None where no date is known."""
        if self._day is None and self._around is not None:
            self._guess(since_midnight, self._around)
        if self._day is None:
            return None
        last = self._last.get(table)
        now = self._day + since_midnight if last is None else last // DAY * DAY + since_midnight
        if last is not None and now < last - _EARLIER:
            now += DAY
        self._last[table] = now
        return now

    def _guess(self, since_midnight: int, around: tuple[int, int]) -> None:
        """Take the day on which a first time of day is nearest to the start of the log."""
        midnight = around[0] // DAY * DAY
        self._day = min(
            (midnight + shift for shift in (-DAY, 0, DAY)), key=lambda day: abs(day + since_midnight - around[0])
        )
        said = datetime.fromtimestamp(self._day / 1e6, UTC).strftime("%Y-%m-%d")
        self.note = (
            f"It writes no date: its times were placed on {said}, where they are nearest to the start of the log."
        )
