"""GPUs that are busy in name only, and GPUs that work differently from their peers."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.testing import analyze, findings_of, steps, with_training
from tests.analysis.tables import Hold, rec

BUSY, HUNG = steps((98, 900)), steps((330, 300), (85, 300), (330, 300))
BOARD: dict[str, Any] = {"power_limit": 400, "clock": 1410, "clock_max": 1410}
FULL_CORE = {"core": np.full(900, 100.0)}
MIDDLE = steps((0, 300), (1, 300), (0, 300))


def hollow(**series: Any) -> Any:
    return rec(**({"util": BUSY, "power": HUNG} | BOARD | series))


def test_hollow_gpus(hold: Hold) -> None:
    dead = steps((98, 300), (0, 600))
    twice = steps((330, 300), (85, 100), (330, 300), (85, 100), (330, 100))
    once = steps((330, 700), (85, 100), (330, 100))
    low, many = steps((90, 300), (20, 300), (90, 300)), np.full(900, 90.0)
    unread = {"util": steps((98, 36), (np.nan, 10), (98, 40)), "sw_thermal_slowdown": steps((0, 34), (1, 2), (0, 50))}
    table = {
        "low power": hollow(),
        "idle power at a low clock": hollow(power=steps((330, 300), (60, 300), (330, 300)), clock=300),
        "a hung collective with one dead rank": hollow(
            util=[BUSY, BUSY, dead], power=[HUNG, HUNG, np.minimum(HUNG, steps((330, 300), (60, 600)))]
        ),
        "a peer that works": hollow(util=[BUSY, BUSY], power=[HUNG, steps((330, 900))]),
        "few active multiprocessors": rec(util=BUSY, sm_active=low, received=1.0, sent=1.0),
        "copies without a column that shows them": hollow(power=steps((330, 300), (150, 300), (330, 300))),
        "many that only spin": hollow(sm_active=many),
        "a limit from the table": rec(util=BUSY, power=HUNG),
        "a fall below what it drew": rec(util=BUSY, power=HUNG, model="Some GPU"),
        "up to where utilisation was read": hollow(**unread, power=steps((85, 46), (330, 40)), every=30.0),
        "a GPU that joins the second time": hollow(util=BUSY, power=[twice, once]),
        "never more than half of the power": hollow(power=190),
        "the same at half of the memory's rate": hollow(power=190, memory_controller=60),
        "evaluations that the training log names": with_training(
            hollow(power=np.tile(steps((330, 240), (150, 60)), 3)), [(300.0 * n, "val_loss", 1.0) for n in (1, 2, 3)]
        ),
        "healthy": hollow(power=330),
        "low clock": hollow(
            power=steps((330, 300), (110, 300), (330, 300)), clock=steps((1410, 300), (525, 300), (1410, 300))
        ),
        "power cap": hollow(sw_power_cap=MIDDLE),
        "throttled": hollow(sw_thermal_slowdown=MIDDLE),
        "lowered limit": hollow(power=98, power_limit=100),
        "memory-bound": hollow(dram_active=70),
        "idle": hollow(util=steps((98, 300), (0, 300), (98, 300))),
        "two levels in a few samples": hollow(
            util=np.full(92, 98.0),
            power=np.r_[np.full(40, 330.0), np.tile([90.0, 90, 90, 330], 3), np.full(40, 330.0)],
            every=30.0,
        ),
        "many active multiprocessors": hollow(sm_active=many, power=150),
        "its own load is not idle power": rec(util=BUSY, power=330, power_limit=400, model="Some GPU"),
        "unknown limit": rec(util=BUSY, power=330, model="Some GPU"),
        "4 min at a sample a minute": hollow(util=steps((98, 4)), power=85, every=60.0),
    }
    hold("hollow_util", table)


def test_the_cause_of_hollow_work(hold: Hold) -> None:
    some = steps((330, 300), (150, 300), (330, 300))
    quiet = {"memory_controller": 1}
    pair = {"util": [BUSY, BUSY], "power": [HUNG, HUNG]}
    table: dict[str, dict[str, Any]] = {
        "pegged core, no traffic": {**pair, **quiet, "host": FULL_CORE},
        "the same on a GPU by itself": {**quiet, "host": FULL_CORE},
        "core free": {**quiet, "host": {"core": np.full(900, 30.0)}},
        "pegged core, nearly no power": {**pair, "host": FULL_CORE},
        "copies from the host": {"received": 42.0, "sent": 3.0},
        "copies both ways": {"received": 42.0, "sent": 41.0},
        "traffic": {"memory_controller": 9, "host": FULL_CORE},
        "some power": {"power": some, "host": FULL_CORE},
        "memory full": {"memory": steps((70, 300), (79, 600)), "memory_controller": 8},
        "memory full all along": {"memory": 79.0, "memory_controller": 8},
        "two without a host": {**pair, "cpu": None},
        "one without a host": {"cpu": None},
    }
    hold("hollow_util", {name: hollow(**{"cpu": np.full(900, 20.0)} | series) for name, series in table.items()})


def test_hollow_time_is_not_low_use(hold: Hold) -> None:
    util, power = steps((40, 300), (98, 300), (40, 300)), steps((200, 300), (85, 300), (200, 300))
    hold("hollow_util, low_util_cause_unknown", {"between low use": hollow(util=util, power=power)})


WORK, LESS = steps((97, 900)), steps((97, 300), (58, 300), (97, 300))


def test_uneven_gpus(hold: Hold) -> None:
    waiting = steps((330, 300), (215, 600))
    silent = np.where(LESS < 97, np.nan, WORK)
    pieces = np.concatenate([steps((97, 120)), np.where(np.random.default_rng(3).random(480) < 0.5, 97.0, 0.0)])
    boards = {"util": 98, "power_limit": 400}
    rng = np.random.default_rng(3)
    ahead = steps((85, 120), (35, 120), (85, 120), (35, 120))
    hot = {"sw_thermal_slowdown": [np.zeros(900), np.ones(900), np.zeros(900)], "clock": 1200}
    table = {
        "one of two": rec(util=[WORK, LESS]),
        "by power at full utilisation": rec(
            util=98, power=[waiting, waiting, steps((330, 900)), waiting], power_limit=400
        ),
        "point samples of a wait in one piece": rec(util=[steps((97, 600)), steps((97, 600)), pieces], every=5.0),
        "a peer without a value": rec(util=[silent, LESS, WORK, WORK]),
        "idle": rec(util=[WORK, steps((97, 300), (0, 300), (97, 300)), WORK]),
        "no agreement": rec(util=[steps((97, 300), (level, 600)) for level in (90, 60, 75)]),
        "unused": rec(util=[WORK, np.zeros(900), WORK]),
        "boards differ": rec(**boards, power=[[330.0] * 900, [280.0] * 900, [330.0] * 900]),
        "two levels of power by chance": rec(**boards, power=np.where(rng.random((4, 900)) < 0.5, 330.0, 180.0)),
        "throttled": rec(**boards, **hot, power=[steps((330, 900)), steps((200, 900)), steps((330, 900))]),
        "a slow GPU": rec(**boards, power=[330, 200, 330], clock=[1410, 900, 1410]),
        "hollow": rec(**boards, power=[steps((330, 900)), steps((70, 900)), steps((330, 900))]),
        "a single GPU": rec(util=WORK),
        "a minute in all": rec(util=[steps((97, 60)), steps((50, 60))]),
        "as often ahead as behind": rec(util=[ahead, np.full(480, 60.0), np.full(480, 60.0)]),
    }
    hold("imbalance", table)


def test_samples_of_two_gpus_differ_by_chance_and_what_one_lacks_is_low_use(hold: Hold) -> None:
    # Two GPUs that each work four tenths of the time, seen every 5 s: no stretch of any of ten hours counts.
    for seed in range(10):
        util = [np.where(np.random.default_rng(2 * seed + gpu).random(720) < 0.4, 97.0, 0.0) for gpu in (0, 1)]
        assert findings_of(analyze(rec(util=util, every=5.0)), "imbalance") == [], seed
    for busy in (1, 3):
        hold("imbalance, GPU time", {f"{busy} of four": rec(util=[WORK] * busy + [LESS] * (4 - busy))})


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
