"""What a job asks of the CPU, and what is said of a CPU that other programs fill."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis.signals import job_load
from gpureport.testing import Device, analyze, found, recording, steps, with_host

_PHASES = steps((97, 300), (36, 300), (97, 300))


@pytest.mark.parametrize(
    ("job", "cpu", "cores", "expected"),
    [
        (0.02, 0.95, 16.0, True),
        (0.6, 0.95, 16.0, False),
        (0.45, 0.8, 1.0, False),
        (0.45, 0.8, np.nan, False),
        (0.02, 0.95, np.nan, True),
        (0.02, np.nan, 16.0, False),
        (np.nan, 0.95, 16.0, False),
    ],
    ids=["hardly", "more than half a core", "one core", "maybe one core", "whatever the cores", "no CPU", "no job"],
)
def test_a_job_hardly_uses_the_cpu_only_where_that_is_known(
    job: float, cpu: float, cores: float, *, expected: bool
) -> None:
    """Half a core and half of the load, which is at least that of one core."""
    assert job_load.is_hardly_used(np.array([job]), np.array([cpu]), cores).tolist() == [expected]


@pytest.mark.parametrize(("seconds", "cause"), [(45, None), (300, job_load.BESIDE_OTHERS)], ids=["14%", "all of it"])
def test_other_programs_are_named_where_the_cpu_was_watched(seconds: int, cause: str | None) -> None:
    """A load that was seen for a seventh of the time says nothing of the rest."""
    times = np.arange(300.0, 300.0 + seconds)
    run = with_host(
        recording(util=_PHASES), times, cpu_utilization_ratio=0.95, cpu_logical_cores=16.0, job_cpu_cores=0.02
    )
    (finding,) = found(analyze(run), "low_util_cause_unknown")
    assert finding.cause == cause
    assert ("busy with other programs" in finding.summary) == (cause is not None)


def test_a_job_that_was_watched_for_a_moment_is_not_cleared() -> None:
    """The CPU was full all along, the job's use of it recorded for 45 s: the wait for the CPU stands."""
    times = np.arange(900.0)
    cpu, job = steps((0.2, 300), (0.95, 300), (0.2, 300)), np.where((times >= 300) & (times < 345), 0.02, np.nan)
    run = with_host(
        recording(util=_PHASES), times, cpu_utilization_ratio=cpu, cpu_logical_cores=16.0, job_cpu_cores=job
    )
    analysis = analyze(run)
    assert found(analysis, "low_util_cause_unknown") + found(analysis, "underutilised") == []
    assert len(found(analysis, "cpu_bound")) == 1


def test_each_node_gets_the_load_of_its_own_host() -> None:
    """Two nodes, each beside other programs: one finding a node, with its figures."""
    run = recording(util=[_PHASES, _PHASES])
    nodes = {"gpu:0": "a", "gpu:1": "b"}
    devices = tuple(replace(device, node=nodes[device.id]) for device in run.run.devices)
    run = replace(run, run=replace(run.run, devices=devices))
    for node, cpu in (("a", 0.95), ("b", 0.8)):
        run = with_host(
            run,
            np.arange(900.0),
            Device(id=f"{node}/host", node=node),
            cpu_utilization_ratio=cpu,
            cpu_logical_cores=16.0,
            job_cpu_cores=0.02,
        )
    findings = found(analyze(run), "low_util_cause_unknown")
    assert {one.devices: "95% busy" in one.summary for one in findings} == {("gpu:0",): True, ("gpu:1",): False}
    assert {one.devices: "80% busy" in one.summary for one in findings} == {("gpu:0",): False, ("gpu:1",): True}
    (load,) = (each for each in findings[0].evidence if each.metric == "job_cpu_cores")
    assert (load.unit, load.threshold and load.threshold.unit) == ("cores", "cores")
