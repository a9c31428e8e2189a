"""GPUs that are busy in name only, and GPUs that work differently from their peers."""

import itertools
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.testing import analyze, findings_of, steps, with_training
from tests.analysis.tables import Table, check, rec, want

BUSY, HUNG = steps((98, 900)), steps((330, 300), (85, 300), (330, 300))
BOARD: dict[str, Any] = {"power_limit": 400, "clock": 1410, "clock_max": 1410}
FULL_CORE = {"core": np.full(900, 100.0)}
MIDDLE = steps((0, 300), (1, 300), (0, 300))


def hollow(**series: Any) -> Any:
    return rec(**({"util": BUSY, "power": HUNG} | BOARD | series))


def test_hollow_gpus() -> None:
    dead = steps((98, 300), (0, 600))
    twice = steps((330, 300), (85, 100), (330, 300), (85, 100), (330, 100))
    once = steps((330, 700), (85, 100), (330, 100))
    low, many = steps((90, 300), (20, 300), (90, 300)), np.full(900, 90.0)
    unread = {"util": steps((98, 36), (np.nan, 10), (98, 40)), "sw_thermal_slowdown": steps((0, 34), (1, 2), (0, 50))}
    table: Table = {
        "low power": want(
            hollow(), spans=[(299.5, 599.5)], within=2, severity="warning", confidence="high", lost=300, near=20
        ),
        "idle power at a low clock": want(hollow(power=steps((330, 300), (60, 300), (330, 300)), clock=300)),
        "a hung collective with one dead rank": want(
            hollow(util=[BUSY, BUSY, dead], power=[HUNG, HUNG, np.minimum(HUNG, steps((330, 300), (60, 600)))]),
            gpus="0,1",
            cause="hang",
            severity="problem",
            lost=600,
            near=10,
        ),
        "a peer that works": want(
            hollow(util=[BUSY, BUSY], power=[HUNG, steps((330, 900))]), gpus="0", cause="straggler"
        ),
        "few active multiprocessors": want(
            rec(util=BUSY, sm_active=low, received=1.0, sent=1.0),
            confidence="high",
            evidence={"gpu_sm_active_ratio": 0.2},
        ),
        "copies without a column that shows them": want(
            hollow(power=steps((330, 300), (150, 300), (330, 300))), cause="launch-bound", confidence="medium"
        ),
        "many that only spin": want(hollow(sm_active=many)),
        "a limit from the table": want(rec(util=BUSY, power=HUNG), confidence="low"),
        "a fall below what it drew": want(rec(util=BUSY, power=HUNG, model="Some GPU"), confidence="low"),
        "up to where utilisation was read": want(
            hollow(**unread, power=steps((85, 46), (330, 40)), every=30.0), spans=[(0, 34 * 30)], within=60
        ),
        "a GPU that joins the second time": (
            hollow(util=BUSY, power=[twice, once]),
            [want(gpus="0"), want(gpus="0,1")],
        ),
        "never more than half of the power": want(hollow(power=190), confidence="medium", cause="launch-bound"),
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
        "unknown limit": (rec(util=BUSY, power=330, model="Some GPU"), "unknown_power_limit", "gpu_power_limit_watts"),
        "no power": (rec(util=BUSY), "not_recorded", "gpu_power_watts"),
        "4 min at a sample a minute": (hollow(util=steps((98, 4)), power=85, every=60.0), "too_short"),
    }
    check("hollow_util", table)


def test_the_cause_of_hollow_work() -> None:
    some = steps((330, 300), (150, 300), (330, 300))
    quiet = {"memory_controller": 1}
    table: dict[str, tuple[dict[str, Any], str | None]] = {
        "pegged core, no traffic": ({"power": [HUNG, HUNG], **quiet, "host": FULL_CORE}, "hang"),
        "the same on a GPU by itself": ({**quiet, "host": FULL_CORE}, None),
        "core free": ({**quiet, "host": {"core": np.full(900, 30.0)}}, None),
        "pegged core, nearly no power": ({"power": [HUNG, HUNG], "host": FULL_CORE}, "hang"),
        "copies from the host": ({"received": 42.0, "sent": 3.0}, "copying"),
        "copies both ways": ({"received": 42.0, "sent": 41.0}, None),
        "traffic": ({"memory_controller": 9, "host": FULL_CORE}, "launch-bound"),
        "some power": ({"power": some, "host": FULL_CORE}, "launch-bound"),
        "memory full": ({"memory": steps((70, 300), (79, 600)), "memory_controller": 8}, "spill"),
        "memory full all along": ({"memory": 79.0, "memory_controller": 8}, "launch-bound"),
        "two without a host": ({"power": [HUNG, HUNG], "cpu": None}, "hang"),
        "one without a host": ({"cpu": None}, None),
    }
    rows = {}
    for name, (series, cause) in table.items():
        util = [BUSY, BUSY] if isinstance(series.get("power"), list) else BUSY
        rows[name] = hollow(**({"util": util, "cpu": np.full(900, 20.0)} | series)), [want(cause=cause)]
    check("hollow_util", rows)


