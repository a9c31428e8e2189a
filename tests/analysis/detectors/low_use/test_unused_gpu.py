"""GPUs that never worked while others did."""

from typing import Any

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Severity, analyze, found, recording, steps, unjudged

_BUSY = steps((0, 20), (97, 280))
_NEVER = np.zeros(300)
_HELD = np.full(300, 40.0)


def test_gpus_that_never_worked_are_one_finding() -> None:
    """Their time counts while others worked."""
    run = recording(util=[_BUSY, _NEVER, _NEVER], memory=[_HELD, _NEVER, _NEVER])
    (finding,) = found(analyze(run), "unused_gpu")
    assert (finding.devices, finding.severity) == (("gpu:1", "gpu:2"), Severity.WARNING)
    assert finding.confidence is Confidence.HIGH
    assert finding.lost_gpu_seconds == pytest.approx(2 * 280, abs=4)
    assert "GPUs 1 and 2 never worked while GPU 0 worked for 4 min 40 s." in finding.summary


def test_a_gpu_whose_memory_is_held_may_be_another_job_s() -> None:
    """It is said, with less confidence, and apart from the one nobody holds."""
    run = recording(util=[_BUSY, _NEVER, _NEVER], memory=[_HELD, _HELD * 0.75, _NEVER])
    free, held = sorted(found(analyze(run), "unused_gpu"), key=lambda finding: finding.confidence)
    assert (free.devices, held.devices) == (("gpu:2",), ("gpu:1",))
    assert "GPU 1 never worked while GPU 0 worked for 4 min 40 s; 30.0 GiB of its memory was in" in held.summary


def test_stray_kernels_are_no_work() -> None:
    """A monitor or a display is not the job."""
    stray = np.where(np.arange(300) % 60 == 0, 60.0, 0.0)
    assert [one.devices for one in found(analyze(recording(util=[_BUSY, stray])), "unused_gpu")] == [("gpu:1",)]


@pytest.mark.parametrize(
    "util",
    [[_BUSY, steps((0, 200), (97, 100))], [_NEVER, _NEVER], [_BUSY, steps((0, 280), (97, 20))]],
    ids=["late", "none worked", "at the end"],
)
def test_what_is_not_unused(util: list[FloatArray]) -> None:
    """A GPU that worked at any time, and a recording without work."""
    assert found(analyze(recording(util=util)), "unused_gpu") == []


def test_a_short_job_is_not_judged() -> None:
    """Ranks may start later than that."""
    (entry,) = unjudged(analyze(recording(util=[steps((97, 40)), np.zeros(40)])), "unused_gpu")
    assert entry.recording == "a log of at least 1 min"


def test_a_gpu_without_utilisation_is_not_judged() -> None:
    """As with MIG, null is not zero."""
    (entry,) = unjudged(analyze(recording(util=[_BUSY, np.full(300, np.nan)])), "unused_gpu")
    assert entry.device == "gpu:1"
    assert "gpu_utilization_ratio" in entry.metrics


def test_time_without_samples_is_not_lost() -> None:
    """Five samples over half a day, eleven hours of them without any: nobody knows what the GPU did then."""
    times = [0.0, 6800.0, 7000.0, 7900.0, 48700.0]
    run = recording(util=[np.array([80.0, 70, 75, 60, 30]), np.zeros(5)], times=times, every=900.0)
    (finding,) = found(analyze(run), "unused_gpu")
    assert finding.confidence is Confidence.LOW
    assert finding.lost_gpu_seconds is not None
    assert finding.lost_gpu_seconds < 9000
    assert "GPU 1 never worked while GPU 0 worked for 13 h 32 min; samples cover 48 min 20 s of it;" in finding.summary
    assert sum(part.seconds for part in finding.intervals) < 3000


def test_its_gaps_are_as_severe_as_itself() -> None:
    """A warning is not explained by a problem."""
    analysis = analyze(recording(util=[_BUSY, _NEVER], memory=[_HELD, _NEVER]))
    (gap,) = [one for one in found(analysis, "idle_gap") if one.cause == "unused"]
    assert gap.root == found(analysis, "unused_gpu")[0].fingerprint
    assert gap.severity is Severity.WARNING


def test_samples_far_apart_show_no_short_pauses() -> None:
    """A quarter of an hour apart, beside gaps: all an unused GPU's samples own is unused, of others low use."""
    times = np.array([0, 1, 2, 9, 10, 11, 12, 40]) * 900.0
    made = analyze(
        recording(util=[np.full(8, 60.0), np.zeros(8)], memory=[np.full(8, 40.0)] * 2, times=times, every=900)
    )
    classes = [dict(each.seconds) for each in made.gpu_time]
    assert [each["short_pauses"] for each in classes] == [0, 0]
    assert classes[0]["low_use"] > 0
    assert classes[1]["unused"] + classes[1]["no_samples"] == pytest.approx(
        36000, abs=1
    )  # less the window of a reading


