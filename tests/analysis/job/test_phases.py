"""The job window."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from gpureport.analysis.job.phases import find_activity
from gpureport.analysis.series.device_series import build_device_series
from gpureport.testing import START, Recording, analyze, recording, steps


def _window(run: Recording) -> tuple[float, float] | None:
    phases = analyze(run).phases
    steady = [phase.interval for phase in phases if phase.kind == "steady"]
    return ((steady[0].start - START) / 1e6, (steady[0].end - START) / 1e6) if steady else None


def test_window_reaches_from_first_to_last_work_of_any_gpu() -> None:
    """Start-up and tail are properties of the job, not of one GPU."""
    early, late = steps((0, 20), (95, 60), (0, 80)), steps((0, 40), (95, 90), (0, 30))
    assert _window(recording(util=[early, late])) == (19.0, 129.0)


def test_one_kernel_is_no_work() -> None:
    """An autotuning kernel during start-up does not begin the job."""
    assert _window(recording(util=steps((0, 20), (100, 1), (0, 30), (95, 60)))) == (50.0, 110.0)


def test_a_job_that_never_works_has_no_window() -> None:
    """A recording of idle GPUs is all start-up."""
    assert _window(recording(util=steps((0, 60)))) is None


def test_coarse_sampling_of_a_stalling_job_begins_with_its_first_samples() -> None:
    """With point samples, every other one idle is work."""
    values = [0, 0, 0, *[95, 0] * 30]
    assert _window(recording(util=values, every=30.0)) == (74.5, 1844.5)


def test_short_bursts_before_the_first_dense_ones_are_work() -> None:
    """A loop that waits for data is active in 55 of 100 samples, and seldom in 60 of 100 for three seconds."""
    loop = np.tile(steps((95, 5), (0, 4)), 40)
    util = np.concatenate([np.zeros(50), loop, np.full(10, 95.0), loop])
    assert _window(recording(util=util, every=0.1)) == pytest.approx((4.45, 77.05), abs=0.1)


_use = st.lists(st.sampled_from([0.0, 5.0, 95.0, np.nan]), min_size=2, max_size=40)


def _measure_reach(active: list[bool], share: float) -> int:
    """Return up to which place, counted from the sustained activity, active samples make up at least a share."""
    bursts = [place for place, one in enumerate(active, 1) if one]
    return max((place for count, place in enumerate(bursts, 1) if count >= share * place), default=0)


@given(_use)
@example([95, 0, 0, 95, 95, 0, 0, 95, 95, 95, 0, 0, 0, 0, 95, np.nan, 95])
def test_work_begins_and_ends_with_a_sample_that_has_others_beside_it(use: list[float]) -> None:
    """Sample by sample: an active one, with three of five active from it on, or up to it, in three seconds.

    What is active after the last such sample belongs to the job as long as it comes half as often as within. So do
    three or more active samples before the first, where fewer than 60 of 100 within are active, and those from the
    first sample of the log on.
    """
    run = recording(util=use)
    series = build_device_series(run, run.run.devices[0])
    known = [(second, value > 12) for second, value in enumerate(use) if not np.isnan(value)]
    ahead = [[one for at, one in known if second <= at <= second + 3] for second, _ in known]
    behind = [[one for at, one in known if second - 3 <= at <= second] for second, _ in known]
    begun, ended = (
        [row for row, near in enumerate(beside) if known[row][1] and sum(near) >= 0.6 * max(len(near), 2)]
        for beside in (ahead, behind)
    )
    found = find_activity(series)
    assert (found is None) == (not begun or not ended)
    if found is None:
        return
    first, last = begun[0], ended[-1]
    active = [one for _, one in known]
    share = sum(active[first : last + 1]) / (last + 1 - first) if first < last else 1.0
    last += _measure_reach(active[last + 1 :], share / 2)
    if share < 0.6 and sum(active[:first]) >= 3:
        first -= _measure_reach(active[:first][::-1], share / 2)
    # over a second or more: at work when the log began
    first = 0 if len(active) >= 3 and all(active[:3]) else first
    assert found.start == series.start[known[first][0]] - series.shift
    assert found.end == max(series.end[known[last][0]] - series.shift, series.times[known[0][0]] + 1)
