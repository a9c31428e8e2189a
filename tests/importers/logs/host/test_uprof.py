"""The timechart of AMDuProf."""

from pathlib import Path

import pytest

from gpureport.errors import SourceError
from tests.importers.logs.host.series import clock, rejected, text, values
from tests.support.logs import timechart


def test_sockets_are_added_up_and_midnight_is_passed(tmp_path: Path) -> None:
    """Power of all sockets, at times of day below the start of the profile; other counters are named."""
    found = text(tmp_path, timechart().decode())
    assert clock(found)[0] == "11-21T23:59:58"
    assert clock(found)[-1] == "11-22T00:00:01"
    assert values(found, "cpu_power_watts")[:2] == [190.75, 191.75]
    assert found.outcome.quality.notes == ("1 counters of the timechart are not kept, such as core0-power.",)
    assert found.outcome.intervals["host"] == pytest.approx(0.1)


def test_damaged_records(tmp_path: Path) -> None:
    """Each is rejected for what is wrong with it; a timechart without the power of a socket is refused."""
    content = timechart(4).decode()
    broken = content.replace("2,23:59:58:159", "2,23.59", 1).replace("100.25", "x", 1) + "5,1\n6,23:59:59:0,1"
    found = text(tmp_path, broken)
    assert rejected(found) == [
        *(("cut last line", 1), ("malformed package power", 1), ("no time stamp", 1), ("wrong number of cells", 1)),
    ]
    with pytest.raises(SourceError, match="AMDuProf timechart"):
        text(tmp_path, content.replace("package-power", "frequency"))
