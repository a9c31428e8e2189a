"""Stamps as text to microseconds."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.columns import strings_to_arrow
from gpureport.importers.values import stamps


def one(text: str) -> int | None:
    """Return one stamp, None when it is none."""
    times, good = stamps.parse(strings_to_arrow([text]))
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


SHOWN = re.compile(r"(\d\d)[./](\d\d)[./](\d{4}) (\d\d):(\d\d)(?::(\d\d)(?:[.,](\d{3}))?)?", re.ASCII)


def shown(text: str) -> int | None:
    """Return a stamp as a spreadsheet shows it, read by the calendar."""
    match = SHOWN.fullmatch(text.strip(" "))
    if match is None:
        return None
    day, month, year, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59))  # noqa: DTZ001 - stamps have no zone
    except ValueError:
        return None
    if second > 60 or year < 1970:
        return None
    # a leap second is the moment after it
    moment += timedelta(seconds=max(second - 59, 0), microseconds=int((match[7] or "0").ljust(6, "0")))
    return (moment - datetime(1970, 1, 1)) // timedelta(microseconds=1)  # noqa: DTZ001 - as above


DATES = st.builds(
    "{}{}{}{}{}{}{}:{}{}{}".format,
    *(st.sampled_from(["1", "14", "31", "07", "0", "029"]), st.sampled_from("./-")),
    *(st.sampled_from(["3", "03", "12", "13", "2"]), st.sampled_from("./")),
    *(st.sampled_from(["2026", "2024", "1969", "26"]), st.sampled_from([" ", " ", "T", "  "])),
    *(st.sampled_from(["9", "09", "23", "24"]), st.sampled_from(["26", "00", "60", "6"])),
    *(st.sampled_from(["", ":53", ":60", ":61", ":5"]), st.sampled_from(["", ".5", ",123", ",123456", ",", ",x"])),
)


@settings(deadline=None)
@given(st.lists(DATES | st.text("0123456789./:, ", max_size=26), min_size=1, max_size=30), st.booleans())
def test_stamps_as_a_spreadsheet_shows_them(texts: list[str], padded: bool) -> None:  # noqa: FBT001 - drawn
    """Day, month and hour of two digits, with seconds, milliseconds or neither: every moment is read."""
    cells = [f" {text} " if padded else text for text in texts]
    times, good = stamps.parse(strings_to_arrow(cells), day_first=True)
    found = [time if sure else None for time, sure in zip(times.tolist(), good.tolist(), strict=True)]
    expected = [shown(text) if (year_first := one(text)) is None else year_first for text in texts]
    assert found == expected


def test_a_long_log_of_a_spreadsheet() -> None:
    """Every stamp of a column of a hundred thousand is read."""
    texts = strings_to_arrow(
        [f"{1 + n // 86_400 % 28:02}.03.2026 {n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}" for n in range(10**5)]
    )
    assert stamps.parse(texts, day_first=True)[1].all()
