"""When a job holds a GPU, and the jobs that follow each other in one log."""

import numpy as np
import pytest

from gpureport.analysis.job import jobs
from gpureport.comparison.steps import step_figures
from gpureport.testing import START, Analysis, Recording, Severity, analyze, found, recording, spans, steps

_WORK, _LOAD, _EMPTY = (97, 20.0), (0, 8.0), (0, 0.01)
"""Utilisation in per cent and memory in GiB."""


def _log(*parts: tuple[tuple[float, float], int], every: float = 1.0) -> Recording:
    """Return a recording of one GPU that holds each pair of utilisation and memory for a number of samples."""
    util = steps(*((level, count) for (level, _), count in parts))
    memory = steps(*((held, count) for (_, held), count in parts))
    return recording(util=util, memory=memory, every=every)


def _seconds(analysis: Analysis, gpu: int = 0) -> dict[str, float]:
    return {name: amount for name, amount in analysis.gpu_time[gpu].seconds if amount}


def _times(analysis: Analysis) -> list[tuple[float, float]]:
    return [((job.interval.start - START) / 1e6, (job.interval.end - START) / 1e6) for job in analysis.jobs]


def test_two_jobs_have_no_idle_gap_between_them() -> None:
    """Two hours in which memory is empty are no gap of a running job, and no advice rests on them."""
    analysis = analyze(_log((_WORK, 600), (_EMPTY, 7200), (_WORK, 600)))
    assert _times(analysis) == [(0.0, 599.5), (7799.5, 8399.0)]
    assert found(analysis, "idle_gap") == []
    assert _seconds(analysis)["no_job"] == pytest.approx(7200, abs=1)
    assert _seconds(analysis)["computing"] == pytest.approx(0.97 * 1199, abs=1)


def test_each_job_has_its_own_start_up_and_tail() -> None:
    """From when memory is taken to the first work, and from the last work to when it is given back."""
    log = _log((_LOAD, 30), (_WORK, 600), (_LOAD, 20), (_EMPTY, 600), (_LOAD, 40), (_WORK, 600), (_LOAD, 15))
    analysis = analyze(log)
    assert [spans(one) for one in sorted(found(analysis, "startup_idle"), key=spans)] == [
        [(0.0, 29.0)],
        [(1249.5, 1289.0)],
    ]
    assert [spans(one) for one in sorted(found(analysis, "tail_idle"), key=spans)] == [
        [(629.0, 649.5)],
        [(1889.0, 1904.0)],
    ]
    assert _seconds(analysis)["startup"] == pytest.approx(69, abs=1)


def test_a_tail_with_empty_memory_is_not_lost() -> None:
    """The log went on: said as a fact, without loss, and without advice to give the GPU back."""
    (tail,) = found(analyze(_log((_WORK, 600), (_LOAD, 3), (_EMPTY, 300))), "tail_idle")
    assert (tail.severity, tail.cause, tail.steps) == (Severity.INFO, "no job", ())
    assert tail.lost_gpu_seconds == pytest.approx(3, abs=1)
    assert "the last work, 34% of the run. No job used the GPU for 5 min of it, which is not lost." in tail.summary


def test_a_tail_with_memory_in_use_is_lost() -> None:
    """As is the part of a tail until memory is given back."""
    analysis = analyze(_log((_WORK, 600), (_LOAD, 200), (_EMPTY, 300)))
    (tail,) = found(analysis, "tail_idle")
    assert (tail.severity, tail.cause) == (Severity.WARNING, None)
    assert tail.lost_gpu_seconds == pytest.approx(200, abs=1)
    assert (_seconds(analysis)["tail"], _seconds(analysis)["no_job"]) == pytest.approx((200, 300), abs=1)


def test_figures_are_of_the_jobs() -> None:
    """Idle share, mean utilisation, GPU time and work a second leave out what no job held."""
    analysis = analyze(_log((_WORK, 600), (_EMPTY, 6000), (_WORK, 600)))
    (figures,) = analysis.statistics
    utilisation = figures.metric("gpu_utilization_ratio")
    assert utilisation is not None
    assert utilisation.mean == pytest.approx(0.97)
    assert step_figures.idle_ratio([analysis]) == 0
    assert step_figures.gpu_seconds([analysis]) == pytest.approx(1199, abs=1)
    assert analysis.seconds == pytest.approx(1199)


def test_jobs_one_after_the_other_on_two_gpus_leave_none_unused() -> None:
    """GPU 1 before its job, and GPU 0 after its own, are neither idle nor unused."""
    util, memory = steps((97, 600), (0, 600)), steps((20, 600), (0, 600))
    analysis = analyze(recording(util=[util, util[::-1]], memory=[memory, memory[::-1]]))
    assert found(analysis, "idle_gap") + found(analysis, "unused_gpu") == []
    assert [_seconds(analysis, gpu)["no_job"] for gpu in (0, 1)] == pytest.approx([600, 600], abs=1)


