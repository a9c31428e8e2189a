"""Whatever goes wrong while files are read is one line of error or nothing at all: no run is cut short in silence."""

from pathlib import Path

import pytest

from tests.faults.fault import READS
from tests.faults.scenarios import COMPARE, READERS, Scenario
from tests.faults.trials import Stage, run_trials
from tests.store.forking import Forks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def _warm(faulty: Forks, logs: Path) -> None:
    """Import what the commands import once."""
    faulty.warm_up(logs, COMPARE, ("ingest", "mlflow:mlflow.db"), ("ingest", "packed.csv.zst"))


@pytest.mark.parametrize("scenario", READERS, ids=lambda scenario: scenario.name)
def test_faults_of_every_command(faulty: Forks, place: Path, scenario: Scenario) -> None:
    """A share of the faults at every call of every command that reads."""
    assert run_trials(Stage(scenario, faulty, place, READS), scenario.points).total() == scenario.points
