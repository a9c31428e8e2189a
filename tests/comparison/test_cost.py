"""What a unit of work cost, by a price of a GPU-hour that each run carries."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpureport.comparison.chain.step_summaries import summarize_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import COST_PER_WORK, PER_WORK, TRAINING_RATE
from gpureport.comparison.steps.steps import build_steps
from gpureport.testing import Device, Reason, ReasonKind, Verdict, Work
from tests.comparison.runs import compared, delta, level, sampled
from tests.comparison.steps.test_throughput import rates

ENERGY_PER_WORK = "energy_joules_per_1000_work"


def run(name: str, rate: float, price: float | None = None, seed: int = 0, **more: object) -> SampledRun:
    """Return a run of twenty minutes that logs its throughput, with its price."""
    training = rates(rate, seed=seed)
    given: dict[str, Any] = {"util": level(90, 1200, seed), "power": 300.0, "training": training, **more}
    made = sampled(name, **given)
    return replace(made, gpu_hour_price=price)


def test_cost_is_gpu_time_at_its_price() -> None:
    """At 100 a second 1000 samples take 10 s, a cent at 3.60 an hour; at twice the price and half the speed four.

    Of one run each it is one figure, without an interval.
    """
    comparison = compared(run("a", 100.0, 3.6, 1), run("b", 50.0, 7.2, 2))
    found = delta(comparison, COST_PER_WORK)
    assert found.before == pytest.approx(0.01, rel=0.01)
    assert found.after == pytest.approx(0.04, rel=0.01)
    assert (found.unit, found.verdict, found.interval) == ("currency", Verdict.UNCONFIRMED, None)
    seconds = delta(comparison, PER_WORK)
    assert (seconds.before, seconds.after) == pytest.approx((10, 20), rel=0.01)


def test_without_a_price_there_is_no_cost() -> None:
    """One price of two is none, and the reason says so."""
    found = delta(compared(run("a", 100.0, 3.6), run("b", 100.0)), COST_PER_WORK)
    assert (found.difference, found.verdict, found.reason) == (
        None,
        Verdict.NOT_ENOUGH_DATA,
        Reason(kind=ReasonKind.NO_PRICE),
    )


def test_repetitions_make_a_cheaper_step_better() -> None:
    """As fast, at half the price; what GPU time does is not shown to differ."""
    old = [run(f"old{k}", 100.0 + k, 4.0, k, step="old") for k in range(3)]
    new = [run(f"new{k}", 100.0 + k, 2.0, k, step="new") for k in range(3)]
    comparison = compared(*old, *new)
    assert delta(comparison, COST_PER_WORK).verdict is Verdict.BETTER
    assert delta(comparison, PER_WORK).verdict is Verdict.NO_CLEAR_CHANGE


def test_cost_of_whole_runs_where_only_the_total_is_known() -> None:
    """Two GPUs for 300 s and 1000 steps at 6 a GPU-hour: a unit of currency."""
    runs = [
        replace(
            sampled(f"{k}", step=f"s{k}", util=np.stack([level(90, 301)] * 2), work=Work(amount=1000, unit="steps")),
            gpu_hour_price=6.0,
        )
        for k in range(2)
    ]
    found = delta(compared(*runs), COST_PER_WORK)
    assert found.before == pytest.approx(1.0, rel=0.01)
    assert found.window == "whole"


def test_groups_tell_cost_with_its_interval() -> None:
    """By kind of GPU: three runs show how they vary, one does not; without a price there is no cost."""
    devices = {name: Device(id="gpu:0", index=0, model=name) for name in ("L4", "H100")}
    l4 = [run(f"l4-{k}", 20.0 + k / 10, 0.72, k, step="L4", device=devices["L4"]) for k in range(3)]
    h100 = run("h100", 100.0, 3.6, 9, step="H100", device=devices["H100"])
    none = run("none", 100.0, None, 9, step="none")
    found = {group.label: group for group in summarize_steps(list(build_steps([*l4, h100, none])))}
    cheap, dear = found["L4"].cost_per_1000_work, found["H100"].cost_per_1000_work
    assert cheap is not None
    assert dear is not None
    assert (cheap.basis, dear.basis, found["none"].cost_per_1000_work) == ("replicates", None, None)
    assert (found["L4"].models, found["L4"].gpu_hour_price) == (("L4",), 0.72)
    assert cheap.value == pytest.approx(0.01, rel=0.02)
    assert dear.value == pytest.approx(0.01, rel=0.02)
    assert cheap.interval is not None
    assert cheap.interval[0] < 0.01 < cheap.interval[1] < 0.0105


def test_gpus_and_power_count() -> None:
    """Four GPUs that are as fast take four times the GPU time; at half the power half the energy."""
    one = run("one", 100.0, seed=1)
    four = run("four", 100.0, seed=2, util=np.stack([level(90, 1200, k) for k in range(4)]))
    assert delta(compared(one, four), PER_WORK).difference == pytest.approx(30, rel=0.02)
    saving = delta(compared(one, run("low", 100.0, seed=3, power=150.0)), ENERGY_PER_WORK)
    assert saving.difference == pytest.approx(-1500, rel=0.02)


def test_a_run_against_itself_costs_the_same() -> None:
    """Nothing differs, in no figure per unit of work; the interval of the training rate lies around nothing."""
    one = run("one", 100.0, 3.6, seed=1)
    for metric in (COST_PER_WORK, PER_WORK, ENERGY_PER_WORK, "work_rate_hertz"):
        found = delta(compared(one, one), metric)
        assert (found.difference, found.verdict) == (0.0, Verdict.NO_CLEAR_CHANGE)
    rate = delta(compared(one, one), TRAINING_RATE)
    assert (rate.difference, rate.verdict) == (0.0, Verdict.NO_CLEAR_CHANGE)
    assert rate.interval is not None
    assert rate.interval[0] < 0 < rate.interval[1]


def test_runs_that_have_nothing_in_common_have_a_wide_interval_and_no_error() -> None:
    """Two runs whose amounts of work lie two hundred orders of magnitude apart."""
    runs = [
        replace(
            sampled(f"{k}", step="s", util=level(90, 120, k), work=Work(amount=amount, unit="steps")),
            gpu_hour_price=1.0,
        )
        for k, amount in enumerate((1e-100, 1e100))
    ]
    (group,) = summarize_steps(list(build_steps(runs)))
    for mean in (group.cost_per_1000_work, group.work_per_gpu_hour):
        assert mean is not None
        assert mean.interval is not None
        assert 0 < mean.interval[0] < mean.value < mean.interval[1] < float("inf")
