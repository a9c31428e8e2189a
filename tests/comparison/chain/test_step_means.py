"""Figures of single steps, whose intervals are no finer than the samples that they rest on."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_means import average_work_figure
from gpureport.comparison.chain.step_summaries import summarize_steps
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import COST_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.steps.steps import Step, build_steps
from gpureport.comparison.verdicts.work_resolution import find_resolution, find_sampling_step
from gpureport.testing import Work
from tests.comparison.runs import level, sampled

SECONDS = 400


def step(lengths: tuple[int, ...], interval: float = 1.0) -> Step:
    """Return a step whose runs did the same work in so many seconds, sampled so often."""
    runs = [
        _sampled_every(
            sampled(f"a{place}", step="a", work=Work(amount=1000, unit="images"), util=[level(90, seconds, place)]),
            interval,
        )
        for place, seconds in enumerate(lengths)
    ]
    (made,) = build_steps([replace(run, gpu_hour_price=2.0) for run in runs])
    return made


def _sampled_every(run: SampledRun, interval: float | None) -> SampledRun:
    info = replace(run.analysis.run, interval=interval)
    return replace(run, analysis=replace(run.analysis, run=info))


@pytest.mark.parametrize("metric", [PER_WORK, COST_PER_WORK, WORK_RATE])
@pytest.mark.parametrize("interval", [1.0, 10.0])
def test_runs_that_agree_are_known_to_a_sample(metric: str, interval: float) -> None:
    """Each began and ended up to half a sample beside its first and last one, all of them alike."""
    found = average_work_figure(step((SECONDS,) * 3, interval), metric)
    assert found is not None
    assert found.interval is not None
    low, high = found.interval
    assert [found.value / low - 1, high / found.value - 1] == pytest.approx([interval / SECONDS] * 2, rel=0.05)


def test_runs_that_scatter_more_than_a_sample_have_the_interval_of_their_scatter() -> None:
    """It is the same as before, whatever the samples."""
    scattered = (360, 400, 440)
    fine, coarse = (average_work_figure(step(scattered, each), PER_WORK) for each in (1.0, 5.0))
    assert fine is not None
    assert coarse is not None
    assert fine.interval == coarse.interval


def test_a_change_and_a_figure_take_the_resolution_from_one_place() -> None:
    """Work per GPU-hour and cost of a group as well."""
    made = step((SECONDS,) * 3, 10.0)
    least = find_resolution(made, made, PER_WORK).least
    assert least == find_sampling_step(made.runs) == pytest.approx(10 / SECONDS, rel=0.01)
    (group,) = summarize_steps([made])
    for mean in (group.work_per_gpu_hour, group.cost_per_1000_work):
        assert mean is not None
        assert mean.interval is not None
        assert mean.interval[1] / mean.value - 1 >= least


def test_an_unknown_sampling_interval_is_not_one_without_an_end() -> None:
    """A run that does not tell it is known no better than one sampled every second."""
    made = step((SECONDS,) * 3)
    unknown = [_sampled_every(run, None) for run in made.runs]
    assert find_sampling_step(unknown) == find_sampling_step(made.runs) > 0
