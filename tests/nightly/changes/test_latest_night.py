"""What is said of the newest night: what is new, what is missing, and of what nothing can be said."""

from dataclasses import replace

import pytest

from gpureport.nightly.changes.latest_night import summarize_latest_night
from gpureport.nightly.changes.trend import build_trends
from gpureport.nightly.history.capture import capture_missing
from gpureport.nightly.history.night_figures import SAMPLING, Figure
from gpureport.nightly.history.nightly_record import NightlyRecord
from gpureport.nightly.site.night_wording import describe_headline, describe_latest_night
from gpureport.testing import Check, CheckOutcome
from tests.nightly.made import night, part

SHARE, POWER, WORK = "gpu_utilization_ratio", "gpu_power_watts", "gpu_seconds_per_1000_work"
SAMPLED = Figure(name=SAMPLING, value=1 / 81)
"""What a recording of 81 s with a sample a second notes beside its figures."""


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
    assert lines == ["Known before, but not of this night: Power of a GPU."]
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


def back_again(nights_after: int) -> list[NightlyRecord]:
    """Return nights of a job that was slow in three of them, the first four and the latest as ever."""
    usual, slow = (135.0, 135.0, 135.002, 136.653), (436.672, 438.335, 438.34)
    after = (133.333, 133.335, 140.007, 138.333, 136.667)[:nights_after]
    hot = (70.0,) * 4 + (64.0,) * 3 + (70.0,) * len(after)
    values = [(work, temperature) for work, temperature in zip((*usual, *slow, *after), hot, strict=True)]
    return [
        night(
            n, part({WORK: work, "gpu_temperature_celsius": hot}, n, params=(("--work", "600 steps"),)), label=f"c{n}"
        )
        for n, (work, hot) in enumerate(values)
    ]


def test_a_change_is_dated_where_another_of_its_own_job_was_overtaken() -> None:
    """Not by what became of a job beside it."""
    level = [0.9] * 7 + [0.5] * 3
    history = [
        replace(each, runs=(*each.runs, part({SHARE: level[n]}, 50 + n, step="a")))
        for n, each in enumerate(back_again(3))
    ]
    (headline, *_), _ = said(history)
    assert headline == "10 Jan: a · NVIDIA H100: GPU utilisation 90% → 50%."


def test_a_change_is_known_as_finely_as_the_nights_beside_it() -> None:
    """One coarse night at the beginning does not blur what happened later."""
    nights = [
        replace(each, runs=tuple(replace(run, figures=(*run.figures, sampled)) for run in each.runs))
        for each, sampled in zip(back_again(3), [Figure(name=SAMPLING, value=0.5), *[SAMPLED] * 9], strict=True)
    ]
    work = next(trend for trend in build_trends(nights) if trend.kind.name == WORK)
    first, second = (change.shift for change in work.changes)
    assert second.high - second.low < 0.1 * second.before
    assert first.high - first.low > 0.5 * first.after


def test_the_latest_change_leads() -> None:
    """A job that is fast again is not announced by how slow it was; both are listed."""
    (headline, *lines), _ = said(back_again(3))
    assert headline == "10 Jan: GPU time per step −70%, since 8 Jan."
    assert [line.partition(":")[0] for line in lines] == ["Since 8 Jan (c7)", "Since 5 Jan (c4)"]
    assert lines[0].endswith("better.")
    assert "GPU time per 1,000 steps 2.25 GPU-min → 7.31 GPU-min (95% interval +224 to +226%), worse." in lines[1]


def test_no_interval_of_a_timed_figure_is_finer_than_its_samples() -> None:
    """Nights a second apart in eighty know no level to a tenth of a per cent, however alike they are."""
    sampled = [
        replace(each, runs=tuple(replace(run, figures=(*run.figures, SAMPLED)) for run in each.runs))
        for each in back_again(3)
    ]
    assert "(95% interval +221 to +229%), worse." in said(sampled)[0][2]


def test_what_is_undone_breaks_no_gate() -> None:
    """Nor does a change that was told before, when another figure joins it a night later."""
    for nights_after in range(3, 6):
        history = back_again(nights_after)
        found = summarize_latest_night(history, build_trends(history))
        assert not found.has_worse_change
        assert bool(found.new_events) == (nights_after == 3)


def test_a_change_for_the_worse_is_new_once() -> None:
    """In the night that first shows it, and not when a figure beside it is told a night later."""
    told = []
    for count in range(13, 18):
        work = [800.0 + n % 3 for n in range(12)] + [900.0] * 5
        power = [300.0 + n % 3 for n in range(13)] + [200.0] * 5
        history = [night(n, part({WORK: work[n], POWER: power[n]}, n)) for n in range(count)]
        told.append(summarize_latest_night(history, build_trends(history)).has_worse_change)
    assert told == [False, False, True, False, False]


def test_the_headline_of_a_red_night_says_the_change() -> None:
    """And how many rules failed."""
    slow = Check(
        limit="change gpu_seconds_per_1000_work <= 10%",
        run="night",
        outcome=CheckOutcome.BROKEN,
        observed="rose by 223% (95%: +219% to +227%) against the baseline",
        value=2.23,
        unit="1",
    )
    new = Check(limit="no new warning", run="night", outcome=CheckOutcome.BROKEN, observed="1 finding: log_gap")
    hot = Check(limit="no thermal_throttle", run="night", outcome=CheckOutcome.BROKEN, observed="1 finding")
    idle = Check(
        limit="change idle_ratio <= 2 points", run="night", outcome=CheckOutcome.BROKEN, value=0.1, unit="points"
    )
    expected = {
        (new, slow): "GPU time per unit of work +223%: 2 rules failed.",
        (new,): "1 rule failed.",
        (hot,): "GPU slowed by heat: 1 rule failed.",
        (idle,): "Idle share +10.0 points: 1 rule failed.",
    }
    for checks, words in expected.items():
        history = [*usual(11), replace(night(11, part({SHARE: 0.9, POWER: 300.0}, 11)), checks=checks)]
        assert said(history)[0][0] == f"12 Jan: {words}"
