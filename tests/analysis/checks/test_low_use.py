"""GPUs that work only part of the time, never, not yet or no longer."""

from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, analyze, findings_of, steps, with_training
from tests.analysis.tables import Hold, rec

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


def test_low_use_beside_a_calm_machine(hold: Hold) -> None:
    two = steps((97, 200), (40, 200), (97, 200), (40, 200), (97, 200))
    gap = np.concatenate([badly_fed(28), np.zeros(8), badly_fed(28)])
    core = {"core": np.repeat([100.0, 20.0], [40, 24]), "iowait": np.zeros(64)}
    table = {
        "a phase": watched(PHASES),
        "one core and storage not recorded": rec(util=PHASES, cpu=CALM),
        "the phase beside a full CPU is left out": rec(util=two, cpu=steps((9, 200), (95, 200), (9, 600))),
        "two GPUs": rec(util=[PHASES, PHASES], cpu=CALM),
        "a core full for too short": rec(util=gap, cpu=np.full(64, 15.0), host=core),
        "healthy": watched(steps((97, 900))),
        "idle gaps": watched(np.tile(steps((97, 60), (0, 30)), 10)),
        "evaluation": watched(steps((97, 600), (40, 60), (97, 240))),
        "unused": watched(steps((4, 900))),
        "uneven GPUs": watched([steps((97, 900)), PHASES, steps((97, 900)), steps((97, 900))]),
        "one full core": watched(badly_fed(100), np.full(100, 15.0), 100.0),
        "one full core in 45 s": watched(badly_fed(45), np.full(45, 15.0), 100.0),
    }
    hold("underutilised", table)


def test_low_use_of_unknown_cause(hold: Hold) -> None:
    low = steps((97, 300), (30, 300), (97, 300))
    even, torn = np.tile([25.0, 35.0], 10), np.tile([0.0, 100.0, 100.0, 0.0], 5)
    paused = np.concatenate([np.arange(600.0), np.arange(1200.0) + 10 * 86_400])
    table = {
        "a phase": rec(util=low),
        "requests of a second": rec(util=np.tile([98.0, 98, 98, 6, 4], 720)),
        "20 samples that are low for certain": rec(util=even, every=5),
        "after a pause of days": rec(util=steps((97, 900), (40, 600), (97, 300)), times=paused),
        "healthy": rec(util=steps((97, 900))),
        "idle gaps": rec(util=np.tile(steps((97, 60), (0, 60)), 8)),
        "evaluation": rec(util=steps((97, 600), (40, 60), (97, 240))),
        "beside a full CPU": rec(util=low, cpu=steps((20, 300), (95, 300), (20, 300))),
        "beside its gaps": rec(util=np.concatenate([badly_fed(30), np.zeros(540), badly_fed(30)])),
        **{
            f"{seconds} s with short pauses": rec(util=badly_fed(seconds, (0.1, 0.6), (2, 6)))
            for seconds in (35, 60, 97, 121, 130, 150, 300)
        },
        "20 samples all or nothing": rec(util=torn, every=5),
        "five samples in half a day": rec(util=[80, 30, 28, 30, 16], times=[0, 6815, 7041, 7918, 48745], every=877.0),
    }
    hold("low_util_cause_unknown", table)


def test_low_use_is_claimed_by_one_kind_and_recurs_in_phases(hold: Hold) -> None:
    four = np.tile(steps((95, 280), (20, 120)), 4)
    uneven = steps(*[step for low in (60, 140, 200, 300) for step in ((95, 400 - low), (20, low))])
    cpus = {f"CPU from {begin} s on": np.where(np.arange(900) < begin, np.nan, 9) for begin in (0, 250, 400, 700)}
    hold("low_util_cause_unknown", {"alike": rec(util=four), "of unlike lengths": rec(util=uneven)})
    hold("kinds", {name: rec(util=PHASES, cpu=cpu) for name, cpu in cpus.items()})


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


