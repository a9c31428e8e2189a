"""Spellings of a moment, and the hour that a zone has twice."""

from datetime import datetime, timedelta
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport.errors import GpureportError
from gpureport.testing import Recording
from tests.support.logs import HEADER, gpustat_document, iso_stamp, read_text

EPOCH = datetime(1970, 1, 1)
NINE = 1_773_478_800_000_000


def started(folder: Path, *stamps: str, delimiter: str = ", ") -> int:
    """Return when a log of rows with these stamps begins, in microseconds."""
    rows = [delimiter.join([each, "5 %"]) for each in stamps]
    return read_text(folder, "\n".join([f"timestamp{delimiter}utilization.gpu [%]", *rows, ""])).run.started


def is_refused(folder: Path, text: str) -> bool:
    try:
        read_text(folder, text)
    except GpureportError:
        return True
    return False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.datetimes(min_value=datetime(1970, 1, 2), max_value=datetime(2200, 1, 1)))
def test_any_moment_survives(tmp_path: Path, moment: datetime) -> None:
    found = started(tmp_path, f"{moment:%Y/%m/%d %H:%M:%S.%f}")
    assert found == (moment - EPOCH) // timedelta(microseconds=1)


def test_spellings_of_one_moment(tmp_path: Path) -> None:
    half = NINE + 500_000
    for text, expected in {
        "2026/03/14 09:00:00.5": half,
        "2026-03-14T09:00:00.500": half,
        "2026-03-14 09:00:00.500000": half,
        "2026-03-14T09:00:00,5": half,
        "20260314 09:00:00": NINE,
        "20260314T09:00:00": NINE,
        "2026-03-14T10:00:00.5+01:00": half,
    }.items():
        delimiter = ";" if "," in text else ", "
        assert started(tmp_path, text, delimiter=delimiter) == expected, text


def test_the_calendar(tmp_path: Path) -> None:
    for text in ("2024/02/29 23:59:59", "2000/02/29 00:00:00", "2026/12/31 23:59:59", "2026/04/30 00:00:00"):
        expected = (datetime.strptime(text, "%Y/%m/%d %H:%M:%S") - EPOCH) // timedelta(microseconds=1)
        assert started(tmp_path, text) == expected, text
    for text in ("2026/02/29 00:00:00", "2100/02/29 00:00:00", "2026/04/31 00:00:00", "2026/00/10 00:00:00"):
        assert is_refused(tmp_path, f"timestamp;utilization.gpu [%]\n{text};5 %\n"), text


def test_spellings_of_a_spreadsheet(tmp_path: Path) -> None:
    for text, expected in {
        "14.03.2026 09:00:00": 0,
        "14/03/2026 09:00": 0,
        "14.03.2026 09:00:00,500": 500_000,
    }.items():
        assert started(tmp_path, text, text, delimiter=";") == NINE + expected, text


def test_what_is_no_stamp(tmp_path: Path) -> None:
    for text in (
        *("20261314 09:26:53", "2026031 09:26:53", "2025/027", "2026/02/29 00:00:00", "2026/13/01 00:00:00"),
        *("2026/01/01 24:00:00", "2026/01-01 00:00:00", "2026/01/01 00:00:00.", "12026/01/01 00:00:0"),
        *("31.02.2026 09:00:00", "14.03.2026 24:00:00", "14.03.2026 09:60:00", "14.03.1969 09:00:00"),
    ):
        assert is_refused(tmp_path, f"timestamp;utilization.gpu [%]\n{text};5 %\n"), text


def test_spellings_of_a_moment_in_json(tmp_path: Path) -> None:
    for text, micros in {
        "2026-03-14T09:00:00": 0,
        "2026/03/14 09:00:00.25": 250_000,
        "2026-03-14 09:00:00,123456789": 123_456,
        "2026-03-14 09:00": 0,
    }.items():
        run = read_text(tmp_path, gpustat_document(0, indent=None).replace(iso_stamp(0), text)).run
        assert run.started == NINE + micros, text
    for text in (
        "2026-03/14 09:00:00",
        "2026-02-30 09:00:00",
        "2026-03-14 24:00:00",
        "1969-12-31 23:59:59",
        "20260314",
    ):
        assert is_refused(tmp_path, gpustat_document(0, indent=None).replace(iso_stamp(0), text)), text


def night(folder: Path, *spans: tuple[float, float], zone: str | None = "Europe/Berlin") -> Recording:
    """Return rows of two GPUs, one a minute, in some hours of the night in which summer time ends."""
    rows = [
        f"{datetime(2026, 10, 25) + timedelta(minutes=minute):%Y/%m/%d %H:%M:%S}.000, {gpu}, NVIDIA L4, 9 %, 1 MiB, 2 W"
        for first, last in spans
        for minute in range(int(first * 60), int(last * 60))
        for gpu in (0, 1)
    ]
    return read_text(folder, "\n".join([HEADER, *rows, ""]), **({} if zone is None else {"tz": zone}))


def test_rows_of_which_nothing_says_which_hour_are_noted(tmp_path: Path) -> None:
    for spans, noted in (
        ([(2.25, 2.5)], True),
        ([(1.5, 3.5)], True),
        # paused before it
        ([(0.5, 1.5), (2.25, 2.5)], True),
        # the rows themselves tell
        ([(1.5, 3), (2, 3.5)], False),
        ([(3, 5)], False),
    ):
        assert bool(night(tmp_path, *spans).run.quality.notes) is noted, spans
    for zone in (None, "UTC"):
        assert night(tmp_path, (2.25, 2.5), zone=zone).run.quality.notes == ()
