"""A handful of faults for every day; the slow tests beside it try many."""

from pathlib import Path

from tests.faults.fault import READS
from tests.faults.scenarios import READERS, SCENARIOS
from tests.faults.trials import Stage, run_trials
from tests.store.forking import Forks


def test_faults_while_a_run_is_replaced(faulty: Forks, place: Path) -> None:
    """Killed or refused at a few calls, an ingest leaves the run as it was or as it is to be."""
    (scenario,) = (each for each in SCENARIOS if each.name == "ingest, replaced run")
    assert run_trials(Stage(scenario, faulty, place), number=6).total() == 6


def test_faults_while_a_log_is_read(faulty: Forks, place: Path) -> None:
    """Interrupted, cut short or refused at a few calls, an ingest stores the whole run or none."""
    assert run_trials(Stage(READERS[0], faulty, place, READS), number=4).total() == 4


def test_disk_that_fails_while_series_are_read_back(faulty: Forks, place: Path) -> None:
    """The error names the store, whose disk failed, rather than standard output."""
    stage = Stage(READERS[0], faulty, place, READS)
    faults = [fault for call, fault in stage.faults() if fault.kind == "EIO" and call.path.endswith(".parquet")]
    assert len(faults) >= 3
    assert all(stage.try_fault(fault) for fault in faults)
