"""Rules on changes since a baseline: broken only where the interval excludes the size, never passed on too little."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.testing import Confidence, Finding, Quality, Work, finding
from tests.rules.nights import BROKEN, CANNOT, PASSED, night, of_step, one, told, worked
from tests.statistics.runs import learning, level, made
from tests.support.tables import read_table

LIMIT = "change gpu_utilization_ratio >= -4 points"
SLOWER = "change gpu_seconds_per_1000_work <= 5%"
OLD, STEPS = night("old", 85.0), Work(amount=600, unit="steps")
MINUTES = [60.0 * minute for minute in range(1, 9)]


def ending(name: str, end: float, metric: str = "val_accuracy", step: str | None = None) -> Analysis:
    scale = 100 if end > 1 else 1
    return learning(name, {metric: (MINUTES, [0.2 * scale, 0.5 * scale, *[end] * 6])}, step=step)


DAMAGED = Quality(notes=("The compressed log is cut, and was read up to that point.",))
NIGHTS: dict[str, Callable[[str, float, int], Analysis]] = {
    "noisy": lambda name, mean, seed: night(name, mean, seed=seed),
    "constant": lambda name, mean, _: made(name, util=np.full(1800, mean)),
    "of two minutes": lambda name, mean, seed: night(name, mean, 120, seed),
    "trained": lambda name, end, _: ending(name, end),
    "failed": lambda name, mean, _: night(name, mean, work=STEPS, info={"tags": (("exit_code", "7"),)}),
    "damaged": lambda name, mean, _: night(name, mean, work=STEPS, info={"quality": DAMAGED}),
}
CLOSE = {"noisy": 0.003, "constant": 1e-7, "of two minutes": 0.005}
"""How far a change may be off."""


def test_one_night_breaks_a_limit_that_its_interval_excludes() -> None:
    for kind, before, after, limit, outcome, code in read_table(Path(__file__).with_name("changes.tsv")):
        old, new = (
            NIGHTS[kind](name, float(mean), seed) for seed, (name, mean) in enumerate((("old", before), ("new", after)))
        )
        found = one(limit, new, baseline=[old])
        seen = found.reason_code if code != "-" else "-"
        assert (found.outcome.value, code) == (outcome, seen), (before, after, limit)
        if kind in CLOSE:
            assert found.value == pytest.approx((float(after) - float(before)) / 100, abs=CLOSE[kind]), (kind, after)
        if kind == "noisy":
            assert found.bounds is not None
            assert found.bounds[1] - found.bounds[0] >= 0.04, after


def test_no_share_changes_by_more_than_is_left_of_it() -> None:
    """Two minutes have an interval of 42 points to either side, which ends at 0 and at 100%."""
    old = night("old", 90.0, 120)
    fallen = one(LIMIT, night("new", 28.0, 120, 1), baseline=[old]).bounds
    risen = one("change gpu_utilization_ratio <= 9 points", night("new", 91.0, 120, 1), baseline=[old]).bounds
    assert fallen == pytest.approx((-0.90, -0.20), abs=0.02)
    assert risen is not None
    assert risen[0] < -0.40
    assert risen[1] == pytest.approx(0.10, abs=0.01)
    full = one("change gpu_utilization_ratio <= 4 points", night("n", 99.2, seed=1), baseline=[night("o", 98.9)]).bounds
    assert full is not None
    assert full[1] == pytest.approx(0.011, abs=0.005)


@pytest.mark.parametrize(
    ("every", "limit", "outcome"), [(1.0, "5%", PASSED), (1.0, "3%", CANNOT), (0.1, "3%", BROKEN), (0.1, "5%", PASSED)]
)
def test_work_is_timed_no_finer_than_it_is_sampled(every: float, limit: str, outcome: str) -> None:
    baseline = [worked(f"old {number}", 24.0, 150, every=every) for number in range(3)]
    rule = f"change gpu_seconds_per_1000_work <= {limit}"
    found = one(rule, worked("new", 25.0, 150, every=every), baseline=baseline)
    assert found.outcome.value == outcome
    assert found.bounds is not None
    assert found.bounds[1] - found.bounds[0] == pytest.approx(2 * every / 24, rel=0.5)


def advised(found: str) -> int | None:
    runs = re.search(r"use (\d+) baseline runs", found)
    return runs and int(runs[1])


def test_what_would_settle_a_change_is_computed() -> None:
    for name, seconds, new, limit, expected in read_table(Path(__file__).with_name("settled.tsv")):
        every = 10.0 if float(new) > 1000 else 0.1
        baseline = [worked(f"run-{place}", float(each), every=every) for place, each in enumerate(seconds.split())]
        checked = worked("new", float(new), every=every)
        found = one(f"change gpu_seconds_per_1000_work {limit}", checked, baseline=baseline)
        assert (told(found), str(advised(found.reason) or "-")) == ((CANNOT, "unknown_change"), expected), name


def test_so_many_baseline_runs_will_do() -> None:
    cases: list[tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = [
        ((59.2, 60.0, 60.8), (59.4, 60.6), (60.2,)),
        ((58.4, 61.6), (59.4, 60.6), (59.0, 60.0, 60.4, 61.4)),
        ((60.0,), (61.0,), (59.0, 60.0, 60.4, 61.4)),
    ]
    for baseline, more, checked in cases:
        new = [worked(f"new {each}", each, step="s") for each in checked]
        found = one(SLOWER, *new, baseline=[worked(f"old {each}", each, step="s") for each in baseline])
        assert (found.outcome.value, advised(found.reason)) == (CANNOT, len(baseline + more)), (baseline, more)
        both = [worked(f"old {each}", each, step="s") for each in baseline + more]
        assert one(SLOWER, *new, baseline=both).outcome.value == PASSED, (baseline, more)


def test_what_cannot_be_compared_cannot_pass() -> None:
    cases: list[tuple[str, Analysis, str]] = [
        (LIMIT, OLD, "same_recording"),
        (LIMIT, made("short", util=level(85, 15)), "not_comparable"),
        (LIMIT, made("minute", util=level(84, 40)), "unknown_change"),
        ("change gpu_sm_clock_hertz >= -5%", night("new", 85.0), "not_recorded"),
        ("change training other >= -1", night("new", 85.0), "not_recorded"),
        ("change seconds_to_target <= 50%", night("new", 85.0), "no_target"),
        (SLOWER, night("new", 85.0), "unknown_work"),
        (SLOWER, night("new", 85.0, work=Work(amount=1000, unit="steps")), "unknown_work"),
    ]
    for limit, after, code in cases:
        assert told(one(limit, after, baseline=[OLD])) == (CANNOT, code), limit


def test_changes_are_shares_of_the_other_runs() -> None:
    old, new = made("old", util=level(90), power=200.0), made("new", util=level(90), power=250.0)
    for limit, value, unit in (("10%", 0.25, "1"), ("10 W", 50.0, "W")):
        found = one(f"change gpu_power_watts <= {limit}", new, baseline=[old])
        assert [found.outcome.value, found.unit, found.value] == [BROKEN, unit, pytest.approx(value, abs=1e-3)]
    tonight = night("new", 70.0)
    cases = {LIMIT: (BROKEN, pytest.approx(-0.15, abs=0.005)), "change gpu_sm_clock_hertz >= -5%": (CANNOT, None)}
    for limit, seen in cases.items():
        found = one(limit, tonight, baseline=[night("old", 85.0, seed=1), night("older", 85.0, seed=2), tonight])
        assert (found.outcome.value, found.value, "left out of it" in found.reason) == (*seen, True)


def test_baselines_of_one_value_or_all_gpus() -> None:
    old, new, close = (made(name, util=level(85), memory=gib) for name, gib in (("o", 40.0), ("n", 44.0), ("c", 40.1)))
    rule = "change gpu_memory_used_bytes <= {}%"
    outcomes = [one(rule.format(limit), new, baseline=[old]).outcome.value for limit in (2, 5, 8, 12)]
    assert outcomes == [BROKEN, BROKEN, CANNOT, PASSED]
    assert one(rule.format(2), close, baseline=[old]).outcome.value == CANNOT
    of_one = {"policy": [{"limit": LIMIT, "for": {"gpu": 0}}]}
    assert told(one(of_one, night("new", 85.0, seed=1), baseline=[OLD])) == (CANNOT, "no_gpu_scope")
    work = Work(amount=1000, unit="steps")
    known, unknown = night("a", 85.0, work=work), night("b", 85.0)
    for before, after in ((unknown, known), (known, replace(unknown, run=replace(unknown.run, id="c")))):
        reason = one(SLOWER, after, baseline=[before]).reason
        assert ("in the baseline" in reason, "in this run" in reason) == (before is unknown, before is known)


def having(run: Analysis, *findings: Finding) -> Analysis:
    return replace(run, findings=findings)


def test_only_new_findings_are_new() -> None:
    gap, hole, bound = (finding(kind, (0, 50), lost=50.0) for kind in ("idle_gap", "log_gap", "cpu_bound"))
    new = night("new", 85.0)
    same, more = (
        one("no new warning", having(new, *each), baseline=[having(OLD, gap)]) for each in ((gap,), (gap, hole))
    )
    assert (same.outcome.value, more.outcome.value, more.value) == (PASSED, BROKEN, 1)
    assert told(one("no new warning", having(new, bound), baseline=[having(OLD)])) == (CANNOT, "novelty_not_known")
    unsure = having(new, replace(bound, confidence=Confidence.LOW))
    assert "not counted" in one("no new warning", unsure, baseline=[having(OLD)]).observed


def test_repetitions_speak_for_themselves_and_narrow_changes_of_training() -> None:
    before = of_step([night(f"old {seed}", 85.0 + 0.1 * seed, seed=seed) for seed in range(3)])
    after = of_step([night(f"new {seed}", 83.0 + 0.1 * seed, seed=9 + seed) for seed in range(3)])
    found = one("change gpu_utilization_ratio >= -1 point", *after, baseline=before)
    assert (told(found), found.run) == ((BROKEN, "replicates"), "nightly")
    # the scatter of the repeated side stands for both
    single = of_step([night("new", 70.0, seed=9)])
    assert told(one("change gpu_utilization_ratio >= -1 point", *single, baseline=before)) == (BROKEN, "replicates")
    assert told(one("change gpu_utilization_ratio <= 1 point", *before, baseline=single)) == (BROKEN, "replicates")
    before, after = ([ending(f"{end}-{k}", end + k / 1000, step=str(end)) for k in range(3)] for end in (0.79, 0.785))
    assert told(one("change val_accuracy >= -0.01", *after, baseline=before)) == (PASSED, "replicates")
    losses = [ending(name, 0.4, "val_loss") for name in "ab"]
    assert told(one("change val_loss <= 5 points", losses[1], baseline=losses[:1])) == (CANNOT, "not_a_share")
