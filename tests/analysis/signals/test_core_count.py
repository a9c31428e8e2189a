"""How many cores a GPU has, as findings on waits say it."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.analysis.job.job_params import read_params
from gpureport.analysis.signals.core_count import add_counted_cores, count_cores
from gpureport.testing import Finding, Floats, analyze, recording, steps

UTIL, CPU = steps((97, 60), (30, 300)), steps((40, 60), (82, 300))
EIGHT = {"cores": np.full(360, 8.0), "host_memory": np.full(360, 20.0)}


def _findings(util: Floats | list[Floats], cpu: Floats, host: dict[str, Floats]) -> dict[str, Finding]:
    return {one.kind: one for one in analyze(recording(util=util, cpu=cpu, host=host)).findings}


@pytest.mark.parametrize("kind", ["cpu_bound", "workers_headroom"])
def test_waits_for_the_cpu_tell_the_cores(kind: str) -> None:
    """In the summary, and for each GPU as evidence without a limit."""
    found = _findings([UTIL, UTIL], CPU, EIGHT)[kind]
    assert found.summary.endswith(" The machine has 8 cores for 2 GPUs.")
    (cores,) = (one for one in found.evidence if one.metric == "cpu_logical_cores")
    assert (cores.observed, cores.threshold) == (4, None)


def test_low_use_beside_an_idle_cpu_tells_the_cores() -> None:
    """The cores that had nothing to do."""
    found = _findings(np.full(360, 30.0), np.full(360, 5.0), EIGHT)["underutilised"]
    assert found.summary.endswith(" The machine has 8 cores for 1 GPU.")


def test_without_a_count_nothing_is_said() -> None:
    """No rule of thumb stands in for it."""
    found = _findings(UTIL, CPU, {})["cpu_bound"]
    assert "cores" not in found.summary
    assert "cpu_logical_cores" not in {one.metric for one in found.evidence}


def test_params_come_before_what_a_log_counts() -> None:
    """A job may be allowed fewer cores than the machine has."""
    stated, counted = read_params([("cpu_count", "4")]), read_params([("lr", "1")])
    assert [count_cores(add_counted_cores(one, 64.0), 2) for one in (stated, counted)] == [
        count_cores(stated, 2),
        count_cores(read_params([("cpus", "64")]), 2),
    ]
    assert count_cores(counted, 2) is None


def test_counted_cores_settle_whether_workers_match_them() -> None:
    """Eight workers on eight counted cores leave no room for more."""
    assert "workers_headroom" in _findings(UTIL, CPU, EIGHT)
    run = recording(util=UTIL, cpu=CPU, host=EIGHT)
    labelled = replace(run, run=replace(run.run, params=(("num_workers", "8"),)))
    assert "workers_headroom" not in {one.kind for one in analyze(labelled).findings}
