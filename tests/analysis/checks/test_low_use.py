"""GPUs that work only part of the time, never, not yet or no longer."""

from typing import Any

import numpy as np

from gpureport.testing import Floats, Recording, analyze, findings_of, steps, with_training
from tests.analysis.tables import Hold, rec

PHASES = steps((97, 300), (42, 300), (97, 300))


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
    gap = np.concatenate([badly_fed(28), np.zeros(8), badly_fed(28)])
    core = {"core": np.repeat([100.0, 20.0], [40, 24]), "iowait": np.zeros(64)}
    table = {
        "a core full for too short": rec(util=gap, cpu=np.full(64, 15.0), host=core),
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
    cpus = {f"CPU from {begin} s on": np.where(np.arange(900) < begin, np.nan, 9) for begin in (0, 250, 400, 700)}
    hold("low_util_cause_unknown")
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


def eight(length: int = 300, util: float | None = 0.0) -> dict[str, Any]:
    """Return series of eight GPUs of which one works and the others hold 0 to 3 MiB."""
    none = np.full(length, np.nan if util is None else util)
    return {
        "util": [steps((0, 5), (97, length - 5)), *[none] * 7],
        "memory": [np.full(length, 40.0), *(np.full(length, gpu % 4 / 1024) for gpu in range(7))],
    }


def test_unused_gpus(hold: Hold) -> None:
    table = {
        "seven of eight": rec(**eight()),
        "in 50 s": rec(**eight(50)),
        "by memory where use is not known": rec(**eight(util=None)),
        "by memory alone": rec(memory=eight()["memory"]),
    }
    hold("unused_gpu", table)


def test_what_an_unused_gpu_makes_of_gaps_and_of_samples_far_apart(hold: Hold) -> None:
    hold("idle_gap, GPU time")
    hold("idle_gap, GPU time, summaries")


def test_start_up(hold: Hold) -> None:
    table = {
        "eight GPUs are no more readings": rec(util=[steps((0, 3), (97, 100))] * 8, every=20.0),
    }
    hold("startup_idle", table)


def test_tails(hold: Hold) -> None:
    hold("tail_idle")


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
    hold("startup_idle, tail_idle, GPU time")


def test_what_is_not_assessed(hold: Hold) -> None:
    hold("startup_idle, tail_idle")


def test_starts_that_are_none_and_few_readings(hold: Hold) -> None:
    hold("startup_idle, kinds, idle_gap, hollow_util")
