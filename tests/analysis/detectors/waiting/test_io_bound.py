"""GPUs that wait while the machine waits for its storage."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Analysis, Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_PHASES = steps((97, 300), (30, 300), (97, 300))
_CALM = steps((10, 900))
_WAITS = steps((1, 300), (40, 300), (1, 300))


def _analyze(util: FloatArray, iowait: FloatArray, cpu: FloatArray = _CALM) -> Analysis:
    return analyze(recording(util=util, cpu=cpu, host={"iowait": iowait}))


def test_low_gpu_beside_a_wait_for_storage_is_io_bound() -> None:
    """The phase is found with its edges, the cost is counted, and nothing else claims the time."""
    analysis = _analyze(_PHASES, _WAITS)
    (finding,) = found(analysis, "io_bound")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=6)
    assert end == pytest.approx(599.5, abs=6)
    assert finding.lost_gpu_seconds == pytest.approx(210, abs=6)
    assert (finding.severity, finding.confidence, finding.cause) == (Severity.PROBLEM, Confidence.HIGH, "storage")
    assert "The host waited on storage while GPU 0 averaged 32% utilisation over 5 min 7 s." in finding.summary
    others = {"cpu_bound", "cpu_bound_single", "underutilised", "low_util_cause_unknown"}
    assert others & {other.kind for other in analysis.findings} == set()
    assert dict(analysis.gpu_time[0].seconds)["waiting_for_input"] == pytest.approx(210, abs=6)


def test_a_wait_that_comes_in_bursts_counts_by_its_mean() -> None:
    """A third of the seconds at 78% is 26% of the time."""
    bursts = np.where(np.arange(900) % 3 == 0, _WAITS * 1.95, 0)
    (finding,) = found(_analyze(_PHASES, bursts), "io_bound")
    assert finding.intervals[0].seconds == pytest.approx(300, abs=12)


@pytest.mark.parametrize(
    ("util", "iowait"),
    [
        (steps((97, 900)), steps((40, 900))),
        (_PHASES, steps((10, 900))),
        (steps((97, 300), (30, 20), (97, 580)), steps((1, 300), (40, 20), (1, 580))),
        (steps((0, 300), (97, 300)), steps((60, 600))),
        (steps((97, 300), (68, 300), (97, 300)), _WAITS),
        (_PHASES, steps((40, 300), (1, 600))),
    ],
    ids=["busy GPU", "little wait", "short", "start-up", "well used", "another time"],
)
def test_what_is_not_io_bound(util: FloatArray, iowait: FloatArray) -> None:
    """Both signs are needed at the same time, for half a minute, within the job."""
    assert found(_analyze(util, iowait, _CALM[: len(util)]), "io_bound") == []


def test_a_full_cpu_comes_first() -> None:
    """Where the CPU is full as well, its episode is the one that counts."""
    analysis = _analyze(_PHASES, _WAITS, steps((20, 300), (95, 300), (20, 300)))
    assert len(found(analysis, "cpu_bound")) == 1
    assert found(analysis, "io_bound") == []


def test_a_wait_as_long_beside_busy_gpus_explains_nothing() -> None:
    """Storage that a neighbour of the job uses all the time is not what the GPUs wait for."""
    noise = np.random.default_rng(1).uniform(-5, 5, 900)
    analysis = _analyze(_PHASES, 40 + noise)
    assert found(analysis, "io_bound") == []
    assert len(found(analysis, "underutilised")) == 1


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("share", [0.35, 0.5])
def test_another_order_in_time_explains_nothing(seed: int, share: float) -> None:
    """The same values of the machine, permuted in time, are no finding, however many of them are high."""
    low = round(900 * share)
    util = steps((97, 900 - low), (30, low))
    hosts: dict[str, FloatArray] = {
        "iowait": steps((1, 900 - low), (60, low)),
        "core": steps((40, 900 - low), (99, low)),
    }
    cpu = steps((20, 900 - low), (95, low))
    order = np.random.default_rng(seed).permutation(900)
    for name, values in hosts.items():
        kind = {"iowait": "io_bound", "core": "cpu_bound_single"}[name]
        assert len(found(analyze(recording(util=util, cpu=np.full(900, 10), host={name: values})), kind)) == 1
        shuffled = recording(util=util, cpu=np.full(900, 10), host={name: values[order]})
        assert found(analyze(shuffled), kind) == []
    assert len(found(analyze(recording(util=util, cpu=cpu)), "cpu_bound")) == 1
    assert found(analyze(recording(util=util, cpu=cpu[order])), "cpu_bound") == []


def test_without_busy_gpus_to_compare_with_it_is_less_sure() -> None:
    """A job that waits from end to end leaves no time in which the wait could be missing."""
    (finding,) = found(_analyze(np.full(900, 30), np.full(900, 40)), "io_bound")
    assert finding.confidence == Confidence.MEDIUM
    assert not any("busy GPUs" in said for said in finding.ruled_out)


def test_point_samples_of_a_job_that_is_used_well_say_nothing() -> None:
    """At 10 s, 80% of samples at 95% dip below 64% by chance for minutes; a real wait does not depend on it."""
    count = 2000
    wait = np.where(np.arange(count) % 400 < 200, 40, 1)
    for seed in range(5):
        rng = np.random.default_rng(seed)
        fine, starved = np.where(rng.random(count) < 0.8, 95, 0), np.where(rng.random(count) < 0.3, 95, 0)
        for util, expected in ((fine, 0), (np.where(wait > 1, starved, fine), 1)):
            run = recording(util=util, every=10, cpu=np.full(count, 10), cpu_every=10, host={"iowait": wait})
            assert len(found(analyze(run), "io_bound")) == expected


def test_without_the_column_it_is_not_judged() -> None:
    """Recorders other than Linux ones have no such column; what to record is said."""
    (entry,) = unjudged(analyze(recording(util=_PHASES, cpu=_CALM)), "io_bound")
    assert "cpu_iowait_ratio was not recorded" in entry.reason
    assert "cpu_iowait_ratio" in entry.metrics


def test_a_series_of_another_time_and_a_short_run_are_not_judged() -> None:
    """A host log that covers little of the job proves nothing, and neither do some seconds."""
    (entry,) = unjudged(_analyze(_PHASES, np.full(100, 40.0), np.full(100, 10.0)), "io_bound")
    assert "covers only 11% of the job" in entry.reason
    (entry,) = unjudged(_analyze(np.full(20, 30.0), np.full(20, 40.0), np.full(20, 10.0)), "io_bound")
    assert entry.recording == "a log of at least 30 s"


def test_stalls_inside_follow_from_it() -> None:
    """The wait is the root; gaps within it are its consequences."""
    burst = np.tile(steps((95, 10), (0, 10)), 15)
    analysis = _analyze(np.concatenate([steps((97, 300)), burst, steps((97, 300))]), _WAITS)
    (root,) = found(analysis, "io_bound")
    gaps = found(analysis, "idle_gap")
    assert {gap.cause for gap in gaps} == {"data"}
    assert root.consequences == (gaps[0].fingerprint,)
