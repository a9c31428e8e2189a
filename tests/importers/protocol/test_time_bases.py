"""Times in UTC and times without a zone are compared only where a person says how."""

import re
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers import Labels, Reading, ReadOptions, find_runs
from gpureport.importers.logs.host import HostLog
from gpureport.importers.protocol import time_bases
from gpureport.importers.protocol.importer import Input, Outcome
from gpureport.testing import Device, Quality, Recording
from tests.importers.written_logs import log

START = 1_773_478_800
"""2026-03-14 09:00:00, where the log of the GPUs begins, as if it were UTC."""
_HOUR = 3_600_000_000


def host(folder: Path, first: float, *, rows: int = 10) -> Path:
    """Return a host log of seconds since 1970."""
    path = folder / "host.csv"
    path.write_text("unix,cpu_percent\n" + "".join(f"{first + row},50\n" for row in range(rows)))
    return path


def joined(folder: Path, *hosts: Path, tz: str | None = None, as_one_run: bool = False) -> Recording:
    """Return a log of ten seconds with what lies beside it."""
    (folder / "gpu.csv").write_text(log(10))
    (inputs,) = find_runs(folder / "gpu.csv", hosts)
    return Reading(inputs, ReadOptions(tz=tz), Labels(), as_one_run=as_one_run).recording()


@pytest.mark.parametrize("as_one_run", [False, True])
def test_utc_beside_local_time_needs_a_zone(tmp_path: Path, *, as_one_run: bool) -> None:
    """The error says which zone would make them meet; with it they do, and the account says what each states."""
    path = host(tmp_path, START - 5 * 3600 - 1800)
    said = "its times are UTC, those of .*gpu.csv name no zone; give .* --tz.*; their times meet where that is UTC"
    with pytest.raises(SourceError, match=said + re.escape("+05:30")):
        joined(tmp_path, path, as_one_run=as_one_run)
    run = joined(tmp_path, path, tz="Asia/Kolkata", as_one_run=as_one_run).run
    assert run.timezone == "Asia/Kolkata"
    assert run.started == (START - 5 * 3600 - 1800) * 1_000_000
    if not as_one_run:
        assert any("states UTC" in note and "read as Asia/Kolkata" in note for note in run.quality.notes)


def test_a_zone_that_does_not_make_them_meet(tmp_path: Path) -> None:
    """The times share nothing then either, and that is said."""
    with pytest.raises(SourceError, match="it covers another time than the GPU log"):
        joined(tmp_path, host(tmp_path, START - 7200), tz="Europe/Berlin")


def outcome(span: tuple[int, int], timezone: str | None) -> Outcome:
    """Return what is known of a source of this span."""
    return Outcome(devices=(Device(id="host"),), quality=Quality(), span=span, timezone=timezone)


def told(first: Outcome, second: Outcome) -> str:
    """Return the error of two sources."""
    inputs = [Input(Path(name), HostLog(), name) for name in ("gpu.log", "host.csv")]
    with pytest.raises(SourceError) as caught:
        time_bases.check_time_bases(inputs, [first, second], None)
    return str(caught.value)


def test_local_time_beside_utc() -> None:
    """The other direction: the log of the GPUs is in UTC."""
    said = told(outcome((0, 60_000_000), "UTC"), outcome((-8 * _HOUR, -8 * _HOUR + 60_000_000), None))
    assert "its times name no zone, those of gpu.log are UTC" in said
    assert "UTC-08:00" in said


@pytest.mark.parametrize(
    ("hours", "behind", "offset"),
    [
        (0.01, 2.0, "UTC+02:00"),
        (0.01, 5.5, "UTC+05:30"),
        (0.01, 0.0, "is UTC"),
        (8.0, -3.0, "UTC-03:00"),
        (0.01, 2.3, ""),
    ],
)
def test_the_one_offset(hours: float, behind: float, offset: str) -> None:
    """Whole hours first, then half ones; long logs meet at several, and the one is named at which they lie together."""
    length, lag = round(hours * _HOUR), round(behind * _HOUR)
    said = told(outcome((lag, lag + length), None), outcome((0, length), "UTC"))
    assert said.endswith(offset) if offset else "meet" not in said


def test_a_day_beside_an_hour_names_no_offset() -> None:
    """Many would do."""
    assert "meet" not in told(outcome((0, _HOUR), None), outcome((-12 * _HOUR, 12 * _HOUR), "UTC"))


def test_times_that_can_be_compared() -> None:
    """Two that name no zone, two in UTC, and counted times."""
    inputs = [Input(Path("a"), HostLog(), "a"), Input(Path("b"), HostLog(), "b")]
    local, utc = outcome((0, 1), None), outcome((0, 1), "UTC")
    counted = Outcome(devices=(), quality=Quality(synthetic_time=True), span=(0, 1))
    for pair in ([local, local], [utc, utc], [counted, utc]):
        time_bases.check_time_bases(inputs, pair, None)
    time_bases.check_time_bases(inputs, [local, utc], "Europe/Berlin")
    assert time_bases.describe_time_zones(inputs, [local, local], None) == ()
    assert time_bases.describe_time_zones(inputs, [local, utc], None) == (
        "Zones of the time stamps: a names no zone; b states UTC.",
    )
