"""How often intervals hold the true difference, and how often equal runs are called different: promise 8."""

from collections.abc import Callable

import numpy as np
import pytest

from gpureport.testing import Floats, Verdict, Work
from tests.statistics.processes import Process, autoregressive, processes
from tests.statistics.runs import TRAINING_RATE, Points, compared, delta, made

CLAIMS = {Verdict.BETTER, Verdict.WORSE, Verdict.UNCONFIRMED}
SECONDS = 1800


def share(values: Floats) -> Floats:
    """Return a series as a log holds a utilisation."""
    return np.asarray(np.round(np.clip(values, 0, 100)), dtype=np.float64)


def claims(make: Callable[[np.random.Generator], Floats], pairs: int, seed: int) -> int:
    """Return how many pairs of runs of one process are called different."""
    rng = np.random.default_rng(seed)
    return sum(
        delta(compared(*(made(name, util=share(make(rng))) for name in "ab"))).verdict in CLAIMS for _ in range(pairs)
    )


def test_false_claims_on_equal_steps_stay_rare() -> None:
    """A/A at an autocorrelation of 0.9, pairs of twenty minutes: verdicts on at most 7% of them."""
    assert claims(lambda rng: 80 + autoregressive(1200, 0.9, 3.0, rng), 60, 11) <= 4


@pytest.mark.slow
@pytest.mark.parametrize("process", processes(), ids=lambda process: process.name)
def test_two_short_runs_of_one_process_seldom_differ(process: Process) -> None:
    """Whatever changes more slowly than they are long: at most 14% of pairs are called different."""
    for seconds in (30, 60, 120, 300, 450):
        found = claims(lambda rng, seconds=seconds: process.make(seconds, rng), 60, seconds)  # type: ignore[misc]  # one argument
        assert found <= 0.14 * 60, seconds


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
def test_intervals_of_a_pair_hold_the_ratio_of_training_rates() -> None:
    """Half an hour, the first half minute of it at a quarter of the rate: a tenth more lies inside in 19 of 20."""

    def scattered(rate: float, phi: float, rng: np.random.Generator) -> Points:
        values = rate * (1 + autoregressive(SECONDS, phi, 0.05, rng))
        values[:30] /= 4
        return [(second + 1.0, second, "samples_per_second", float(value)) for second, value in enumerate(values)]

    for phi in (0.5, 0.9):
        rng = np.random.default_rng([7, round(10 * phi)])
        inside = 0
        for _ in range(100):
            sides = [
                made(name, util=np.full(SECONDS, 90.0), training=scattered(rate, phi, rng), work=work)
                for name, rate in (("a", 100.0), ("b", 110.0))
                for work in (Work(amount=rate * SECONDS, unit="samples"),)
            ]
            found = delta(compared(*sides), TRAINING_RATE)
            assert found.interval is not None
            assert found.before is not None
            low, high = (1 + end / found.before for end in found.interval)
            inside += low <= 1.1 <= high
        assert inside >= 88, phi
