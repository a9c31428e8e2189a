"""The recorded chain of training steps through trackers alone: how fast each step was, as its own loop measured."""

import json
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

import gpureport
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.comparison.steps.step_figures import PER_WORK, TRAINING_RATE
from gpureport.testing import Analysis, Comparison, Recording, Verdict
from tests.samples.archives import unpack

RECORDED = Path(__file__).parents[2] / "sample_logs" / "recorded" / "training_steps"
STEPS = ("1-starved", "2-more-workers", "3-pinned-memory", "4-mixed-precision", "5-larger-batch")
STORES = {"mlflow": ("mlruns", "mlruns"), "neptune": ("neptune", "neptune/.neptune")}
"""Archive of each tracker, and its store within."""
EACH_TRACKER = pytest.mark.parametrize("tracker", STORES)


@cache
def runs(tracker: str) -> list[tuple[Recording, Analysis]]:
    """Return the runs that a tracker recorded, with their analyses, in the order of the steps."""
    archive, store = STORES[tracker]
    with TemporaryDirectory() as folder:
        unpack(RECORDED / f"{archive}.tar.gz", Path(folder))
        recordings = gpureport.read(Path(folder) / store)
    recordings.sort(key=lambda recording: recording.run.name)
    return [(recording, gpureport.analyze(recording)) for recording in recordings]


@cache
def chain(tracker: str) -> Comparison:
    """Return the comparison of these runs."""
    return compare([build_sampled_run(*run) for run in runs(tracker)])


def figures(tracker: str, metric: str) -> dict[str, float]:
    """Return a figure of each step."""
    found = {step.label: step.value(metric) for step in chain(tracker).steps}
    return {label: value for label, value in found.items() if value is not None}


def seconds(step: str) -> float:
    """Return how long the training loop took, by its own clock."""
    return float(json.loads((RECORDED / step / "1" / "truth.json").read_text(encoding="utf-8"))["seconds"])


@EACH_TRACKER
def test_the_training_rate_is_that_of_the_loop(tracker: str) -> None:
    """Within 3 %: MLflow kept images a second, Neptune the step of each loss and the batch as a param."""
    rates = figures(tracker, TRAINING_RATE)
    assert rates == {step: pytest.approx(32_768 / seconds(step), rel=0.03) for step in STEPS}
    assert {step.work_unit for step in chain(tracker).steps} == {"samples"}


def test_the_work_that_is_counted_is_what_was_done_while_the_run_was_recorded() -> None:
    """Of 32,768 images a run: all but what was not logged, up to one point of a few batches, or not recorded."""
    for step in chain("mlflow").steps:
        (run,) = step.runs
        curve, work = run.throughput, run.analysis.run.work
        assert curve is not None
        assert work is not None
        usual = float(np.median(curve.work.amounts))
        assert 32_768 - usual < curve.work.amount < 32_768 * 1.002
        recorded = run.analysis.seconds / seconds(step.label)
        assert work.amount == pytest.approx(32_768 * recorded, rel=0.035)


def test_trackers_tell_the_same_training_rate() -> None:
    """Within 1 %, though they kept different series of the same runs."""
    assert figures("neptune", TRAINING_RATE) == pytest.approx(figures("mlflow", TRAINING_RATE), rel=0.01)


@EACH_TRACKER
def test_the_gain_of_the_whole_job_is_that_of_the_loop(tracker: str) -> None:
    """Within 6 %: the whole job of a tracker is what its monitor sampled, in Neptune every 10 s of 32 to 97 s."""
    took = figures(tracker, PER_WORK)
    gains = {step: took[STEPS[0]] / took[step] for step in STEPS}
    assert gains == {step: pytest.approx(seconds(STEPS[0]) / seconds(step), rel=0.06) for step in STEPS}


@EACH_TRACKER
def test_a_large_gain_of_single_runs_is_unconfirmed(tracker: str) -> None:
    """From 341 to 800 images a second, in both rates; a repetition may settle it."""
    found = chain(tracker)
    for delta in (found.judged(*STEPS[:2]), found.judged_training(*STEPS[:2])):
        assert delta is not None
        assert delta.verdict is Verdict.UNCONFIRMED


@EACH_TRACKER
def test_single_runs_claim_nothing(tracker: str) -> None:
    """However far they lie apart, no figure is called better or worse."""
    found = chain(tracker)
    pairs = [*pairwise(STEPS), *((STEPS[0], step) for step in STEPS[1:])]
    verdicts = {delta.verdict for pair in pairs for delta in found.between(*pair)}
    assert verdicts <= {Verdict.UNCONFIRMED, Verdict.NO_CLEAR_CHANGE, Verdict.NOT_ENOUGH_DATA}
