"""GPUs that wait for one core."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_PHASES = steps((97, 300), (38, 300), (97, 300))
_CALM = steps((12, 900))
_PEGGED = steps((60, 300), (100, 300), (60, 300))
_ONE = steps((0.6, 300), (1.0, 300), (0.6, 300))


def test_one_full_core_beside_a_waiting_gpu_is_found() -> None:
    """The phase is found with its edges and its cost, and nothing else claims it."""
    analysis = analyze(recording(util=_PHASES, cpu=_CALM, host={"core": _PEGGED}))
    (finding,) = found(analysis, "cpu_bound_single")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=5)
    assert end == pytest.approx(599.5, abs=5)
    assert finding.lost_gpu_seconds == pytest.approx(0.62 * 300, abs=5)
    assert (finding.severity, finding.confidence) == (Severity.PROBLEM, Confidence.HIGH)
    assert "One CPU core was saturated while GPU 0 averaged 38% utilisation over 5 min 1 s; all" in finding.summary
    assert {"cpu_bound", "io_bound", "underutilised"} & {other.kind for other in analysis.findings} == set()


@pytest.mark.parametrize("every", [5.0, 30.0])
def test_it_is_found_in_coarse_logs(every: float) -> None:
    """Thirty point samples make a mean."""
    rng = np.random.default_rng(3)
    count = 90
    util = np.concatenate([np.full(count, 97), np.clip(rng.normal(38, 9, count), 0, 100), np.full(count, 97)])
    host = {"core": steps((60, count), (99, count), (60, count))}
    run = recording(util=util, every=every, cpu=np.full(3 * count, 12), cpu_every=every, host=host)
    (finding,) = found(analyze(run), "cpu_bound_single")
    assert sum(part.seconds for part in finding.intervals) == pytest.approx(count * every, rel=0.05)


@pytest.mark.parametrize(
    ("util", "cpu", "core"),
    [
        (steps((97, 900)), _CALM, steps((100, 900))),
        (_PHASES, _CALM, steps((60, 300), (90, 300), (60, 300))),
        (_PHASES, steps((12, 300), (95, 300), (12, 300)), _PEGGED),
        (steps((97, 300), (38, 45), (97, 555)), _CALM, steps((60, 300), (100, 45), (60, 555))),
        (steps((0, 300), (97, 600)), _CALM, steps((100, 300), (60, 600))),
        (_PHASES, _CALM, steps((100, 900))),
    ],
    ids=["busy GPU", "core not full", "all cores full", "short", "start-up", "spinning beside busy GPUs as well"],
)
def test_what_is_not_bound_by_one_core(util: FloatArray, cpu: FloatArray, core: FloatArray) -> None:
    """A full core beside a well-fed GPU spins; all cores full are another kind."""
    assert found(analyze(recording(util=util, cpu=cpu, host={"core": core})), "cpu_bound_single") == []


@pytest.mark.parametrize(("cores", "count"), [(0.03, 0), (1.2, 1)])
def test_a_core_that_another_program_fills_is_not_the_jobs(cores: float, count: int) -> None:
    """A job whose own processes hardly use the CPU does not wait for a thread of its own."""
    host = {"core": _PEGGED, "cores_of_job": np.full(900, cores)}
    assert len(found(analyze(recording(util=_PHASES, cpu=_CALM, host=host)), "cpu_bound_single")) == count


@pytest.mark.parametrize("known", [45, 100])
def test_a_job_whose_use_is_mostly_not_known_is_not_known_to_leave_the_cpu(known: int) -> None:
    """Its processes were watched for a part of the wait, which alone is left out."""
    cores = np.where((np.arange(900) >= 300) & (np.arange(900) < 300 + known), 0.02, np.nan)
    run = recording(util=_PHASES, cpu=_CALM, host={"core": _PEGGED, "cores_of_job": cores})
    (finding,) = found(analyze(run), "cpu_bound_single")
    assert spans(finding)[0] == pytest.approx((300 + known, 600), abs=5)


def test_without_busy_gpus_to_compare_with_it_is_a_warning() -> None:
    """The thread may only spin while it waits for the GPU, and that is said."""
    run = recording(util=np.full(900, 38), cpu=_CALM, host={"core": np.full(900, 100)})
    (finding,) = found(analyze(run), "cpu_bound_single")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "One CPU core was saturated while GPU 0 averaged 38% utilisation over 14 min 59 s; all" in finding.summary


@pytest.mark.parametrize(("most", "count"), [(1.0, 1), (6.0, 0)])
def test_the_watched_process_tells_where_no_cores_were_recorded(most: float, count: int) -> None:
    """One busy thread counts, a process with six does not."""
    run = recording(util=_PHASES, cpu=_CALM, host={"cores_of_process": _ONE * most})
    findings = found(analyze(run), "cpu_bound_single")
    assert len(findings) == count
    evidence = [one for finding in findings for one in finding.evidence if one.metric == "process_cpu_cores"]
    assert [(one.unit, one.threshold and one.threshold.unit) for one in evidence] == [("cores", "cores")] * count


@pytest.mark.parametrize(
    ("host", "cpu", "missing"),
    [
        ({"iowait": steps((1, 900))}, _CALM, "cpu_busiest_core_ratio"),
        ({"core": _PEGGED}, None, "cpu_utilization_ratio"),
        ({}, None, "cpu_utilization_ratio and cpu_busiest_core_ratio"),
    ],
    ids=["no cores", "no CPU", "no host"],
)
def test_without_its_columns_it_is_not_judged(
    host: dict[str, FloatArray], cpu: FloatArray | None, missing: str
) -> None:
    """From all cores together one full core of sixteen is 6%: it is never claimed from that."""
    analysis = analyze(recording(util=_PHASES, cpu=cpu, host=host))
    (entry,) = unjudged(analysis, "cpu_bound_single")
    assert entry.reason.startswith(missing)
    assert entry.recording == "gpureport record -- COMMAND"
    assert found(analysis, "cpu_bound_single") == []


def test_a_short_run_is_not_judged() -> None:
    """Half a minute is what an episode lasts at least."""
    run = recording(util=np.full(20, 38), cpu=np.full(20, 12), host={"core": np.full(20, 100)})
    (entry,) = unjudged(analyze(run), "cpu_bound_single")
    assert entry.recording == "a log of at least 30 s"


def test_a_thread_that_moves_between_cores_fills_none_of_them() -> None:
    """Its process shows it: one core's worth of work, all the time."""
    host = {"core": np.full(900, 55), "cores_of_process": np.full(900, 1.0), "cores_of_job": np.full(900, 1.0)}
    (finding,) = found(analyze(recording(util=np.full(900, 38), cpu=_CALM, host=host)), "cpu_bound_single")
    assert finding.summary.startswith("The busiest process used 1.00 cores, as much as one thread can, while GPU 0")
    assert (finding.severity, finding.cause) == (Severity.WARNING, "one thread")


