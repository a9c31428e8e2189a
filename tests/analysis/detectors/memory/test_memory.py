"""How full GPU memory was."""

import numpy as np
import pytest

from gpureport.analysis.detectors.memory.memory import Memory
from gpureport.analysis.series.device_series import series_by_device
from gpureport.columns import FloatArray
from gpureport.testing import GIB, Confidence, Severity, analyze, found, recording, steps, unjudged

_UTIL = steps((0, 20), (97, 280))
_KINDS = ("mem_headroom", "mem_pressure", "mem_prealloc")


def _growing(peak: float) -> FloatArray:
    """Return memory that an allocator takes in steps, the last of which comes in the middle of the run."""
    return np.concatenate([np.zeros(10), np.linspace(1, peak * 0.7, 20), steps((peak * 0.9, 120), (peak, 150))])


@pytest.mark.parametrize(
    ("memory", "kind"),
    [(_growing(30), "mem_headroom"), (_growing(78), "mem_pressure"), (steps((0, 10), (62, 290)), "mem_prealloc")],
)
def test_one_kind_speaks(memory: FloatArray, kind: str) -> None:
    """Room, pressure and preallocation exclude each other."""
    analysis = analyze(recording(util=_UTIL, memory=memory))
    assert [name for name in _KINDS if found(analysis, name)] == [kind]


def test_well_filled_memory_is_silent() -> None:
    """Between 70 and 95% there is nothing to say."""
    analysis = analyze(recording(util=_UTIL, memory=_growing(66)))
    assert [name for name in _KINDS if found(analysis, name)] == []


def test_reserved_memory_is_not_available() -> None:
    """Pressure is judged by what a job can get."""
    memory, roomy, tight = _growing(75), None, 4 * GIB
    assert found(analyze(recording(util=_UTIL, memory=memory, reserved=roomy)), "mem_pressure") == []
    (finding,) = found(analyze(recording(util=_UTIL, memory=memory, reserved=tight)), "mem_pressure")
    assert finding.severity is Severity.WARNING
    assert "The memory of GPU 0 was 99% full: only 1.0 of 76.0 GiB was left." in finding.summary


def test_the_fullest_gpu_decides_about_room() -> None:
    """One well-filled GPU leaves no room for a larger batch."""
    run = recording(util=_UTIL, memory=[_growing(20), _growing(60)])
    assert found(analyze(run), "mem_headroom") == []


def test_preallocation_that_is_released_at_the_end_is_recognised() -> None:
    """Memory is released at once, utilisation lags."""
    memory = steps((0, 10), (62, 280), (0, 10))
    (finding,) = found(analyze(recording(util=_UTIL, memory=memory)), "mem_prealloc")
    assert finding.severity is Severity.INFO
    assert "GPU 0 took 78% of its memory at once; the real need is not known." in finding.summary


def test_a_step_that_goes_on_growing_is_no_preallocation() -> None:
    """A caching allocator grows after its first step."""
    memory = np.concatenate([np.zeros(10), np.linspace(60, 63, 290)])
    assert found(analyze(recording(util=_UTIL, memory=memory)), "mem_prealloc") == []


def test_an_unused_gpu_has_no_room_to_offer() -> None:
    """A bare context says nothing about batch size; a GPU that works in as little has room for more."""
    idle = analyze(recording(util=np.zeros(300), memory=steps((0.5, 300))))
    assert found(idle, "mem_headroom") == []
    (room,) = found(analyze(recording(util=_UTIL, memory=steps((0.5, 20), (2.5, 280)))), "mem_headroom")
    assert room.confidence is Confidence.HIGH
    assert room.summary.startswith("97% of the memory of GPU 0 was never used")


def test_room_beside_an_unused_gpu_is_that_of_the_one_that_works() -> None:
    """The other has nothing to fill its memory with."""
    run = recording(util=[_UTIL, np.zeros(300)], memory=[_growing(2.5), np.full(300, 0.5)])
    (room,) = found(analyze(run), "mem_headroom")
    assert room.devices == ("gpu:0",)


def test_without_memory_it_is_not_judged() -> None:
    """Neither without use nor without the memory installed."""
    absent = analyze(recording(util=_UTIL))
    unsized = analyze(recording(util=_UTIL, memory=_growing(30), memory_total=None))
    for kind in _KINDS:
        assert "gpu_memory_used_bytes" in unjudged(absent, kind)[0].metrics
        assert "gpu_memory_total_bytes" in unjudged(unsized, kind)[0].metrics


