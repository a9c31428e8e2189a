"""Memory that is still held after the work has ended."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_ENDED = steps((0, 20), (97, 280), (0, 300))
_HELD = steps((0, 5), (40, 595))


def test_memory_held_after_the_end_is_found() -> None:
    """From the last work to the last sample, with what is held."""
    (finding,) = found(analyze(recording(util=_ENDED, memory=_HELD)), "zombie_memory")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=2)
    assert end == pytest.approx(599, abs=1)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "5 min after the last work, GPU 0 still had 40.0 GiB in use; whether the CPU still" in finding.summary


def test_an_idle_cpu_makes_it_sure() -> None:
    """Nothing of the job computes any more."""
    cpu = steps((60, 300), (2, 300))
    (finding,) = found(analyze(recording(util=_ENDED, memory=_HELD, cpu=cpu, host={"core": cpu})), "zombie_memory")
    assert finding.confidence is Confidence.HIGH


@pytest.mark.parametrize(
    "series",
    [
        {"memory": steps((0, 5), (40, 300), (0, 295))},
        {"memory": steps((0, 5), (40, 300), (15, 295))},
        {"util": steps((0, 20), (97, 480), (0, 100)), "memory": _HELD},
        {"memory": 40.0},
        {"memory": steps((0, 5), (0.4, 595))},
        {"memory": _HELD, "cpu": steps((60, 300), (40, 300))},
        {"memory": _HELD, "cpu": steps((60, 300), (5, 300)), "host": {"core": steps((90, 300), (99, 300))}},
    ],
    ids=["released", "mostly released", "just ended", "was there before", "a context", "CPU busy", "a core busy"],
)
def test_what_is_no_zombie(series: dict[str, Any]) -> None:
    """A job that gave its memory back, may still be ending, or never took it."""
    assert found(analyze(recording(**{"util": _ENDED, **series})), "zombie_memory") == []


def test_a_gpu_that_idles_while_another_works_is_no_zombie() -> None:
    """The job has not ended."""
    run = recording(util=[_ENDED, steps((97, 600))], memory=_HELD)
    assert found(analyze(run), "zombie_memory") == []


def test_without_memory_it_is_not_judged() -> None:
    """What to record is said."""
    (entry,) = unjudged(analyze(recording(util=_ENDED)), "zombie_memory")
    assert "gpu_memory_used_bytes" in entry.metrics


def test_a_short_recording_is_not_judged() -> None:
    """Two minutes without work must fit in."""
    analysis = analyze(recording(util=steps((97, 60), (0, 30)), memory=np.full(90, 40.0)))
    assert [entry.recording for entry in unjudged(analysis, "zombie_memory")] == ["a log of at least 2 min"]
