"""The order of the runs of a tracker."""

from gpureport.importers.trackers.start_order import sort_by_start


def test_runs_that_started_at_once_stand_by_name() -> None:
    """A scheduler starts jobs of one sweep within milliseconds; minutes apart the order is that of time."""
    starts: dict[str, int | None] = {"dali": 1_000, "baseline": 10_000, "?": None, "late": 66_010_000}
    starts |= {"run 10": 61_000_000, "run 9": 61_009_000}
    found = sort_by_start(starts, start=starts.__getitem__, name=str)
    assert found == ["baseline", "dali", "run 9", "run 10", "late", "?"]
    assert sort_by_start([], start=starts.__getitem__, name=str) == []


def test_a_name_may_be_a_number_of_any_length() -> None:
    """Python refuses to read one of more than 4,300 digits."""
    names = ["run " + "9" * 5000, "run 010", "run 9", "run"]
    assert sort_by_start(names, start=lambda _: 0, name=str) == names[::-1]
