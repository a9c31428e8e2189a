"""The date of a night and the time it is recorded at, which SOURCE_DATE_EPOCH may set."""

import os
import time
from datetime import UTC, date, datetime

from gpureport.errors import SettingsError

_VARIABLE = "SOURCE_DATE_EPOCH"


def now() -> int:
    """Return the time in microseconds since 1970.

    Raises:
        SettingsError: when SOURCE_DATE_EPOCH is no number of seconds.
    """
    fixed = _epoch_date()
    return time.time_ns() // 1000 if fixed is None else round(fixed.timestamp()) * 1_000_000


def today() -> date:
    """Return the day it is: that of SOURCE_DATE_EPOCH in UTC, else that of the clock here.

    Raises:
        SettingsError: when SOURCE_DATE_EPOCH is no number of seconds.
    """
    fixed = _epoch_date()
    return date.today() if fixed is None else fixed.date()  # noqa: DTZ011 - the day of this machine


def parse_night(typed: str | None) -> str:
    """Return the date of a night as `2026-03-14`: as typed, else today's.

    Raises:
        SettingsError: when it is no date, or SOURCE_DATE_EPOCH is no number of seconds.
    """
    if typed is None:
        return today().isoformat()
    try:
        return datetime.strptime(typed, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise SettingsError("--date", f"{typed!r} is no date", "write it as 2026-03-14") from error


def _epoch_date() -> datetime | None:
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        hint = "set it to seconds since 1970, or unset it"
        raise SettingsError(_VARIABLE, f"{text!r} is no moment", hint) from error
