"""Which stretch of a run counts as its steady state."""

import numpy as np
import pytest

from gpureport.analysis import analyze
from gpureport.comparison.steps.run_series import IDLE
from gpureport.comparison.steps.sampled_run import build_sampled_run
from tests.builders import recording, steps


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