def test_unused_gpus(hold: Hold) -> None:
    stray, memory_stray = np.where(np.arange(300) % 60 == 0, 60.0, 0.0), steps((0, 100), (40, 5), (0, 195))
    times = [0.0, 6800.0, 7000.0, 7900.0, 48700.0]
    half_a_day = rec(util=[np.array([80.0, 70, 75, 60, 30]), np.zeros(5)], times=times, every=900.0)
    bursts = np.where(np.arange(300) % 2 == 0, 100.0, 12.0)
    bursts[::3] = 0
    power = [HELD + 260, HELD + 259]
    known = {count: np.full(300, np.nan) for count in (1, 2, 4)}
    for count, util in known.items():
        util[np.linspace(30, 290, count).astype(int)] = 0.0
    table = {
        "two of three": rec(util=[BUSY, NEVER, NEVER], memory=[HELD, NEVER, NEVER]),
        "one holds memory": rec(util=[BUSY, NEVER, NEVER], memory=[HELD, HELD * 0.75, NEVER]),
        "stray kernels": rec(util=[BUSY, stray]),
        "stray readings without memory": rec(util=[BUSY, memory_stray], memory=[HELD, FEW_MIB]),
        "five samples in half a day": half_a_day,
        "seven of eight": rec(**eight()),
        "in 50 s": rec(**eight(50)),
        "by memory where use is not known": rec(**eight(util=None)),
        "by memory alone": rec(memory=eight()["memory"]),
        "late": rec(util=[BUSY, steps((0, 200), (97, 100))]),
        "none worked": rec(util=[NEVER, NEVER]),
        "at the end": rec(util=[BUSY, steps((0, 280), (97, 20))]),
        "stray readings with memory": rec(util=[BUSY, memory_stray], memory=[HELD, HELD]),
        "no utilisation": rec(util=[BUSY, np.full(300, np.nan)]),
        "used at times": rec(util=[BUSY, bursts], power=power),
        "the power of work": rec(util=[BUSY, NEVER], power=power),
        **{f"{count} samples": rec(util=[BUSY, util], memory=[HELD, HELD]) for count, util in known.items()},
        "memory of none": rec(memory=[FEW_MIB, FEW_MIB]),
        "memory of both": rec(memory=[HELD, HELD]),
    }
    hold("unused_gpu", table)


def test_what_an_unused_gpu_makes_of_gaps_and_of_samples_far_apart(hold: Hold) -> None:
    times = np.array([0, 1, 2, 9, 10, 11, 12, 40]) * 900.0
    far = rec(util=[np.full(8, 60.0), np.zeros(8)], memory=[np.full(8, 40.0)] * 2, times=times, every=900)
    hold("idle_gap, GPU time", {"gaps": rec(util=[BUSY, NEVER], memory=[HELD, NEVER]), "far apart": far})
    brief = rec(
        util=[steps((94, 11)), steps((5, 10), (95, 1))], memory=[steps((32, 11)), steps((20, 10), (22, 1))], every=0.6
    )
    hold("idle_gap, GPU time, summaries", {"brief": brief})


def bursty() -> Recording:
    """Return a job at 2 s whose work comes in single samples all along, with four in a row three times."""
    burst = np.tile(steps((0, 6), (90, 1)), 60)
    work = np.tile(np.concatenate([burst[:140], steps((0, 6), (90, 4))]), 3)
    return rec(util=np.concatenate([np.zeros(30), burst, work, burst, np.zeros(30)]), every=2.0)


SERVES = rec(util=steps((0, 15), (60, 8), (0, 10), (70, 12), (0, 20)), memory=np.full(65, 20))
TWO = rec(util=[steps((0, 40), (97, 2000), (0, 30))] * 2)


def test_start_up(hold: Hold) -> None:
    half = np.tile(steps((95, 1), (0, 1)), 60)
    tuned = np.concatenate([np.tile(steps((0, 12), (90, 1)), 4), np.zeros(20), np.full(400, 97.0)])
    table = {
        "of the job, not of a GPU": TWO,
        "never works": rec(util=np.zeros(100)),
        "light work at first": rec(util=steps((8, 100), (0, 100))),
        "a little all along": rec(util=steps((0, 15), (8, 85))),
        "a little beside nothing": rec(util=[np.full(100, 8.0), np.zeros(100)]),
        "ten minutes between samples": rec(util=steps((0, 3), (97, 20)), every=600.0),
        **{
            f"{readings} readings {every:g} s apart": rec(util=steps((0, readings), (97, 300)), every=every)
            for every, readings in ((1, 40), (5, 10), (20, 3), (60, 30))
        },
        "eight GPUs are no more readings": rec(util=[steps((0, 3), (97, 100))] * 8, every=20.0),
        "bursts with memory in use": rec(util=np.tile(steps((0, 28), (35, 2)), 20), memory=np.full(600, 20)),
        "never works, six readings": rec(util=steps((0, 6)), every=600.0),
        "bursts are work": bursty(),
        "autotuning is not": rec(util=tuned),
        "power of work between the samples": rec(
            util=np.r_[np.zeros(23), half], power=steps((60, 20), (300, 123)), every=10.0
        ),
        "light work before full work": rec(
            util=steps((0, 10), (20, 60), (97, 100)), power=steps((60, 10), (65, 60), (300, 100)), every=10.0
        ),
    }
    hold("startup_idle", table)


