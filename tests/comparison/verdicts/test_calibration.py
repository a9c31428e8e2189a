"""What repetitions in a store differ by, figures per unit of work among them."""

from dataclasses import replace
from math import exp, log

import pytest

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import COST_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.verdicts.calibration import measure_store_noise
from gpureport.comparison.verdicts.repetition_noise import MetricNoise
from gpureport.testing import Verdict, Work
from tests.comparison.runs import compared, delta, level, sampled
from tests.comparison.steps.test_throughput import rates


def repeated(*speeds: float, step: str = "s") -> list[SampledRun]:
    """Return repetitions of a step that log their throughput."""
    return [
        sampled(f"{step}{k}", step=step, util=level(90, 1200, k), power=300.0, training=rates(speed, seed=k))
        for k, speed in enumerate(speeds)
    ]


def noise_of(metric: str, *runs: SampledRun) -> MetricNoise:
    """Return the noise of one figure."""
    found = measure_store_noise(runs).noise_of(metric)
    assert found is not None
    return found


def test_figures_per_unit_of_work_are_calibrated() -> None:
    """Speeds a tenth apart: the deviation of their logarithms, of rate and of GPU time alike."""
    runs = repeated(100.0, 110.0)
    expected = log(1.1) / 2**0.5
    for metric in (WORK_RATE, PER_WORK, "energy_joules_per_1000_work"):
        found = noise_of(metric, *runs)
        assert (found.relative, found.groups) == (True, 1)
        assert found.deviation == pytest.approx(expected, rel=0.03)
    assert measure_store_noise(runs).noise_of(COST_PER_WORK) is None


def test_what_a_store_differs_by_stands_in_for_the_usual() -> None:
    """Ten per cent are beyond three, and within what this store changes; cost scatters as GPU time does."""
    noise = measure_store_noise(repeated(100.0, 109.0, 118.0))
    assert exp(noise_of(PER_WORK, *repeated(100.0, 109.0, 118.0)).deviation) > 1.05
    pair = [
        replace(
            sampled(name, util=level(90, 1200, seed), training=rates(speed, seed=seed)),
            gpu_hour_price=2.0,
        )
        for name, speed, seed in (("a", 100.0, 5), ("b", 110.0, 6))
    ]
    for metric in (PER_WORK, COST_PER_WORK):
        assert delta(compared(*pair), metric).verdict is Verdict.UNCONFIRMED
        assert delta(compared(*pair, noise=noise), metric).verdict is Verdict.NO_CLEAR_CHANGE


def test_totals_of_work_are_calibrated_where_nothing_else_tells() -> None:
    """Of the whole run; units that differ between steps do not matter to a ratio, units within a step do."""
    runs = [
        sampled(f"{unit}{k}", step=unit, util=level(90, 300, k), work=Work(amount=amount, unit=unit))
        for unit in ("steps", "tokens")
        for k, amount in enumerate((1000, 1100))
    ]
    assert noise_of(PER_WORK, *runs).groups == 2
    assert noise_of(PER_WORK, *runs).deviation == pytest.approx(log(1.1) / 2**0.5, rel=1e-6)
    mixed = [replace(run, analysis=replace(run.analysis, run=replace(run.analysis.run, step="s"))) for run in runs[::2]]
    assert measure_store_noise(mixed).noise_of(PER_WORK) is None
