"""Work counted from logged rates and step counters."""

import numpy as np
import pytest

from gpureport.work_counting import CountedWork, count_by_rates, count_by_steps

SECOND = 1_000_000


def by_rates(
    seconds: list[float], rates: list[float], steps: list[float] | None = None, earliest: float | None = None
) -> CountedWork:
    """Return the work of points at some seconds."""
    found = count_by_rates(
        (np.array(seconds) * SECOND).astype(np.int64),
        np.array(rates),
        None if steps is None else np.array(steps),
        None if earliest is None else round(earliest * SECOND),
    )
    assert found is not None
    return found


def by_steps(seconds: list[float], steps: list[float], began: float | None = None) -> CountedWork:
    """Return the steps of a counter."""
    start = None if began is None else round(began * SECOND)
    found = count_by_steps((np.array(seconds) * SECOND).astype(np.int64), np.array(steps), start)
    assert found is not None
    return found


def test_a_slow_first_batch_took_as_long_as_its_rate_says() -> None:
    """Batches of 100: ten that took 20 s at first, then ten every 5 s. Training began at zero."""
    found = by_rates([20, 25, 30, 35], [50, 200, 200, 200], [10, 20, 30, 40])
    assert found.times[0] == 0
    assert found.amount == pytest.approx(4000)
    assert found.rate == pytest.approx(4000 / 35)


def test_without_steps_the_first_point_speaks_for_a_usual_distance() -> None:
    """It is not known how much its rate is for."""
    found = by_rates([20, 25, 30, 35], [50, 200, 200, 200])
    assert found.amount == pytest.approx(50 * 5 + 3 * 1000)
    assert found.times[0] == 15 * SECOND


def test_a_pause_does_no_work() -> None:
    """An evaluation of 300 s lies between two points: the counter tells the work, or five usual distances bound it."""
    seconds, rates = [5.0, 10.0, 15.0, 320.0, 325.0], [200.0] * 5
    assert by_rates(seconds, rates, [10, 20, 30, 40, 50]).amount == pytest.approx(5000)
    assert by_rates(seconds, rates).amount == pytest.approx(200 * (4 * 5 + 5 * 5))
    assert by_rates(seconds, rates, [10, 20, 30, 40, 50]).rate == pytest.approx(5000 / 325)


def test_work_that_rates_tell_of_a_pause_is_known_as_not_counted() -> None:
    """300 s at 200 a second are 60,000, where the counter tells ten steps; nothing of the kind without a pause."""
    seconds, rates = [5.0, 10.0, 15.0, 320.0, 325.0], [200.0] * 5
    assert by_rates(seconds, rates, [10, 20, 30, 40, 50]).excluded == pytest.approx(60_000)
    assert by_rates(seconds, rates).excluded == pytest.approx(305 * 200 - 5 * 5 * 200)
    assert by_rates([5, 10, 15, 20], rates[:4], [10, 20, 30, 40]).excluded == 0


def test_a_resumed_counter_is_no_work_at_once() -> None:
    """It goes on at 5000, and later starts anew; neither is 5000 steps."""
    assert by_rates([5, 10, 15], [200, 200, 200], [5010, 5020, 5030]).amount == pytest.approx(3000)
    assert by_rates([5, 10, 15, 20], [200] * 4, [5010, 5020, 10, 20]).amount == pytest.approx(4000)


def test_nothing_is_counted_before_a_recording() -> None:
    """The first rate cannot have held before the earliest time."""
    found = by_rates([20, 25, 30], [50, 200, 200], [10, 20, 30], earliest=15)
    assert found.times[0] == 15 * SECOND
    assert found.amount == pytest.approx(250 + 2000)


def test_a_part_of_the_time_holds_a_part_of_the_work() -> None:
    """Within a span work goes on evenly; outside of all there is none."""
    found = by_rates([5, 10, 15], [200, 200, 100], [10, 20, 30])
    assert found.within(5 * SECOND, round(12.5 * SECOND)) == pytest.approx(1000 + 250)
    assert found.within(-10 * SECOND, 100 * SECOND) == pytest.approx(found.amount)
    assert found.within(20 * SECOND, 30 * SECOND) == 0


def test_a_step_counter_counts_from_where_training_began() -> None:
    """Ten steps every 5 s after 20 s for the first ten; without a beginning these are left out."""
    seconds, steps = [20.0, 25.0, 30.0], [10.0, 20.0, 30.0]
    assert [by_steps(seconds, steps, began).amount for began in (0, None)] == [30, 20]
    assert [by_steps(seconds, steps, began).rate for began in (0, None)] == [1, 2]
    assert by_steps(seconds, [5010.0, 5020.0, 5030.0], 0).amount == 30
    assert by_steps([5, 10, 15, 20], [10, 20, 5, 15], 0).amount == 10 + 10 + 10


def test_one_point_tells_no_time() -> None:
    """Work takes two."""
    one = np.array([5 * SECOND])
    assert count_by_rates(one, np.array([200.0])) is None
    assert count_by_steps(one, np.array([10.0])) is None


def test_rates_of_zero_are_no_work() -> None:
    """Not even at first, and no error."""
    found = by_rates([5, 10, 15], [0, 0, 0], [10, 20, 30])
    assert (found.amount, found.rate) == (0, None)


@pytest.mark.parametrize("rates", [[1e308] * 4, [1e-308, 100.0, 100.0, 100.0]], ids=["huge", "tiny"])
def test_rates_whose_work_no_float_holds_count_none(rates: list[float]) -> None:
    """Nonsense that a script logged is no work, and no fault."""
    assert count_by_rates(np.arange(4) * 1_000_000, np.array(rates), np.arange(4, dtype=np.float64)) is None
