"""Memory errors of the run."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Severity, analyze, found, recording, spans, steps, unjudged

_UTIL = steps((97, 100))


def test_an_uncorrected_error_is_a_problem() -> None:
    """It lies between the samples around the rise."""
    (finding,) = found(analyze(recording(util=_UTIL, uncorrected=steps((0, 60), (2, 40)))), "ecc_error")
    assert (finding.severity, finding.devices, finding.cause) == (Severity.PROBLEM, ("gpu:0",), "uncorrected")
    assert spans(finding) == [(59.0, 60.0)]
    assert finding.evidence[0].observed == 2
    assert "GPU 0 had 2 uncorrectable memory errors." in finding.summary


def test_corrected_errors_are_information() -> None:
    """They cost nothing."""
    (finding,) = found(analyze(recording(util=_UTIL, corrected=np.arange(100.0) // 30)), "ecc_error")
    assert finding.severity is Severity.INFO
    assert len(finding.intervals) == 3


@pytest.mark.parametrize(
    "counter", [steps((0, 100)), steps((7, 100)), steps((7, 50), (0, 50))], ids=["none", "earlier job", "reset"]
)
def test_what_was_not_counted_in_the_run_is_silent(counter: FloatArray) -> None:
    """Only a rise tells."""
    assert found(analyze(recording(util=_UTIL, uncorrected=counter, corrected=counter)), "ecc_error") == []


def test_a_rise_after_a_hole_counts() -> None:
    """Cells without a value are skipped."""
    counter = np.concatenate([steps((0, 40)), np.full(20, np.nan), steps((1, 40))])
    (finding,) = found(analyze(recording(util=_UTIL, uncorrected=counter)), "ecc_error")
    assert spans(finding) == [(39.0, 60.0)]


def test_a_remapped_row_that_waits_for_a_reset_says_so() -> None:
    """Both are named."""
    run = recording(util=_UTIL, remapped=steps((0, 60), (1, 40)), remap_pending=steps((0, 60), (1, 40)))
    (finding,) = found(analyze(run), "ecc_error")
    assert finding.severity is Severity.PROBLEM
    assert "GPU 0 had 1 bad memory row; it needs a reset to take that memory out of use." in finding.summary


def test_a_failed_remapping_is_a_problem() -> None:
    """Where it happens in the run; one from before is none of it."""
    failing = recording(util=_UTIL, remapped=0, remap_failure=steps((0, 60), (1, 40)))
    before = recording(util=_UTIL, remapped=0, remap_failure=1)
    assert [finding.severity for finding in found(analyze(failing), "ecc_error")] == [Severity.PROBLEM]
    assert found(analyze(before), "ecc_error") == []


def test_each_gpu_has_its_own_errors() -> None:
    """Only the one concerned is named."""
    run = recording(util=[_UTIL, _UTIL], uncorrected=[steps((0, 100)), steps((0, 50), (1, 50))])
    assert [finding.devices for finding in found(analyze(run), "ecc_error")] == [("gpu:1",)]


def test_without_counters_it_is_not_judged() -> None:
    """Nor by a single reading."""
    (absent,) = unjudged(analyze(recording(util=_UTIL)), "ecc_error")
    assert "gpu_ecc_uncorrected_total" in absent.metrics
    once = np.full(100, np.nan)
    once[3] = 4
    (lone,) = unjudged(analyze(recording(util=_UTIL, uncorrected=once)), "ecc_error")
    assert "read only once" in lone.reason
