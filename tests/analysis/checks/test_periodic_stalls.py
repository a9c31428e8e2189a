"""Idle gaps that recur, and what shows their cause."""

from dataclasses import replace

import numpy as np

from gpureport.testing import Floats, Recording, Stage, analyze, at, findings_of, steps, with_host, with_training
from tests.analysis.tables import Table, check, rec, want

EVERY, PAUSE = 120, 12
STARTS = [30 + EVERY - PAUSE + EVERY * place for place in range(8)]


def stalling(times: int, every: int = EVERY, pause: int = PAUSE) -> Floats:
    parts = [part for _ in range(times) for part in ((97.0, every - pause), (0.0, pause))]
    return steps((97, 30), *parts, (97, every))


def apart(distances: tuple[int, ...], times: int) -> Recording:
    """Return a job whose gaps of 10 s begin at these distances, all of them `times` times."""
    parts = [part for every in distances for part in ((0.0, 10), (97.0, every - 10))]
    return rec(util=steps((97, 60), *parts * times, (0, 10), (97, 60)))


RUN = rec(util=stalling(8))


def test_stalls() -> None:
    missed, other = stalling(8), stalling(12)
    missed[STARTS[4] : STARTS[4] + PAUSE] = 97
    other[400:410] = 0
    few, more = (120, 120, 120, 171), (120, 120, 171, 120, 120, 95, 120, 120)
    starved = np.concatenate([steps((97, 300)), np.tile(steps((95, 10), (0, 10)), 20), steps((97, 300))])
    irregular = [part for n in (40, 150, 65, 300, 90, 220, 55) for part in ((97.0, n), (0.0, 10))]
    table: Table = {
        "eight": want(
            RUN, period=120, lost=96, near=5, severity="warning", cause=None, confidence="medium", length=96, within=5
        ),
        "of two GPUs": want(
            rec(util=[stalling(6)] * 2), gpus="0,1", lost=144, near=7, evidence={"idle time": [12.0, 0.083]}
        ),
        "one missed": want(rec(util=missed), period=120),
        "another gap between": want(rec(util=other), period=120),
        "three distances of four, ten gaps": want(apart(few, 3), period=120),
        "six distances of eight, ten gaps": want(apart(more, 3), period=120),
        "a third of the job": want(rec(util=stalling(8, every=60, pause=20)), severity="problem"),
        "a minute between samples": want(
            rec(util=np.append(np.tile(steps((97, 20), (0, 10)), 8), steps((97, 20))), every=60.0),
            confidence="low",
            period=1800,
        ),
        "pauses of 7 s": want(rec(util=np.tile(steps((97, 10), (0, 7)), 30))),
        "three": rec(util=stalling(3)),
        "irregular": rec(util=steps(*irregular, (97.0, 100))),
        "none": rec(util=steps((97, 1200))),
        "2 s": rec(util=np.tile(steps((97, 118), (0, 2)), 10)),
        "three distances of four, five gaps": apart(few, 1),
        "six distances of eight, nine gaps": apart(more, 1),
        "waits of a starved job": rec(util=starved, cpu=steps((20, 300), (95, 400), (20, 300))),
    }
    check("periodic_stall", table)


def test_gaps_of_a_stall_are_its_consequences() -> None:
    analysis = analyze(RUN)
    (stall,), gaps = findings_of(analysis, "periodic_stall"), findings_of(analysis, "idle_gap")
    assert stall.consequences == (gaps[0].fingerprint,)
    assert ({gap.cause for gap in gaps}, len(stall.intervals)) == ({"periodic"}, 8)


def named(name: str) -> Recording:
    return with_training(RUN, [(start + PAUSE - 1.0, name, float(place)) for place, start in enumerate(STARTS)])


def hosted(metric: str, inside: float, outside: float) -> Recording:
    moments = np.arange(1000)
    paused = np.isin(moments, [start + step for start in STARTS for step in range(1, PAUSE + 1)])
    return with_host(RUN, moments, **{metric: np.where(paused, inside, outside)})


def test_the_cause_of_a_stall() -> None:
    written = "host_disk_write_bytes_per_second"
    always = with_training(RUN, [(float(second), "val_loss", 1.0) for second in range(5, 1000, 5)])
    stages = tuple(Stage(name="save_checkpoint", start=at(start), end=at(start + PAUSE)) for start in STARTS)
    runs = {
        "checkpoint_seconds": (named("checkpoint_seconds"), "checkpoint"),
        "epoch": (named("epoch"), "epoch"),
        "epoch_time": (named("time/epoch_time"), "epoch"),
        "val_loss": (named("val_loss"), "epoch"),
        "train_loss": (named("train_loss"), "periodic"),
        "val_loss all the time": (always, "periodic"),
        "stages": (replace(RUN, run=replace(RUN.run, stages=stages)), "checkpoint"),
        "writes": (hosted(written, 9e8, 1e6), "checkpoint"),
        "writes all the time": (hosted(written, 9e8, 8e8), "periodic"),
        "writes little": (hosted(written, 2e6, 0.0), "periodic"),
    }
    wrong = {}
    for name, (run, cause) in runs.items():
        analysis = analyze(run)
        # the first value of a count begins an epoch, it ends none
        gaps = {gap.cause for gap in findings_of(analysis, "idle_gap") if len(gap.intervals) > 1}
        (stall,) = findings_of(analysis, "periodic_stall")
        if (gaps, stall.cause) != ({cause}, None if cause == "periodic" else cause):
            wrong[name] = gaps, stall.cause
    assert wrong == {}
