"""The jobs of a log, their windows and stages, and where every second of every GPU went."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpureport.testing import (
    GPU_TIME_CLASSES,
    START,
    Analysis,
    Floats,
    Recording,
    Source,
    Stage,
    analyze,
    at,
    findings_of,
    steps,
)
from tests.analysis.tables import Table, check, rec, want

WORK, LOAD, EMPTY = (97, 20.0), (0, 8.0), (0, 0.01)
"""Utilisation in per cent and memory in GiB."""


def log(*parts: tuple[tuple[float, float], int]) -> Recording:
    """Return a recording of one GPU that holds each pair of utilisation and memory for a number of samples."""
    util = steps(*((level, count) for (level, _), count in parts))
    return rec(util=util, memory=steps(*((held, count) for (_, held), count in parts)))


def seconds(analysis: Analysis, gpu: int = 0) -> dict[str, float]:
    return {name: amount for name, amount in analysis.gpu_time[gpu].seconds if amount}


def test_two_jobs_have_no_idle_gap_between_them() -> None:
    analysis = analyze(log((WORK, 600), (EMPTY, 7200), (WORK, 600)))
    jobs = [((job.interval.start - START) / 1e6, (job.interval.end - START) / 1e6) for job in analysis.jobs]
    assert jobs == [(0.0, 599.5), (7799.5, 8399.0)]
    assert findings_of(analysis, "idle_gap") == []
    assert seconds(analysis) == pytest.approx({"no_job": 7200, "computing": 1163, "short_pauses": 36}, abs=1)
    (figures,) = analysis.statistics
    utilisation = figures.metric("gpu_utilization_ratio")
    assert utilisation is not None
    assert utilisation.mean == pytest.approx(0.97)
    assert (figures.idle_seconds, analysis.seconds) == pytest.approx((0, 1199))
    assert (analysis.job_gpu_seconds, analysis.no_job_gpu_seconds) == pytest.approx((1199, 7200), abs=1)


def test_start_up_and_tail_of_each_job() -> None:
    parts = ((LOAD, 30), (WORK, 600), (LOAD, 20), (EMPTY, 600), (LOAD, 40), (WORK, 600), (LOAD, 15))
    analysis = analyze(log(*parts))
    many = [part for _ in range(30) for part in ((WORK, 100), (LOAD, 12), (EMPTY, 60))]
    unread = rec(util=steps((97, 600), (np.nan, 300)), memory=steps((20, 600), (0, 300)))
    startup_idle: Table = {
        "of two jobs": (analysis, [want(spans=[(0, 29)]), want(spans=[(649.5, 1289)], cause="restart")]),
        "before memory is taken": want(log((EMPTY, 200), (WORK, 600)), spans=[(0, 199)]),
        "empty for half an hour": log((EMPTY, 1900), (WORK, 600)),
        "as long, with the host at work": want(
            rec(util=steps((0, 1900), (97, 600)), memory=steps((0, 1900), (20, 600)), cpu=np.full(2500, 90)),
            spans=[(0, 1899)],
            evidence={"cpu_utilization_ratio": 0.9},
        ),
    }
    check("startup_idle", startup_idle)
    tail_idle: Table = {
        "of two jobs": (analysis, [want(spans=[(629, 649.5)]), want(spans=[(1889, 1904)])]),
        "with empty memory": want(
            log((WORK, 600), (LOAD, 3), (EMPTY, 300)), severity="info", cause="no job", steps=[], lost=3
        ),
        "with memory in use": want(
            log((WORK, 600), (LOAD, 200), (EMPTY, 300)),
            severity="warning",
            cause=None,
            lost=200,
            evidence={"duration": (200, 0.25)},
        ),
        "of thirty jobs together": (log(*many), [want(severity="warning")] * 30),
        "without utilisation": unread,
    }
    check("tail_idle", tail_idle)
    assert seconds(analysis)["startup"] == pytest.approx(69, abs=1)
    held = seconds(analyze(log((WORK, 600), (LOAD, 200), (EMPTY, 300))))
    assert (held["tail"], held["no_job"]) == pytest.approx((200, 300), abs=1)
    assert "no_job" not in seconds(analyze(log((EMPTY, 200), (WORK, 600))))


def test_a_like_job_within_half_an_hour_is_a_restart() -> None:
    other = rec(util=steps((97, 600), (0, 210), (97, 600)), memory=steps((20, 600), (0.01, 210), (40, 600)))
    table: Table = {
        "with a start-up": want(
            log((WORK, 600), (EMPTY, 210), (LOAD, 118), (WORK, 600)),
            cause="restart",
            lost=118,
            length=328,
            evidence={"share of the run": 328 / 1527},
        ),
        "at once": want(log((WORK, 600), (EMPTY, 420), (WORK, 600)), cause="restart", lost=0, severity="warning"),
        "40 minutes later": log((WORK, 600), (EMPTY, 2400), (WORK, 600)),
        "with other memory": other,
        "three of a series": log(*[(WORK, 600), (EMPTY, 120)] * 3),
    }
    check("startup_idle", table)


def test_a_display_is_no_job() -> None:
    draws = np.tile([1.0, 22.0, 16.0, 3.0, 25.0], 60)
    held = rec(util=steps((1, 3), (97, 60), (1, 120)), memory=steps((0.9, 3), (14, 60), (0.91, 120)), every=10.0)
    drawn = rec(util=np.r_[np.full(200, 95.0), draws], memory=steps((10, 200), (0.3, 300)))
    kept = rec(util=steps((1, 60), (97, 300), (1, 300)), memory=steps((14, 60), (20, 300), (14, 300)))
    grown = rec(util=np.r_[np.full(200, 95.0), draws / 2], memory=steps((14, 200), (2, 300)))
    beside = rec(util=np.r_[draws / 3, np.full(300, 97.0), draws / 3], memory=steps((0.8, 300), (12, 300), (3.5, 300)))
    silent = rec(util=steps((97, 200), (np.nan, 300)), memory=steps((60, 200), (0.1, 300)))
    assert "no_job" not in seconds(analyze(silent))
    for run, free in ((held, 1200), (drawn, 300), (grown, 300), (kept, None), (beside, None)):
        assert seconds(analyze(run)).get("no_job") == (free and pytest.approx(free, rel=0.02))
        assert len(findings_of(analyze(run), "tail_idle")) == (0 if free else 1)
    only = rec(util=np.r_[np.zeros(200), draws], memory=steps((0.4, 100), (0.2, 400)))
    check("startup_idle", {"windows alone": (only, "only_a_display")})


def test_sessions_and_idle_gpus_are_told_from_the_job() -> None:
    later = [10.0 * place for place in (*range(70), *range(3600, 3670))]
    assert len(analyze(rec(util=np.full(140, 50.0), times=later, every=10.0)).jobs) == 2
    soon = [10.0 * place for place in (*range(70), *range(200, 270))]
    assert len(analyze(rec(util=np.full(140, 50.0), times=soon, every=10.0)).jobs) == 1
    run = rec(util=[steps((97, 600)), np.zeros(600)], memory=[steps((20, 600)), steps((0.01, 600))])
    sources = (Source(kind="mlflow", locator="mlruns", sha256=""),)
    tracked = analyze(replace(run, run=replace(run.run, sources=sources)))
    assert [len(findings_of(each, "unused_gpu")) for each in (analyze(run), tracked)] == [1, 0]
    assert [gpu.device for gpu in tracked.gpu_time] == ["gpu:0"]


@pytest.mark.parametrize(("used", "spent"), [(90, 500), (40, 100)])
def test_a_job_that_evaluates_with_more_memory_is_one(used: float, spent: int) -> None:
    parts = [(used, 200), (97, spent), (used, 200)]
    run = rec(util=steps(*parts), memory=steps((20, 200), (40, spent), (20, 200)))
    assert "no_job" not in seconds(analyze(run))


def test_how_many_jobs_a_log_holds() -> None:
    util, memory = steps((97, 300), (0, 300), (97, 300)), steps((20, 300), (0, 300), (20, 300))
    windows = np.concatenate([steps((97, 600)), np.tile([1.0, 9.0, 0.0, 64.0, 3.0], 300), steps((97, 600))])
    desktop = {
        "memory": steps((18.0, 600), (0.3, 1500), (18.0, 600)),
        "power": steps((300, 600), (28, 1500), (300, 600)),
    }
    table = {
        "a process that starts again": (log((WORK, 300), (EMPTY, 40), (WORK, 300)), 1, 1),
        "memory in use": (log((WORK, 300), (LOAD, 300), (WORK, 300)), 1, 1),
        "memory that never shows": (log(((97, 0.0), 300), ((0, 0.0), 300), ((97, 0.0), 300)), 1, 1),
        "more than a display holds": (log(((97, 8.0), 300), ((0, 1.0), 300), ((97, 8.0), 300)), 1, 1),
        "memory not recorded": (rec(util=util), 1, 1),
        "a display holds some": (log((WORK, 300), ((0, 0.3), 300), (WORK, 300)), 2, 0),
        "the power of work": (rec(util=util, memory=memory, power=np.append(60.0, np.full(899, 300.0))), 1, 0),
        "a desktop at idle clocks": (rec(util=windows, **desktop), 2, 0),
        "a process without work": (log((WORK, 300), (EMPTY, 100), (LOAD, 50), (EMPTY, 100), (WORK, 300)), 2, 0),
    }
    got = {name: analyze(run) for name, (run, _, _) in table.items()}
    counts = {name: (len(each.jobs), len(findings_of(each, "idle_gap"))) for name, each in got.items()}
    assert counts == {name: (jobs, gaps) for name, (_, jobs, gaps) in table.items()}
    assert ["no_job" in seconds(got[name]) for name in ("memory in use", "the power of work")] == [False, False]
    assert seconds(got["a process without work"])["startup"] == pytest.approx(50, abs=1)


def test_jobs_of_several_gpus() -> None:
    util, memory = steps((97, 600), (0, 600)), steps((20, 600), (0, 600))
    turns = analyze(rec(util=[util, util[::-1]], memory=[memory, memory[::-1]]))
    assert findings_of(turns, "idle_gap") + findings_of(turns, "unused_gpu") == []
    assert [seconds(turns, gpu)["no_job"] for gpu in (0, 1)] == pytest.approx([600, 600], abs=1)
    util, memory = steps((97, 600), (0, 3600), (97, 600)), steps((20, 600), (0, 3600), (20, 600))
    alone = analyze(rec(util=[util, 0 * util], memory=[memory, 0 * memory]))
    table: Table = {"while jobs run": want(alone, gpus="1", lost=1200, near=3)}
    check("unused_gpu", table)
    assert seconds(alone, 1)["no_job"] == pytest.approx(3600, abs=1)


def window(run: Recording) -> tuple[float, float] | None:
    steady = [phase.interval for phase in analyze(run).phases if phase.kind == "steady"]
    return ((steady[0].start - START) / 1e6, (steady[0].end - START) / 1e6) if steady else None


def test_the_window_of_a_job() -> None:
    loop = np.tile(steps((95, 5), (0, 4)), 40)
    bursts = np.concatenate([np.zeros(50), loop, np.full(10, 95.0), loop])
    two = [steps((0, 20), (95, 60), (0, 80)), steps((0, 40), (95, 90), (0, 30))]
    table = {
        "work of any GPU": (rec(util=two), (19.0, 129.0)),
        "one kernel is no work": (rec(util=steps((0, 20), (100, 1), (0, 30), (95, 60))), (50.0, 110.0)),
        "no work": (rec(util=steps((0, 60))), None),
        "every other sample at 30 s": (rec(util=[0, 0, 0, *[95, 0] * 30], every=30.0), (74.5, 1844.5)),
        "short bursts": (rec(util=bursts, every=0.1), (4.45, 77.05)),
    }
    for name, (run, expected) in table.items():
        assert window(run) == (expected and pytest.approx(expected, abs=0.1)), name


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


def test_figures_of_stages() -> None:
    plain = staged(*["preprocessing"] * 6, *["training"] * 12, util=[*steps((20, 6), (90, 12))])
    names = [*["training"] * 10, *["validation"] * 10, *["training"] * 10, *[None] * 5]
    nested = staged(*names, util=[*steps((90, 10), (0, 10), (90, 10), (10, 5))])
    table = {
        "plain": (plain, [("preprocessing", 0.2, 60.0, 0.0), ("training", 0.9, 120.0, 0.0)]),
        "nested": (nested, [("training", 0.9, 200.0, 0.0), ("validation", 0.0, 100.0, 100.0)]),
    }
    for name, (run, expected) in table.items():
        got = []
        for stage in analyze(run).stages:
            (figures,) = stage.statistics
            mean = figures.metric("gpu_utilization_ratio")
            got.append((stage.stage, mean and round(mean.mean, 6), figures.observed_seconds, figures.idle_seconds))
        assert got == expected, name
    run = rec(util=[50.0] * 5)
    named = Stage(name="training", start=at(0), end=at(4))
    assert [analyze(each).stages for each in (run, replace(run, run=replace(run.run, stages=(named,))))] == [(), ()]


RUNS = st.lists(
    st.tuples(st.sampled_from([0.0, 3.0, 30.0, 97.0, float("nan")]), st.integers(1, 60)), min_size=2, max_size=10
)
Parts = list[tuple[float, int]]


def classes(run: Recording, gpu: int = 0) -> dict[str, float]:
    return dict(analyze(run).gpu_time[gpu].seconds)


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


def test_each_class_gets_its_time() -> None:
    times = np.arange(430.0)
    times[300:] += 60
    heat = steps((0, 100), (1, 50), (0, 280))
    util, cpu = steps((97, 300), (30, 300), (97, 300)), steps((20, 300), (95, 300), (20, 300))
    whole = rec(
        util=steps((0, 40), (97, 200), (0, 20), (97, 140), (0, 30)),
        times=times,
        sw_thermal_slowdown=heat,
        clock=1400 - 280 * heat,
    )
    gone = np.concatenate([np.full(200, 95.0), np.full(100, np.nan)])
    lost = rec(util=[np.full(300, 95.0), gone], power=[np.full(300, 300.0), np.where(np.isnan(gone), gone, 300)])
    both = steps((0, 100), (1, 60), (0, 140))
    heats = {"sw_thermal_slowdown": both, "hw_slowdown": both, "hw_power_brake_slowdown": both}
    chance = np.where(np.random.default_rng(3).random(300) < 0.55, 0, 95)
    table: dict[str, tuple[dict[str, float], dict[str, float]]] = {
        "one of each": (
            classes(whole),
            {"computing": 340 * 0.97 - 10, "short_pauses": 340 * 0.03, "throttled": 10, "idle": 20, "startup": 39}
            | {"tail": 30, "no_samples": 60, "hollow": 0, "low_use": 0, "waiting_for_input": 0, "unused": 0},
        ),
        "the share without work waits": (classes(rec(util=util, cpu=cpu)), {"waiting_for_input": 210}),
        "a GPU that is lost": (classes(lost, 1), {"gpu_lost": 100, "no_samples": 0}),
        "its peer": (classes(lost), {"gpu_lost": 0}),
        "no utilisation": (classes(rec(power=steps((100, 60)))), {"no_samples": 59}),
        "two throttles at once": (classes(rec(util=98, clock=1400 - 700 * both, **heats)), {"throttled": 30}),
        "zeros by chance at 30 s": (classes(rec(util=chance, every=30.0)), {"low_use": 4600, "idle": 0}),
    }
    for name, (got, expected) in table.items():
        near = 500 if "30 s" in name else 5 if "waits" in name else 1.5
        assert {key: got[key] for key in expected} == pytest.approx(expected, abs=near), name


def test_low_use_has_one_amount() -> None:
    util = steps((97, 300), (50, 300), (97, 300))
    times = np.arange(550.0)
    times[150:] += 100
    torn = steps((97, 60), (50, 200), (0, 30), (50, 200), (97, 60))
    chance = np.where(np.random.default_rng(3).random(300) < 0.55, 0, 95)
    table = {
        "unknown": (rec(util=util), "low_util_cause_unknown"),
        "looked for": (rec(util=util, cpu=steps((20, 900))), "underutilised"),
        "torn": (rec(util=[torn, torn], times=times), "low_util_cause_unknown"),
        "chance at 30 s": (rec(util=chance, every=30.0), "low_util_cause_unknown"),
    }
    lost = {}
    for name, (run, kind) in table.items():
        analysis = analyze(run)
        (one,) = findings_of(analysis, kind)
        seconds = sum(dict(entry.seconds)["low_use"] for entry in analysis.gpu_time)
        assert one.lost_gpu_seconds == pytest.approx(seconds), name
        lost[name] = seconds
    assert lost["unknown"] == pytest.approx(lost["looked for"])
    assert lost["torn"] == pytest.approx(400, rel=0.1)


def test_computing_and_short_pauses_mean_the_same_whatever_was_found() -> None:
    util = steps((97, 300), (50, 300), (97, 300))
    cpus = (steps((20, 300), (95, 300), (20, 300)), None, steps((20, 900)))
    found_times = [classes(rec(util=util, cpu=cpu)) for cpu in cpus]
    assert [entry["computing"] for entry in found_times] == pytest.approx([0.97 * 600 + 150] * 3, abs=3)
    assert [round(entry["waiting_for_input"] / 150) for entry in found_times] == [1, 0, 0]
    assert [round(entry["low_use"] / 150) for entry in found_times] == [0, 1, 1]
    # Whether its samples lie just below or just above 5% makes no difference.
    for level in (0.0, 4.0, 6.0, 11.0):
        got = classes(rec(util=np.append(np.tile(steps((97, 17), (level, 3)), 20), np.full(9, 97))))
        assert got["idle"] == 0, level
        assert got["short_pauses"] == pytest.approx(60 * (1 - level / 100) + 349 * 0.03, abs=2), level


def test_parts_of_a_class_by_cause() -> None:
    util = steps((97, 300), (30, 200), (0, 20), (30, 200), (97, 300), (0, 20), (97, 100))
    (entry,) = analyze(rec(util=util, cpu=steps((20, 300), (95, 420), (20, 420)))).gpu_time
    parts = {(part.name, part.cause): part.seconds for part in entry.parts}
    assert parts[("idle", "unknown")] == pytest.approx(20, abs=1)
    assert parts[("waiting_for_input", "cpu_bound")] == pytest.approx(300, abs=10)
    for name in ("idle", "waiting_for_input"):
        assert sum(part.seconds for part in entry.parts if part.name == name) == pytest.approx(
            dict(entry.seconds)[name]
        )


def test_edges_of_a_job_and_gpus_held_in_turn() -> None:
    for is_seen in (True, False):
        job = np.where(np.isin(np.arange(66), [0, 65]), np.nan, 0.5) if is_seen else np.full(66, 0.5)
        run = rec(util=steps((0, 4), (97, 60), (0, 2)), cpu=steps((20, 66)), host={"cores_of_job": job})
        got = classes(run)
        edges = got["startup"], got["tail"], got["idle"]
        assert edges == pytest.approx((3.5, 1.5, 0) if is_seen else (0, 0, 5), abs=0.6)
    nan, half = np.full(300, np.nan), np.full(300, 95.0)

    def seen(*util: Floats) -> Analysis:
        run = rec(util=np.array(util))
        return analyze(run.with_series(run.series.filter(pc.is_valid(run.series["gpu_utilization_ratio"]))))

    turns, beside = seen(np.r_[half, nan], np.r_[nan, half]), seen(np.full(600, 95.0), np.r_[half, nan])
    held = [(one.in_turn, [round(time.job_seconds, -2) for time in one.gpu_time]) for one in (turns, beside)]
    assert held == [(True, [300, 300]), (False, [600, 600])]
