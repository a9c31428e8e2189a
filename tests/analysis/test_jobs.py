"""The jobs of a log, their windows and stages, and where every second of every GPU went."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpureport.testing import GPU_TIME_CLASSES, Analysis, Floats, Recording, Source, Stage, analyze, at, steps
from tests.analysis.tables import Hold, rec


def test_start_up_and_tail_of_each_job(hold: Hold) -> None:
    hold("startup_idle, tail_idle, idle_gap, GPU time, jobs")


def test_a_like_job_within_half_an_hour_is_a_restart(hold: Hold) -> None:
    hold("startup_idle")


def test_a_display_is_no_job(hold: Hold) -> None:
    draws = np.tile([1.0, 22.0, 16.0, 3.0, 25.0], 60)
    beside = np.r_[draws / 3, np.full(300, 97.0), draws / 3]
    table = {
        "beside": rec(util=beside, memory=steps((0.8, 300), (12, 300), (3.5, 300))),
    }
    hold("startup_idle, tail_idle, GPU time", table)


def test_sessions_and_idle_gpus_are_told_from_the_job(hold: Hold) -> None:
    later, soon = ([10.0 * place for place in (*range(70), *range(start, start + 70))] for start in (3600, 200))
    run = rec(util=[steps((97, 600)), np.zeros(600)], memory=[steps((20, 600)), steps((0.01, 600))])
    sources = (Source(kind="mlflow", locator="mlruns", sha256=""),)
    table = {
        "ten hours later": rec(util=np.full(140, 50.0), times=later, every=10.0),
        "half an hour later": rec(util=np.full(140, 50.0), times=soon, every=10.0),
        "an idle GPU": run,
        "an idle GPU of a tracker": replace(run, run=replace(run.run, sources=sources)),
    }
    hold("jobs, unused_gpu, GPU time", table)


def test_how_many_jobs_a_log_holds(hold: Hold) -> None:
    hold("jobs, idle_gap, GPU time")


def test_jobs_of_several_gpus(hold: Hold) -> None:
    hold("idle_gap, unused_gpu, GPU time")


def test_the_window_of_a_job(hold: Hold) -> None:
    hold("jobs")


def reach(active: list[bool], share: float) -> int:
    """Return up to which place, counted from the sustained activity, active samples make up at least a share."""
    bursts = [place for place, one in enumerate(active, 1) if one]
    return max((place for count, place in enumerate(bursts, 1) if count >= share * place), default=0)


@given(st.lists(st.sampled_from([0.0, 5.0, 95.0, np.nan]), min_size=2, max_size=40))
@example([95, 0, 0, 95, 95, 0, 0, 95, 95, 95, 0, 0, 0, 0, 95, np.nan, 95])
@example([95, np.nan, np.nan, np.nan, 95, 95])
def test_work_begins_and_ends_with_a_sample_that_has_others_beside_it(use: list[float]) -> None:
    """Sample by sample: an active one, with three of five active from it on, or up to it, in three seconds.

    What is active after the last such sample belongs to the job as long as it comes half as often as within. So do
    three or more active samples before the first, where fewer than 60 of 100 within are active.
    """
    known = [(second, value > 12) for second, value in enumerate(use) if not np.isnan(value)]
    ahead = [[one for at_, one in known if second <= at_ <= second + 3] for second, _ in known]
    behind = [[one for at_, one in known if second - 3 <= at_ <= second] for second, _ in known]
    begun, ended = (
        [row for row, near in enumerate(beside) if known[row][1] and sum(near) >= 0.6 * max(len(near), 2)]
        for beside in (ahead, behind)
    )
    jobs = analyze(rec(util=use)).jobs
    if not begun or not ended:
        assert jobs == ()
        return
    first, last = begun[0], ended[-1]
    active = [one for _, one in known]
    share = sum(active[first : last + 1]) / (last + 1 - first) if first < last else 1.0
    last += reach(active[last + 1 :], share / 2)
    if share < 0.6 and sum(active[:first]) >= 3:
        first -= reach(active[:first][::-1], share / 2)
    assert bool(jobs) == (first <= last)
    if not jobs:
        return
    (own,) = jobs[0].active.values()
    # a reading covers the second before it
    assert (own.start, own.end) == (at(known[first][0] - 1), max(at(known[last][0]), at(known[0][0]) + 1))


def staged(*names: str | None, util: list[float]) -> Recording:
    """Return a recording of one GPU, sampled every 10 s, whose rows belong to stages, None for none."""
    run, known = rec(util=util, every=10.0), list(dict.fromkeys(name for name in names if name))
    column = pa.array(names, pa.string()).dictionary_encode()
    stages = tuple(
        Stage(name=name, start=at(10.0 * names.index(name)), end=at(10.0 * (len(names) - 1 - names[::-1].index(name))))
        for name in known
    )
    series = run.series.append_column("stage", column)
    return replace(run, run=replace(run.run, stages=stages)).with_series(series)


def test_figures_of_stages(hold: Hold) -> None:
    names = [*["training"] * 10, *["validation"] * 10, *["training"] * 10, *[None] * 5]
    run, named = rec(util=[50.0] * 5), Stage(name="training", start=at(0), end=at(4))
    table = {
        "plain": staged(*["preprocessing"] * 6, *["training"] * 12, util=[*steps((20, 6), (90, 12))]),
        "nested": staged(*names, util=[*steps((90, 10), (0, 10), (90, 10), (10, 5))]),
        "none": run,
        "no rows of it": replace(run, run=replace(run.run, stages=(named,))),
    }
    hold("stages", table)


RUNS = st.lists(
    st.tuples(st.sampled_from([0.0, 3.0, 30.0, 97.0, float("nan")]), st.integers(1, 60)), min_size=2, max_size=10
)
Parts = list[tuple[float, int]]


@settings(max_examples=60, deadline=None)
@given(RUNS, RUNS, st.sampled_from([0.1, 1.0, 5.0, 30.0]), st.integers(0, 200))
def test_classes_add_up_to_the_run(one: Parts, other: Parts, every: float, hole: int) -> None:
    length = min(sum(count for _, count in one), sum(count for _, count in other))
    times = np.arange(length) * every
    times[length // 2 :] += hole
    run = rec(
        util=np.stack([steps(*one)[:length], steps(*other)[:length]]),
        times=times,
        every=every,
        cpu=steps((20, length // 2), (95, length - length // 2)),
        cpu_every=every,
        sw_thermal_slowdown=np.arange(length) % 50 < 10,
    )
    for entry in analyze(run).gpu_time:
        assert [name for name, _ in entry.seconds] == list(GPU_TIME_CLASSES)
        assert min(seconds for _, seconds in entry.seconds) >= 0
        assert sum(round(seconds * 1e6) for _, seconds in entry.seconds) == run.run.ended - run.run.started


def test_each_class_gets_its_time(hold: Hold) -> None:
    times = np.arange(430.0)
    times[300:] += 60
    heat = steps((0, 100), (1, 50), (0, 280))
    series = {"sw_thermal_slowdown": heat, "clock": 1400 - 280 * heat}
    both = steps((0, 100), (1, 60), (0, 140))
    heats = {"sw_thermal_slowdown": both, "hw_slowdown": both, "hw_power_brake_slowdown": both}
    table = {
        "one of each": rec(util=steps((0, 40), (97, 200), (0, 20), (97, 140), (0, 30)), times=times, **series),
        "two throttles at once": rec(util=98, clock=1400 - 700 * both, **heats),
    }
    hold("GPU time", table)


def test_low_use_has_one_amount(hold: Hold) -> None:
    times = np.arange(550.0)
    times[150:] += 100
    torn = steps((97, 60), (50, 200), (0, 30), (50, 200), (97, 60))
    chance = np.where(np.random.default_rng(3).random(300) < 0.55, 0, 95)
    table = {"torn": rec(util=[torn, torn], times=times), "zeros by chance at 30 s": rec(util=chance, every=30.0)}
    hold("low_util_cause_unknown, GPU time", table)


def test_edges_of_a_job_and_gpus_held_in_turn(hold: Hold) -> None:
    unseen = np.where(np.isin(np.arange(66), [0, 65]), np.nan, 0.5)
    jobs = {"seen at its edges": unseen, "seen throughout": np.full(66, 0.5)}
    util, cpu = steps((0, 4), (97, 60), (0, 2)), steps((20, 66))
    hold("GPU time", {name: rec(util=util, cpu=cpu, host={"cores_of_job": job}) for name, job in jobs.items()})
    nan, half = np.full(300, np.nan), np.full(300, 95.0)

    def seen(*util: Floats) -> Analysis:
        run = rec(util=np.array(util))
        return analyze(run.with_series(run.series.filter(pc.is_valid(run.series["gpu_utilization_ratio"]))))

    turns, beside = seen(np.r_[half, nan], np.r_[nan, half]), seen(np.full(600, 95.0), np.r_[half, nan])
    held = [(one.in_turn, [round(time.job_seconds, -2) for time in one.gpu_time]) for one in (turns, beside)]
    assert held == [(True, [300, 300]), (False, [600, 600])]
