"""A recording takes as long as it takes, whatever is done to the clock meanwhile."""

from pathlib import Path

import pytest

from tests.recorder.recorded import read_run_file
from tests.store.forking import Forks, Order

pytestmark = pytest.mark.slow


_NEVER = 10**9


def test_clock_set_back_while_recording(faulty: Forks, tmp_path: Path) -> None:
    """A clock that goes back by an hour leaves an end after the start, and a message that says the seconds."""
    readings = _record(faulty, tmp_path / "never", _NEVER)
    assert readings >= 3, "the start, the end and what lies between"
    for after in range(readings):
        _record(faulty, tmp_path / str(after), after)


def _record(faulty: Forks, folder: Path, after: int) -> int:
    """Check a recording whose clock goes back after so many readings of it; return how many there were."""
    (folder / "tmp").mkdir(parents=True)
    words = ("record", "--host-only", "-o", "recorded", "--", "sleep", "0.3")
    counted = folder / "readings"
    order = Order(arguments=words, folder=str(folder), clock_back=(3600.0, after), readings=str(counted))
    ended = faulty.run(order)
    assert ended.code == 0
    assert "-" not in ended.err.split(" in ")[0] + ended.out.split(" in ")[0]
    run = read_run_file(folder / "recorded")
    assert 0 < run["ended"] - run["started"] < 60e6
    return int(counted.read_text())
