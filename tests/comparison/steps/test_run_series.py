"""Which stretch of a run counts as its steady state."""

from unittest.mock import Mock

import numpy as np
import pytest

from gpureport.comparison.steps import sampled_run
from gpureport.comparison.steps.run_series import IDLE, run_series
from gpureport.comparison.steps.sampled_run import build_sampled_run
from gpureport.report import build
from gpureport.testing import analyze, recording, steps


@pytest.mark.parametrize("is_seen", [True, False], ids=["end seen", "end not seen"])
def test_what_follows_the_end_of_the_job_is_not_steady(*, is_seen: bool) -> None:
    """A short idle end may be a pause of the job, unless the log shows that the job had ended."""
    util = steps((0, 3), (97, 20), (0, 3))
    job = np.full(26, 0.5)
    if is_seen:
        job[23:] = np.nan
    run = recording(util=util, cpu=steps((20, 26)), host={"cores_of_job": job})
    series = build_sampled_run(run, analyze(run)).series
    assert series is not None
    idle, _ = series.settled_values(IDLE)
    assert (idle.mean() == 0) == is_seen
    assert len(idle) == pytest.approx(20 if is_seen else 23, abs=1)


@pytest.mark.parametrize("before", [0, 1, 2, 4])
@pytest.mark.parametrize("jitter", [-0.01, -0.003, 0.0, 0.003, 0.01])
def test_no_sample_of_before_the_work_is_steady(before: int, jitter: float) -> None:
    """Samples come some milliseconds early or late, and the steady state begins with the first work all the same."""
    times = np.arange(before + 20.0)
    times[1:] += jitter
    run = recording(util=steps((0, before), (97, 20)), times=times)
    series = build_sampled_run(run, analyze(run)).series
    assert series is not None
    idle, _ = series.settled_values(IDLE)
    assert idle.sum() == 0
    assert len(idle) == 20


def test_series_are_placed_on_bins_for_a_comparison_alone_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report on one run has no use for bins, and thousands of GPUs take long to place."""
    place = Mock(wraps=run_series)
    monkeypatch.setattr(sampled_run, "run_series", place)
    runs = [(run := recording(util=steps((97, util))), analyze(run)) for util in (40, 60)]
    build(runs[:1], title=None, command="", gpu_hour_price=None, version="0")
    place.assert_not_called()
    sampled = build_sampled_run(*runs[0])
    assert sampled.in_step("changed").series is sampled.series
    place.assert_called_once()
