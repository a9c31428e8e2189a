"""A recording takes as long as it takes, whatever is done to the clock meanwhile."""

from pathlib import Path

import pytest

from tests.recorder.recorded import read_run_file
from tests.store.forking import Forks, Order

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("after", [1, 3])
def test_clock_set_back_while_recording(faulty: Forks, tmp_path: Path, after: int) -> None:
    """A clock that goes back by an hour leaves an end after the start, and a message that says the seconds."""
    (tmp_path / "tmp").mkdir()
    words = ("record", "--host-only", "-o", "recorded", "--", "sleep", "0.3")
    ended = faulty.run(Order(arguments=words, folder=str(tmp_path), clock_back=(3600.0, after)))
    assert ended.code == 0
    assert "-" not in ended.err.split(" in ")[0] + ended.out.split(" in ")[0]
    run = read_run_file(tmp_path / "recorded")
    assert 0 < run["ended"] - run["started"] < 60e6
