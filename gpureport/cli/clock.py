"""The time that commands go by, which SOURCE_DATE_EPOCH may set."""

import os
import time
from datetime import UTC, date, datetime

from gpureport.errors import SettingsError

_VARIABLE = "SOURCE_DATE_EPOCH"


def now() -> int:
    """Return the time in microseconds since 1970."""
    fixed = _read_fixed()
    return time.time_ns() // 1000 if fixed is None else round(fixed.timestamp()) * 1_000_000


def today() -> date:
    """Return the day it is: that of SOURCE_DATE_EPOCH in UTC, else that of the clock here."""
    return (_read_fixed() or datetime.now()).date()


def _read_fixed() -> datetime | None:
    text = os.environ.get(_VARIABLE)
    try:
        return datetime.fromtimestamp(int(text), UTC) if text else None
    except (ValueError, OverflowError, OSError) as error:
        hint = "set it to the seconds since 1970, or unset it"
        raise SettingsError(_VARIABLE, f"{text!r} is not a number of seconds", hint, code="not_a_number") from error
