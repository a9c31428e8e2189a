"""Stretches in which a GPU did nothing while the job was running, and those that recur."""

from dataclasses import replace

import numpy as np

from gpureport.testing import Floats, Recording, Stage, at, steps, with_host, with_training
from tests.analysis.tables import Hold, rec

WORK = 97


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def job(*middle: tuple[float, int], edge: int = 60) -> Floats:
    return steps((WORK, edge), *middle, (WORK, edge))


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


def test_gaps_are_found_where_they_are(hold: Hold) -> None:
    rest = steps((97, 309), (0, 53), (97, 300))
    table = {
        "a log gap between": rec(util=steps((97, 60), (0, 20), (97, 80)), times=[*range(70), *range(200, 290)]),
        "half-way at 0.1 s": rec(util=np.convolve(rest, np.ones(10) / 10, "valid"), every=0.1),
        "repeated rows are one reading": rec(
            every=0.01,
            util=np.repeat(np.r_[rng(0).integers(90, 99, 150), np.zeros(50), rng(1).integers(90, 99, 150)], 20),
        ),
    }
    hold("idle_gap", table)


def test_what_is_not_a_gap(hold: Hold) -> None:
    table = {
        "chance runs at 5 s": rec(util=np.where(rng(3).random(600) < 0.45, 0, 95), every=5.0),
        "power that never changes": rec(util=bursts(), power=27.0, model="NVIDIA L4"),
    }
    hold("idle_gap", table)


def test_the_cause_of_a_gap(hold: Hold) -> None:
    util = [steps((97, 100), (0, 20), (0, 30)), steps((97, 150))]
    back = [steps((97, 100), (0, 20), (97, 30)), steps((97, 150))]
    writes = np.where(np.arange(150) >= 100, 9e8, 1e6)
    table = {
        "peers spin": hung(100, WAITING_DRAW),
        **{
            f"writes, and {name}": with_host(rec(util=used), np.arange(150), host_disk_write_bytes_per_second=writes)
            for name, used in (("work after it", back), ("never back", util))
        },
    }
    hold("idle_gap", table)


def test_gaps_weigh_by_their_share_and_by_what_the_job_is(hold: Hold) -> None:
    run, fed = rec(util=answered()), np.concatenate([answered(), np.full(300, 97.0)])
    labels = (("learning_rate", "0.1"),)
    table = {
        "10 s of an hour": rec(util=steps((97, 1800), (0, 10), (97, 1790))),
        "a fifth": rec(util=steps((97, 100), (0, 60), (97, 100))),
        "quiet hours of a service": rec(util=requests(0.5)),
        "a job at work": rec(util=np.tile(steps((97, 120), (0, 45)), 20)),
        "rare requests": run,
        "the same with params": replace(run, run=replace(run.run, params=labels)),
        "the same with tags": replace(run, run=replace(run.run, tags=labels)),
        "the same with metrics": with_training(run, [(5.0, "train_loss", 1.0), (9.0, "train_loss", 0.9)]),
        "every other work long": rec(util=long_work(20, 200)),
        "all work long": rec(util=long_work(200, 200)),
        "at one pace, at rest most of the time": rec(util=np.tile(steps((95, 6), (0, 24)), 20)),
        "a wait for data is no sign of requests": rec(
            util=fed, cpu=np.where(np.arange(len(fed)) < len(fed) - 300, 95.0, 20.0)
        ),
    }
    hold("idle_gap, periodic_stall", table)


def test_little_work_between_gaps_gets_no_advice_on_training(hold: Hold) -> None:
    chance = rng(6)
    util = steps(*[part for _ in range(400) for part in ((95.0, 2), (0.0, int(chance.exponential(4))))], (95, 5))
    run = rec(util=util, power=np.where(util > 0, 250.0, 60.0))
    hold("low_util_cause_unknown, idle_gap", {"little work": run, "rare requests": rec(util=answered())})


def test_gaps_that_are_not_assessed_and_what_power_confirms(hold: Hold) -> None:
    table = {
        "no utilisation": rec(power=steps((100, 60))),
        "between bursts": rec(util=bursts(), power=np.where(bursts() > 0, 70.0, 27.0)),
        "within a wait": starved(),
    }
    hold("idle_gap", table)


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


def test_stalls(hold: Hold) -> None:
    more = (120, 120, 171, 120, 120, 95, 120, 120)
    table = {
        "six distances of eight, ten gaps": apart(more, 3),
        "six distances of eight, nine gaps": apart(more, 1),
    }
    hold("periodic_stall", table)


def test_a_gap_loses_what_its_class_holds_and_follows_from_a_stall(hold: Hold) -> None:
    hold("idle_gap, periodic_stall, GPU time")


def hosted(metric: str, inside: float, outside: float) -> Recording:
    moments = np.arange(1000)
    paused = np.isin(moments, [start + step for start in STARTS for step in range(1, PAUSE + 1)])
    return with_host(RUN, moments, **{metric: np.where(paused, inside, outside)})


def test_the_cause_of_a_stall(hold: Hold) -> None:
    written = "host_disk_write_bytes_per_second"
    names = ("checkpoint_seconds", "epoch", "time/epoch_time", "val_loss", "train_loss")
    ends = [start + PAUSE - 1.0 for start in STARTS]
    stages = tuple(Stage(name="save_checkpoint", start=at(start), end=at(start + PAUSE)) for start in STARTS)
    table = {
        # the first value of a count begins an epoch, it ends none
        **{name: with_training(RUN, [(end, name, float(n)) for n, end in enumerate(ends)]) for name in names},
        "val_loss all the time": with_training(RUN, [(float(at), "val_loss", 1.0) for at in range(5, 1000, 5)]),
        "stages": replace(RUN, run=replace(RUN.run, stages=stages)),
        "writes": hosted(written, 9e8, 1e6),
        "writes all the time": hosted(written, 9e8, 8e8),
        "writes little": hosted(written, 2e6, 0.0),
    }
    hold("idle_gap, periodic_stall", table)
