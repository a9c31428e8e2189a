"""What the rate of training alone rests on, and that all steps of a comparison rest on the same."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.comparison.steps.compared_figures import BY_METRIC
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.steps.steps import build_steps
from gpureport.comparison.steps.throughput import Throughput
from gpureport.comparison.steps.training_rate import TrainingBasis, TrainingSource
from gpureport.comparison.verdicts.step_evidence import gather_evidence
from gpureport.testing import ReasonKind, Verdict, Work
from gpureport.work_counting import CountedWork
from tests.comparison.processes import autoregressive
from tests.comparison.runs import compared, delta, level, sampled

START_UP, TRAINED = 60, 240
SECONDS = 1800
SERIES = TrainingSource(basis=TrainingBasis.SERIES, names=("images_per_second",))
PHASE = TrainingSource(basis=TrainingBasis.STEADY_PHASE)


def run(
    name: str, rate: float, *, logged: bool = True, work: Work | None = None, step: str | None = None
) -> SampledRun:
    """Return a run that starts up for a minute and trains for four, and may log a slow first ten batches of 64."""
    first = 640 / (rate / 4)
    times = [START_UP + first + place * 640 / rate for place in range(int((TRAINED - first) * rate / 640))]
    points = [(t, 10 * (k + 1), "images_per_second", rate if k else rate / 4) for k, t in enumerate(times)]
    util = np.concatenate([np.zeros(START_UP), level(90, TRAINED, len(name))])
    return sampled(name, step=step, util=util, power=300.0, training=points if logged else (), work=work)


def test_the_whole_job_holds_the_start_up_and_training_alone_does_not() -> None:
    """Four minutes of five trained; the slow first batch belongs to training."""
    (step, _) = compared(run("a", 100.0), run("b", 100.0)).steps
    work = step.runs[0].analysis.run.work
    assert work is not None
    assert work.unit == "images"
    assert step.value(WORK_RATE) == pytest.approx(work.amount / 300, rel=0.01)
    alone = step.value(TRAINING_RATE)
    assert alone == pytest.approx(work.amount / (work.amount / 100 + 3 * 6.4), rel=0.01)
    assert step.training_source == SERIES


def test_one_step_without_a_series_takes_it_from_all() -> None:
    """Rates of two definitions are not set against each other: both are of the steady phase of the GPU log."""
    stated = Work(amount=20_000, unit="images")
    found = compared(run("a", 100.0, work=stated), run("b", 100.0, logged=False, work=stated))
    assert [step.training_source for step in found.steps] == [PHASE, PHASE]
    assert [step.value(TRAINING_RATE) for step in found.steps] == pytest.approx([20_000 / TRAINED] * 2, rel=0.02)


def test_a_run_that_tells_neither_leaves_its_step_out() -> None:
    """The others keep their series, and the pair is not judged."""
    found = compared(run("a", 100.0), run("b", 120.0), run("c", 100.0, logged=False))
    assert [step.training_source for step in found.steps] == [SERIES, SERIES, None]
    first, last = (found.judged_training(*pair) for pair in (("a", "b"), ("b", "c")))
    assert first is not None
    assert first.difference is not None
    assert last is not None
    assert (last.verdict, last.reason and last.reason.kind) == (Verdict.NOT_ENOUGH_DATA, ReasonKind.NOT_RECORDED)


@pytest.mark.parametrize("unit", ["images", "samples"])
def test_stated_images_are_the_samples_that_another_step_logged(unit: str) -> None:
    """One unit has several names."""
    found = compared(run("a", 100.0), run("b", 100.0, work=Work(amount=22_000, unit=unit)))
    assert [step.work_unit for step in found.steps] == [unit, unit]
    assert [step.training_source for step in found.steps] == [SERIES, SERIES]
    tokens = compared(run("a", 100.0), run("b", 100.0, work=Work(amount=22_000, unit="tokens")))
    assert delta(tokens, TRAINING_RATE).difference is None


def test_each_rate_is_a_family_of_its_own() -> None:
    """Three steps make three comparisons of each, and only these verdicts allow for others."""
    runs = [
        run(f"{s}{k}", rate + k, step=s) for s, rate in (("a", 100.0), ("b", 150.0), ("c", 151.0)) for k in range(3)
    ]
    found = compared(*runs)
    assert (found.tested, found.training_tested) == (3, 3)
    families = {delta.metric: delta.family for delta in found.deltas}
    assert {metric: family for metric, family in families.items() if family} == {
        PER_WORK: "primary",
        TRAINING_RATE: "training",
    }
    assert {WORK_RATE, COST_PER_WORK, ENERGY_PER_WORK} < set(families)
    links = [found.judged_training(*pair) for pair in (("a", "b"), ("b", "c"))]
    assert [link and link.verdict for link in links] == [Verdict.BETTER, Verdict.NO_CLEAR_CHANGE]


def test_phases_of_equal_length_scatter_as_finely_as_they_were_sampled() -> None:
    """Three runs of 30 s that look alike, a second apart: the phase is known to a thirtieth, so 2% is no change."""
    runs = [
        sampled(f"{step}{k}", step=step, util=level(90, 30, k), work=Work(amount=amount, unit="steps"))
        for step, amount in (("a", 1000.0), ("b", 1020.0))
        for k in range(3)
    ]
    found = delta(compared(*runs), TRAINING_RATE)
    assert found.difference == pytest.approx(0.02 * (found.before or 0))
    assert (found.verdict, found.reason) == (Verdict.NO_CLEAR_CHANGE, None)


@pytest.mark.slow
@pytest.mark.parametrize("phi", [0.5, 0.9])
def test_intervals_of_a_pair_hold_the_ratio_of_training_rates(phi: float) -> None:
    """Half an hour, the first half minute of it at a quarter of the rate, 300 times: a tenth more lies inside."""
    rng = np.random.default_rng([7, round(10 * phi)])
    like = sampled("a", util=np.full(SECONDS, 90.0))
    inside = 0
    for _ in range(300):
        base, step = build_steps([scattered(like, rate, phi, rng) for rate in (100.0, 110.0)])
        found = gather_evidence(base, step, BY_METRIC[TRAINING_RATE])
        assert found.contrast is not None
        assert found.before is not None
        low, high = (1 + end / found.before for end in found.contrast.interval(0.95))
        inside += low <= 1.1 <= high
    assert 0.92 <= inside / 300 <= 0.98


def scattered(like: SampledRun, rate: float, phi: float, rng: np.random.Generator) -> SampledRun:
    """Return a run whose rate scatters by 5% and depends on itself, after a slow beginning."""
    info = like.analysis.run
    rates = rate * (1 + autoregressive(SECONDS, phi, 0.05, rng))
    rates[:30] /= 4
    work = CountedWork(times=info.started + np.arange(SECONDS + 1) * 1_000_000, amounts=rates)
    stated = replace(info, work=Work(amount=work.amount, unit="samples"))
    speed = Throughput(name="rate", unit="samples", width=1.0, start=info.started, rates=rates, work=work)
    return replace(like, analysis=replace(like.analysis, run=stated), throughput=speed)
