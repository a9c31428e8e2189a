"""How many loader workers are suggested, and why."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis import analyze
from gpureport.analysis.advice.run_facts import RunFacts, gather_facts
from gpureport.analysis.advice.step_choice import choose_steps, choose_workers_trial
from gpureport.analysis.advice.worker_count import suggest_workers
from gpureport.analysis.job.job_params import read_params
from gpureport.findings import Evidence
from tests.builders import finding, recording, with_host

HALF = "the GPU can take 2.1 times as much data at most."


def facts(params: str = "", *, used: float | None = 0.47, gpus: int = 1) -> RunFacts:
    """Return what a run tells whose params are written as on a command line."""
    pairs = [(name, value) for name, _, value in (word.partition("=") for word in params.split())]
    return RunFacts(gpus=gpus, gpus_a_machine=gpus, gpu_used=used, setup=read_params(pairs))


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ("num_workers=2 cpu_count=16", f"Try 5 instead of 2: at 47% busy, {HALF}"),
        ("num_workers=4 cpu_count=8", f"Try 8 instead of 4, one a core: at 47% busy, {HALF}"),
        ("num_workers=0 cpu_count=16", f"Try 2 instead of 0: at 47% busy, {HALF}"),
        ("num_workers=2", "Try 4 instead of 2, but no more than one a core."),
        ("num_workers=14", "Try 28 instead of 14, but no more than one a core."),
        ("num_workers=0", "Try 2 instead of 0, but no more than one a core."),
        ("cpu_count=16", "Double their number, to at most 16: the machine has 16 cores for 1 GPU."),
        ("num_workers=-1 cpu_count=16", "Double their number, to at most 16: the machine has 16 cores for 1 GPU."),
        ("cpus_per_task=6", "Double their number, to at most 6: each process has 6 cores."),
        ("", "Double their number, to at most one a core."),
    ],
)
def test_the_number_rests_on_what_is_known(params: str, expected: str) -> None:
    """Workers, cores and the use of the GPU give one; without them it is twice as many, no more than cores."""
    assert suggest_workers(facts(params)) == expected


FREELY = "more than one a core is fine, since the job hardly uses the CPU."


@pytest.mark.parametrize(
    ("params", "used", "expected"),
    [
        ("", 0.47, f"Double their number, again while it helps: {FREELY}"),
        ("cpu_count=2", 0.28, f"Double their number, again while it helps: {FREELY}"),
        ("num_workers=2", 0.47, f"Try 4 instead of 2; {FREELY}"),
        ("num_workers=2 cpu_count=2", None, f"Try 4 instead of 2; {FREELY}"),
        ("num_workers=1 cpu_count=2", None, "Try 2 instead of 1."),
        ("num_workers=2 cpu_count=2", 0.47, f"Try 5 instead of 2: at 47% busy, {HALF[:-1]}; {FREELY}"),
        ("num_workers=2 cpu_count=16", 0.47, f"Try 5 instead of 2: at 47% busy, {HALF}"),
    ],
)
def test_cores_are_no_limit_to_a_job_that_hardly_uses_them(params: str, used: float | None, expected: str) -> None:
    """A loader that waits for storage takes no core, so that four workers on two cores can be twice as fast as two."""
    assert suggest_workers(replace(facts(params, used=used), job_hardly_uses_cpu=True)) == expected


def test_a_worker_a_core_is_no_reason_against_more_where_the_job_hardly_uses_them() -> None:
    """Nor is a CPU that other programs fill; what waits for the CPU itself gets none."""
    known = replace(facts("num_workers=2 cpu_count=2"), job_hardly_uses_cpu=True, cpu_used=0.97)
    assert choose_workers_trial(known) is not None
    assert "loader_workers" in {one.name for one in choose_steps(finding("io_bound", (0, 9)), known)}
    assert "loader_workers" not in {one.name for one in choose_steps(finding("cpu_bound", (0, 9)), known)}


@pytest.mark.parametrize(("job", "is_known"), [(0.01, True), (0.6, False), (None, False)])
def test_what_the_job_itself_used_is_read_from_the_host_log(job: float | None, *, is_known: bool) -> None:
    """Without it nothing is said, and cores stay the limit."""
    series = {"cpu_utilization_ratio": 0.95, "cpu_logical_cores": 2.0} | ({} if job is None else {"job_cpu_cores": job})
    run = with_host(recording(util=np.full(60, 80.0)), np.arange(60.0), **series)
    analysis = analyze(run)
    assert gather_facts(run.run, analysis.statistics, (), ()).job_hardly_uses_cpu == is_known


def test_cores_are_shared_by_the_gpus_of_a_machine() -> None:
    """Each has a process with workers of its own."""
    assert suggest_workers(facts("cpu_count=16", gpus=2)) == (
        "Double their number, to at most 8 for each GPU: the machine has 16 cores for 2 GPUs."
    )
    assert suggest_workers(facts("num_workers=2 cpu_count=16", gpus=4)).startswith("Try 4 instead of 2, one a core")


@pytest.mark.parametrize(("workers", "gpus"), [(4, 4), (8, 4), (5, 3), (16, 1), (1, 32)])
def test_no_worker_is_added_beyond_one_a_core_of_each_gpu(workers: int, gpus: int) -> None:
    """Sixteen cores of a machine are shared by its GPUs."""
    known = facts(f"num_workers={workers} cpu_count=16", gpus=gpus)
    assert choose_workers_trial(known) is None
    assert "loader_workers" not in {one.name for one in choose_steps(finding("io_bound", (0, 9)), known)}


@pytest.mark.parametrize(("workers", "used"), [(2, 0.998), (14, 0.995), (0, 0.98)])
def test_no_number_is_suggested_to_a_gpu_that_can_hardly_take_more(workers: int, used: float) -> None:
    """It would read as 1.0 times as much data."""
    assert suggest_workers(facts(f"num_workers={workers} cpu_count=16", used=used)) == ""


def test_a_quotient_is_not_rounded_up_by_an_error_of_floating_point() -> None:
    """21 / 0.7 is a little over 30."""
    assert suggest_workers(facts("num_workers=21 cpu_count=64", used=0.7)).startswith("Try 30 instead of 21:")


def test_without_the_use_of_the_gpu_the_number_doubles() -> None:
    """No share of waiting, no number by it."""
    assert suggest_workers(facts("num_workers=2 cpu_count=16", used=None)) == "Try 4 instead of 2."
    assert suggest_workers(facts("num_workers=3 cpu_count=4", used=None)) == "Try 4 instead of 3."


def test_a_finding_says_how_busy_the_gpu_was_while_it_waited() -> None:
    """One of another loss, such as gaps between epochs, says nothing of it."""
    known = facts("num_workers=2 cpu_count=16")
    used = Evidence(metric="gpu_utilization_ratio", statistic="mean", observed=0.25, unit="1")
    wait = replace(finding("io_bound", (0, 100)), evidence=(used,))
    assert suggest_workers(known, wait) == (
        "Try 8 instead of 2: at 25% busy, the GPU can take 4.0 times as much data at most."
    )
    assert suggest_workers(known, finding("idle_gap", (0, 100), cause="data")) == "Try 4 instead of 2."


def test_the_step_of_a_finding_and_of_a_trial_hold_it() -> None:
    """Steps without a number hold none; workers that match the cores are no trial."""
    chosen = {one.name: one.suggestion for one in choose_steps(finding("io_bound", (0, 9)), facts("num_workers=2"))}
    said = "Try 4 instead of 2, but no more than one a core."
    assert chosen["loader_workers"] == said
    assert set(chosen.values()) == {"", said}
    trial = choose_workers_trial(facts("num_workers=2"))
    assert trial is not None
    assert trial.suggestion == said
    assert choose_workers_trial(facts("num_workers=16 cpu_count=16")) is None
