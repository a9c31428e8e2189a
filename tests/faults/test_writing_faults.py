"""Whatever goes wrong at a system call that changes files leaves the old or the new state, and one line of error."""

from pathlib import Path

import pytest

from tests.faults.scenarios import SCENARIOS, Scenario
from tests.faults.trials import Stage, run_trials
from tests.store.forking import Forks

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_faults_of_every_command(faulty: Forks, tmp_path: Path, scenario: Scenario) -> None:
    """A share of the faults at every call of every command that writes."""
    tried = run_trials(Stage(scenario, faulty, tmp_path / "stage"), most=6)
    assert tried.total() >= 4
    assert not any(kind == "not met" for _, kind in tried)


@pytest.mark.parametrize("name", ["ingest, replaced run", "baseline set", "nightly, first"])
def test_clock_set_back(faulty: Forks, tmp_path: Path, name: str) -> None:
    """A clock that goes back by an hour while a command runs changes nothing of what it says and writes."""
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    stage = Stage(scenario, faulty, tmp_path / "stage")
    for after in (0, 5, 30):
        stage.try_clock(after)