def test_a_gpu_that_never_works_is_unused_while_jobs_run() -> None:
    """The hours between two jobs are no part of what it lost."""
    util, memory = steps((97, 600), (0, 3600), (97, 600)), steps((20, 600), (0, 3600), (20, 600))
    analysis = analyze(recording(util=[util, 0 * util], memory=[memory, 0 * memory]))
    (unused,) = found(analysis, "unused_gpu")
    assert unused.lost_gpu_seconds == pytest.approx(1200, abs=3)
    assert "worked for 19 min 58 s" in unused.summary
    assert _seconds(analysis, 1)["no_job"] == pytest.approx(3600, abs=1)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param(_log((_WORK, 300), (_EMPTY, 40), (_WORK, 300)), id="a process that starts again"),
        pytest.param(_log((_WORK, 300), (_LOAD, 300), (_WORK, 300)), id="memory in use"),
        pytest.param(_log(((97, 0.0), 300), ((0, 0.0), 300), ((97, 0.0), 300)), id="memory that never shows"),
        pytest.param(_log(((97, 8.0), 300), ((0, 1.0), 300), ((97, 8.0), 300)), id="more than a display holds"),
        pytest.param(recording(util=steps((97, 300), (0, 300), (97, 300))), id="memory not recorded"),
    ],
)
def test_what_does_not_show_an_empty_gpu_stays_an_idle_gap(log: Recording) -> None:
    """Only memory that work takes and that is given back tells jobs apart."""
    analysis = analyze(log)
    assert (len(analysis.jobs), len(found(analysis, "idle_gap"))) == (1, 1)
    assert "no_job" not in _seconds(analysis)


def test_a_display_holds_some_memory_all_along() -> None:
    """What is in use between two jobs is judged against the least of the log."""
    display = (0, 0.3)
    assert len(analyze(_log((_WORK, 300), (display, 300), (_WORK, 300))).jobs) == 2


def test_power_of_work_denies_an_empty_memory() -> None:
    """A GPU that draws what it draws at work has a job, whatever memory says."""
    util, memory = steps((97, 300), (0, 300), (97, 300)), steps((20, 300), (0, 300), (20, 300))
    power = np.append(60.0, np.full(899, 300.0))
    assert len(analyze(recording(util=util, memory=memory, power=power)).jobs) == 1


def test_time_before_the_first_use_of_memory_is_start_up() -> None:
    """A job that prepares data before it takes a GPU cannot be told from a log that began before it."""
    analysis = analyze(_log((_EMPTY, 200), (_WORK, 600)))
    assert [spans(one) for one in found(analysis, "startup_idle")] == [[(0.0, 199.0)]]
    assert "no_job" not in _seconds(analysis)


def test_memory_in_use_without_work_is_no_job() -> None:
    """A process that ends before its first step does not count among the jobs; what it held is idle."""
    analysis = analyze(_log((_WORK, 300), (_EMPTY, 100), (_LOAD, 50), (_EMPTY, 100), (_WORK, 300)))
    assert len(analysis.jobs) == 2
    assert _seconds(analysis)["idle"] == pytest.approx(50, abs=1)


def test_jobs_of_a_recording_are_those_of_its_analysis() -> None:
    """Whoever wants one of them need not judge the whole log."""
    log = _log((_WORK, 600), (_EMPTY, 7200), (_WORK, 600))
    assert jobs.find_jobs(log) == analyze(log).jobs


def test_an_end_without_utilisation_is_no_rest() -> None:
    """Memory tells that no job holds the GPU; nothing tells whether it rests."""
    log = recording(util=steps((97, 600), (np.nan, 300)), memory=steps((20, 600), (0, 300)))
    assert found(analyze(log), "tail_idle") == []


def test_a_desktop_between_two_jobs_is_no_job() -> None:
    """Windows draw now and then, with the memory of the display and hardly any power."""
    windows = np.tile([1.0, 9.0, 0.0, 22.0, 3.0], 300)
    util = np.concatenate([steps((97, 600)), windows, steps((97, 600))])
    memory, power = steps((18.0, 600), (0.3, 1500), (18.0, 600)), steps((300, 600), (28, 1500), (300, 600))
    analysis = analyze(recording(util=util, memory=memory, power=power))
    assert (len(analysis.jobs), found(analysis, "idle_gap")) == (2, [])


def test_what_many_jobs_lose_after_their_work_is_a_warning_together() -> None:
    """Each loses less than is worth a change."""
    jobs = [part for _ in range(30) for part in ((_WORK, 100), (_LOAD, 12), (_EMPTY, 60))]
    tails = found(analyze(_log(*jobs)), "tail_idle")
    assert len(tails) == 30
    assert {each.severity for each in tails} == {Severity.WARNING}


def test_a_tail_is_as_long_as_the_job_held_the_gpu() -> None:
    """Words, figures and shares go by that, whatever the log holds after it."""
    (tail,) = found(analyze(_log((_WORK, 600), (_LOAD, 200), (_EMPTY, 300))), "tail_idle")
    assert tail.summary == "The GPU sat idle for 3 min 20 s after the last work, 25% of the jobs' time."
    assert [each.observed for each in tail.evidence] == pytest.approx([200, 0.25], abs=0.5)
