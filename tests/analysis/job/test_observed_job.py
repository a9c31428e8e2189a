"""When the job's own processes were seen to begin and to end."""

import numpy as np
import pytest

from gpureport.analysis.results import ObservedJob
from gpureport.testing import analyze, at, recording, steps

NAN = float("nan")


@pytest.mark.parametrize(
    ("job", "started", "ended"),
    [
        ([NAN, 0.1, 0.0, NAN, 0.2, NAN, NAN], 1, 4),
        ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, NAN], None, 5),
        ([NAN, NAN, 0.1, 0.1, 0.1, 0.1, 0.1], 2, None),
        ([NAN] * 7, None, None),
    ],
    ids=["whole", "began before the log", "cut short", "not watched"],
)
def test_the_log_must_show_time_without_the_job(job: list[float], started: int | None, ended: int | None) -> None:
    """Where it begins or ends with the job, nobody knows how much of the job is missing."""
    cores = np.array(job)
    run = recording(util=steps((97, 7)), cpu=steps((20, 7)), host={"cores_of_job": cores})
    seen = analyze(run).observed_job
    assert seen == ObservedJob(
        started=None if started is None else at(started), ended=None if ended is None else at(ended)
    )


def test_without_a_host_nothing_is_known() -> None:
    """Nor with one that did not watch the job."""
    assert analyze(recording(util=steps((97, 7)))).observed_job == ObservedJob()
