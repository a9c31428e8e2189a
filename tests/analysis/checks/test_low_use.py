"""GPUs that work only part of the time: beside a machine that is not full, for an unknown reason, or never."""

from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, analyze, findings_of, steps
from tests.analysis.tables import Table, check, rec, want

PHASES, CALM = steps((97, 300), (42, 300), (97, 300)), steps((9, 900))
WATCHED = {"core": steps((45, 900)), "iowait": steps((1, 900))}


def badly_fed(
    seconds: int, pauses: tuple[float, float] = (0.5, 1.5), bursts: tuple[float, float] = (0.2, 0.9)
) -> Floats:
    """Return the utilisation of a loop that works in bursts with pauses between them, a mean over each second."""
    rng = np.random.default_rng(seconds)
    edges = np.cumsum(np.column_stack([rng.uniform(*bursts, 4 * seconds), rng.uniform(*pauses, 4 * seconds)]).ravel())
    works = np.searchsorted(edges, np.arange(100 * seconds) / 100, side="right") % 2 == 0
    busy: Floats = 100.0 * np.mean(works.reshape(seconds, 100), axis=1)
    return busy


def watched(util: Any, cpu: Any = None, core: float = 45.0) -> Recording:
    rows = np.shape(util)[-1]
    host = {"core": np.full(rows, core), "iowait": np.full(rows, 1.0)}
    return rec(util=util, cpu=np.full(rows, 9.0) if cpu is None else cpu, host=host)


def test_low_use_beside_a_calm_machine() -> None:
    two = steps((97, 200), (40, 200), (97, 200), (40, 200), (97, 200))
    waits = rec(util=two, cpu=steps((9, 200), (95, 200), (9, 600)))
    gap = np.concatenate([badly_fed(28), np.zeros(8), badly_fed(28)])
    core = {"core": np.repeat([100.0, 20.0], [40, 24]), "iowait": np.zeros(64)}
    facts = {"severity": "warning", "confidence": "medium", "ruled_out": 4, "steps": ["profile_step"]}
    table: Table = {
        "a phase": want(watched(PHASES), spans=[(299.5, 599.5)], within=10, lost=174, near=8, **facts),
        "one core and storage not recorded": want(rec(util=PHASES, cpu=CALM), confidence="low", ruled_out=2),
        "the phase beside a full CPU is left out": want(waits, lost=120, near=8),
        "two GPUs": want(rec(util=[PHASES, PHASES], cpu=CALM), gpus="0,1", lost=348, near=16),
        "a core full for too short": want(rec(util=gap, cpu=np.full(64, 15.0), host=core), ruled_out=3),
        "healthy": watched(steps((97, 900))),
        "idle gaps": watched(np.tile(steps((97, 60), (0, 30)), 10)),
        "evaluation": watched(steps((97, 600), (40, 60), (97, 240))),
        "unused": watched(steps((4, 900))),
        "uneven GPUs": watched([steps((97, 900)), PHASES, steps((97, 900)), steps((97, 900))]),
        "one full core": watched(badly_fed(100), np.full(100, 15.0), 100.0),
        "one full core in 45 s": watched(badly_fed(45), np.full(45, 15.0), 100.0),
        "no CPU": (rec(util=PHASES), "not_recorded", "cpu_utilization_ratio"),
    }
    check("underutilised", table)


def test_phases_of_low_use_that_recur() -> None:
    four = np.tile(steps((95, 280), (20, 120)), 4)
    uneven = steps(*[step for low in (60, 140, 200, 300) for step in ((95, 400 - low), (20, low))])
    table: Table = {
        "alike": want(rec(util=four), cause="regular phases", length=480, within=12, lost=384, near=16, steps=[]),
        "of unlike lengths": want(rec(util=uneven), cause=None),
    }
    check("low_util_cause_unknown", table)


