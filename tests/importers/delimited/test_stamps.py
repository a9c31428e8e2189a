"""Stamps as text to microseconds."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.columns import strings
from gpureport.importers.delimited import stamps


def one(text: str) -> int | None:
    """Return one stamp, None when it is none."""
    times, good = stamps.parse(strings([text]))
    return int(times[0]) if good[0] else None


@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))  # noqa: DTZ001 - stamps have no zone
def test_any_moment_survives(moment: datetime) -> None:
    """Every moment written in full is read back to the microsecond."""
    epoch = datetime(1970, 1, 1)  # noqa: DTZ001 - as above
    assert one(moment.strftime("%Y/%m/%d %H:%M:%S.%f")) == (moment - epoch) // timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["2026/03/14 09:26:53.5", " 2026-03-14T09:26:53.500", "2026-03-14 09:26:53.500000"])
def test_spellings_of_one_moment(text: str) -> None:
    """Slashes or dashes, blank or T, any number of decimals mean the same."""
    moment = datetime(2026, 3, 14, 9, 26, 53, 500_000, tzinfo=UTC)
    assert one(text) == round(moment.timestamp() * 1e6)


@pytest.mark.parametrize(
    "text", ["20260314 09:26:53", "20260314T09:26:53", "2026/03/14 09:26:53.109", "2026-03-14T09:26:53,5"]
)
def test_one_stamp_is_read_as_a_column_is(text: str) -> None:
    """A stamp alone and in a column is the same moment, with a date in one word too."""
    assert one(text) == stamps.read(text) is not None
    assert (one(text) or 0) // 10**9 == 1773480


@pytest.mark.parametrize(
    "text",
    [
        "",
        "20261314 09:26:53",
        "2026031 09:26:53",
        "2025/027",
        "2026/02/29 00:00:00",
        "2026/13/01 00:00:00",
        "2026/01/01 24:00:00",
        "2026/01-01 00:00:00",
        "2026/01/01 00:00:00.",
        "12026/01/01 00:00:0",
    ],
)
def test_what_is_no_stamp(text: str) -> None:
    """Cut, torn and impossible stamps are none."""
    assert one(text) is None
    assert stamps.read(text) is None
