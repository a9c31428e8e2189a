"""The figures of a night: what is known of a run, and what is left open."""

from dataclasses import replace

import pytest

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.nightly.history.night_figures import measure_figures
from gpureport.testing import analyze, finding, recording


@pytest.mark.parametrize(
    ("kind", "known", "ratio"),
    [("low_util_cause_unknown", 0.0, None), ("low_util_cause_unknown", 400.0, 0.4), ("underutilised", 0.0, 0.0)],
)
def test_low_use_of_unknown_cause_may_be_waiting(kind: str, known: float, ratio: float | None) -> None:
    """It leaves the share open where it is more than what is known; low use whose cause is no wait does not."""
    made = analyze(recording(util=30.0))
    (gpu,) = made.gpu_time
    parts = (replace(gpu, seconds=(("computing", 700 - known), ("waiting_for_input", known), ("low_use", 300.0))),)
    run = replace(made, findings=(finding(kind, (0, 300)),), gpu_time=parts)
    figures = {figure.name: figure.value for figure in measure_figures(SampledRun(analysis=run))}
    assert figures["waiting_ratio"] == ratio
