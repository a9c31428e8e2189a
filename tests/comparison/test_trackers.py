"""Genuine runs of trackers set side by side: what may not be compared is refused, by what stands in its way."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.chain.step_pairs import pair_steps
from gpureport.comparison.steps.sampled_run import SampledRun, build_sampled_run
from gpureport.comparison.verdicts.comparability import Comparability, check_comparability
from gpureport.report.wording.differences.comparison_reasons import describe_reason
from gpureport.testing import Device, Recording, Source, Verdict, analyze
from tests.comparison.runs import delta, level, sampled
from tests.genuine import TRACKERS, needs_trackers
from tests.importers.trackers.tracked import recording as read
from tests.importers.trackers.tracked import recordings

pytestmark = [
    pytest.mark.tracker,
    needs_trackers,
]
MEMORY, IDLE, PER_WORK = "gpu_memory_used_bytes", "idle_ratio", "gpu_seconds_per_1000_work"
SHORT = "Less than 20 s was recorded"


def measured(recording: Recording) -> SampledRun:
    """Return a run as a comparison takes it."""
    return build_sampled_run(recording, analyze(recording))


@pytest.fixture(scope="module")
def mlflow() -> list[SampledRun]:
    """Return three runs of twenty seconds, two GPUs of 80 GiB."""
    store = TRACKERS / "mlflow" / "sqlite" / "mlflow.db"
    return [measured(read(store, runs=(name,))) for name in ("baseline", "amp", "resumed")]


@pytest.fixture(scope="module")
def neptune() -> list[SampledRun]:
    """Return a run and the one after its pipeline was changed: three minutes, two GPUs of 24 GiB."""
    found = {each.run.name: each for each in recordings(TRACKERS / "neptune" / "offline-clean")}
    return [measured(found[name]) for name in ("baseline", "dali")]


def failed(before: SampledRun, after: SampledRun) -> dict[str, Comparability]:
    """Return the checks that fail between two runs."""
    base, step = compare([before, after]).steps
    return {check.check: check for check in check_comparability(base, step) if check.comparable is False}


def test_twenty_seconds_are_no_step(mlflow: list[SampledRun]) -> None:
    """Whatever two of the three runs hold, neither is long enough; what is missing says so for itself."""
    for pair in permutations(mlflow, 2):
        found = compare(pair).deltas
        assert {each.verdict for each in found} == {Verdict.NOT_ENOUGH_DATA}
        assert all(describe_reason(each.reason).startswith(SHORT) for each in found if each.difference is not None)
    chain = compare(mlflow)
    assert not any(link.comparable for link in pair_steps(chain))


def test_a_run_that_stopped_for_a_while_is_not_wholly_sampled(mlflow: list[SampledRun]) -> None:
    """The resumed run holds two thirds of its time, which bars its energy, and counts no samples."""
    checks = failed(mlflow[0], mlflow[2])
    assert checks["coverage"].after == pytest.approx(0.66, abs=0.01)
    assert checks["coverage"].touches == ("energy_joules",)
    assert (checks["work_unit"].before, checks["work_unit"].after) == ("samples", None)


def test_trackers_are_not_set_against_each_other(mlflow: list[SampledRun], neptune: list[SampledRun]) -> None:
    """Both values of everything that bars a figure: recorders, GPUs, limits, sampling, work."""
    checks = failed(mlflow[1], neptune[0])
    said = {name: (checks[name].before, checks[name].after) for name in ("source_kind", "gpu_memory", "work_unit")}
    assert said == {
        "source_kind": ("mlflow", "neptune"),
        "gpu_memory": ("80 GiB", "24 GiB"),
        "work_unit": ("samples", "steps"),
    }
    assert {"sampling_interval", "power_limit", "duration"} < set(checks)
    assert {MEMORY, IDLE} <= set(checks["source_kind"].touches)
    assert {each.verdict for each in compare([mlflow[1], neptune[0]]).deltas} == {Verdict.NOT_ENOUGH_DATA}


def test_a_pair_of_neptune_tells_what_three_minutes_tell(neptune: list[SampledRun]) -> None:
    """Idle fell from 24 to 8%, which a load that changes slowly may do in three minutes. Steps went no faster."""
    comparison = compare(neptune)
    idle = delta(comparison, IDLE)
    assert idle.before == pytest.approx(0.237, abs=0.001)
    assert idle.after == pytest.approx(0.079, abs=0.001)
    assert idle.verdict is Verdict.NOT_ENOUGH_DATA
    # half of it is 0.42; a share of 23.7% falls by no more
    assert idle.interval == pytest.approx((-0.237, 0.262), abs=0.001)
    assert "lasts 3 min. Record 10 min or more, or repeat each step three times" in describe_reason(idle.reason)
    assert comparison.primary == PER_WORK
    assert delta(comparison, PER_WORK).verdict is Verdict.NO_CLEAR_CHANGE
    (link,) = pair_steps(comparison)
    assert {check.check for check in link.comparability if check.comparable is False} == set()


def test_memory_of_a_tracker_is_not_that_of_nvidia_smi(neptune: list[SampledRun]) -> None:
    """Utilisation would be judged by either, had they lasted; memory and idle share are refused for their recorder."""
    gpu = Device(id="gpu:0", index=0, memory_total_bytes=24 * 2**30, power_limit_watts=300.0)
    other = sampled("log", util=np.stack([level(60, 200, k) for k in range(2)]), memory=12.5, device=gpu)
    info = replace(other.analysis.run, sources=(Source(kind="nvidia_smi", locator="log.csv", sha256="0"),))
    comparison = compare([replace(other, analysis=replace(other.analysis, run=info)), neptune[1]])
    for metric in (MEMORY, IDLE):
        found = delta(comparison, metric)
        assert found.verdict is Verdict.NOT_ENOUGH_DATA
        assert describe_reason(found.reason).startswith("Recorders differ in what they count as memory in use")
    assert delta(comparison).interval is not None


def test_a_run_of_a_tracker_against_itself(mlflow: list[SampledRun], neptune: list[SampledRun]) -> None:
    """No difference is shown in anything it recorded; of less than 20 s nothing is said."""
    for run in (*mlflow, *neptune):
        recorded = [each for each in compare([run, run]).deltas if each.difference is not None]
        assert recorded
        expected = Verdict.NOT_ENOUGH_DATA if run in mlflow else Verdict.NO_CLEAR_CHANGE
        assert {(each.verdict, each.difference) for each in recorded} == {(expected, 0.0)}
