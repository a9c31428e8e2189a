"""The order of the runs of a tracker."""

from gpureport.importers.trackers.start_order import sort_by_start


def test_runs_that_started_at_once_stand_by_name() -> None:
    """A scheduler starts jobs of one sweep within milliseconds; minutes apart the order is that of time."""
    starts: dict[str, int | None] = {"dali": 1_000, "baseline": 10_000, "?": None, "late": 66_010_000}
    starts |= {"run 10": 61_000_000, "run 9": 61_009_000}
    found = sort_by_start(starts, start=starts.__getitem__, name=str)
    assert found == ["baseline", "dali", "run 9", "run 10", "late", "?"]
    assert sort_by_start([], start=starts.__getitem__, name=str) == []
