"""What is said of the newest night: what is new, what is missing, and of what nothing can be said."""

import pytest

from gpureport.nightly.changes.latest_night import summarize_latest_night
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site.night_wording import describe_latest_night
from tests.nightly.made import night, part

SHARE, POWER = "gpu_utilization_ratio", "gpu_power_watts"


def said(history: list[NightlyRecord]) -> tuple[list[str], bool]:
    """Return the lines of the newest night, and whether all of it could be judged."""
    found = summarize_latest_night(history, build_trends(history))
    return [line.replace("\xa0", " ") for line in describe_latest_night(found)], found.is_fully_compared


def usual(count: int) -> list[NightlyRecord]:
    """Return nights of two figures that stay as they are."""
    return [night(number, part({SHARE: 0.9, POWER: 300.0}, number)) for number in range(count)]


def test_no_night() -> None:
    """Without a night nothing is judged."""
    assert said([]) == (["No night is recorded yet."], False)


def test_nothing_changed() -> None:
    """A night like those before is judged, and nothing is said of it but that."""
    assert said(usual(12)) == (["No figure changed."], True)


@pytest.mark.parametrize("gone", [1, 10])
def test_a_figure_that_is_recorded_no_longer(gone: int) -> None:
    """It is named for ten nights, in which the rest is judged and it cannot be."""
    history = [*usual(12), *(night(number, part({SHARE: 0.9}, number)) for number in range(12, 12 + gone))]
    assert said(history) == (
        ["Recorded before, but not in this night: Mean power of a GPU.", "No other figure changed."],
        False,
    )


def test_a_figure_left_out_for_long_is_no_news() -> None:
    """After ten nights without it a figure counts as one that is not recorded; nor is a night without data its end."""
    history = [*usual(12), *(night(number, part({SHARE: 0.9}, number)) for number in range(12, 23))]
    assert said(history) == (["No figure changed."], True)
    alone = [*usual(12), night(12, capture_missing("gpu.csv", "", "no such file"))]
    assert said(alone) == (["No data from gpu.csv: no such file"], False)


def test_each_group_is_judged_by_its_own_nights() -> None:
    """A model of GPU that is new is said to need nights, though those of another are enough."""
    other = part({SHARE: 0.5, POWER: 200.0}, 90, model="NVIDIA A100")
    history = [*usual(12), night(12, other)]
    assert said(history) == (["9 more nights needed before changes can be told."], False)
    beside = [*usual(12), night(12, part({SHARE: 0.9, POWER: 300.0}, 12), other)]
    lines = ["9 more nights needed before changes of NVIDIA A100 can be told.", "No figure changed."]
    assert said(beside) == (lines, False)


def test_what_got_worse_comes_first() -> None:
    """Of changes in one night, and the gate breaks by one that is worse."""
    values = [(0.9, 300.0 + number % 2) for number in range(12)] + [(0.7, 250.0)] * 3
    history = [night(n, part({SHARE: share, POWER: power}, n)) for n, (share, power) in enumerate(values)]
    found = summarize_latest_night(history, build_trends(history))
    assert [change.verdict for _, change in found.new_changes] == ["worse", "changed"]
    assert found.has_worse_change
    assert [line.split(":")[0] for line in describe_latest_night(found)] == ["Worse", "Changed"]
