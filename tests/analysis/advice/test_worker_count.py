"""How many loader workers are suggested, and why."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis.advice.run_facts import RunFacts, gather_facts
from gpureport.analysis.advice.step_choice import choose_steps, choose_workers_trial
from gpureport.analysis.advice.worker_count import suggest_workers
from gpureport.analysis.job.job_params import read_params
from gpureport.testing import Evidence, analyze, finding, recording, with_host

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


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (
            "num_workers=1 cpu_count=2",
            "Try 3 instead of 1: at 47% busy, the GPU can take 2.1 times as much data at most, ",
        ),
        ("num_workers=16 cpu_count=16", "Try 35 instead of 16: at 47% busy, "),
        ("num_workers=2 cpu_count=16", f"Try 5 instead of 2: at 47% busy, {HALF}"),
        ("cpu_count=16", "Double their number: the job hardly uses the CPU, so they can outnumber its cores."),
        ("num_workers=2", "Try 4 instead of 2, and workers that hardly use the CPU can outnumber its cores."),
    ],
)
def test_workers_that_hardly_use_the_cpu_may_be_more_than_its_cores(params: str, expected: str) -> None:
    """They wait for storage or a network."""
    known = replace(facts(params), job_hardly_uses_cpu=True)
    assert suggest_workers(known).startswith(expected)
    assert choose_workers_trial(known) is not None


def test_a_job_that_waits_for_the_cpu_itself_gets_no_more_workers_than_cores() -> None:
    """Whatever it used of it over the run: its waits may be a part of it."""
    known = replace(facts("num_workers=2 cpu_count=2"), job_hardly_uses_cpu=True, cpu_used=0.97)
    assert "loader_workers" in {one.name for one in choose_steps(finding("io_bound", (0, 9)), known)}
    assert "loader_workers" not in {one.name for one in choose_steps(finding("cpu_bound", (0, 9)), known)}


@pytest.mark.parametrize(
    ("cpu", "job", "is_known"), [(0.95, 0.01, True), (0.02, 0.03, True), (0.95, 0.6, False), (0.95, None, False)]
)
def test_what_the_job_itself_used_is_read_from_the_host_log(cpu: float, job: float | None, *, is_known: bool) -> None:
    """On a machine at rest too, of whose little load it is most; where it was not recorded, cores stay the limit."""
    series = {"cpu_utilization_ratio": cpu, "cpu_logical_cores": 2.0} | ({} if job is None else {"job_cpu_cores": job})
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
