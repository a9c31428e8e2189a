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
    said = _said()
    return time.time_ns() // 1000 if said is None else said * 1_000_000


def night(given: str | None) -> str:
    """Return the date of a night as `2026-03-14`: as given, else that of SOURCE_DATE_EPOCH, else today's here.

    Raises:
        SettingsError: when what is given is no date.
    """
    if given is None:
        said = _said()
        return (date.today() if said is None else datetime.fromtimestamp(said, UTC).date()).isoformat()  # noqa: DTZ011 - the night of this machine
    try:
        return datetime.strptime(given, "%Y-%m-%d").replace(tzinfo=UTC).date().isoformat()
    except ValueError as error:
        raise SettingsError("--date", f"{given!r} is no date", "write it as 2026-03-14") from error


def _said() -> int | None:
    text = os.environ.get(_VARIABLE)
    if not text:
        return None
    if not text.isdecimal():
        raise SettingsError(_VARIABLE, f"{text!r} is no number of seconds", "set it to seconds since 1970, or unset it")
    return int(text)