def test_low_use_of_unknown_cause() -> None:
    low = steps((97, 300), (30, 300), (97, 300))
    even, torn = np.tile([25.0, 35.0], 10), np.tile([0.0, 100.0, 100.0, 0.0], 5)
    paused = np.concatenate([np.arange(600.0), np.arange(1200.0) + 10 * 86_400])
    begun = 10 * 86_400 + 300.0
    few = rec(util=[80, 30, 28, 30, 16], times=[0, 6815, 7041, 7918, 48745], every=877.0)
    table: Table = {
        "a phase": want(rec(util=low), cause=None, length=300, within=60, evidence={"gpu_utilization_ratio": 0.36}),
        "requests of a second": want(rec(util=np.tile([98.0, 98, 98, 6, 4], 720)), cause=None, steps=["record_more"]),
        "20 samples that are low for certain": want(rec(util=even, every=5)),
        "after a pause of days": want(
            rec(util=steps((97, 900), (40, 600), (97, 300)), times=paused), spans=[(begun, begun + 600)], within=30
        ),
        "healthy": rec(util=steps((97, 900))),
        "idle gaps": rec(util=np.tile(steps((97, 60), (0, 60)), 8)),
        "evaluation": rec(util=steps((97, 600), (40, 60), (97, 240))),
        "beside a full CPU": rec(util=low, cpu=steps((20, 300), (95, 300), (20, 300))),
        "beside its gaps": rec(util=np.concatenate([badly_fed(30), np.zeros(540), badly_fed(30)])),
        **{
            f"{seconds} s with short pauses": rec(util=badly_fed(seconds, (0.1, 0.6), (2, 6)))
            for seconds in (35, 60, 97, 121, 130, 150, 300)
        },
        "20 samples all or nothing": (rec(util=torn, every=5), "too_short"),
        "five samples in half a day": (few, "too_short"),
    }
    check("low_util_cause_unknown", table)


def test_low_use_is_claimed_by_one_kind() -> None:
    for begin in (0, 250, 400, 700):
        run = rec(util=PHASES, cpu=np.where(np.arange(900) < begin, np.nan, 9))
        kinds = [one.kind for one in analyze(run).findings if one.kind in {"underutilised", "low_util_cause_unknown"}]
        assert kinds == ["underutilised" if begin < 450 else "low_util_cause_unknown"], begin


def test_a_badly_fed_loop_is_the_same_finding_at_any_length() -> None:
    wrong = []
    for seconds in (35, 60, 97, 121, 130, 150, 300):
        for begun in (0, 17):
            util = np.concatenate([np.zeros(begun), badly_fed(seconds)])
            runs = {"low_util_cause_unknown": rec(util=util), "underutilised": watched(util, np.full(len(util), 12.0))}
            for kind, run in runs.items():
                analysis = analyze(run)
                (one,) = findings_of(analysis, kind)
                below = next(each.observed for each in one.evidence if each.statistic == "share of that time below 50%")
                is_right = (
                    abs((one.lost_gpu_seconds or 0) - float((100 - util[begun:]).sum()) / 100) < 3,
                    (str(one.confidence) == "low") == (seconds < 120),
                    abs(below - float((util[begun:] < 50).mean())) < 0.04,
                    dict(analysis.gpu_time[0].seconds)["short_pauses"] < 3,
                )
                wrong += [] if all(is_right) else [(kind, seconds, begun, is_right)]
    assert wrong == []


def test_point_samples_of_a_job_that_is_used_well_are_not_low() -> None:
    """At 30 s a job that is busy for three quarters of the time looks low for a quarter of an hour by chance."""
    for seed in range(10):
        util = np.where(np.random.default_rng(seed).random(2000) < 0.8, 95, 0)
        seen = analyze(rec(util=util, every=30, cpu=np.full(2000, 9), cpu_every=30))
        blind = analyze(rec(util=util, every=30))
        assert findings_of(seen, "underutilised") + findings_of(blind, "low_util_cause_unknown") == [], seed


BUSY, NEVER, HELD = steps((0, 20), (97, 280)), np.zeros(300), np.full(300, 40.0)
FEW_MIB = np.full(300, 3 / 1024)


def eight(length: int = 300, util: float | None = 0.0) -> dict[str, Any]:
    """Return series of eight GPUs of which one works and the others hold 0 to 3 MiB."""
    none = np.full(length, np.nan if util is None else util)
    return {
        "util": [steps((0, 5), (97, length - 5)), *[none] * 7],
        "memory": [np.full(length, 40.0), *(np.full(length, gpu % 4 / 1024) for gpu in range(7))],
    }