def test_tails(hold: Hold) -> None:
    light = np.concatenate([np.zeros(5), np.full(60, 90.0), np.tile(steps((0, 1), (7, 1)), 60)])
    table = {
        "of the job": TWO,
        "with two seconds of work in it": rec(util=steps((0, 40), (97, 200), (0, 20), (97, 2), (0, 20))),
        "an interval late": rec(util=steps((97, 200), (0, 9)), every=1.2),
        "ten minutes between samples": rec(util=steps((97, 20), (0, 3)), every=600.0),
        "two samples an hour apart": rec(util=steps((97, 2)), every=3600.0),
        "bursts are work": bursty(),
        "light work after it": rec(util=light),
        "6 s": rec(util=steps((0, 8), (97, 200), (0, 6))),
        "a model that serves": SERVES,
    }
    hold("tail_idle", table)


def trained(util: Floats, first: int, last: int, every: int = 5) -> Recording:
    return with_training(rec(util=util), [(float(second), "loss", 1.0) for second in range(first, last, every)])


def test_steps_of_the_training_disprove_rest(hold: Hold) -> None:
    idle, late, early = steps((0, 300)), steps((1, 300), (97, 600)), steps((97, 600), (1, 300))
    table = {
        "in the whole log": trained(idle, 20, 300),
        "before the work": trained(late, 20, 900),
        "from the work on": trained(late, 290, 900),
        "in less than half of it": trained(late, 160, 900),
    }
    hold("startup_idle, summaries", table)
    hold("tail_idle", {"after it": trained(early, 0, 900)})


def test_chance_is_no_low_use_and_losses_are_those_of_the_classes(hold: Hold) -> None:
    # At 30 s a job that is busy for three quarters of the time looks low for a quarter of an hour by chance.
    for seed in range(10):
        util = np.where(np.random.default_rng(seed).random(2000) < 0.8, 95, 0)
        seen = analyze(rec(util=util, every=30, cpu=np.full(2000, 9), cpu_every=30))
        blind = analyze(rec(util=util, every=30))
        assert findings_of(seen, "underutilised") + findings_of(blind, "low_util_cause_unknown") == [], seed
    tail, light = rec(util=steps((0, 40), (97, 200), (0, 20), (97, 2), (0, 20))), rec(util=steps((8, 100), (0, 100)))
    hold("startup_idle, tail_idle, GPU time", {"tail": tail, "light work": light})


def test_what_is_not_assessed(hold: Hold) -> None:
    edge, times = steps((0, 1), (97, 20), (0, 1)), [0.0, 0.2, 0.4, 0.6, 0.8, 15.0, 15.2, 15.4, 15.6]
    table = {
        "no utilisation": rec(power=steps((100, 60))),
        **{f"one reading at the edge, {every:g} s": rec(util=edge, every=every) for every in (30.0, 60.0, 1000.0)},
        "two moments": rec(util=steps((8, 9)), times=times, every=0.2),
    }
    hold("startup_idle, tail_idle", table)


def test_starts_that_are_none_and_few_readings(hold: Hold) -> None:
    table = {
        "8 s": rec(util=steps((0, 8), (97, 200), (0, 6))),
        "a late rank": rec(util=[steps((97, 300)), steps((0, 20), (97, 280))]),
        "a model that serves": SERVES,
        "three samples": rec(util=steps((50, 3))),
        "three samples of one moment": rec(util=steps((50, 3)), every=0.0),
        **{
            f"{samples} samples {every:g} s apart": rec(util=steps((0, samples)), every=every)
            for samples, every in ((2, 14.0), (2, 600.0), (4, 60.0))
        },
    }
    hold("startup_idle, kinds, idle_gap, hollow_util", table)
