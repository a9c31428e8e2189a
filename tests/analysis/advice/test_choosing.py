"""Which steps a finding gets, by what the run tells."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis import analyze
from gpureport.analysis.advice import choosing
from gpureport.analysis.advice.facts import Facts
from gpureport.findings import Evidence
from tests.builders import finding, recording, steps

NOTHING = Facts(gpus=1)
WAIT = finding("cpu_bound", (0, 100), cause="data")


def _names(facts: Facts, kind: str = "cpu_bound", cause: str | None = "data") -> list[str]:
    return [step.name for step in choosing.steps(finding(kind, (0, 100), cause=cause), facts)]


def test_without_knowledge_every_step_says_what_is_not_known() -> None:
    """Nothing is left out on a guess, and nothing is promised."""
    chosen = {step.name: step.unknown for step in choosing.steps(WAIT, NOTHING)}
    assert chosen["loader_workers"] == (
        "CPU cores are free (median use below 90 %)",
        "host memory is not full (below 90 %)",
    )
    assert chosen["profile_step"] == ()


def test_a_full_cpu_gets_no_more_workers() -> None:
    """More workers need cores; preprocessing elsewhere needs a CPU that is busy."""
    full, free = replace(NOTHING, cpu_used=0.97), replace(NOTHING, cpu_used=0.30)
    assert "loader_workers" not in _names(full)
    assert _names(full)[0] == "offline_preprocessing"
    assert "loader_workers" in _names(free)
    assert {"offline_preprocessing", "gpu_preprocessing"}.isdisjoint(_names(free))


def test_the_finding_knows_its_own_episodes_better_than_the_run() -> None:
    """A CPU that is calm over the run was full where the GPU waited."""
    measured = Evidence(metric="cpu_utilization_ratio", statistic="median", observed=0.96, unit="1")
    chosen = choosing.steps(replace(WAIT, evidence=(measured,)), replace(NOTHING, cpu_used=0.3))
    names = [step.name for step in chosen]
    assert "loader_workers" not in names
    assert "offline_preprocessing" in names


def test_a_full_host_gets_nothing_that_takes_its_memory() -> None:
    """Workers, prefetching, pinned memory and asynchronous checkpoints all do."""
    full = replace(NOTHING, cpu_used=0.5, host_memory=0.95)
    assert {"loader_workers", "prefetch", "pinned_memory"}.isdisjoint(_names(full))
    assert "asynchronous_checkpoints" not in _names(full, "idle_gap", "checkpoint")


@pytest.mark.parametrize(("capability", "offered"), [((6, 1), False), ((7, 0), True), ((9, 0), True), (None, True)])
def test_mixed_precision_needs_tensor_cores(capability: tuple[int, int] | None, *, offered: bool) -> None:
    """By compute capability; unknown GPUs get it with the question."""
    facts = replace(NOTHING, compute_capability=capability, reduced_precision=False)
    chosen = {step.name: step.unknown for step in choosing.steps(finding("underutilised", (0, 9)), facts)}
    assert ("mixed_precision" in chosen) is offered
    if offered:
        assert bool(chosen["mixed_precision"]) is (capability is None)


def test_what_is_done_is_not_advised() -> None:
    """A job in 16 bits is not told to go there."""
    facts = replace(NOTHING, compute_capability=(8, 0), reduced_precision=True)
    assert "mixed_precision" not in _names(facts, "underutilised", None)


def test_a_larger_batch_needs_memory_that_is_free_for_sure() -> None:
    """Preallocation hides the need: then it is a question."""

    def offered(**known: object) -> tuple[str, ...] | None:
        facts = replace(NOTHING, **known)  # type: ignore[arg-type]  # each caller names real fields
        chosen = {step.name: step.unknown for step in choosing.steps(finding("mem_headroom"), facts)}
        return chosen.get("larger_batch")

    assert offered(gpu_memory=0.4, preallocated=False) == ()
    assert offered(gpu_memory=0.93, preallocated=False) is None
    assert offered(gpu_memory=0.9, preallocated=True) == (
        "GPU memory is free (peak below 85 %) and was not preallocated",
    )


def test_steps_that_fit_come_before_those_that_may() -> None:
    """Known first, each part in the order of the table."""
    facts = replace(NOTHING, cpu_used=0.5, host_memory=0.2)
    chosen = choosing.steps(WAIT, facts)
    asked = [bool(step.unknown) for step in chosen]
    assert asked == sorted(asked)
    assert chosen[0].name == "loader_workers"


def test_every_finding_of_an_analysis_has_steps() -> None:
    """The steps of a real analysis, from what it recorded."""
    util, cpu = steps((0, 60), (97, 300), (20, 300), (0, 30), (97, 100)), steps((20, 360), (95, 300), (20, 130))
    run = recording(util=util, cpu=cpu, memory=np.linspace(1, 30, 790), power=399, power_limit=400)
    findings = analyze(run).findings
    assert findings
    assert [one.kind for one in findings if not one.steps] == []
    (wait,) = (one for one in findings if one.kind == "cpu_bound")
    assert "loader_workers" not in {step.name for step in wait.steps}
