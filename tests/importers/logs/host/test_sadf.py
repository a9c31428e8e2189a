"""Tables and JSON of sadf: stamps, restarts, several machines, damaged objects."""

import json
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from tests.importers.accounts import lines
from tests.importers.logs.host.series import CAPTURES, clock, read, rejected, text, values

HEADING = "# hostname;interval;timestamp;CPU;%user;%nice;%system;%iowait;%steal;%idle"


def row(stamp: str, idle: float, core: str = "-1", machine: str = "node1") -> str:
    """Return a row of `sadf -d -- -u`."""
    return f"{machine};1;{stamp};{core};{100 - idle:.2f};0.00;0.00;0.00;0.00;{idle:.2f}"


def test_restarts_and_comments_are_events(tmp_path: Path) -> None:
    """The machine was off between two rows, or somebody wrote something."""
    events = ("node1;-1;2026-11-21 15:00:02 UTC;LINUX-RESTART\t(2 CPU)", "node1;-1;2026-11-21 15:00:02 UTC;COM begun")
    first, last = row("2026-11-21 15:00:01 UTC", 50), row("2026-11-21 15:00:03 UTC", 40)
    found = text(tmp_path, lines(HEADING, first, *events, last))
    assert clock(found) == ["11-21T15:00:01", "11-21T15:00:03"]
    assert found.outcome.quality.events == 2


def test_another_machine_and_stamps_of_another_kind_are_left_out(tmp_path: Path) -> None:
    """One series is one machine's, in one zone."""
    rows = (
        row("2026-11-21 15:00:01 UTC", 50),
        row("2026-11-21 15:00:01 UTC", 5, machine="node2"),
        row("2026-11-21 16:00:02", 4),
        row("yesterday", 4),
    )
    found = text(tmp_path, lines(HEADING, *rows))
    assert values(found, "cpu_utilization_ratio") == [0.5]
    assert rejected(found) == [("another machine", 1), ("malformed timestamp", 2)]


def test_interrupts_and_other_tables_are_passed_over(tmp_path: Path) -> None:
    """Tables of any width stand beside those that are read."""
    rows = ("# hostname;interval;timestamp;INTR;CPU*", "node1;1;2026-11-21 15:00:01 UTC;sum;262.00;191.00;71.00")
    found = text(tmp_path, lines(HEADING, row("2026-11-21 15:00:01 UTC", 50), *rows))
    assert found.outcome.quality.rejected == ()
    assert "INTR" in found.outcome.quality.notes[0]


def test_json_is_read_in_any_layout(tmp_path: Path) -> None:
    """Pretty or on one line, the rows are the same."""
    content = (CAPTURES / "sadf.json").read_text()
    packed = json.dumps(json.loads(content))
    assert text(tmp_path, packed).rows() == read(CAPTURES / "sadf.json").rows()


def test_a_damaged_object_costs_itself(tmp_path: Path) -> None:
    """The objects before and after it are read; its lines are rejected."""
    content = (CAPTURES / "sadf.json").read_text()
    whole = read(CAPTURES / "sadf.json").rows()
    broken = content.replace('"idle": ', '"idle" ', 1)
    found = text(tmp_path, broken)
    assert found.rows() == whole[1:]
    assert {reason for reason, _ in rejected(found)} == {"cut last line"}
    odd = text(tmp_path, content.replace('"bread": ', '"bread": "', 1).replace('"io-writes"', '", "io-writes"', 1))
    assert len(odd.rows()) == len(whole) - 1
    wrong = text(tmp_path, content.replace('"utc": 1', '"utc": 0', 1))
    assert len(wrong.rows()) == 1


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    """Neither endless brackets nor numbers beyond any machine come through."""
    opening = '{"sysstat": {"hosts": [{"file-date": "2026-11-21", "statistics": [\n'
    with pytest.raises(SourceError, match="holds a value of a machine"):
        text(tmp_path, opening + '{"timestamp": ' + "[" * 50_000)
    stamp = '{"timestamp": {"date": "2026-11-21", "time": "15:00:01", "utc": 1}, "queue": {"ldavg-1": 1e400}}\n'
    with pytest.raises(SourceError, match="malformed ldavg-1"):
        text(tmp_path, opening + stamp)


def test_mpstat_json_passes_midnight(tmp_path: Path) -> None:
    """Times of day stand below one date."""
    objects = ",\n".join(
        f'{{"timestamp": "{time}", "cpu-load": [{{"cpu": "all", "iowait": 1.0, "idle": 49.0}}]}}'
        for time in ("11:59:59 PM", "12:00:00 AM")
    )
    content = f'{{"sysstat": {{"hosts": [{{"date": "11/21/2026", "statistics": [\n{objects}\n]}}]}}}}\n'
    found = text(tmp_path, content)
    assert clock(found) == ["11-21T23:59:59", "11-22T00:00:00"]
    assert values(found, "cpu_utilization_ratio") == [0.5, 0.5]
