"""How far apart samples are, where a log changes its pace as well."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpureport.rates import SamplingRate, SlowStretch, distances_inside, measure_sampling_rate

Stamps = np.ndarray[tuple[int], np.dtype[np.int64]]


def stamps(*parts: tuple[int, float]) -> Stamps:
    """Return stamps from 0 on, so many distances of so many seconds, one part after the other."""
    steps = np.concatenate([np.full(count, round(seconds * 1e6)) for count, seconds in parts])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def test_the_pace_of_a_log() -> None:
    """The interval is that of most of the time; ten distances in a row that would be gaps are a slower pace."""
    slow = SlowStretch(600_000_000, 900_000_000, 10.0)
    pairs = np.sort(np.concatenate([stamps((300, 1)), stamps((300, 1)) + 20_000]))
    table = {
        "one": (stamps((100, 1), (1, 600), (100, 1), (1, 30)), SamplingRate(1.0)),
        "one sample": (stamps((0, 1)), None),
        "equal stamps": (np.array([5, 5, 5]), None),
        "a slower stretch": (stamps((600, 1), (30, 10), (300, 1)), SamplingRate(1.0, (slow,))),
        "nine gaps": (stamps((600, 1), (9, 10), (300, 1)), SamplingRate(1.0)),
        "slow for most of the time": (stamps((600, 1), (120, 10)), SamplingRate(10.0, denser=1.0)),
        "two recorders just behind each other": (pairs, SamplingRate(1.0)),
        "some of their rows missing": (np.delete(pairs, [100, 101, 201]), SamplingRate(1.0)),
        "late every other time": (np.sort(np.r_[stamps((300, 1)), stamps((300, 1)) + 400_000]), SamplingRate(0.4)),
    }
    assert {name: got for name, (times, rate) in table.items() if (got := measure_sampling_rate(times)) != rate} == {}
    three = measure_sampling_rate(stamps((5000, 1), (40, 10), (20, 60), (1000, 1)))
    assert three is not None
    assert [each.interval for each in three.slow] == [10.0, 60.0]


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0.0, 0.1, 1, 4, 10, 61, 900])), min_size=1, max_size=12))
def test_slow_stretches_lie_in_the_log(parts: list[tuple[int, float]]) -> None:
    """They begin and end at samples, and are slower than what is around them."""
    times = stamps(*parts)
    found = measure_sampling_rate(times)
    assert (found is None) == (times[0] == times[-1])
    for each in () if found is None else found.slow:
        assert {each.start, each.end} <= set(times.tolist())
        assert each.start < each.end
        assert found is not None
        assert each.interval > found.interval
        assert (np.diff(times)[distances_inside(times, each)] >= 0).all()
