"""Logged steps that do not count as work of the recording."""

import pytest

from gpureport.comparison.chain.uncounted_steps import UncountedSteps, find_uncounted_steps
from gpureport.comparison.steps.batch_size import convert_work_to_samples
from gpureport.report.sections.head.step_count_notes import describe_excluded_work, describe_uncounted_steps
from gpureport.testing import Work, steps
from tests.comparison.runs import Points, sampled

BUSY = [90.0] * 600


def losses(first: float, last: float, *, begun: int = 0, every: float = 5.0) -> Points:
    """Return a loss every five seconds between two times; the counter rises by ten from one to the next."""
    count = int((last - first) / every) + 1
    return [(first + place * every, begun + 10 * (place + 1), "loss", 1.0) for place in range(count)]


def test_all_steps_of_a_recording_count() -> None:
    """Those before the first line of the log too, where the GPU began to work before it."""
    idle_first = steps((0, 60), (90, 540))
    assert find_uncounted_steps(sampled("a", util=idle_first, training=losses(65, 595))) is None


def test_steps_outside_the_recording_do_not_count() -> None:
    """Training that goes on after the last sample of the GPUs."""
    found = find_uncounted_steps(sampled("a", util=BUSY, training=losses(5, 900)))
    assert found is not None
    assert found.logged == pytest.approx(1800)
    assert found.counted == pytest.approx(1198, abs=2)
    assert found.outside == pytest.approx(602, abs=2)
    assert (found.undated, found.earlier) == (0, 0)


def test_steps_before_the_first_line_have_no_time() -> None:
    """Where no GPU was seen to work before the first line, nothing tells when the steps before it were done."""
    idle_first = steps((0, 60), (90, 540))
    found = find_uncounted_steps(sampled("a", util=idle_first, training=losses(50, 500, begun=90)))
    assert found is not None
    assert (round(found.logged), found.undated, round(found.outside)) == (1000, 100, 0)


def test_a_counter_that_went_on() -> None:
    """A run that was resumed did not do the steps of the run before."""
    idle_first = steps((0, 60), (90, 540))
    found = find_uncounted_steps(sampled("a", util=idle_first, training=losses(65, 595, begun=5000)))
    assert found is not None
    assert (found.logged, found.earlier, found.undated) == (6070, 5000, 0)


def test_samples_are_counted_as_steps() -> None:
    """Steps whose batches differ are compared in samples; the log tells of steps all the same."""
    runs = [sampled(size, util=BUSY, training=losses(5, 900), params=[("batch_size", size)]) for size in ("8", "16")]
    converted = convert_work_to_samples(runs)
    assert [run.work_unit for run in converted] == ["samples", "samples"]
    assert [found and round(found.logged) for found in map(find_uncounted_steps, converted)] == [1800, 1800]


def test_other_work_is_not_counted_by_steps() -> None:
    """Work that was stated, a rate that was logged, and no training log."""
    rate = [(place * 5.0, place, "samples_per_second", 100.0) for place in range(1, 200)]
    stated = sampled("a", util=BUSY, training=losses(5, 900), work=Work(amount=7, unit="steps"))
    runs = [stated, sampled("b", util=BUSY, training=rate), sampled("c", util=BUSY)]
    assert [find_uncounted_steps(run) for run in runs] == [None] * 3
    assert not describe_uncounted_steps(runs)


def test_one_line_says_why() -> None:
    """Each run with its numbers; of many runs the first three."""
    run = sampled("a", util=BUSY, training=losses(5, 900, begun=90))
    found = find_uncounted_steps(run)
    assert isinstance(found, UncountedSteps)
    line = describe_uncounted_steps([run] * 5)
    assert line.startswith("Not every logged step counts: a ")
    assert line.endswith("outside the recording); and 2 more runs.")


def test_work_of_long_steps_that_does_not_count_is_said() -> None:
    """Ten of 100 steps take 10 s instead of 5 s at the same rate: half of what the rate says of them is a pause."""
    seconds = [5.0 + 5 * place + 5 * max(place - 89, 0) for place in range(100)]
    rates: Points = [(at, place + 1, "samples_per_second", 200.0) for place, at in enumerate(seconds)]
    slow = sampled("a", util=BUSY, training=rates)
    assert slow.logged_work is not None
    assert (slow.logged_work.work.amount, slow.logged_work.work.excluded) == (100_000, 10_000)
    assert describe_excluded_work([slow, slow]) == (
        "Not counted as work, because the steps took so long that they must include a pause: 9.1% of the samples of a "
        "(samples_per_second); 9.1% of the samples of a (samples_per_second)."
    )
    even = [(5.0 * (place + 1), place + 1, "samples_per_second", 200.0) for place in range(100)]
    assert not describe_excluded_work([sampled("b", util=BUSY, training=even)])
