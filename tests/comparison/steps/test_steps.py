"""Steps, their figures, and the differences between neighbours."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.step_figures import PER_WORK, observed_seconds, recorded_seconds
from gpureport.testing import Analysis, Reason, ReasonKind, Verdict, Work
from tests.report import examples


def analysis(name: str, step: str | None = None, work: Work | None = None, idle: float = 60.0) -> Analysis:
    """Return the analysis of two GPUs over 600 s."""
    return examples.analysis(examples.run(name, step=step, work=work), idle=idle)


def test_runs_of_one_label_are_replicates_in_the_order_given() -> None:
    """A label makes a step; runs without one are steps of their own."""
    comparison = compare(
        examples.sampled(analysis("a", "baseline"), analysis("b"), analysis("c", "baseline"), analysis("b"))
    )
    names = [(step.label, [entry.run.name for entry in step.analyses]) for step in comparison.steps]
    assert names == [("baseline", ["a", "c"]), ("b", ["b"]), ("b (2)", ["b"])]


def test_figures_of_a_step_are_weighted_with_time() -> None:
    """Idle share and utilisation are over all GPUs of all replicates; GPU-hours are a mean over the runs."""
    step = compare(examples.sampled(analysis("a", "s", idle=60), analysis("b", "s", idle=120))).steps[0]
    assert step.value("idle_ratio") == pytest.approx(0.15)
    assert step.value("gpu_utilization_ratio") == pytest.approx(0.8)
    assert step.value("gpu_seconds") == pytest.approx(1200)
    assert step.value("gpu_memory_used_bytes") == 40 * 2**30
    assert step.value(PER_WORK) is None


def test_longer_samples_weigh_more() -> None:
    """A GPU observed for three times as long counts three times."""
    info = examples.run()
    short = replace(examples.statistics("gpu:0"), metrics=(examples.summary("gpu_utilization_ratio", 0.2, 100),))
    long = replace(examples.statistics("gpu:1"), metrics=(examples.summary("gpu_utilization_ratio", 1.0, 300),))
    step = compare(examples.sampled(examples.analysis(info, statistics_of=(short, long)))).steps[0]
    assert step.value("gpu_utilization_ratio") == pytest.approx(0.8)
    assert step.value("gpu_power_watts") is None


def test_gpu_time_per_work_needs_the_work_of_every_run() -> None:
    """The geometric mean of 1200 and 400 GPU-seconds, by which verdicts compare them; none where a run is silent."""
    both = [analysis("a", "s", Work(amount=1000, unit="steps")), analysis("b", "s", Work(amount=3000, unit="steps"))]
    assert compare(examples.sampled(*both)).steps[0].value(PER_WORK) == pytest.approx((1200 * 400) ** 0.5)
    assert compare(examples.sampled(both[0], analysis("b", "s"))).steps[0].value(PER_WORK) is None


def test_steps_are_set_against_the_one_before_and_the_first() -> None:
    """Without series the values are of whole recordings, and without scatter nothing of a mean can be judged."""
    comparison = compare(examples.sampled(analysis("a", idle=60), analysis("b", idle=30), analysis("c", idle=90)))
    found = {(delta.base, delta.step): delta for delta in comparison.deltas if delta.metric == "idle_ratio"}
    assert list(found) == [("a", "b"), ("b", "c"), ("a", "c")]
    delta = found["a", "b"]
    assert delta.difference == pytest.approx(-0.05)
    assert (delta.interval, delta.verdict, delta.window) == (None, Verdict.NOT_ENOUGH_DATA, "whole")


def test_what_was_not_recorded_has_no_difference() -> None:
    """A missing side is not zero."""
    absent = examples.analysis(examples.run("b"), statistics_of=(examples.statistics("gpu:0", idle=None),))
    deltas = compare(examples.sampled(analysis("a"), absent)).deltas
    delta = next(d for d in deltas if d.metric == "idle_ratio")
    assert (delta.after, delta.difference, delta.verdict) == (None, None, Verdict.NOT_ENOUGH_DATA)
    assert delta.reason == Reason(kind=ReasonKind.NOT_RECORDED)


def test_work_in_different_units_is_not_compared() -> None:
    """Steps and tokens have no difference."""
    first, second = Work(amount=10, unit="steps"), Work(amount=10, unit="tokens")
    comparison = compare(examples.sampled(analysis("a", work=first), analysis("b", work=second)))
    delta = next(delta for delta in comparison.deltas if delta.metric == PER_WORK)
    assert (delta.difference, delta.reason) == (None, Reason(kind=ReasonKind.OTHER_WORK_UNIT))


def test_observed_time_is_within_the_run() -> None:
    """The best covered GPU counts, and never for more than its run lasted."""
    first, second = (replace(examples.statistics(f"gpu:{gpu}"), observed_seconds=20.0 + gpu) for gpu in (0, 1))
    info = examples.run(seconds=30)
    assert observed_seconds([examples.analysis(info, statistics_of=(first, second))]) == 21.0
    assert observed_seconds([examples.analysis(info)]) == 30.0
    assert observed_seconds([]) == 0.0


@pytest.mark.parametrize(
    ("lengths", "seconds"), [([50], 50), ([50, 50, 50], 150), ([15, 15, 15, 15], 15), ([15, 70], 70), ([], 0)]
)
def test_repetitions_come_to_a_time_together(lengths: list[int], seconds: int) -> None:
    """Those of 20 s and more do; many of a few seconds are none."""
    runs = [examples.analysis(examples.run(str(number), seconds=each)) for number, each in enumerate(lengths)]
    assert recorded_seconds(runs) == seconds
