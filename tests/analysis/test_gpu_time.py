"""Where every second of every GPU went, as an analysis says it."""

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.testing import GPU_TIME_CLASSES, Analysis, Floats, Recording, analyze, findings_of, steps
from tests.analysis.tables import rec

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
    wrong = {}
    for name, (got, expected) in table.items():
        near = 500 if "30 s" in name else 5 if "waits" in name else 1.5
        if {key: got[key] for key in expected} != pytest.approx(expected, abs=near):
            wrong[name] = {key: got[key] for key in expected}
    assert wrong == {}


def test_computing_means_the_same_whatever_was_found() -> None:
    util = steps((97, 300), (50, 300), (97, 300))
    cpus = (steps((20, 300), (95, 300), (20, 300)), None, steps((20, 900)))
    found_times = [classes(rec(util=util, cpu=cpu)) for cpu in cpus]
    assert [entry["computing"] for entry in found_times] == pytest.approx([0.97 * 600 + 150] * 3, abs=3)
    assert [round(entry["waiting_for_input"] / 150) for entry in found_times] == [1, 0, 0]
    assert [round(entry["low_use"] / 150) for entry in found_times] == [0, 1, 1]


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


def test_a_pause_too_short_for_a_gap_is_a_short_pause() -> None:
    """Whether its samples lie just below or just above 5% makes no difference."""
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


def test_short_edges_are_start_up_and_tail_where_the_job_was_seen() -> None:
    for is_seen in (True, False):
        job = np.where(np.isin(np.arange(66), [0, 65]), np.nan, 0.5) if is_seen else np.full(66, 0.5)
        run = rec(util=steps((0, 4), (97, 60), (0, 2)), cpu=steps((20, 66)), host={"cores_of_job": job})
        got = classes(run)
        edges = got["startup"], got["tail"], got["idle"]
        assert edges == pytest.approx((3.5, 1.5, 0) if is_seen else (0, 0, 5), abs=0.6)


def test_gpus_held_in_turn_are_not_counted_side_by_side() -> None:
    nan, half = np.full(300, np.nan), np.full(300, 95.0)

    def seen(*util: Floats) -> Analysis:
        run = rec(util=np.array(util))
        return analyze(run.with_series(run.series.filter(pc.is_valid(run.series["gpu_utilization_ratio"]))))

    turns, beside = seen(np.r_[half, nan], np.r_[nan, half]), seen(np.full(600, 95.0), np.r_[half, nan])
    held = [(one.in_turn, [round(time.job_seconds, -2) for time in one.gpu_time]) for one in (turns, beside)]
    assert held == [(True, [300, 300]), (False, [600, 600])]