def test_unused_gpus() -> None:
    stray, memory_stray = np.where(np.arange(300) % 60 == 0, 60.0, 0.0), steps((0, 100), (40, 5), (0, 195))
    times = [0.0, 6800.0, 7000.0, 7900.0, 48700.0]
    half_a_day = rec(util=[np.array([80.0, 70, 75, 60, 30]), np.zeros(5)], times=times, every=900.0)
    seven = "1,2,3,4,5,6,7"
    bursts = np.where(np.arange(300) % 2 == 0, 100.0, 12.0)
    bursts[::3] = 0
    power = [HELD + 260, HELD + 259]
    known = {count: np.full(300, np.nan) for count in (1, 2, 4)}
    for count, util in known.items():
        util[np.linspace(30, 290, count).astype(int)] = 0.0
    table: Table = {
        "two of three": want(
            rec(util=[BUSY, NEVER, NEVER], memory=[HELD, NEVER, NEVER]),
            gpus="1,2",
            severity="warning",
            confidence="high",
            lost=560,
            near=4,
        ),
        "one holds memory": (
            rec(util=[BUSY, NEVER, NEVER], memory=[HELD, HELD * 0.75, NEVER]),
            [want(gpus="1", confidence="medium"), want(gpus="2", confidence="high")],
        ),
        "stray kernels": want(rec(util=[BUSY, stray]), gpus="1"),
        "stray readings without memory": want(rec(util=[BUSY, memory_stray], memory=[HELD, FEW_MIB]), gpus="1"),
        "five samples in half a day": want(half_a_day, confidence="low", lost=2900, near=300),
        "seven of eight": want(rec(**eight()), gpus=seven, confidence="high", lost=2065, near=14),
        "in 50 s": want(rec(**eight(50)), gpus=seven, confidence="high", lost=315, near=14),
        "by memory where use is not known": want(rec(**eight(util=None)), gpus=seven, confidence="medium"),
        "by memory alone": want(rec(memory=eight()["memory"]), gpus=seven),
        "late": rec(util=[BUSY, steps((0, 200), (97, 100))]),
        "none worked": rec(util=[NEVER, NEVER]),
        "at the end": rec(util=[BUSY, steps((0, 280), (97, 20))]),
        "stray readings with memory": rec(util=[BUSY, memory_stray], memory=[HELD, HELD]),
        "no utilisation": (rec(util=[BUSY, np.full(300, np.nan)]), "gpu:1 not_recorded", "gpu_utilization_ratio"),
        "used at times": (rec(util=[BUSY, bursts], power=power), "gpu:1 used_at_times"),
        "the power of work": (rec(util=[BUSY, NEVER], power=power), "gpu:1 drew_power_of_work"),
        **{
            f"{count} samples": (rec(util=[BUSY, util], memory=[HELD, HELD]), "gpu:1 too_few_samples")
            for count, util in known.items()
        },
        "memory of none": (rec(memory=[FEW_MIB, FEW_MIB]), "not_recorded", "gpu_utilization_ratio"),
        "memory of both": (rec(memory=[HELD, HELD]), "not_recorded", "gpu_utilization_ratio"),
    }
    check("unused_gpu", table)


def test_gaps_of_an_unused_gpu_are_as_severe_as_itself() -> None:
    analysis = analyze(rec(util=[BUSY, NEVER], memory=[HELD, NEVER]))
    (gap,) = [one for one in findings_of(analysis, "idle_gap") if one.cause == "unused"]
    assert (gap.root, str(gap.severity)) == (findings_of(analysis, "unused_gpu")[0].fingerprint, "warning")


def test_samples_far_apart_show_no_short_pauses() -> None:
    times = np.array([0, 1, 2, 9, 10, 11, 12, 40]) * 900.0
    run = rec(util=[np.full(8, 60.0), np.zeros(8)], memory=[np.full(8, 40.0)] * 2, times=times, every=900)
    works, unused = (dict(each.seconds) for each in analyze(run).gpu_time)
    assert (works["short_pauses"], unused["short_pauses"], works["low_use"] > 0) == (0, 0, True)
    assert abs(unused["unused"] + unused["no_samples"] - 36000) <= 1
