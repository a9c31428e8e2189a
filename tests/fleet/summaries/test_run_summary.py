"""The summary of a run: what its analysis says, and nothing that was not recorded."""

from dataclasses import replace
from pathlib import Path

import pytest

from gpureport.comparison.gains.known_loss import measure_lost_ratio
from gpureport.fleet.gpu_summary import HealthCheck
from gpureport.fleet.running.summary_task import summarise
from gpureport.fleet.summaries.run_summary import summarise_run
from gpureport.fleet.summaries.summary_key import read_summary_settings
from gpureport.settings import Settings
from gpureport.store import Store
from gpureport.testing import HOST, Recording, analyze, recording
from tests.fleet.stored_samples import store_sample

SETTINGS = read_summary_settings(Settings())


def test_a_sample_log_of_faulty_hardware(tmp_path: Path) -> None:
    """A GPU of it stopped answering, one had memory errors, one a slow link; each shows on its own card alone."""
    run_id = store_sample(tmp_path, "faulty_hardware", node="n1").run.id
    gpus = summarise(Store(tmp_path), run_id, SETTINGS)
    whole = analyze(Store(tmp_path).read(Store(tmp_path).named(run_id)))
    assert [gpu.device for gpu in gpus] == [gpu.id for gpu in whole.run.gpus]
    assert [gpu.seconds for gpu in gpus] == [time.seconds for time in whole.gpu_time]
    assert sum(gpu.lost_seconds for gpu in gpus) / whole.job_gpu_seconds == pytest.approx(measure_lost_ratio(whole))
    assert [gpu.health.gpu_lost is HealthCheck.FOUND for gpu in gpus] == [False, False, True]
    assert [gpu.health.slow_link for gpu in gpus[:2]] == [HealthCheck.FOUND, HealthCheck.CLEAR]
    assert gpus[1].health.ecc_uncorrected
    assert gpus[0].health.ecc_uncorrected == 0
    assert {gpu.node for gpu in gpus} == {"n1"}


def test_a_finding_on_the_whole_job_is_shared_by_its_gpus(tmp_path: Path) -> None:
    """What it lost is divided, so that the GPUs together lost it once."""
    run_id = store_sample(tmp_path, "faulty_hardware").run.id
    gpus = summarise(Store(tmp_path), run_id, SETTINGS)
    whole = analyze(Store(tmp_path).read(Store(tmp_path).named(run_id)))
    stated = next(each.lost_gpu_seconds for each in whole.findings if each.kind == "startup_idle")
    lost = [each.lost_gpu_seconds for gpu in gpus for each in gpu.findings if each.kind == "startup_idle"]
    assert len(lost) == len(gpus)
    assert sum(each or 0 for each in lost) == pytest.approx(stated)


def test_a_finding_on_some_gpus_is_shared_as_they_lost() -> None:
    """A GPU that waited twice as long has twice the loss, as in the report of the run."""
    made = recording(util=[[70.0] * 300, [40.0] * 300], cpu=[98.0] * 300)
    analysis = analyze(made)
    (wait,) = (each for each in analysis.findings if each.kind == "cpu_bound")
    gpus = summarise_run(made, analysis, "key")
    advised = [each.lost_gpu_seconds for gpu in gpus for each in gpu.findings if each.kind == "cpu_bound"]
    assert advised == pytest.approx([dict(gpu.seconds)["waiting_for_input"] for gpu in gpus], rel=0.01)
    assert sum(each or 0.0 for each in advised) == pytest.approx(wait.lost_gpu_seconds)


def test_a_run_too_short_to_assess_asks_for_no_change() -> None:
    """Shares of a few seconds promise nothing, as its report says."""
    long, short = (recording(util=[[97.0] * length, [0.0] * length]) for length in (300, 8))
    advised = [
        [
            seconds
            for gpu in summarise_run(made, analyze(made), "key")
            for each, seconds in gpu.root_losses()
            if each.steps
        ]
        for made in (long, short)
    ]
    assert [bool(each) for each in advised] == [True, False]


def test_heat_slows_one_gpu(tmp_path: Path) -> None:
    """The time slowed is that of the finding; a log without counters of errors says nothing of errors."""
    run_id = store_sample(tmp_path, "thermal_throttle").run.id
    gpus = summarise(Store(tmp_path), run_id, SETTINGS)
    assert [bool(gpu.health.heat_slowed_seconds) for gpu in gpus] == [False, False, True, False]
    assert gpus[0].health.heat_slowed_seconds == 0
    assert {gpu.health.ecc_uncorrected for gpu in gpus} == {None}
    assert {gpu.health.slow_link for gpu in gpus} == {HealthCheck.NOT_ASSESSED}


def summarise_one(made: Recording) -> list[float | None]:
    """Return energy, utilisation and unknown time of the only GPU of a run."""
    (gpu,) = summarise_run(made, analyze(made), "key")
    return [gpu.energy_joules, gpu.utilisation, gpu.unknown_seconds]


def test_null_is_not_recorded() -> None:
    """Without utilisation nothing is known of the time, and no energy without power."""
    made = recording(memory=[1.0] * 60)
    energy, used, unknown = summarise_one(made)
    assert (energy, used) == (None, None)
    assert unknown == pytest.approx((made.run.ended - made.run.started) / 1e6)


def test_a_run_without_a_gpu_is_one_summary() -> None:
    """A log of the machine alone holds no GPU time, and stays in the account."""
    both = recording(util=[90.0] * 60, cpu=[50.0] * 60)
    series = both.rows_of(HOST)
    made = replace(both, run=replace(both.run, devices=both.run.hosts)).with_series(series)
    (only,) = summarise_run(made, analyze(made), "key")
    assert (only.device, only.seconds, only.error) == (None, (), "")
