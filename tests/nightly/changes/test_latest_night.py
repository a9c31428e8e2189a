"""What is said of the newest night: what is new, what is missing, and of what nothing can be said."""

import pytest

from gpureport.nightly.changes.latest_night import summarize_latest_night
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site.night_wording import describe_headline, describe_latest_night
from tests.nightly.made import night, part

SHARE, POWER = "gpu_utilization_ratio", "gpu_power_watts"


def said(history: list[NightlyRecord]) -> tuple[list[str], bool]:
    """Return the lines of the newest night, and whether all of it could be judged."""
    found = summarize_latest_night(history, build_trends(history))
    lines = [describe_headline(found), *describe_latest_night(found)]
    return [line.replace("\xa0", " ") for line in lines], found.is_fully_compared


def usual(count: int) -> list[NightlyRecord]:
    """Return nights of two figures that stay as they are."""
    return [night(number, part({SHARE: 0.9, POWER: 300.0}, number)) for number in range(count)]


def test_no_night() -> None:
    """Without a night nothing is judged."""
    assert said([]) == (["No night is recorded yet."], False)


def test_nothing_changed() -> None:
    """A night like those before is judged, and nothing is said of it but that."""
    assert said(usual(12)) == (["12 Jan: no change."], True)


@pytest.mark.parametrize("gone", [1, 10])
def test_a_figure_that_is_recorded_no_longer(gone: int) -> None:
    """It is named for ten nights, in which the rest is judged and it cannot be."""
    history = [*usual(12), *(night(number, part({SHARE: 0.9}, number)) for number in range(12, 12 + gone))]
    (headline, *lines), is_compared = said(history)
    assert headline == f"{12 + gone} Jan: no change in the metrics recorded."
    assert lines == ["Recorded before, but not in this night: Power of a GPU."]
    assert not is_compared


def test_a_figure_left_out_for_long_is_no_news() -> None:
    """After ten nights without it a figure counts as one that is not recorded; nor is a night without data its end."""
    history = [*usual(12), *(night(number, part({SHARE: 0.9}, number)) for number in range(12, 23))]
    assert said(history) == (["23 Jan: no change."], True)
    alone = [*usual(12), night(12, capture_missing("gpu.csv", "", "no such file"))]
    assert said(alone) == (["13 Jan: no data from gpu.csv."], False)


def test_each_group_is_judged_by_its_own_nights() -> None:
    """A model of GPU that is new is said to need nights, though those of another are enough."""
    other = part({SHARE: 0.5, POWER: 200.0}, 90, model="NVIDIA A100")
    history = [*usual(12), night(12, other)]
    assert said(history) == (["13 Jan: 9 more nights needed before changes show."], False)
    beside = [*usual(12), night(12, part({SHARE: 0.9, POWER: 300.0}, 12), other)]
    lines = [
        "13 Jan: 9 more nights needed before changes show.",
        "9 more nights needed before changes of NVIDIA A100 show.",
    ]
    assert said(beside) == (lines, False)


def test_what_got_worse_comes_first() -> None:
    """Of changes in one night, and the gate breaks by one that is worse."""
    values = [(0.9, 300.0 + number % 2) for number in range(12)] + [(0.7, 250.0)] * 3
    history = [night(n, part({SHARE: share, POWER: power}, n)) for n, (share, power) in enumerate(values)]
    found = summarize_latest_night(history, build_trends(history))
    assert [event.verdict for event in found.new_events] == ["worse"]
    assert [trend.kind.name for trend, _ in found.new_events[0].changes] == [SHARE, POWER]
    assert found.has_worse_change
    assert describe_headline(found).replace("\xa0", "") == "15 Jan: GPU utilisation 90% → 70%."