@pytest.mark.parametrize("level", [30.0, 78.0], ids=["mem_headroom", "mem_pressure"])
def test_memory_that_never_moves_may_be_preallocated(level: float, request: pytest.FixtureRequest) -> None:
    """A step before the log began cannot be excluded, and is not said to be."""
    kind = request.node.callspec.id
    (finding,) = found(analyze(recording(util=_UTIL, memory=steps((level, 300)))), kind)
    assert (finding.confidence, finding.ruled_out) == (Confidence.LOW, ())
    assert "It never changed, so it may be reserved, not needed." in finding.summary


def test_preallocation_has_two_explanations() -> None:
    """The cause is not claimed."""
    (finding,) = found(analyze(recording(util=_UTIL, memory=steps((0, 10), (62, 290)))), "mem_prealloc")
    assert "GPU 0 took 78% of its memory at once; the real need is not known." in finding.summary


def test_what_is_left_below_a_gibibyte_is_in_mebibytes() -> None:
    """0.1 GiB hides how little it is; only the GPUs meant are named."""
    run = recording(util=_UTIL, memory=[_growing(79.92), _growing(20)])
    (finding,) = found(analyze(run), "mem_pressure")
    assert finding.summary.startswith("The memory of GPU 0 was 100% full: only 82 MiB of 80.0 GiB was left.")


@pytest.mark.parametrize(
    ("samples", "sure"), [(2, Confidence.MEDIUM), (4, Confidence.MEDIUM), (5, Confidence.HIGH), (60, Confidence.HIGH)]
)
@pytest.mark.parametrize(("level", "kind"), [(30.0, "mem_headroom"), (79.0, "mem_pressure")])
def test_confidence_follows_the_samples(samples: int, sure: Confidence, level: float, kind: str) -> None:
    """Two samples at 99% are no high confidence; the memory moves, so it was not preallocated before."""
    memory = steps((0.9 * level, samples // 2), (level, samples - samples // 2))
    (finding,) = found(analyze(recording(util=steps((97, samples)), memory=memory, every=30.0)), kind)
    assert (finding.confidence, finding.samples) == (sure, samples)


@pytest.mark.parametrize(("seconds", "peak"), [(30, 52), (120, 52), (30, 30), (120, 30)])
def test_preallocation_is_ruled_out_only_where_it_could_be_assessed(seconds: int, peak: float) -> None:
    """Less than a minute doesn't tell memory that is reserved from memory that is needed, where most of it is used."""
    memory = steps((0.9 * peak, seconds // 2), (peak, seconds // 2))
    run = recording(util=steps((97, seconds)), memory=memory)
    analysis = analyze(run)
    (finding,) = found(analysis, "mem_headroom")
    assessed = not unjudged(analysis, "mem_prealloc")
    assert assessed == (seconds > 60 or peak < 48)
    assert (Memory().is_preallocated(next(iter(series_by_device(run).values()))) is False) == assessed
    assert bool(finding.ruled_out) == assessed
    assert finding.confidence is (Confidence.HIGH if assessed else Confidence.MEDIUM)


def test_a_small_step_that_stays_is_not_said_to_be_none() -> None:
    """A model that is loaded at once takes a tenth of the memory and keeps it: ruled out is one of most of it."""
    (finding,) = found(analyze(recording(util=_UTIL, memory=steps((0.6, 10), (7.3, 290)))), "mem_headroom")
    assert finding.ruled_out == ("preallocation: no single step took 60% of the memory and kept it",)
    assert [step.unknown for step in finding.steps if step.name == "larger_batch"] == [()]


def test_coarse_samples_do_not_tell_a_step() -> None:
    """Between two samples a quarter of an hour apart memory may have been taken bit by bit."""
    util, memory = steps((0, 1), (98, 60)), steps((0, 1), (50.2, 60))
    (finding,) = found(analyze(recording(util=util, memory=memory, every=1000.0)), "mem_prealloc")
    assert finding.confidence is Confidence.LOW
    assert "between two samples 16 min 40 s apart" in finding.summary


def test_a_reserve_of_all_the_memory_is_none() -> None:
    """A driver that keeps as much as is installed leaves no job a share to be measured by."""
    analysis = analyze(recording(util=_UTIL, memory=_growing(30), reserved=80 * GIB))
    assert [name for name in _KINDS if found(analysis, name)] == ["mem_headroom"]


def test_memory_that_is_given_back_and_taken_again_is_not_kept() -> None:
    """An evaluation with a third of the memory: what the job needs can be read from such a log."""
    memory = np.concatenate([steps((0, 10)), np.tile(steps((62, 100), (20, 20)), 5)])
    run = recording(util=np.full(len(memory), 97.0), memory=memory)
    assert found(analyze(run), "mem_prealloc") == []
