"""GPUs that wait while the CPU works, and GPUs that wait for an unknown reason."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Severity, analyze, found, recording, spans, steps, unjudged, with_host

_PHASES = steps((97, 300), (30, 300), (97, 300))
_FULL = steps((20, 300), (95, 300), (20, 300))


def test_low_gpu_beside_full_cpu_is_cpu_bound() -> None:
    """The phase is found with its edges, and the waiting is counted."""
    (finding,) = found(analyze(recording(util=_PHASES, cpu=_FULL)), "cpu_bound")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=5)
    assert end == pytest.approx(599.5, abs=5)
    assert finding.lost_gpu_seconds == pytest.approx(210, abs=5)
    assert (finding.severity, finding.devices) == (Severity.PROBLEM, ("gpu:0",))
    assert "The CPU was 95% busy while GPU 0 averaged 30% utilisation over 5 min 1 s." in finding.summary


@pytest.mark.parametrize(("job", "cause"), [(1.0, "other programs"), (14.0, "data"), (np.nan, "data")])
def test_whose_load_it_is(job: float, cause: str) -> None:
    """A CPU that other programs fill is not relieved by changing the job."""
    run = recording(util=_PHASES)
    loaded = with_host(
        run, np.arange(900.0), cpu_utilization_ratio=_FULL / 100, cpu_logical_cores=16.0, job_cpu_cores=job
    )
    (finding,) = found(analyze(loaded), "cpu_bound")
    assert finding.cause == cause
    assert ("The job itself kept 1.0 cores busy" in finding.summary) == (cause == "other programs")
    assert ("Other programs" in finding.recommendation) == (cause == "other programs")
    assert ([step.name for step in finding.steps] == ["free_cpu"]) == (cause == "other programs")


@pytest.mark.parametrize("cores", [16.0, None], ids=["counted", "not counted"])
def test_a_job_that_hardly_uses_the_cpu_is_not_proven_to_lack_it(cores: float | None) -> None:
    """Its loader may wait for storage: what fills the CPU is told, and no cause claimed."""
    counted = {} if cores is None else {"cpu_logical_cores": cores}
    loaded = with_host(
        recording(util=_PHASES),
        np.arange(900.0),
        cpu_utilization_ratio=_FULL / 100,
        host_memory_used_ratio=0.2,
        job_cpu_cores=0.02,
        **counted,
    )
    analysis = analyze(loaded)
    assert found(analysis, "cpu_bound") + found(analysis, "underutilised") == []
    (finding,) = found(analysis, "low_util_cause_unknown")
    assert finding.cause == "not shown beside other programs"
    assert "the CPU was 95% busy with other programs, the job itself hardly used it (0.02 cores)" in finding.summary
    assert finding.recommendation.startswith("Try more loader workers first")
    assert [step.name for step in finding.steps][:2] == ["loader_workers", "prefetch"]
    assert "measure_alone" in [step.name for step in finding.steps]
    assert dict(analysis.gpu_time[0].seconds)["low_use"] == pytest.approx(210, abs=15)


def test_a_small_machine_is_filled_by_a_job_of_little_use() -> None:
    """Half a core is most of the load of a machine with one."""
    loaded = with_host(
        recording(util=_PHASES),
        np.arange(900.0),
        cpu_utilization_ratio=_FULL * 0.8 / 95,
        job_cpu_cores=0.45,
        cpu_logical_cores=1.0,
    )
    (finding,) = found(analyze(loaded), "cpu_bound")
    assert finding.cause == "data"


@pytest.mark.parametrize(
    ("util", "cpu"),
    [
        (steps((97, 900)), steps((95, 900))),
        (_PHASES, steps((20, 900))),
        (steps((97, 300), (0, 20), (97, 300)), steps((20, 300), (95, 20), (20, 300))),
        (steps((0, 300), (97, 300)), steps((95, 600))),
    ],
    ids=["busy GPU", "low CPU", "checkpoint", "start-up"],
)
def test_what_is_not_cpu_bound(util: FloatArray, cpu: FloatArray) -> None:
    """Both signs are needed, over half a minute, within the job."""
    assert found(analyze(recording(util=util, cpu=cpu)), "cpu_bound") == []


def test_a_coarser_host_log_is_joined() -> None:
    """Bins are as wide as the coarser log."""
    cpu = steps((20, 30), (95, 30), (20, 30))
    (finding,) = found(analyze(recording(util=_PHASES, cpu=cpu, cpu_every=10.0)), "cpu_bound")
    assert finding.intervals[0].seconds == pytest.approx(300, abs=20)


def test_unused_gpus_do_not_count() -> None:
    """A GPU that never works is not waiting for data."""
    (finding,) = found(analyze(recording(util=[_PHASES, np.zeros(900)], cpu=_FULL)), "cpu_bound")
    assert finding.devices == ("gpu:0",)


def test_idle_gaps_inside_are_consequences() -> None:
    """The wait is the root; gaps within it point back by their fingerprint."""
    burst = np.tile(steps((95, 10), (0, 10)), 20)
    run = recording(
        util=np.concatenate([steps((97, 300)), burst, steps((97, 300))]), cpu=steps((20, 300), (95, 400), (20, 300))
    )
    analysis = analyze(run)
    (root,) = found(analysis, "cpu_bound")
    gaps = found(analysis, "idle_gap")
    assert {gap.cause for gap in gaps} == {"data"}
    assert root.consequences == (gaps[0].fingerprint,)


def test_without_a_cpu_series_it_is_not_judged() -> None:
    """Never CPU-bound without CPU data; what to record is said."""
    analysis = analyze(recording(util=_PHASES))
    (entry,) = unjudged(analysis, "cpu_bound")
    assert "cpu_utilization_ratio" in entry.metrics
    assert found(analysis, "cpu_bound") == []


def test_a_cpu_series_of_another_time_is_not_judged() -> None:
    """A host log that covers little of the job proves nothing."""
    (entry,) = unjudged(analyze(recording(util=_PHASES, cpu=steps((95, 100)))), "cpu_bound")
    assert "covers only 11% of the job" in entry.reason


def test_low_utilisation_without_cpu_series_has_no_cause() -> None:
    """It is said that the cause is unknown, and what would tell."""
    (finding,) = found(analyze(recording(util=_PHASES)), "low_util_cause_unknown")
    assert finding.cause is None
    assert finding.intervals[0].seconds == pytest.approx(300, abs=60)
    assert "GPU 0 averaged 36% utilisation over 5 min 31 s; without a CPU log the cause is unknown." in finding.summary
    assert finding.evidence[0].threshold is not None
    assert finding.evidence[0].observed <= finding.evidence[0].threshold.value == 0.64


@pytest.mark.parametrize(
    "util",
    [steps((97, 900)), np.tile(steps((97, 60), (0, 60)), 8), steps((97, 600), (40, 60), (97, 240))],
    ids=["healthy", "idle gaps", "evaluation"],
)
def test_what_is_no_low_utilisation(util: FloatArray) -> None:
    """Busy GPUs, gaps, and a minute of evaluation."""
    assert found(analyze(recording(util=util)), "low_util_cause_unknown") == []


def test_with_a_cpu_series_the_cause_is_not_called_unknown() -> None:
    """Other kinds speak then."""
    assert found(analyze(recording(util=_PHASES, cpu=_FULL)), "low_util_cause_unknown") == []


def test_no_episode_spans_days_that_nobody_recorded() -> None:
    """The CPU was full before a pause of ten days and after it, and nobody knows what it was meanwhile."""
    times = np.concatenate([np.arange(600.0), np.arange(600.0) + 10 * 86_400])
    run = with_host(recording(util=steps((40, 1200)), times=times), times, cpu_utilization_ratio=0.99)
    (finding,) = found(analyze(run), "cpu_bound")
    assert sum(part.seconds for part in finding.intervals) < 2 * 3600


@pytest.mark.parametrize("last", [200, 12], ids=["long", "short"])
def test_a_gpu_that_stops_for_good_beside_a_cpu_as_full_as_before_does_not_wait_for_it(last: int) -> None:
    """It worked beside the same load; the other one may still wait."""
    util = [steps((97, 300), (0, last)), steps((35, 300 + last))]
    analysis = analyze(recording(util=util, cpu=steps((96, 150), (98, 150), (99, last))))
    (wait,) = found(analysis, "cpu_bound")
    assert wait.devices == ("gpu:1",)
    (gap,) = found(analysis, "idle_gap")
    assert (gap.devices, gap.root) == (("gpu:0",), None)
    assert gap.cause != "data"
    length = "3 min 20 s" if last == 200 else "12 s"
    assert gap.summary == f"GPU 0 sat idle for {length} to the last sample, while other GPUs worked."
    classes = dict(analysis.gpu_time[0].seconds)
    assert classes["idle"] == pytest.approx(last, abs=2)
    assert classes["waiting_for_input"] == 0


@pytest.mark.parametrize(
    ("util", "cpu"),
    [
        ([steps((97, 300), (0, 200)), steps((35, 500))], steps((60, 300), (99, 200))),
        ([steps((97, 200), (0, 100), (97, 20), (0, 180)), steps((35, 500))], steps((98, 500))),
        ([steps((40, 300), (0, 200)), steps((35, 500))], steps((98, 500))),
    ],
    ids=["the CPU fills up", "it had waited before", "it was never well fed"],
)
def test_a_gpu_that_stops_beside_a_cpu_that_holds_it_up_waits_for_it(util: list[FloatArray], cpu: FloatArray) -> None:
    """Only a CPU as full while the GPU worked is ruled out."""
    (wait,) = found(analyze(recording(util=util, cpu=cpu)), "cpu_bound")
    assert "gpu:0" in wait.devices
