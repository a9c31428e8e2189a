"""Stretches in which a GPU did nothing while the job was running, and those that recur."""

from dataclasses import replace

import numpy as np

from gpureport.testing import Floats, Recording, Stage, analyze, at, findings_of, steps, with_host, with_training
from tests.analysis.tables import Table, check, rec, want

WORK = 97


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def job(*middle: tuple[float, int], edge: int = 60) -> Floats:
    return steps((WORK, edge), *middle, (WORK, edge))


def falling(util: Floats) -> Floats:
    return np.convolve(np.concatenate([np.full(9, util[0]), util]), np.ones(10) / 10, "valid")


def starved() -> Recording:
    """Return a job at 5 s that waits for its data, and 40 s of rest in the midst of that."""
    texture = np.where(rng(5).random(80) < 0.3, 0, 50)
    util = np.concatenate([steps((97, 100)), texture, steps((50, 1), (0, 8), (50, 1)), texture, steps((97, 100))])
    return rec(util=util, cpu=steps((20, 500), (95, 850), (20, 500)), every=5.0)


def bursts() -> Floats:
    """Return a job of which every other run of a few samples is low, and nine low ones in a row in its midst."""
    chance = rng(2)
    parts = [(level, int(chance.integers(1, 4))) for _ in range(60) for level in (95.0, 0.0)]
    return job(*parts, (95, 3), (0, 9), (95, 3), *parts)


def rest_in_power(*high: int) -> Recording:
    power = steps((250, 60), (60, 8), (250, 60))
    power[[60 + place for place in high]] = 250
    power[0] = 60
    return rec(util=job((0, 8)), power=power, every=5.0)


def requests(load: float) -> Floats:
    """Return an hour of a service: busy stretches of short requests, and quiet ones of 45 s."""
    chance = rng(7)
    busy = np.where(chance.random((20, 120)) < load, chance.uniform(30, 100, (20, 120)), 0)
    return np.concatenate([np.append(each, np.zeros(45)) for each in busy] + [np.full(5, 90.0)])


def answered() -> Floats:
    """Return a service: requests that keep the GPU busy for seconds, and come as they come."""
    chance = rng(4)
    lengths = [(int(chance.integers(6, 40)), int(chance.exponential(25)) + 6) for _ in range(40)]
    return steps(*[part for work, rest in lengths for part in ((95.0, work), (0.0, rest))], (95, 30))


def long_work(*work: int) -> Floats:
    """Return a job that stops 8 times as often as there are lengths of work, for 70 s, give or take."""
    chance = rng(8)
    parts = [(u, int(chance.uniform(0.6, 1.4) * n)) for _ in range(8) for w in work for u, n in ((97.0, w), (0.0, 70))]
    return job(*parts)


def hung(used: float, power: Floats) -> Recording:
    stopped, others = steps((97, 100), (0, 120), (97, 180)), np.full(400, float(used))
    return rec(util=[others, stopped, others], power=[power, np.full(400, 80.0), power])


WAITING_DRAW = steps((300, 100), (110, 120), (300, 180))


