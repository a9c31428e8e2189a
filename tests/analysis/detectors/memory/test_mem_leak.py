"""Memory that keeps growing."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import GIB, Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_UTIL = steps((0, 20), (97, 1200))


def _memory(*, start: float = 20.0, per_minute: float) -> FloatArray:
    """Return memory in GiB that a job takes at once, and that grows from then on."""
    grown = start + per_minute * np.arange(1200) / 60
    return np.concatenate([np.zeros(20), np.floor(grown * 50) / 50])


def test_growth_is_found_with_its_rate_and_when_memory_is_full() -> None:
    """Half a GiB a minute from 20 GiB on: 80 GiB are full after two hours."""
    (finding,) = found(analyze(recording(util=_UTIL, memory=_memory(per_minute=0.5))), "mem_leak")
    growth, slowest, rate, left = finding.evidence
    assert (finding.severity, finding.confidence) == (Severity.PROBLEM, Confidence.HIGH)
    assert rate.observed == pytest.approx(0.5 * GIB / 60, rel=0.02)
    assert left.observed == pytest.approx((80 - 30) / 0.5 * 60, rel=0.03)
    assert growth.observed == pytest.approx(0.5 * 960 / 60 / 80, rel=0.03)
    assert slowest.observed > 0.9
    assert "grew by 512 MiB a minute" in finding.summary or "grew by 511 MiB a minute" in finding.summary
    ((start, end),) = spans(finding)
    assert start == pytest.approx(260, abs=5)
    assert end == pytest.approx(1219, abs=2)


def test_a_slow_leak_is_a_warning() -> None:
    """What takes more than a day to fill the memory does not call for action at once."""
    util, hours = steps((97, 3000)), np.arange(3000) * 30 / 3600
    (finding,) = found(analyze(recording(util=util, memory=10 + 0.4 * hours, every=30.0)), "mem_leak")
    assert finding.severity is Severity.WARNING


def test_reserved_memory_is_full_earlier() -> None:
    """What the driver keeps cannot be taken."""
    memory = _memory(per_minute=0.5)
    (plain,) = found(analyze(recording(util=_UTIL, memory=memory)), "mem_leak")
    (less,) = found(analyze(recording(util=_UTIL, memory=memory, reserved=10 * GIB)), "mem_leak")
    assert plain.evidence[3].observed - less.evidence[3].observed == pytest.approx(20 * 60, rel=0.03)


@pytest.mark.parametrize(
    "memory",
    [
        steps((0, 20), (30, 1200)),
        _memory(per_minute=0.05),
        np.concatenate([np.zeros(20), np.linspace(20, 60, 250), np.full(950, 60.0)]),
        np.concatenate([np.zeros(20), 60 - 40 * np.exp(-np.arange(1200) / 150)]),
        np.concatenate([np.zeros(20), np.full(600, 20.0), np.full(600, 40.0)]),
        np.concatenate([np.zeros(20), np.tile(np.linspace(20, 30, 60), 20)]),
    ],
    ids=["steady", "less than 2%", "warm-up", "running maximum", "one step", "sawtooth"],
)
def test_what_is_no_leak(memory: FloatArray) -> None:
    """Growth must be large, and go on in every quarter."""
    assert found(analyze(recording(util=_UTIL, memory=memory)), "mem_leak") == []


def test_a_leak_that_a_restart_ends_is_found_before_it() -> None:
    """Out of memory, started anew: the longest stretch is judged, not the jump."""
    first, second = _memory(per_minute=2.0)[20:], _memory(per_minute=2.0)[20:400]
    util = np.concatenate([steps((0, 20), (97, 1200)), steps((0, 30)), steps((97, 380))])
    run = recording(util=util, memory=np.concatenate([np.zeros(20), first, np.zeros(30), second]))
    (finding,) = found(analyze(run), "mem_leak")
    assert finding.evidence[2].observed == pytest.approx(2.0 * GIB / 60, rel=0.03)
    assert spans(finding)[0][1] == pytest.approx(1219, abs=2)


def test_a_hole_in_the_log_changes_nothing() -> None:
    """Quarters are compared by their rates."""
    times = np.concatenate([np.arange(620), 1800 + np.arange(600)]).astype(np.float64)
    memory = np.concatenate([np.zeros(20), 20 + 0.5 * (times[20:] - 20) / 60])
    (finding,) = found(analyze(recording(util=_UTIL, memory=memory, times=times)), "mem_leak")
    assert finding.evidence[2].observed == pytest.approx(0.5 * GIB / 60, rel=0.03)


def test_only_the_gpu_that_leaks_is_named() -> None:
    """Each GPU is judged for itself."""
    run = recording(util=_UTIL, memory=[steps((0, 20), (30, 1200)), _memory(per_minute=0.5)])
    (finding,) = found(analyze(run), "mem_leak")
    assert finding.devices == ("gpu:1",)


def test_preallocated_memory_is_not_judged() -> None:
    """What the job uses of it cannot be seen."""
    (entry,) = unjudged(analyze(recording(util=_UTIL, memory=steps((0, 20), (62, 1200)))), "mem_leak")
    assert "reserved at once" in entry.reason
    assert "XLA_PYTHON_CLIENT_PREALLOCATE" in entry.recording


def test_few_samples_are_not_judged() -> None:
    """A trend takes twenty samples after the warm-up."""
    (entry,) = unjudged(
        analyze(recording(util=steps((97, 20)), memory=np.linspace(10, 40, 20), every=60.0)), "mem_leak"
    )
    assert "16 samples" in entry.reason


def test_twenty_samples_give_a_finding_of_medium_confidence() -> None:
    """Coarse logs show long leaks too."""
    run = recording(util=steps((97, 30)), memory=np.linspace(10, 40, 30), every=60.0)
    (finding,) = found(analyze(run), "mem_leak")
    assert finding.confidence is Confidence.MEDIUM


def test_without_memory_it_is_not_judged() -> None:
    """Neither without use nor without the memory installed."""
    assert "gpu_memory_used_bytes" in unjudged(analyze(recording(util=_UTIL)), "mem_leak")[0].metrics
    unsized = analyze(recording(util=_UTIL, memory=_memory(per_minute=0.5), memory_total=None))
    assert "gpu_memory_total_bytes" in unjudged(unsized, "mem_leak")[0].metrics
