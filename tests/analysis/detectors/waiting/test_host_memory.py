"""Host memory beside GPUs that wait."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Analysis, Severity, analyze, found, recording, spans, steps, unjudged

_PHASES = steps((97, 300), (30, 300), (97, 300))
_FULL = steps((20, 300), (80, 300), (20, 300))
_WAITS = steps((1, 300), (40, 300), (1, 300))


def _analyze(memory: float | FloatArray, cpu: FloatArray = _FULL, util: FloatArray = _PHASES) -> Analysis:
    host = {"host_memory": np.broadcast_to(memory, len(util)), "iowait": np.zeros(len(util))}
    return analyze(recording(util=util, cpu=cpu, host=host))


def test_low_memory_and_a_free_core_beside_waiting_gpus_are_room_for_workers() -> None:
    """It is information for the time of the wait."""
    (finding,) = found(_analyze(30), "workers_headroom")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(300, abs=6)
    assert end == pytest.approx(600, abs=6)
    assert (finding.severity, finding.devices) == (Severity.INFO, ("host",))
    assert "GPUs waited for 5 min 1 s while host memory was 30% full and the CPU 80% busy." in finding.summary


def test_full_memory_beside_waiting_gpus_is_pressure() -> None:
    """Fewer workers then, and no word of more."""
    analysis = _analyze(93)
    (finding,) = found(analysis, "host_memory_pressure")
    assert finding.severity == Severity.WARNING
    assert "fewer loader workers" in finding.recommendation
    assert found(analysis, "workers_headroom") == []


def test_the_p95_decides() -> None:
    """A tenth of the time above the limit counts, a hundredth does not."""
    tenth, hundredth = (np.where(np.arange(900) % every == 0, 95, 75) for every in (10, 100))
    assert len(found(_analyze(tenth), "host_memory_pressure")) == 1
    assert found(_analyze(hundredth), "host_memory_pressure") == []


@pytest.mark.parametrize(
    ("memory", "cpu", "util"),
    [
        (80, _FULL, _PHASES),
        (30, steps((20, 300), (98, 300), (20, 300)), _PHASES),
        (30, _FULL, steps((97, 900))),
        (95, steps((20, 900)), _PHASES),
        (30, steps((20, 300), (80, 45), (20, 555)), steps((97, 300), (30, 45), (97, 555))),
    ],
    ids=["between", "no free core", "busy GPUs", "no wait", "short"],
)
def test_what_says_nothing(memory: float, cpu: FloatArray, util: FloatArray) -> None:
    """Host memory matters beside a wait only."""
    analysis = _analyze(memory, cpu, util)
    assert found(analysis, "workers_headroom") + found(analysis, "host_memory_pressure") == []


def test_a_wait_for_storage_counts_as_well() -> None:
    """More workers hide latency; a cache needs memory."""
    host = {"host_memory": np.full(900, 30), "iowait": _WAITS}
    analysis = analyze(recording(util=_PHASES, cpu=np.full(900, 10), host=host))
    assert len(found(analysis, "workers_headroom")) == 1


def test_without_memory_it_is_not_judged() -> None:
    """What to record is said."""
    analysis = analyze(recording(util=_PHASES, cpu=_FULL))
    for kind in ("workers_headroom", "host_memory_pressure"):
        (entry,) = unjudged(analysis, kind)
        assert "host_memory_used_ratio" in entry.metrics
