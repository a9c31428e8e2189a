"""GPUs that are busy in name only, and GPUs that work differently from their peers."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.testing import analyze, findings_of, steps, with_training
from tests.analysis.tables import Hold, rec


def test_hollow_gpus(hold: Hold) -> None:
    power = np.tile(steps((330, 240), (150, 60)), 3)
    run = rec(util=98, power=power, power_limit=400, clock=1410, clock_max=1410)
    named = with_training(run, [(300.0 * n, "val_loss", 1.0) for n in (1, 2, 3)])
    hold("hollow_util", {"evaluations that the training log names": named})


def test_the_cause_of_hollow_work(hold: Hold) -> None:
    hold("hollow_util")


def test_hollow_time_is_not_low_use(hold: Hold) -> None:
    hold("hollow_util, low_util_cause_unknown")


def test_uneven_gpus(hold: Hold) -> None:
    pieces = np.concatenate([steps((97, 120)), np.where(np.random.default_rng(3).random(480) < 0.5, 97.0, 0.0)])
    levels = np.where(np.random.default_rng(3).random((4, 900)) < 0.5, 330.0, 180.0)
    table = {
        "point samples of a wait in one piece": rec(util=[steps((97, 600)), steps((97, 600)), pieces], every=5.0),
        "two levels of power by chance": rec(util=98, power_limit=400, power=levels),
    }
    hold("imbalance", table)


def test_samples_of_two_gpus_differ_by_chance_and_what_one_lacks_is_low_use(hold: Hold) -> None:
    # Two GPUs that each work four tenths of the time, seen every 5 s: no stretch of any of ten hours counts.
    for seed in range(10):
        util = [np.where(np.random.default_rng(2 * seed + gpu).random(720) < 0.4, 97.0, 0.0) for gpu in (0, 1)]
        assert findings_of(analyze(rec(util=util, every=5.0)), "imbalance") == [], seed
    hold("imbalance, GPU time")


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([40.0, 65.0, 80.0, 97.0]), min_size=3, max_size=6))
def test_each_gpu_is_set_against_the_median_of_the_others(levels: list[float]) -> None:
    util = [steps((level, 600)) for level in levels]
    named = {device for one in findings_of(analyze(rec(util=util)), "imbalance") for device in one.devices}
    expected = set()
    for place, own in enumerate(levels):
        others = np.delete(np.array(levels), place)
        if abs(own - np.median(others)) > 20 and np.ptp(others) < 12:
            expected.add(f"gpu:{place}")
    assert named == expected
