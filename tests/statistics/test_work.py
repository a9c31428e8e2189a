"""Figures per unit of work: what counts it, what its rate rests on, and what it cost."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from gpureport import Analysis
from gpureport.testing import Verdict, Work
from tests.statistics.runs import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    TRAINING_RATE,
    WORK_RATE,
    Points,
    compared,
    delta,
    document,
    level,
    made,
    rates,
    reason,
    thrice,
)
from tests.support.tables import read_table

START_UP, TRAINED = 60, 240
SERIES = {"basis": "series", "names": ["images_per_second"]}
PHASE = {"basis": "steady_phase", "names": []}


def run(name: str, training: Points, **more: object) -> Analysis:
    given = {"util": level(90, 1200, len(name)), "power": 300.0} | more
    return made(name, training=training, **given)  # type: ignore[arg-type]  # keywords of several types


def counted(each_second: float, seconds: int = 1200, every: int = 5) -> Points:
    return [(float(t), round(each_second * t), "loss", 2.0 - t / seconds) for t in range(1, seconds, every)]


def stated(amount: float, unit: str = "steps") -> Work:
    return Work(amount=amount, unit=unit)


def units(*runs: Analysis) -> list[str | None]:
    return [step["work_unit"] for step in document(*runs)["steps"]]


def test_what_counts_the_work_is_known_by_the_name_of_a_metric() -> None:
    for unit, names in read_table(Path(__file__).with_name("units.tsv")):
        for name in names.split():
            # a single step, so that no counter of steps tells anything
            points = [(seconds, 0, other, value) for seconds, _, other, value in rates(100.0, name=name)]
            assert units(run("a", points), run("bb", points)) == [None if unit == "-" else unit] * 2, name
    images, samples = run("a", rates(100.0, name="images_per_s")), run("b", rates(100.0, seed=1))
    assert units(images, samples) == ["samples"] * 2


def test_repetitions_by_throughput_and_rates_in_milliseconds_and_counters() -> None:
    old, new = (
        [run(f"{s}{k}", rates(r + k, seed=k), step=s) for k in range(3)] for s, r in (("old", 100.0), ("new", 150.0))
    )
    found = delta(compared(*old, *new), PER_WORK)
    assert (found.verdict, found.basis) == (Verdict.BETTER, "replicates")
    assert found.difference == pytest.approx(10 / 1.5 - 10, rel=0.05)
    seconds, thousandths = run("a", rates(0.5, name="step_time")), run("b", rates(500.0, name="step_time_ms"))
    found = delta(compared(seconds, thousandths), TRAINING_RATE)
    assert (found.before, found.after) == pytest.approx((2, 2), rel=0.01)
    anew = [(t, step % 500, "loss", 2.0) for t, step, *_ in counted(2.0)]
    two = [one for t, step, *_ in counted(2.0) for one in ((t, step, "loss", 2.0), (t + 1, step // 400, "loss", 2.0))]
    for points in (counted(2.0), anew, two):
        stepped = compared(run("a", points), run("b", points))
        found = stepped.steps[0].work_unit, delta(stepped, WORK_RATE).before
        assert found == ("steps", pytest.approx(2.0, rel=0.02))


def test_steps_of_another_batch_are_counted_in_samples() -> None:
    sizes = (
        "batch_size per_device_train_batch_size batch parameters/batch args.batch train/global_batch total_train_batch"
    )
    others = "eval_batch_size val/eval_batch log_every_batch num_batches"
    for name in f"{sizes} {others}".split():
        is_size = name in sizes.split()
        small, large = run("a", counted(4.0), params={name: "32"}), run("b", counted(2.0), params={name: "64"})
        found = compared(small, large)
        assert [step.work_unit for step in found.steps] == ["samples" if is_size else "steps"] * 2, name
        if is_size:
            assert delta(found, WORK_RATE).before == pytest.approx(128, rel=0.01)
            assert delta(found, PER_WORK).verdict is Verdict.NO_CLEAR_CHANGE
    given = [
        made(size, params={"batch_size": size}, work=Work(amount=32768 / int(size), unit="steps"), util=level(90))
        for size in ("64", "256")
    ]
    works = [step.runs[0].analysis.run.work for step in compared(*given).steps]
    assert works == [Work(amount=32768, unit="samples")] * 2


def test_gpu_time_per_work_needs_the_same_unit_of_every_run() -> None:
    found = delta(compared(run("a", rates(100.0)), run("b", rates(100.0, name="tokens_per_second"))), PER_WORK)
    assert (found.verdict, reason(found), found.primary) == (Verdict.NOT_ENOUGH_DATA, "other_work_unit", False)
    tokens = compared(*(made(u, util=level(80, 300), work=Work(amount=10, unit=u)) for u in ("steps", "tokens")))
    assert delta(tokens, PER_WORK).difference is None
    first, second = (made(f"{n}", step="s", util=np.full(601, 90.0), work=stated(n)) for n in (1000, 3000))
    silent, other = made("c", step="s", util=np.full(601, 90.0)), made("z", util=np.full(601, 90.0))
    assert compared(first, second, other).steps[0].value(PER_WORK) == pytest.approx((600 * 200) ** 0.5)
    assert compared(first, silent, other).steps[0].value(PER_WORK) is None


def test_totals_need_the_same_work() -> None:
    cases = {"unknown_work": (None, None), "unequal_work": (5.0, 6.0), "within_usual_noise": (5.0, 5.0)}
    found = {}
    for name, amounts in cases.items():
        given = [None if amount is None else Work(amount=amount, unit="epochs") for amount in amounts]
        runs = [made(f"{name}{k}", util=level(80, 300 + 90 * k, k), work=work) for k, work in enumerate(given)]
        found[name] = delta(compared(*runs), "gpu_seconds")
    assert [each.verdict for each in found.values()] == [Verdict.NOT_ENOUGH_DATA] * 2 + [Verdict.UNCONFIRMED]
    assert [reason(each) for each in found.values()][:2] == ["unknown_work", "unequal_work"]
    unequal = found["unequal_work"].reason
    assert unequal.amount == pytest.approx(0.2)


def test_an_interval_is_no_finer_than_the_samples_it_rests_on() -> None:
    def group(lengths: tuple[int, ...], interval: float | None) -> Mapping[str, dict[str, object]]:
        runs = [
            made(
                f"a{k}", step="a", work=stated(1000), util=level(90, seconds, k), price=2.0, info={"interval": interval}
            )
            for k, seconds in enumerate(lengths)
        ]
        found: Mapping[str, dict[str, object]] = document(*runs, made("z", util=level(90, 400)))["groups"][0]
        return found

    def width(mean: Mapping[str, object]) -> float:
        assert isinstance(mean["interval"], list)
        return float(mean["interval"][1]) / float(str(mean["value"])) - 1

    for interval in (1.0, 10.0):
        found = group((400,) * 3, interval)
        for name in ("work_per_gpu_hour", "cost_per_1000_work"):
            assert width(found[name]) == pytest.approx(interval / 400, rel=0.05), (name, interval)
    fine, coarse = (group((360, 400, 440), interval)["work_per_gpu_hour"] for interval in (1.0, 5.0))
    assert fine["interval"] == coarse["interval"]
    assert group((400,) * 3, None) == group((400,) * 3, 1.0)


def slow_start(name: str, rate: float, *, logged: bool = True, **more: object) -> Analysis:
    first = 640 / (rate / 4)
    times = [START_UP + first + place * 640 / rate for place in range(int((TRAINED - first) * rate / 640))]
    points = [(t, 10 * (k + 1), "images_per_second", rate if k else rate / 4) for k, t in enumerate(times)]
    util = np.concatenate([np.zeros(START_UP), level(90, TRAINED, len(name))])
    return run(name, points if logged else (), util=util, **more)


def sources(*runs: Analysis) -> list[object]:
    return [step["training_source"] for step in document(*runs)["steps"]]


def test_the_whole_job_holds_the_start_up_and_training_alone_does_not() -> None:
    runs = slow_start("a", 100.0), slow_start("b", 100.0)
    (step, _) = compared(*runs).steps
    work = step.runs[0].analysis.run.work
    assert work.unit == "images"
    assert step.value(WORK_RATE) == pytest.approx(work.amount / 300, rel=0.01)
    assert step.value(TRAINING_RATE) == pytest.approx(work.amount / (work.amount / 100 + 3 * 6.4), rel=0.01)
    assert sources(*runs) == [SERIES] * 2


def test_all_steps_take_the_training_rate_from_one_source() -> None:
    done = stated(20_000, "images")
    runs = slow_start("a", 100.0, work=done), slow_start("b", 100.0, logged=False, work=done)
    assert sources(*runs) == [PHASE] * 2
    values = [step.value(TRAINING_RATE) for step in compared(*runs).steps]
    assert values == pytest.approx([20_000 / TRAINED] * 2, rel=0.02)
    three = slow_start("a", 100.0), slow_start("b", 120.0), slow_start("c", 100.0, logged=False)
    assert sources(*three) == [SERIES, SERIES, None]
    first, last = (compared(*three).judged_training(*pair) for pair in (("a", "b"), ("b", "c")))
    assert (first.difference is None, last.verdict, reason(last)) == (False, Verdict.NOT_ENOUGH_DATA, "not_recorded")


def test_work_that_cost_nothing_or_was_stated() -> None:
    work = Work(amount=100.0, unit="steps")
    prices = (("a1", 0.0), ("a2", 2.0), ("b1", 2.0))
    runs = [made(name, step=name[0], work=work, util=level(90), price=price) for name, price in prices]
    found = delta(compared(*runs), COST_PER_WORK)
    assert (found.verdict, reason(found)) == (Verdict.NOT_ENOUGH_DATA, "zero")
    for unit in ("images", "samples"):
        runs = [slow_start("a", 100.0), slow_start("b", 100.0, work=Work(amount=22_000, unit=unit))]
        assert (units(*runs), sources(*runs)) == ([unit] * 2, [SERIES] * 2)
    tokens = compared(slow_start("a", 100.0), slow_start("b", 100.0, work=Work(amount=22_000, unit="tokens")))
    assert delta(tokens, TRAINING_RATE).difference is None


def test_each_rate_is_a_family_of_its_own() -> None:
    steps = (("a", 100.0), ("b", 150.0), ("c", 151.0))
    found = compared(*(slow_start(f"{s}{k}", rate + k, step=s) for s, rate in steps for k in range(3)))
    assert (found.tested, found.training_tested) == (3, 3)
    families = {each.metric: each.family for each in found.deltas if each.family}
    assert families == {PER_WORK: "primary", TRAINING_RATE: "training"}
    links = [found.judged_training(*pair) for pair in (("a", "b"), ("b", "c"))]
    assert [link and link.verdict for link in links] == [Verdict.BETTER, Verdict.NO_CLEAR_CHANGE]


def test_phases_of_equal_length_scatter_as_finely_as_they_were_sampled() -> None:
    """Three runs of 30 s that look alike, a second apart: the phase is known to a thirtieth, so 2% is no change."""
    runs = thrice(lambda done, k: {"util": level(90, 30, k), "work": done}, {"a": stated(1000.0), "b": stated(1020.0)})
    found = delta(compared(*runs), TRAINING_RATE)
    assert found.difference == pytest.approx(0.02 * (found.before or 0))
    assert (found.verdict, found.reason) == (Verdict.NO_CLEAR_CHANGE, None)


def test_cost_counts_gpus_power_and_price() -> None:
    # At 100 a second 1000 samples take 10 s, a cent at 3.60 an hour; at twice the price and half the speed four.
    comparison = compared(run("a", rates(100.0, seed=1), price=3.6), run("b", rates(50.0, seed=2), price=7.2))
    found = delta(comparison, COST_PER_WORK)
    assert (found.before, found.after) == pytest.approx((0.01, 0.04), rel=0.01)
    assert (found.unit, found.verdict, found.interval) == ("currency", Verdict.UNCONFIRMED, None)
    unpriced = delta(compared(run("a", rates(100.0), price=3.6), run("b", rates(100.0))), COST_PER_WORK)
    assert (unpriced.difference, unpriced.verdict, reason(unpriced)) == (None, Verdict.NOT_ENOUGH_DATA, "no_price")
    one = run("one", rates(100.0, seed=1))
    four = run("four", rates(100.0, seed=2), util=np.stack([level(90, 1200, k) for k in range(4)]))
    assert delta(compared(one, four), PER_WORK).difference == pytest.approx(30, rel=0.02)
    saving = delta(compared(one, run("low", rates(100.0, seed=3), power=150.0)), ENERGY_PER_WORK)
    assert saving.difference == pytest.approx(-1500, rel=0.02)
    prices = {"old": 4.0, "new": 2.0}
    comparison = compared(
        *(run(f"{s}{k}", rates(100.0 + k, seed=k), step=s, price=p) for s, p in prices.items() for k in range(3))
    )
    assert delta(comparison, COST_PER_WORK).verdict is Verdict.BETTER
    assert delta(comparison, PER_WORK).verdict is Verdict.NO_CLEAR_CHANGE


def test_runs_that_have_nothing_in_common_have_a_wide_interval_and_no_error() -> None:
    amounts = enumerate((1e-100, 1e100))
    runs = [made(f"{k}", step="s", util=level(90, 120, k), work=stated(each), price=1.0) for k, each in amounts]
    other = made("z", util=level(90, 120))
    group = document(*runs, other)["groups"][0]
    for mean in (group["cost_per_1000_work"], group["work_per_gpu_hour"]):
        assert 0 < mean["interval"][0] < mean["value"] < mean["interval"][1] < float("inf")
    brief = [made(f"b{each}", step="s", util=level(60, each), work=stated(each)) for each in (1200, 40)]
    assert document(*brief, other)["groups"][0]["work_per_gpu_hour"]["interval"] is None


def test_a_group_that_recorded_too_little_says_so() -> None:
    """Utilisation of 15 s is recorded, but too short to judge; a group without any says no more than that."""
    runs = (
        made("a", step="short", util=level(90, 15)),
        made("b", step="short", util=level(90, 12)),
        made("c", step="long", util=level(90, 300)),
        made("d", step="none", memory=np.full(45, 10.0)),
    )
    short, long, none = document(*runs)["groups"]
    assert short["utilisation"] is None
    assert (short["brief"]["run"], short["brief"]["seconds"], short["brief"]["least"]) == ("a", 14.0, 20.0)
    assert (long["utilisation"] is None, long["brief"]) == (False, None)
    assert (none["utilisation"], none["brief"]) == (None, None)


def test_a_run_that_stopped_in_between_counts_less_work() -> None:
    """Ten of 100 steps take 10 s instead of 5 s at the same rate: half of what the rate says of them is a pause."""
    seconds = [5.0 + 5 * place + 5 * max(place - 89, 0) for place in range(100)]
    points = [(at, place + 1, "samples_per_second", 200.0) for place, at in enumerate(seconds)]
    slow, other = (made(name, util=[90.0] * 600, training=points) for name in "ab")
    work = compared(slow, other).steps[0].runs[0].analysis.run.work
    assert work.amount == 100_000
