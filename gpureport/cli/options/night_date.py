"""The date of a night and the time it is recorded at, which SOURCE_DATE_EPOCH may set."""

import os
import time
from datetime import UTC, date, datetime

from gpureport.errors import SettingsError

_VARIABLE = "SOURCE_DATE_EPOCH"


def now() -> int:
    """Return the time in microseconds since 1970.

    Raises:
        SettingsError: when SOURCE_DATE_EPOCH is no moment.
    """
    said = _said()
    return time.time_ns() // 1000 if said is None else round(said.timestamp()) * 1_000_000


def today() -> date:
    """Return the day it is: that of SOURCE_DATE_EPOCH in UTC, else that of the clock here.

    Raises:
        SettingsError: when SOURCE_DATE_EPOCH is no moment.
    """
    said = _said()
    return date.today() if said is None else said.date()  # noqa: DTZ011 - the day of this machine


def parse_night(given: str | None) -> str:
    """Return the date of a night as `2026-03-14`: as given, else today's.

    Raises:
        SettingsError: when what is given is no date, or SOURCE_DATE_EPOCH is no moment.
    """
    if given is None:
        return today().isoformat()
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise SettingsError("--date", f"{given!r} is no date", "write it as 2026-03-14") from error


def _said() -> datetime | None:
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    try:
        return datetime.fromtimestamp(int(text), UTC)
    except (ValueError, OverflowError, OSError) as error:
        hint = "set it to seconds since 1970, or unset it"
        raise SettingsError(_VARIABLE, f"{text!r} is no moment", hint) from error
