"""Single stamps of any writer become microseconds."""

from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpureport.importers.values.timestamps import Moment, parse_epoch_time, parse_iso_time

_NINE = int(datetime(2026, 3, 14, 9, tzinfo=UTC).timestamp() * 1e6)


@pytest.mark.parametrize(
    ("text", "micros", "utc"),
    [
        ("2026-03-14T09:00:00", 0, False),
        ("2026/03/14 09:00:00.25", 250_000, False),
        ("2026-03-14 09:00:00,123456789", 123_456, False),
        ("2026-03-14 09:00", 0, False),
        ("2026-03-14T09:00:00Z", 0, True),
        ("2026-03-14T17:00:00+08:00", 0, True),
        ("2026-03-14 05:30:00 -0330", 0, True),
    ],
)
def test_iso_stamps(text: str, micros: int, utc: bool) -> None:  # noqa: FBT001 - what is expected
    """Date and time, with a fraction and an offset or without."""
    assert parse_iso_time(text) == Moment(_NINE + micros, utc)


@pytest.mark.parametrize(
    "text", ["2026-03/14 09:00:00", "2026-02-30 09:00:00", "2026-03-14 24:00:00", "1969-12-31 23:59:59", "20260314", ""]
)
def test_what_is_no_stamp_is_none(text: str) -> None:
    """Mixed separators, days that are none, and years before 1970 are no stamps."""
    assert parse_iso_time(text) is None


def test_counts_since_1970_tell_their_unit_by_their_size() -> None:
    """Seconds, milliseconds, microseconds and nanoseconds of our time never meet."""
    for factor in (1, 10**3, 10**6, 10**9):
        moment = parse_epoch_time(_NINE // 10**6 * factor)
        assert moment is not None
        assert (moment.micros, moment.utc) == (_NINE, True)
    assert [parse_epoch_time(cell) for cell in ("", "x", -5, 5, 1e30, None)] == [None] * 6
    assert parse_epoch_time("12.5", "s") == Moment(12_500_000, utc=True)


@given(st.text())
@example("0\x1f")
def test_no_text_is_more_than_a_stamp_or_none(text: str) -> None:
    """Nothing is raised, whatever a cell holds."""
    for moment in (parse_iso_time(text), parse_epoch_time(text)):
        assert moment is None or moment.micros >= 0
