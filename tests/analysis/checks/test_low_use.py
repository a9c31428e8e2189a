"""GPUs that work only part of the time, never, not yet or no longer."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import Floats, Recording, analyze, findings_of, steps, unjudged, with_training
from tests.analysis.tables import Table, check, rec, want

PHASES, CALM = steps((97, 300), (42, 300), (97, 300)), steps((9, 900))


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


def test_low_use_is_claimed_by_one_kind_and_recurs_in_phases() -> None:
    four = np.tile(steps((95, 280), (20, 120)), 4)
    uneven = steps(*[step for low in (60, 140, 200, 300) for step in ((95, 400 - low), (20, low))])
    table: Table = {
        "alike": want(rec(util=four), cause="regular phases", length=480, within=12, lost=384, near=16, steps=[]),
        "of unlike lengths": want(rec(util=uneven), cause=None),
    }
    check("low_util_cause_unknown", table)
    for begin in (0, 250, 400, 700):
        run = rec(util=PHASES, cpu=np.where(np.arange(900) < begin, np.nan, 9))
        kinds = [one.kind for one in analyze(run).findings if one.kind in {"underutilised", "low_util_cause_unknown"}]
        assert kinds == ["underutilised" if begin < 450 else "low_util_cause_unknown"], begin


def test_a_badly_fed_loop_is_the_same_finding_at_any_length() -> None:
    for seconds in (35, 60, 97, 121, 130, 150, 300):
        for begun in (0, 17):
            util = np.concatenate([np.zeros(begun), badly_fed(seconds)])
            runs = {"low_util_cause_unknown": rec(util=util), "underutilised": watched(util, np.full(len(util), 12.0))}
            for kind, run in runs.items():
                analysis = analyze(run)
                (one,) = findings_of(analysis, kind)
                below = next(each.observed for each in one.evidence if each.statistic == "share of that time below 50%")
                assert abs((one.lost_gpu_seconds or 0) - float((100 - util[begun:]).sum()) / 100) < 3, (kind, seconds)
                assert (str(one.confidence) == "low") == (seconds < 120), (kind, seconds, begun)
                assert abs(below - float((util[begun:] < 50).mean())) < 0.04, (kind, seconds, begun)
                assert dict(analysis.gpu_time[0].seconds)["short_pauses"] < 3, (kind, seconds, begun)


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


def test_what_an_unused_gpu_makes_of_gaps_and_of_samples_far_apart() -> None:
    analysis = analyze(rec(util=[BUSY, NEVER], memory=[HELD, NEVER]))
    (gap,) = [one for one in findings_of(analysis, "idle_gap") if one.cause == "unused"]
    assert (gap.root, str(gap.severity)) == (findings_of(analysis, "unused_gpu")[0].fingerprint, "warning")
    times = np.array([0, 1, 2, 9, 10, 11, 12, 40]) * 900.0
    run = rec(util=[np.full(8, 60.0), np.zeros(8)], memory=[np.full(8, 40.0)] * 2, times=times, every=900)
    works, unused = (dict(each.seconds) for each in analyze(run).gpu_time)
    assert (works["short_pauses"], unused["short_pauses"], works["low_use"] > 0) == (0, 0, True)
    assert abs(unused["unused"] + unused["no_samples"] - 36000) <= 1


def bursty() -> Recording:
    """Return a job at 2 s whose work comes in single samples all along, with four in a row three times."""
    burst = np.tile(steps((0, 6), (90, 1)), 60)
    work = np.tile(np.concatenate([burst[:140], steps((0, 6), (90, 4))]), 3)
    return rec(util=np.concatenate([np.zeros(30), burst, work, burst, np.zeros(30)]), every=2.0)


SERVES = rec(util=steps((0, 15), (60, 8), (0, 10), (70, 12), (0, 20)), memory=np.full(65, 20))
TWO = rec(util=[steps((0, 40), (97, 2000), (0, 30))] * 2)


def test_start_up() -> None:
    half = np.tile(steps((95, 1), (0, 1)), 60)
    tuned = np.concatenate([np.tile(steps((0, 12), (90, 1)), 4), np.zeros(20), np.full(400, 97.0)])
    table: Table = {
        "of the job, not of a GPU": want(TWO, gpus="", spans=[(0, 39)], lost=78, severity="info"),
        "never works": want(rec(util=np.zeros(100)), severity="warning", cause="no work", gpus=""),
        "light work at first": want(rec(util=steps((8, 100), (0, 100))), cause="no work"),
        "a little all along": want(rec(util=steps((0, 15), (8, 85))), cause="little work"),
        "a little beside nothing": want(rec(util=[np.full(100, 8.0), np.zeros(100)]), cause="no work"),
        "ten minutes between samples": want(
            rec(util=steps((0, 3), (97, 20)), every=600.0), confidence="low", length=1499.5
        ),
        **{
            f"{readings} readings {every:g} s apart": (
                rec(util=steps((0, readings), (97, 300)), every=every),
                [want(confidence=sure)],
            )
            for every, readings, sure in ((1, 40, "high"), (5, 10, "high"), (20, 3, "medium"), (60, 30, "low"))
        },
        "eight GPUs are no more readings": want(
            rec(util=[steps((0, 3), (97, 100))] * 8, every=20.0), confidence="medium"
        ),
        "bursts with memory in use": want(
            rec(util=np.tile(steps((0, 28), (35, 2)), 20), memory=np.full(600, 20)),
            cause="little work",
            evidence={"usual distance": 30},
        ),
        "never works, six readings": want(rec(util=steps((0, 6)), every=600.0), confidence="low"),
        "bursts are work": want(bursty(), length=72, within=8),
        "autotuning is not": want(rec(util=tuned), length=71, within=3),
        "power of work between the samples": want(
            rec(util=np.r_[np.zeros(23), half], power=steps((60, 20), (300, 123)), every=10.0),
            spans=[(0, 195)],
            within=5,
        ),
        "light work before full work": want(
            rec(util=steps((0, 10), (20, 60), (97, 100)), power=steps((60, 10), (65, 60), (300, 100)), every=10.0),
            spans=[(0, 95)],
            within=11,
        ),
    }
    check("startup_idle", table)


def test_tails() -> None:
    light = np.concatenate([np.zeros(5), np.full(60, 90.0), np.tile(steps((0, 1), (7, 1)), 60)])
    table: Table = {
        "of the job": want(TWO, gpus="", spans=[(2039, 2069)]),
        "with two seconds of work in it": want(rec(util=steps((0, 40), (97, 200), (0, 20), (97, 2), (0, 20))), lost=40),
        "an interval late": want(rec(util=steps((97, 200), (0, 9)), every=1.2), length=10.4, evidence={"duration": 11}),
        "ten minutes between samples": want(
            rec(util=steps((97, 20), (0, 3)), every=600.0), confidence="low", length=1500.5
        ),
        "two samples an hour apart": rec(util=steps((97, 2)), every=3600.0),
        "bursts are work": want(bursty(), length=60, within=8),
        "light work after it": want(rec(util=light), confidence="low", length=120, within=3),
        "6 s": rec(util=steps((0, 8), (97, 200), (0, 6))),
        "a model that serves": SERVES,
    }
    check("tail_idle", table)


def trained(util: Floats, first: int, last: int, every: int = 5) -> Recording:
    return with_training(rec(util=util), [(float(second), "loss", 1.0) for second in range(first, last, every)])


def test_steps_of_the_training_disprove_rest() -> None:
    idle, late, early = steps((0, 300)), steps((1, 300), (97, 600)), steps((97, 600), (1, 300))
    evidence = {"steps of the training": 55}
    start: Table = {
        "in the whole log": want(trained(idle, 20, 300), cause="little work", evidence=evidence),
        "before the work": want(trained(late, 20, 900), cause="steps", evidence=evidence),
        "from the work on": want(trained(late, 290, 900), cause=None),
        "in less than half of it": want(trained(late, 160, 900), cause=None),
    }
    check("startup_idle", start)
    check("tail_idle", {"after it": want(trained(early, 0, 900), cause="steps")})
    (found_one,) = findings_of(analyze(trained(idle, 20, 300)), "startup_idle")
    assert found_one.summary.startswith("Training took 55 steps in 4 min 59 s in which no GPU did lasting work")


def test_chance_is_no_low_use_and_losses_are_those_of_the_classes() -> None:
    # At 30 s a job that is busy for three quarters of the time looks low for a quarter of an hour by chance.
    for seed in range(10):
        util = np.where(np.random.default_rng(seed).random(2000) < 0.8, 95, 0)
        seen = analyze(rec(util=util, every=30, cpu=np.full(2000, 9), cpu_every=30))
        blind = analyze(rec(util=util, every=30))
        assert findings_of(seen, "underutilised") + findings_of(blind, "low_util_cause_unknown") == [], seed
    tail = analyze(rec(util=steps((0, 40), (97, 200), (0, 20), (97, 2), (0, 20))))
    assert findings_of(tail, "tail_idle")[0].lost_gpu_seconds == pytest.approx(dict(tail.gpu_time[0].seconds)["tail"])
    light = analyze(rec(util=steps((8, 100), (0, 100))))
    classes = dict(light.gpu_time[0].seconds)
    assert (classes["startup"], classes["idle"], classes["computing"]) == pytest.approx((0, 100, 8), abs=1)
    assert findings_of(light, "startup_idle")[0].lost_gpu_seconds == pytest.approx(
        classes["idle"] + classes["low_use"], abs=1
    )


def test_what_is_not_assessed() -> None:
    absent = rec(power=steps((100, 60)))
    for kind in ("startup_idle", "tail_idle"):
        check(
            kind,
            {
                "no utilisation": (absent, "not_recorded", "gpu_utilization_ratio"),
                **{
                    f"one reading at the edge, {every:g} s": (
                        rec(util=steps((0, 1), (97, 20), (0, 1)), every=every),
                        "single_reading",
                    )
                    for every in (30.0, 60.0, 1000.0)
                },
            },
        )
    times = [0.0, 0.2, 0.4, 0.6, 0.8, 15.0, 15.2, 15.4, 15.6]
    table: Table = {"two moments": (rec(util=steps((8, 9)), times=times, every=0.2), "too_short")}
    check("startup_idle", table)


def test_starts_that_are_none_and_few_readings() -> None:
    table: Table = {
        "8 s": rec(util=steps((0, 8), (97, 200), (0, 6))),
        "a late rank": rec(util=[steps((97, 300)), steps((0, 20), (97, 280))]),
        "a model that serves": SERVES,
        "three samples": rec(util=steps((50, 3))),
        "three samples of one moment": rec(util=steps((50, 3)), every=0.0),
    }
    check("startup_idle", table)
    for samples, every in ((2, 14.0), (2, 600.0), (4, 60.0)):
        analysis = analyze(rec(util=steps((0, samples)), every=every))
        assert analysis.findings == (), (samples, every)
        assert [entry.code for entry in unjudged(analysis, "startup_idle")] == ["too_few_samples"], (samples, every)
        asked = {str(each.outcome) for each in analysis.answers if each.kind in {"idle_gap", "hollow_util"}}
        assert asked == {"cannot judge"}, (samples, every)
