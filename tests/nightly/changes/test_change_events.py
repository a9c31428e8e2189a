"""Changes that begin together are one event, judged by the job's own figure."""

import pytest

from gpureport.nightly.changes.change_events import group_changes
from gpureport.nightly.changes.latest_night import summarize_latest_night
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site.night_wording import describe_headline
from tests.nightly.made import nights

WORK, IDLE, WAITING = "gpu_seconds_per_1000_work", "idle_ratio", "waiting_ratio"


def levels(**values: tuple[float, float]) -> list[NightlyRecord]:
    """Return 23 nights; each figure has one level for twenty of them and another one for three."""
    found = {
        name: [before + 0.001 * before * (n % 3) for n in range(20)] + [after] * 3
        for name, (before, after) in values.items()
    }
    return nights(found)


@pytest.mark.parametrize(("work", "verdict"), [((800.0, 400.0), "better"), ((800.0, 900.0), "worse")])
def test_the_work_decides(work: tuple[float, float], verdict: str) -> None:
    """A job that got faster is better, though its idle share grew; and the other way round."""
    (event,) = group_changes(build_trends(levels(**{WORK: work, IDLE: (0.1, 0.3)})))
    assert event.verdict == verdict
    assert [trend.kind.name for trend, _ in event.changes] == [WORK, IDLE]


def test_a_share_alone_is_neither_better_nor_worse_where_the_work_is_known() -> None:
    """The same work in the same time: nothing is red, and the gate holds."""
    history = levels(**{WORK: (800.0, 800.0), IDLE: (0.1, 0.3)})
    trends = build_trends(history)
    (event,) = group_changes(trends)
    assert event.verdict == "changed"
    assert not summarize_latest_night(history, trends).has_worse_change


def test_without_work_the_loss_decides() -> None:
    """Then the share that was lost is the job's own figure."""
    (event,) = group_changes(build_trends(levels(lost_ratio=(0.1, 0.3), gpu_temperature_celsius=(70.0, 60.0))))
    assert event.verdict == "worse"


def test_changes_weeks_apart_are_events_of_their_own() -> None:
    """Each with its night, the earliest first."""
    early = [800.0 + n % 2 for n in range(15)] + [900.0 + n % 2 for n in range(15)]
    late = [0.1 + 0.001 * (n % 2) for n in range(25)] + [0.3] * 5
    events = group_changes(build_trends(nights({WORK: early, IDLE: late})))
    assert [(len(event.changes), event.date[-2:]) for event in events] == [(1, "16"), (1, "26")]


def test_the_headline_says_what_and_how_much() -> None:
    """Per cent first, then what lies behind it."""
    history = levels(**{WORK: (800.0, 400.0), WAITING: (0.3, 0.0), IDLE: (0.05, 0.2)})
    headline = describe_headline(summarize_latest_night(history, build_trends(history)))
    assert headline == "23 Jan: GPU time per unit of work −50%, waiting for data gone."