@pytest.mark.parametrize(
    ("process", "job", "pause"),
    [(1.0, 1.0, 8), (1.0, 2.4, 60), (0.25, 1.0, 60)],
    ids=["spins beside a busy GPU", "has workers", "four that wait"],
)
def test_such_a_job_may_wait_for_something_else(process: float, job: float, pause: int) -> None:
    """A thread that spins is as busy while the GPU works; with other processes no single thread is known."""
    util = np.tile(steps((96, 60 - pause), (2, pause)), 15) if pause < 60 else np.full(900, 38)
    host = {"core": np.full(900, 55), "cores_of_process": np.full(900, process), "cores_of_job": np.full(900, job)}
    assert found(analyze(recording(util=util, cpu=_CALM, host=host)), "cpu_bound_single") == []


@pytest.mark.parametrize(
    ("rate", "sent", "cause"), [(7.3, 0.3, "copying"), (0.8, 0.1, "one thread"), (7.3, 7.0, "one thread")]
)
def test_dense_copies_are_named_as_what_the_thread_does(rate: float, sent: float, cause: str) -> None:
    """A CPU copies what is not pinned; what peers exchange goes both ways."""
    run = recording(
        util=np.full(900, 19),
        received=np.full(900, rate),
        sent=np.full(900, sent),
        cpu=_CALM,
        host={"core": np.full(900, 99)},
    )
    (finding,) = found(analyze(run), "cpu_bound_single")
    assert finding.cause == cause
    assert ("7.3 GB/s came over PCIe" in finding.summary) == (cause == "copying")


@pytest.mark.parametrize(("seconds", "count"), [(50, 1), (20, 0)])
def test_a_job_of_less_than_a_minute_is_judged_from_half_a_minute_on(seconds: int, count: int) -> None:
    """Half of it or more is no phase of it."""
    run = recording(util=np.full(seconds, 38), cpu=steps((12, seconds)), host={"core": np.full(seconds, 99)})
    assert len(found(analyze(run), "cpu_bound_single")) == count
