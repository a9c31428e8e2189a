"""How far apart samples are, where a log changes its pace as well."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport import sampling_rate
from gpureport.columns import IntArray
from gpureport.sampling_rate import SlowStretch


def stamps(*parts: tuple[int, float]) -> IntArray:
    """Return stamps from 0 on, so many distances of so many seconds, one part after the other."""
    steps = np.concatenate([np.full(count, round(seconds * 1e6)) for count, seconds in parts])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def test_one_pace() -> None:
    """A log of one interval has no slow stretch, however long its gaps are."""
    found = sampling_rate.measure_sampling_rate(stamps((100, 1), (1, 600), (100, 1), (1, 30)))
    assert found == sampling_rate.SamplingRate(1.0)


@pytest.mark.parametrize("alone", [stamps((0, 1)), np.array([5, 5, 5])], ids=["one sample", "equal stamps"])
def test_no_distance(alone: IntArray) -> None:
    """Without two different stamps nothing is known."""
    assert sampling_rate.measure_sampling_rate(alone) is None


def test_a_slower_stretch() -> None:
    """Ten distances in a row that would be gaps are a pace; the interval is that of most of the time."""
    found = sampling_rate.measure_sampling_rate(stamps((600, 1), (30, 10), (300, 1)))
    assert found == sampling_rate.SamplingRate(1.0, (SlowStretch(600_000_000, 900_000_000, 10.0),))


def test_nine_gaps_in_a_row_are_gaps() -> None:
    """Fewer distances are no pace."""
    assert sampling_rate.measure_sampling_rate(stamps((600, 1), (9, 10), (300, 1))) == sampling_rate.SamplingRate(1.0)


def test_most_of_the_time_is_slow() -> None:
    """Where a few rows cover most of the time, theirs is the interval, and nothing else is slow."""
    assert sampling_rate.measure_sampling_rate(stamps((600, 1), (120, 10))) == sampling_rate.SamplingRate(
        10.0, denser=1.0
    )


def test_gaps_in_a_slow_stretch_stay_gaps() -> None:
    """A distance of minutes among those of 10 s is not of the pace."""
    times = stamps((600, 1), (15, 10), (1, 300), (15, 10))
    found = sampling_rate.measure_sampling_rate(times)
    assert found is not None
    assert [each.interval for each in found.slow] == [10.0]
    far = np.stack([times[:-1], times[1:]], axis=1)[np.diff(times) > 5_000_000]
    usual = sampling_rate.mark_slow_distances(far, 1.0)
    assert usual.tolist() == [True] * 15 + [False] + [True] * 15


def test_three_paces() -> None:
    """A stretch inside a slower one is found as well, after it."""
    found = sampling_rate.measure_sampling_rate(stamps((5000, 1), (40, 10), (20, 60), (1000, 1)))
    assert found is not None
    assert [each.interval for each in found.slow] == [10.0, 60.0]
    assert found.slow[1].start >= found.slow[0].start


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0.0, 0.1, 1, 4, 10, 61, 900])), min_size=1, max_size=12))
def test_any_distances(parts: list[tuple[int, float]]) -> None:
    """Stretches lie in the log, begin and end at samples, and are slower than what is around them."""
    times = stamps(*parts)
    found = sampling_rate.measure_sampling_rate(times)
    if found is None:
        assert times[0] == times[-1]
        return
    for each in found.slow:
        assert {each.start, each.end} <= set(times.tolist())
        assert each.start < each.end
        assert each.interval > found.interval
        assert (np.diff(times)[sampling_rate.distances_inside(times, each)] >= 0).all()


def test_two_recorders_just_behind_each_other() -> None:
    """Pairs of rows are as far apart as each recorder writes; a few that are missing change nothing."""
    times = np.sort(np.concatenate([stamps((300, 1)), stamps((300, 1)) + 20_000]))
    assert sampling_rate.measure_sampling_rate(times) == sampling_rate.SamplingRate(1.0)
    assert sampling_rate.measure_sampling_rate(np.delete(times, [100, 101, 201])) == sampling_rate.SamplingRate(1.0)


def test_rows_that_alternate_little_are_of_one_recorder() -> None:
    """A collector that is late every other time writes as often as it does."""
    found = sampling_rate.measure_sampling_rate(np.sort(np.concatenate([stamps((300, 1)), stamps((300, 1)) + 400_000])))
    assert found == sampling_rate.SamplingRate(0.4)