def test_hollow_time_is_not_low_use() -> None:
    util, power = steps((40, 300), (98, 300), (40, 300)), steps((200, 300), (85, 300), (200, 300))
    analysis = analyze(hollow(util=util, power=power))
    parts = [
        part
        for one in analysis.findings
        if one.kind in {"hollow_util", "low_util_cause_unknown"}
        for part in one.intervals
    ]
    ordered = sorted(parts, key=lambda part: part.start)
    assert len(ordered) == 3
    assert all(before.end <= after.start for before, after in itertools.pairwise(ordered))


WORK, LESS = steps((97, 900)), steps((97, 300), (58, 300), (97, 300))


def test_uneven_gpus() -> None:
    waiting = steps((330, 300), (215, 600))
    silent = np.where(LESS < 97, np.nan, WORK)
    pieces = np.concatenate([steps((97, 120)), np.where(np.random.default_rng(3).random(480) < 0.5, 97.0, 0.0)])
    boards = {"util": 98, "power_limit": 400}
    rng = np.random.default_rng(3)
    ahead = steps((85, 120), (35, 120), (85, 120), (35, 120))
    hot = {"sw_thermal_slowdown": [np.zeros(900), np.ones(900), np.zeros(900)], "clock": 1200}
    brief = rec(util=[steps((97, 60)), steps((50, 60))])
    table: Table = {
        "one of four": want(
            rec(util=[WORK, LESS, WORK, WORK]),
            gpus="1",
            spans=[(299.5, 599.5)],
            within=5,
            cause="utilisation",
            severity="warning",
            lost=117,
            near=6,
        ),
        "one that works while three wait": want(rec(util=[WORK, LESS, LESS, LESS]), gpus="0", lost=351, near=20),
        "one of two": want(rec(util=[WORK, LESS]), gpus="1", confidence="medium"),
        "by power at full utilisation": want(
            rec(util=98, power=[waiting, waiting, steps((330, 900)), waiting], power_limit=400),
            gpus="2",
            cause="power",
            lost=None,
        ),
        "point samples of a wait in one piece": want(
            rec(util=[steps((97, 600)), steps((97, 600)), pieces], every=5.0), spans=[(600, 3000)], within=60
        ),
        "a peer without a value": want(rec(util=[silent, LESS, WORK, WORK]), gpus="1", lost=117, near=6),
        "idle": rec(util=[WORK, steps((97, 300), (0, 300), (97, 300)), WORK]),
        "no agreement": rec(util=[steps((97, 300), (level, 600)) for level in (90, 60, 75)]),
        "unused": rec(util=[WORK, np.zeros(900), WORK]),
        "boards differ": rec(**boards, power=[[330.0] * 900, [280.0] * 900, [330.0] * 900]),
        "two levels of power by chance": rec(**boards, power=np.where(rng.random((4, 900)) < 0.5, 330.0, 180.0)),
        "throttled": rec(**boards, **hot, power=[steps((330, 900)), steps((200, 900)), steps((330, 900))]),
        "a slow GPU": rec(**boards, power=[330, 200, 330], clock=[1410, 900, 1410]),
        "hollow": rec(**boards, power=[steps((330, 900)), steps((70, 900)), steps((330, 900))]),
        "a single GPU": rec(util=WORK),
        "a minute in all": (brief, "too_short"),
        "as often ahead as behind": rec(util=[ahead, np.full(480, 60.0), np.full(480, 60.0)]),
    }
    check("imbalance", table)
    assert [each for each in analyze(rec(util=WORK)).not_judged if each.kind == "imbalance"] == []


def test_samples_of_two_gpus_differ_by_chance_and_what_one_lacks_is_low_use() -> None:
    # Two GPUs that each work four tenths of the time, seen every 5 s: no stretch of any of ten hours counts.
    for seed in range(10):
        util = [np.where(np.random.default_rng(2 * seed + gpu).random(720) < 0.4, 97.0, 0.0) for gpu in (0, 1)]
        assert findings_of(analyze(rec(util=util, every=5.0)), "imbalance") == [], seed
    for busy in (1, 3):
        analysis = analyze(rec(util=[WORK] * busy + [LESS] * (4 - busy)))
        (one,) = findings_of(analysis, "imbalance")
        lost = sum(dict(time.seconds)["low_use"] for time in analysis.gpu_time)
        assert one.lost_gpu_seconds is not None
        assert one.lost_gpu_seconds <= lost <= one.lost_gpu_seconds + 0.05 * 300 * (4 - busy)
        parts = [(part.name, part.cause) for time in analysis.gpu_time for part in time.parts]
        assert parts.count(("low_use", "imbalance")) == 4 - busy


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