def test_gaps_are_found_where_they_are() -> None:
    stopped, ranks = steps((97, 100), (0, 120), (97, 180)), steps((97, 300))
    blind = job((0, 10), (np.nan, 5), (0, 10))
    table: Table = {
        "one": want(
            rec(util=steps((97, 100), (0, 20), (97, 380))),
            gpus="0",
            spans=[(99, 119)],
            lost=20,
            confidence="high",
            cause="unknown",
            severity="warning",
        ),
        "a partly idle sample moves the edge": want(
            rec(util=steps((96, 100), (24, 1), (0, 20), (96, 300))), spans=[(99, 120)], within=0.7
        ),
        "two of each GPU": (rec(util=[job((0, 15), (97, 60), (0, 15))] * 2), [want(length=30)] * 2),
        "a stray kernel of a second": want(rec(util=job((0, 10), (18, 1), (0, 10))), spans=[(59, 80)]),
        "a stray kernel in half a second": want(rec(util=job((0, 10), (31, 1), (0, 10))), spans=[(59, 80)]),
        "a log gap between": want(
            rec(util=steps((97, 60), (0, 20), (97, 80)), times=[*range(70), *range(200, 290)]), length=20
        ),
        "nulls of 5 s": want(rec(util=blind), length=25, lost=20),
        "nulls of 14 s": want(rec(util=job((0, 10), (np.nan, 14), (0, 10))), length=20),
        "two samples 30 s apart": want(rec(util=job((0, 2)), every=30.0), length=60, confidence="medium"),
        "two minutes apart": want(rec(util=job((0, 10), edge=30), every=120.0), confidence="low"),
        "off and on": want(rec(util=np.tile(steps((97, 9), (0, 7)), 20), every=5.0), length=19 * 35),
        "momentary power at rest": want(rest_in_power()),
        "half-way at 0.1 s": want(
            rec(util=falling(steps((97, 300), (0, 53), (97, 300))), every=0.1), length=5.3, within=0.2
        ),
        "repeated rows are one reading": want(
            rec(
                every=0.01,
                util=np.repeat(np.r_[rng(0).integers(90, 99, 150), np.zeros(50), rng(1).integers(90, 99, 150)], 20),
            ),
            samples=60,
        ),
        "late ranks": (
            rec(util=[ranks, steps((0, 20), (97, 280)), steps((0, 120), (97, 180))]),
            [want(gpus="1"), want(gpus="2")],
        ),
        "a GPU without utilisation beside it": want(rec(util=[job((0, 20)), np.full(140, np.nan)]), gpus="0"),
        "never used": want(rec(util=[steps((97, 200)), np.zeros(200)]), gpus="1", cause="unused"),
        "alone beside busy GPUs": want(rec(util=[steps((97, 400)), stopped]), gpus="1", cause="peers busy"),
        "all together": (rec(util=[stopped, stopped]), [want(cause="unknown")] * 2),
    }
    check("idle_gap", table)


def test_what_is_not_a_gap() -> None:
    table: Table = {
        "slow": rec(util=job((20, 60))),
        "start-up and tail": rec(util=steps((0, 60), (97, 200), (0, 60))),
        "micro-stalls": rec(util=np.tile(steps((97, 2), (0, 3)), 60)),
        "chance runs at 5 s": rec(util=np.where(rng(3).random(600) < 0.45, 0, 95), every=5.0),
        "averaged power that stays high": rec(
            util=job((0, 8)), power=np.append(60, np.full(127, 250)), every=5.0, model="NVIDIA L4"
        ),
        "momentary power that is high": rest_in_power(1, 2, 4, 5, 7),
        "requests that recur": rec(
            util=np.r_[np.full(300, 97), np.tile(steps((95, 1), (0, 4)), 60), np.full(300, 97)], every=0.1
        ),
        "power that never changes": rec(util=bursts(), power=27.0, model="NVIDIA L4"),
    }
    check("idle_gap", table)


def test_the_cause_of_a_gap() -> None:
    util = [steps((97, 100), (0, 20), (0, 30)), steps((97, 150))]
    back = [steps((97, 100), (0, 20), (97, 30)), steps((97, 150))]
    writes = np.where(np.arange(150) >= 100, 9e8, 1e6)
    memory = steps((20.0, 300), (0.01, 30), (1.0, 10), (20.0, 300))
    check(
        "idle_gap",
        {
            name: (run, [want(cause=cause)])
            for name, (run, cause) in {
                "peers spin": (hung(100, WAITING_DRAW), "hang"),
                "peers work": (hung(100, steps((300, 400))), "peers busy"),
                "peers spin, power unknown": (hung(100, steps((np.nan, 400))), "hang"),
                "peers work, power unknown": (hung(95, steps((np.nan, 400))), "peers busy"),
                "peers do not spin": (hung(95, WAITING_DRAW), "peers busy"),
                "power of 0": (hung(100, steps((0, 400))), "hang"),
                "30 s beside spinning peers": (
                    rec(util=[np.full(310, 100.0), steps((97, 100), (0, 30), (97, 180))]),
                    "unknown",
                ),
                "memory empty": (rec(util=steps((97, 300), (0, 40), (97, 300)), memory=memory), "no process"),
                "writes, and work after it": (
                    with_host(rec(util=back), np.arange(150), host_disk_write_bytes_per_second=writes),
                    "checkpoint",
                ),
                "writes, and never back": (
                    with_host(rec(util=util), np.arange(150), host_disk_write_bytes_per_second=writes),
                    "unknown",
                ),
            }.items()
        },
    )


