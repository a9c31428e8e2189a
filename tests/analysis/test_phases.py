"""The job window."""

from gpureport.analysis import analyze
from gpureport.recording import Recording
from tests.builders import START, recording, steps


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