_FEW_MIB = np.full(300, 3 / 1024)


def test_a_gpu_with_evidence_of_its_own_work_is_not_judged() -> None:
    """Mean utilisation and power of a GPU at work, though it never works for three seconds on end."""
    bursts = np.where(np.arange(300) % 2 == 0, 100.0, 12.0)
    bursts[::3] = 0
    run = recording(util=[_BUSY, bursts], power=[_HELD + 260, _HELD + 259])
    assert found(analyze(run), "unused_gpu") == []
    (entry,) = unjudged(analyze(run), "unused_gpu")
    assert (entry.device, entry.reason[:21]) == ("gpu:1", "it was used at times,")


def test_a_gpu_that_draws_the_power_of_work_is_not_judged() -> None:
    """Whatever its utilisation says: 299 W of 400 are no idle GPU."""
    run = recording(util=[_BUSY, _NEVER], power=[_HELD + 260, _HELD + 259])
    assert found(analyze(run), "unused_gpu") == []
    (entry,) = unjudged(analyze(run), "unused_gpu")
    assert "it drew 299 W" in entry.reason


@pytest.mark.parametrize("known", [1, 2, 4])
def test_a_handful_of_samples_is_not_judged(known: int) -> None:
    """Nobody knows what the GPU did in between, whatever they say."""
    few = np.full(300, np.nan)
    few[np.linspace(30, 290, known).astype(int)] = 0.0
    run = recording(util=[_BUSY, few], memory=[_HELD, _HELD])
    assert found(analyze(run), "unused_gpu") == []
    (entry,) = unjudged(analyze(run), "unused_gpu")
    assert (entry.device, "show what it did" in entry.reason) == ("gpu:1", True)


def _eight(length: int = 300, util: float | None = 0.0) -> dict[str, Any]:
    """Return series of eight GPUs of which one works and the others hold 0 to 3 MiB."""
    none = np.full(length, np.nan if util is None else util)
    return {
        "util": [steps((0, 5), (97, length - 5)), *[none] * 7],
        "memory": [np.full(length, 40.0), *(np.full(length, gpu % 4 / 1024) for gpu in range(7))],
    }


_SEVEN = tuple(f"gpu:{gpu}" for gpu in range(1, 8))


@pytest.mark.parametrize("length", [300, 50])
def test_seven_of_eight_gpus_without_memory(length: int) -> None:
    """The log may be shorter than a minute: a rank that was to come would hold memory."""
    (finding,) = found(analyze(recording(**_eight(length))), "unused_gpu")
    assert (finding.devices, finding.confidence) == (_SEVEN, Confidence.HIGH)
    assert finding.lost_gpu_seconds == pytest.approx(7 * (length - 5), abs=14)


def test_no_memory_tells_where_utilisation_was_not_recorded() -> None:
    """As under MIG, or where the driver has none for these GPUs."""
    (finding,) = found(analyze(recording(**_eight(util=None))), "unused_gpu")
    assert (finding.devices, finding.confidence) == (_SEVEN, Confidence.MEDIUM)
    assert "4, 5, 6 and 7 never used more than 3 MiB of memory while GPU 0 worked for 4 min 55 s." in finding.summary


def test_no_memory_tells_beside_a_gpu_that_holds_some() -> None:
    """A log without utilisation knows who held memory."""
    (finding,) = found(analyze(recording(memory=_eight()["memory"])), "unused_gpu")
    assert finding.devices == _SEVEN
    assert "7 never used more than 3 MiB of memory while GPU 0 had memory in use for 4 min 59 s." in finding.summary


@pytest.mark.parametrize("memory", [[_FEW_MIB, _FEW_MIB], [_HELD, _HELD]], ids=["none", "both"])
def test_memory_of_all_or_none_tells_nothing(memory: list[FloatArray]) -> None:
    """Without utilisation nobody knows which GPU worked."""
    analysis = analyze(recording(memory=memory))
    assert found(analysis, "unused_gpu") == []
    (entry,) = unjudged(analysis, "unused_gpu")
    assert "gpu_utilization_ratio" in entry.reason


def test_stray_readings_of_a_gpu_without_memory_are_no_work() -> None:
    """Some seconds of utilisation that nobody's memory stands behind, as a driver reports while it is loaded."""
    stray = steps((0, 100), (40, 5), (0, 195))
    (finding,) = found(analyze(recording(util=[_BUSY, stray], memory=[_HELD, _FEW_MIB])), "unused_gpu")
    assert finding.devices == ("gpu:1",)
    assert found(analyze(recording(util=[_BUSY, stray], memory=[_HELD, _HELD])), "unused_gpu") == []