def test_gaps_weigh_by_their_share_and_by_what_the_job_is() -> None:
    trained = with_training(rec(util=answered()), [(5.0, "train_loss", 1.0), (9.0, "train_loss", 0.9)])
    run = rec(util=answered())
    labels = (("learning_rate", "0.1"),)
    with_params = replace(run, run=replace(run.run, params=labels))
    with_tags = replace(run, run=replace(run.run, tags=labels))
    fed = np.concatenate([answered(), np.full(300, 97.0)])
    cases = {
        "10 s of an hour": (rec(util=steps((97, 1800), (0, 10), (97, 1790))), {"info"}, {"unknown"}),
        "a fifth": (rec(util=steps((97, 100), (0, 60), (97, 100))), {"problem"}, {"unknown"}),
        "quiet hours of a service": (rec(util=requests(0.5)), {"warning"}, {"periodic", "unknown"}),
        "a job at work": (rec(util=np.tile(steps((97, 120), (0, 45)), 20)), {"problem"}, {"periodic"}),
        "rare requests": (run, {"warning"}, {"requests or input"}),
        "the same with params": (with_params, {"problem"}, {"unknown"}),
        "the same with tags": (with_tags, {"problem"}, {"unknown"}),
        "the same with metrics": (trained, {"problem"}, {"unknown"}),
        "every other work long": (rec(util=long_work(20, 200)), {"problem"}, {"unknown"}),
        "all work long": (rec(util=long_work(200, 200)), {"problem"}, {"unknown"}),
        "at one pace, at rest most of the time": (
            rec(util=np.tile(steps((95, 6), (0, 24)), 20)),
            {"warning"},
            {"requests or input"},
        ),
    }
    for name, (log, severities, causes) in cases.items():
        gaps = findings_of(analyze(log), "idle_gap")
        assert ({str(gap.severity) for gap in gaps}, {gap.cause for gap in gaps} - causes) == (severities, set()), name
    assert findings_of(analyze(cases["at one pace, at rest most of the time"][0]), "periodic_stall") == []
    cpu = np.where(np.arange(len(fed)) < len(fed) - 300, 95.0, 20.0)
    told = {gap.cause for gap in findings_of(analyze(rec(util=fed, cpu=cpu)), "idle_gap")}
    assert ("data" in told, "requests or input" in told) == (True, False), "a wait for data is no sign of requests"


def test_little_work_between_gaps_gets_no_advice_on_training() -> None:
    chance = rng(6)
    util = steps(*[part for _ in range(400) for part in ((95.0, 2), (0.0, int(chance.exponential(4))))], (95, 5))
    run = rec(util=util, power=np.where(util > 0, 250.0, 60.0))
    low, gap = (findings_of(analyze(run), kind)[0] for kind in ("low_util_cause_unknown", "idle_gap"))
    assert low.cause == gap.cause == "requests or input"
    assert [step.name for step in low.steps] == ["record_more", "profile_step"]
    training = {"asynchronous_checkpoints", "loader_workers", "persistent_workers", "fewer_evaluations"}
    rare = findings_of(analyze(rec(util=answered())), "idle_gap")[0]
    assert training.isdisjoint(step.name for step in rare.steps)


def test_gaps_that_are_not_assessed_and_what_power_confirms() -> None:
    split = analyze(rec(util=[job((0, 20)), np.full(140, np.nan)]))
    assert [(entry.device, entry.code) for entry in split.not_judged if entry.kind == "idle_gap"] == [
        ("gpu:1", "not_recorded")
    ]
    table: Table = {
        "no utilisation": (rec(power=steps((100, 60))), "not_recorded", "gpu_utilization_ratio"),
        "between bursts": want(rec(util=bursts(), power=np.where(bursts() > 0, 70.0, 27.0)), length=9),
        "within a wait": want(starved(), spans=[(905, 945)], within=5, cause="data"),
    }
    check("idle_gap", table)


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


def test_a_gap_loses_what_its_class_holds_and_follows_from_a_stall() -> None:
    analysis = analyze(rec(util=job((0, 10), (np.nan, 5), (0, 10))))
    (gap,) = findings_of(analysis, "idle_gap")
    assert abs((gap.lost_gpu_seconds or 0) - dict(analysis.gpu_time[0].seconds)["idle"]) < 0.5
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
    for name, (run, cause) in runs.items():
        analysis = analyze(run)
        # the first value of a count begins an epoch, it ends none
        gaps = {gap.cause for gap in findings_of(analysis, "idle_gap") if len(gap.intervals) > 1}
        (stall,) = findings_of(analysis, "periodic_stall")
        assert (gaps, stall.cause) == ({cause}, None if cause == "periodic" else cause), name
