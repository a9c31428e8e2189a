"""The figures of a night: what is known of a run, and what is left open."""

from dataclasses import replace

import pytest

from gpureport.analysis import analyze
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.nightly.history.night_figures import measure_figures
from tests.builders import finding, recording


@pytest.mark.parametrize(("kind", "waiting"), [("low_util_cause_unknown", None), ("underutilised", 0.0)])
def test_low_use_of_unknown_cause_may_be_waiting(kind: str, waiting: float | None) -> None:
    """It leaves the share open, as it does a rule on it; low use whose cause is no wait does not."""
    made = analyze(recording(util=30.0))
    (gpu,) = made.gpu_time
    halves = (replace(gpu, seconds=(("computing", 300.0), ("low_use", 300.0))),)
    run = replace(made, findings=(finding(kind, (0, 300)),), gpu_time=halves)
    figures = {figure.name: figure.value for figure in measure_figures(SampledRun(analysis=run))}
    assert figures["waiting_ratio"] == waiting
