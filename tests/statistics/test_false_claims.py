"""How often intervals hold the true difference, and how often equal runs are called different: promise 8."""

from collections.abc import Callable

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.testing import Delta, Floats, Verdict, Work
from tests.statistics.processes import Process, autoregressive, processes
from tests.statistics.runs import TRAINING_RATE, Points, compared, delta, made

SECONDS = 1800
SEED = 20_261_121


def share(values: Floats) -> Floats:
    return np.asarray(np.round(np.clip(values, 0, 100)), dtype=np.float64)


def pairs(make: Callable[[np.random.Generator], Floats], count: int, rng: np.random.Generator) -> list[Delta]:
    return [delta(compared(*(made(name, util=share(make(rng))) for name in "ab"))) for _ in range(count)]


def is_claimed(found: Delta) -> bool:
    if found.verdict not in {Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}:
        return True
    if found.interval is None or found.difference is None:
        return False
    low, high = found.interval
    return abs(found.difference) > 0.02 and not low <= 0 <= high


def test_false_claims_on_equal_steps_stay_rare() -> None:
    """A/A at an autocorrelation of 0.9, pairs of twenty minutes: verdicts on at most 7% of them."""
    found = pairs(lambda rng: 80 + autoregressive(1200, 0.9, 3.0, rng), 60, np.random.default_rng(11))
    assert sum(each.verdict is not Verdict.NO_CLEAR_CHANGE for each in found) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [30, 60, 120, 300, 450])
@pytest.mark.parametrize("process", processes(), ids=lambda process: process.name)
def test_two_short_runs_of_one_process_seldom_differ(process: Process, seconds: int) -> None:
    """Whatever changes more slowly than they are long: at most 14% of 200 pairs are called different."""
    found = pairs(lambda rng: process.make(seconds, rng), 200, np.random.default_rng([SEED, 5, seconds]))
    assert sum(map(is_claimed, found)) <= 0.14 * 200


@pytest.mark.slow
def test_repetitions_of_any_length_keep_their_promise() -> None:
    """Three runs a side that differ by two points among themselves: 95% of 80 intervals hold six points, or none."""
    for seconds in (40, 600):
        rng = np.random.default_rng([12, seconds])
        for gain in (0.0, 6.0):
            inside = claimed = 0
            for _ in range(80):
                runs = [
                    made(
                        f"{step}{k}",
                        step=step,
                        util=np.round(mean + rng.normal(0, 2) + autoregressive(seconds, 0.9, 3.0, rng)),
                    )
                    for step, mean in (("a", 70.0), ("b", 70.0 + gain))
                    for k in range(3)
                ]
                found = delta(compared(*runs))
                assert found.interval is not None
                inside += found.interval[0] <= gain / 100 <= found.interval[1]
                claimed += found.verdict in {Verdict.BETTER, Verdict.WORSE}
            # three standard errors below and above what is promised
            assert inside >= 70, (seconds, gain)
            assert gain > 0 or claimed <= 10, seconds


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_intervals_of_a_pair_hold_the_ratio_of_training_rates(phi: float) -> None:
    """Half an hour, the first half minute of it at a quarter of the rate, 300 times: a tenth more lies inside."""
    rng = np.random.default_rng([7, round(10 * phi)])
    inside = 0
    for _ in range(300):
        found = delta(compared(scattered("a", 100.0, phi, rng), scattered("b", 110.0, phi, rng)), TRAINING_RATE)
        assert found.interval is not None
        assert found.before is not None
        low, high = (1 + end / found.before for end in found.interval)
        inside += low <= 1.1 <= high
    assert 0.92 <= inside / 300 <= 0.98


def scattered(name: str, rate: float, phi: float, rng: np.random.Generator) -> Analysis:
    rates = rate * (1 + autoregressive(SECONDS, phi, 0.05, rng))
    rates[:30] /= 4
    points: Points = [(second + 1.0, second, "samples_per_second", float(each)) for second, each in enumerate(rates)]
    work = Work(amount=float(rates.sum()), unit="samples")
    return made(name, util=np.full(SECONDS, 90.0), training=points, work=work)
