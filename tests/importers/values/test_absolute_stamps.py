"""Stamps that are counts since 1970, or name their offset."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import ReadOptions
from tests.importers.accounts import kept, rejected
from tests.importers.written_logs import HEADER, read_text, row, stamp

EPOCH = 1_773_478_800
"""2026-03-14 09:00:00 UTC."""
FORMS = {
    "seconds": lambda second: f"{EPOCH + second}",
    "a fraction": lambda second: f"{EPOCH + second}.000",
    "milliseconds": lambda second: f"{(EPOCH + second) * 1_000}",
    "microseconds": lambda second: f"{(EPOCH + second) * 1_000_000}",
    "Z": lambda second: f"2026-03-14T09:00:{second:02d}Z",
    "Z and a fraction": lambda second: f"2026-03-14T09:00:{second:02d}.000Z",
    "an offset": lambda second: f"2026-03-14T11:00:{second:02d}+02:00",
    "an offset without a colon": lambda second: f"2026-03-14 04:00:{second:02d}.000000-0500",
}


def written(form: str, rows: int = 20) -> str:
    """Return a log of one row a second, with stamps of a form."""
    lines = [row(second).replace(stamp(second), FORMS[form](second)) for second in range(rows)]
    return "\n".join([HEADER, *lines, ""])


@pytest.mark.parametrize("form", FORMS)
def test_a_stamp_that_names_its_moment_is_utc(tmp_path: Path, form: str) -> None:
    """Such a log needs no map and no --tz: its times are what the stamps say."""
    recording = read_text(tmp_path, written(form), ReadOptions(tz="Asia/Tokyo"))
    assert (kept(recording), rejected(recording), recording.run.timezone) == (20, [], "UTC")
    assert recording.run.started == EPOCH * 1_000_000
    assert recording.run.ended == (EPOCH + 19) * 1_000_000


def test_rows_without_a_header_are_read_with_columns(tmp_path: Path) -> None:
    """What a person says of the columns holds for such stamps too."""
    text = written("seconds").partition("\n")[2]
    recording = read_text(tmp_path, text, ReadOptions(columns=tuple(HEADER.split(", "))))
    assert (kept(recording), recording.run.timezone) == (20, "UTC")


def test_a_stamp_of_the_other_kind_is_malformed(tmp_path: Path) -> None:
    """A local time among seconds since 1970 has no known moment, and the other way round."""
    lines = written("seconds").splitlines()
    lines[5] = row(4)
    assert rejected(read_text(tmp_path, "\n".join([*lines, ""]))) == [("malformed timestamp", 1, 6)]
    local = [HEADER, *map(row, range(20)), lines[7], ""]
    recording = read_text(tmp_path, "\n".join(local))
    assert (rejected(recording), recording.run.timezone) == ([("malformed timestamp", 1, 22)], None)


def test_seconds_since_the_start_are_no_moments(tmp_path: Path) -> None:
    """Small numbers are times since some start, which nobody knows."""
    text = "\n".join([HEADER, *(row(second).replace(stamp(second), f"{second}.5") for second in range(20)), ""])
    with pytest.raises(SourceError, match="time stamps are none"):
        read_text(tmp_path, text)


def test_a_column_of_times_of_another_name_is_pointed_out(tmp_path: Path) -> None:
    """The refusal says how the time in the log can be used."""
    with pytest.raises(SourceError, match="call it timestamp in the header"):
        read_text(tmp_path, written("seconds").replace("timestamp", "time"))
