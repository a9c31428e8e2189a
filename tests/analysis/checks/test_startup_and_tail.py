"""Time before the first work and after the last."""

import numpy as np
import pytest

from gpureport.testing import Floats, Recording, analyze, findings_of, steps, unjudged, with_training
from tests.analysis.tables import Table, check, rec, want


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
        "over 5% of the run": want(rec(util=steps((0, 300), (97, 700))), severity="warning"),
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


def test_what_is_not_a_start_up() -> None:
    table: Table = {
        "8 s": rec(util=steps((0, 8), (97, 200), (0, 6))),
        "a late rank": rec(util=[steps((97, 300)), steps((0, 20), (97, 280))]),
        "a model that serves": SERVES,
        "three samples": rec(util=steps((50, 3))),
        "three samples of one moment": rec(util=steps((50, 3)), every=0.0),
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


def test_losses_are_those_of_the_classes() -> None:
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


def test_a_few_readings_do_not_show_that_a_job_never_works() -> None:
    for samples, every in ((2, 14.0), (2, 600.0), (4, 60.0)):
        analysis = analyze(rec(util=steps((0, samples)), every=every))
        assert analysis.findings == (), (samples, every)
        assert [entry.code for entry in unjudged(analysis, "startup_idle")] == ["too_few_samples"], (samples, every)
        asked = {str(each.outcome) for each in analysis.answers if each.kind in {"idle_gap", "hollow_util"}}
        assert asked == {"cannot judge"}, (samples, every)
