"""How far apart samples are, where a log changes its pace as well, and work from logged rates and step counters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.rates import (
    CountedWork,
    SamplingRate,
    SlowStretch,
    count_by_rates,
    count_by_steps,
    distances_inside,
    measure_sampling_rate,
)

Stamps = np.ndarray[tuple[int], np.dtype[np.int64]]


def stamps(*parts: tuple[int, float]) -> Stamps:
    """Return stamps from 0 on, so many distances of so many seconds, one part after the other."""
    steps = np.concatenate([np.full(count, round(seconds * 1e6)) for count, seconds in parts])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def test_the_pace_of_a_log() -> None:
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
    times = stamps(*parts)
    found = measure_sampling_rate(times)
    assert (found is None) == (times[0] == times[-1])
    for each in () if found is None else found.slow:
        assert {each.start, each.end} <= set(times.tolist())
        assert each.start < each.end
        assert found is not None
        assert each.interval > found.interval
        assert (np.diff(times)[distances_inside(times, each)] >= 0).all()


SECOND = 1_000_000
Numbers = list[float]


def by_rates(
    seconds: Numbers, rates: Numbers, steps: Numbers | None = None, earliest: float | None = None
) -> CountedWork | None:
    return count_by_rates(
        (np.array(seconds) * SECOND).astype(np.int64),
        np.array(rates, dtype=np.float64),
        None if steps is None else np.array(steps, dtype=np.float64),
        None if earliest is None else round(earliest * SECOND),
    )


def by_steps(seconds: Numbers, steps: Numbers, began: float | None = None) -> CountedWork | None:
    start = None if began is None else round(began * SECOND)
    return count_by_steps((np.array(seconds) * SECOND).astype(np.int64), np.array(steps, dtype=np.float64), start)


def test_work_by_rates_and_by_steps() -> None:
    slow, first = [20.0, 25.0, 30.0, 35.0], [50.0, 200.0, 200.0, 200.0]
    pause, even, counter = [5.0, 10.0, 15.0, 320.0, 325.0], [200.0] * 5, [10.0, 20.0, 30.0, 40.0, 50.0]
    table: dict[str, tuple[CountedWork | None, dict[str, float | None]]] = {
        "a slow first batch took as long as its rate says": (
            by_rates(slow, first, [10, 20, 30, 40]),
            {"amount": 4000, "rate": 4000 / 35, "begin": 0},
        ),
        "without steps the first point speaks for a usual distance": (
            by_rates(slow, first),
            {"amount": 50 * 5 + 3 * 1000, "begin": 15 * SECOND},
        ),
        "a pause does no work": (by_rates(pause, even, counter), {"amount": 5000, "rate": 5000 / 325}),
        "five usual distances bound it": (by_rates(pause, even), {"amount": 200 * (4 * 5 + 5 * 5)}),
        "a resumed counter": (by_rates([5, 10, 15], [200] * 3, [5010, 5020, 5030]), {"amount": 3000}),
        "a counter that starts anew": (by_rates([5, 10, 15, 20], [200] * 4, [5010, 5020, 10, 20]), {"amount": 4000}),
        "nothing before the recording": (
            by_rates([20, 25, 30], first[:3], [10, 20, 30], earliest=15),
            {"amount": 250 + 2000, "begin": 15 * SECOND},
        ),
        "rates of zero": (by_rates([5, 10, 15], [0, 0, 0], [10, 20, 30]), {"amount": 0, "rate": None}),
        "steps from where training began": (by_steps([20, 25, 30], [10, 20, 30], 0), {"amount": 30, "rate": 1}),
        "steps from the first point": (by_steps([20, 25, 30], [10, 20, 30]), {"amount": 20, "rate": 2}),
        "steps of a resumed run": (by_steps([20, 25, 30], [5010, 5020, 5030], 0), {"amount": 30}),
        "steps that start anew": (by_steps([5, 10, 15, 20], [10, 20, 5, 15], 0), {"amount": 35}),
        "steps that go back": (by_steps([5, 10, 15, 20], [10, 20, 15, 25], 0), {"amount": 30}),
    }
    wrong = {}
    for name, (work, expected) in table.items():
        assert work is not None, name
        got = {"amount": work.amount, "rate": work.rate, "begin": float(work.times[0])}
        if {key: got[key] for key in expected} != pytest.approx(expected):
            wrong[name] = got
    assert not wrong, wrong


def test_a_part_of_the_time_holds_a_part_of_the_work() -> None:
    work = by_rates([5, 10, 15], [200, 200, 100], [10, 20, 30])
    assert work is not None
    assert work.within(5 * SECOND, round(12.5 * SECOND)) == pytest.approx(1000 + 250)
    assert (work.within(-10 * SECOND, 100 * SECOND), work.within(20 * SECOND, 30 * SECOND)) == (work.amount, 0)


def test_what_counts_no_work() -> None:
    assert (by_rates([5], [200]), by_steps([5], [10])) == (None, None)
    for rates in ([1e308] * 4, [1e-308, 100.0, 100.0, 100.0]):
        assert by_rates([0, 1, 2, 3], rates, [0, 1, 2, 3]) is None, rates
