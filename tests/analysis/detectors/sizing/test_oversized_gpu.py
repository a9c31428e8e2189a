"""Jobs that a smaller kind of GPU could hold and finish in the same time."""

from typing import Any

import numpy as np
import pytest

from gpureport import gpus
from gpureport.testing import Confidence, Severity, analyze, found, recording, steps, unjudged

_SOME = np.tile([25.0, 15.0], 400)
_MEMORY = np.concatenate([np.linspace(1, 10, 100), np.full(700, 10.0)])


def test_a_job_that_fits_a_smaller_gpu_is_found() -> None:
    """The model is named with the busy time and the memory it would take."""
    (finding,) = found(analyze(recording(util=_SOME, memory=_MEMORY)), "oversized_gpu")
    assert (finding.severity, finding.confidence, finding.lost_gpu_seconds) == (Severity.INFO, Confidence.LOW, None)
    assert "An A10 may suffice: GPU 0 used up to 10.0 GiB of memory and averaged 20% utilisation." in finding.summary
    assert finding.evidence[1].observed == pytest.approx(0.2 * 2039 / 600, abs=0.01)


@pytest.mark.parametrize(
    "series",
    [
        {"util": 97, "memory": _MEMORY},
        {"util": _SOME, "memory": _MEMORY * 5.5},
        {"util": _SOME, "memory": _MEMORY, "model": "NVIDIA L4", "memory_total": 24 * 2**30},
    ],
    ids=["busy", "full", "smallest"],
)
def test_what_is_not_oversized(series: dict[str, Any]) -> None:
    """A GPU that is busy or full, or the smallest of the table."""
    assert found(analyze(recording(**series)), "oversized_gpu") == []


def test_the_busiest_gpu_decides() -> None:
    """One that is busy keeps the others where they are."""
    run = recording(util=[_SOME, np.full(800, 97.0)], memory=[_MEMORY, _MEMORY])
    assert found(analyze(run), "oversized_gpu") == []


def test_preallocated_memory_says_nothing() -> None:
    """What the job needs is hidden."""
    memory = steps((0.5, 10), (60, 790))
    (entry,) = unjudged(analyze(recording(util=_SOME, memory=memory)), "oversized_gpu")
    assert "reserved at once" in entry.reason


@pytest.mark.parametrize("model", ["Some GPU", "NVIDIA GeForce RTX 3090", "NVIDIA GH200 480GB"])
def test_a_gpu_of_unknown_speed_is_not_judged(model: str) -> None:
    """It is not in the table, or nobody has a source for how fast it is."""
    (entry,) = unjudged(analyze(recording(util=_SOME, memory=_MEMORY, model=model)), "oversized_gpu")
    assert f"does not say how fast {model} is" in entry.reason


def test_a_short_run_is_not_judged() -> None:
    """A trial is not the job."""
    (entry,) = unjudged(analyze(recording(util=_SOME[:300], memory=_MEMORY[:300])), "oversized_gpu")
    assert entry.recording == "a log of at least 10 min"


def test_no_model_of_older_arithmetic_is_proposed() -> None:
    """What runs in bfloat16 needs compute capability 8.0."""
    memory = np.minimum(_MEMORY, 8.0)
    (finding,) = found(analyze(recording(util=np.tile([12.4, 12.2], 400), memory=memory)), "oversized_gpu")
    (named,) = [gpu for gpu in gpus.load_gpus() if f" {gpu.model} may suffice:" in finding.summary]
    assert named.compute_capability is not None
    assert named.compute_capability >= (8, 0)
