"""Recorders that stop before the job."""

import numpy as np
import pytest

from gpureport.testing import (
    Confidence,
    Severity,
    analyze,
    event,
    found,
    recording,
    spans,
    steps,
    unjudged,
    with_host,
    with_quality,
    with_training,
)

_UTIL = steps((97, 300))


def test_the_host_log_goes_on() -> None:
    """It says for how long nothing was judged."""
    (finding,) = found(analyze(recording(util=_UTIL, cpu=steps((20, 600)))), "monitoring_ended")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert spans(finding) == [(299.0, 599.0)]
    assert "The GPU log stopped 5 min before the host log, 50% of the run." in finding.summary


def test_training_metrics_go_on() -> None:
    """Points of any name."""
    points: list[tuple[float | None, str, float | None]] = [(float(s), "loss", 1.0) for s in range(0, 600, 10)]
    (finding,) = found(analyze(with_training(recording(util=_UTIL), points)), "monitoring_ended")
    assert "before the training metrics" in finding.summary


def test_one_of_several_gpus_ends() -> None:
    """It is named alone."""
    gone = np.concatenate([steps((97, 100)), np.full(200, np.nan)])
    run = recording(util=[_UTIL, gone], power=[steps((300, 300)), np.where(np.isnan(gone), np.nan, 300)])
    lost = analyze(run)
    # rows that go on without values are a lost GPU, and that is said once
    assert found(lost, "gpu_lost") != []
    assert found(lost, "monitoring_ended") == []


def test_all_gpus_that_end_together_are_one_finding() -> None:
    """Not one each."""
    (finding,) = found(analyze(recording(util=[_UTIL, _UTIL], cpu=steps((20, 600)))), "monitoring_ended")
    assert finding.devices == ("gpu:0", "gpu:1")


@pytest.mark.parametrize("seconds", [300, 355], ids=["together", "within a minute"])
def test_what_ends_about_together_is_silent(seconds: int) -> None:
    """Recorders of one job are not stopped in the same second."""
    assert found(analyze(recording(util=_UTIL, cpu=steps((20, seconds)))), "monitoring_ended") == []


def test_one_late_point_is_silent() -> None:
    """A summary written once at the end is no series that goes on."""
    points: list[tuple[float | None, str, float | None]] = [
        (1.0, "loss", 1.0),
        (100.0, "loss", 1.0),
        (900.0, "f1", 0.5),
    ]
    assert found(analyze(with_training(recording(util=_UTIL), points)), "monitoring_ended") == []


def test_a_series_whose_clock_differs_is_silent() -> None:
    """It begins later by as much as it ends later."""
    run = with_host(recording(util=_UTIL), 200 + np.arange(300.0), cpu_utilization_ratio=0.2)
    assert found(analyze(run), "monitoring_ended") == []


def test_few_points_after_the_end_are_of_medium_confidence() -> None:
    """Two to four."""
    points: list[tuple[float | None, str, float | None]] = [(float(s), "loss", 1.0) for s in range(0, 500, 60)]
    (finding,) = found(analyze(with_training(recording(util=_UTIL), points)), "monitoring_ended")
    assert finding.confidence is Confidence.MEDIUM


def test_where_nothing_compares_it_is_not_judged() -> None:
    """A single GPU alone, and times that were counted."""
    (alone,) = unjudged(analyze(recording(util=_UTIL)), "monitoring_ended")
    assert alone.recording == "gpureport record -- COMMAND"
    untimed = with_quality(recording(util=_UTIL, cpu=steps((20, 600))), synthetic_time=True)
    (entry,) = unjudged(analyze(untimed), "monitoring_ended")
    assert "no time stamps" in entry.reason


def test_a_lost_gpu_is_none_whose_recorder_stopped() -> None:
    """The loss says more."""
    run = with_quality(recording(util=_UTIL, cpu=steps((20, 600))), log_events=(event("gpu_lost", 299, "GPU is lost"),))
    assert found(analyze(run), "monitoring_ended") == []
    assert len(found(analyze(run), "gpu_lost")) == 1


def test_a_gpu_that_vanishes_beside_others_has_no_full_disk() -> None:
    """What writes for the others still writes."""
    run = recording(util=[_UTIL, _UTIL])
    rows = run.series.slice(0, len(run.rows_of("gpu:0")) + 100)
    (finding,) = found(analyze(run.with_series(rows)), "monitoring_ended")
    assert (finding.devices, "full disk" in finding.recommendation) == (("gpu:1",), False)
