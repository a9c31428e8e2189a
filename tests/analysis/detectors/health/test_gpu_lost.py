"""GPUs that stop answering, and Xid errors."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.testing import (
    Confidence,
    Recording,
    Severity,
    analyze,
    event,
    found,
    recording,
    spans,
    steps,
    with_quality,
)

_GONE = np.concatenate([steps((97, 60)), np.full(60, np.nan)])
_THERE = steps((97, 120))


def _at_addresses(run: Recording) -> Recording:
    devices = tuple(
        replace(gpu, bus_id=f"00000000:{0x18 + gpu.index:02X}:00.0") for gpu in run.run.gpus if gpu.index is not None
    )
    return replace(run, run=replace(run.run, devices=devices))


def test_a_lost_gpu_is_a_problem_and_costs_the_rest_of_the_run() -> None:
    """The log names it, and its cells are empty from then on."""
    run = with_quality(
        recording(util=[_THERE, _GONE]), log_events=(event("gpu_lost", 60, "[GPU is lost]", device="gpu:1"),)
    )
    (finding,) = found(analyze(run), "gpu_lost")
    assert (finding.severity, finding.confidence, finding.devices) == (Severity.PROBLEM, Confidence.HIGH, ("gpu:1",))
    assert spans(finding) == [(60.0, 119.0)]
    assert finding.lost_gpu_seconds == pytest.approx(59)
    assert "GPU 1 stopped responding 59 s before the end." in finding.summary
    assert "GPU 1 stopped responding 59 s before the end." in finding.summary


def test_a_message_with_an_address_names_the_gpu() -> None:
    """Whatever the width of the domain."""
    text = "Unable to determine the device handle for GPU 0000:19:00.0: GPU is lost.  Reboot the system to recover"
    run = with_quality(_at_addresses(recording(util=[_THERE, _GONE])), log_events=(event("gpu_lost", 59, text),))
    (finding,) = found(analyze(run), "gpu_lost")
    assert finding.devices == ("gpu:1",)


def test_a_message_without_an_address_is_of_the_only_gpu() -> None:
    """Of several, none is named."""
    told = (event("gpu_lost", 59, "GPU is lost"),)
    (alone,) = found(analyze(with_quality(recording(util=_GONE), log_events=told)), "gpu_lost")
    (either,) = found(analyze(with_quality(recording(util=[_THERE, _THERE]), log_events=told)), "gpu_lost")
    assert alone.devices == ("gpu:0",)
    assert (either.devices, either.lost_gpu_seconds) == ((), None)


def test_a_gpu_that_comes_back_was_lost_until_then() -> None:
    """Only that time counts."""
    util = np.concatenate([steps((97, 40)), np.full(20, np.nan), steps((97, 60))])
    run = with_quality(recording(util=util), log_events=(event("gpu_lost", 40, "[GPU is lost]", device="gpu:0"),))
    (finding,) = found(analyze(run), "gpu_lost")
    assert finding.lost_gpu_seconds == pytest.approx(20)
    assert "GPU 0 stopped responding for 20 s." in finding.summary


@pytest.mark.parametrize(
    ("text", "cause", "severity"),
    [
        ("NVRM: Xid (PCI:0000:18:00): 79, pid=1234, GPU has fallen off the bus.", "lost", Severity.PROBLEM),
        ("NVRM: Xid (PCI:0000:18:00): 31, pid=1234, MMU Fault", "xid", Severity.PROBLEM),
        ("NVRM: Xid (PCI:0000:18:00): 63, Row Remapper: New row marked for remapping", "xid", Severity.WARNING),
        ("NVRM: Xid 48", "xid", Severity.PROBLEM),
    ],
)
def test_an_xid_among_the_messages(text: str, cause: str, severity: Severity) -> None:
    """79 is a lost GPU, others are named by their number; 45 and 63 only report."""
    run = with_quality(_at_addresses(recording(util=_THERE)), log_events=(event("driver_message", 60, text),))
    (finding,) = found(analyze(run), "gpu_lost")
    assert (finding.cause, finding.severity, finding.devices) == (cause, severity, ("gpu:0",))


def test_a_change_of_the_last_xid_is_one_of_the_run() -> None:
    """The one it begins with is of an earlier job."""
    (finding,) = found(analyze(recording(util=_THERE, xid=steps((0, 60), (74, 60)))), "gpu_lost")
    assert "Xid 74 on GPU 0" in finding.summary
    assert spans(finding) == [(60.0, 119.0)]
    assert found(analyze(recording(util=_THERE, xid=steps((74, 120)))), "gpu_lost") == []


def test_rows_without_any_value_tell_too() -> None:
    """Where nobody says anything, with medium confidence."""
    (finding,) = found(analyze(recording(util=[_THERE, _GONE], power=[_THERE, _GONE])), "gpu_lost")
    assert (finding.devices, finding.confidence, finding.cause) == (("gpu:1",), Confidence.MEDIUM, "no answer")
    assert spans(finding) == [(59.0, 119.0)]


def test_what_is_no_lost_gpu() -> None:
    """One metric that is no longer answered, a short hole, a hole in the middle, other messages."""
    hole = np.concatenate([steps((97, 100)), np.full(20, np.nan)])
    middle = np.concatenate([steps((97, 20)), np.full(60, np.nan), steps((97, 40))])
    message = with_quality(recording(util=_THERE), log_events=(event("driver_message", 9, "NVML library version: 5"),))
    runs = [recording(util=_GONE, power=_THERE), recording(util=hole), recording(util=middle), message]
    assert [found(analyze(run), "gpu_lost") for run in runs] == [[], [], [], []]
