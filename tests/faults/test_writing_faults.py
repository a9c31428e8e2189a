"""Whatever goes wrong at a system call that changes files leaves the old or the new state, and one line of error."""

from pathlib import Path

import pytest

from tests.faults.scenarios import COMPARE, SCENARIOS, Scenario
from tests.faults.trials import Stage, run_trials
from tests.store.forking import Forks

pytestmark = pytest.mark.slow

_DRAWN = [scenario for scenario in SCENARIOS if scenario.name.startswith("report")]
_OTHERS = [scenario for scenario in SCENARIOS if scenario not in _DRAWN]
_NEVER = 10**9
_CLOCKED = {"baseline set": 1, "nightly, first": 2, "nightly, second": 3}
"""How often a command reads the clock; an ingest does not."""


@pytest.fixture(scope="module")
def warm(faulty: Forks, logs: Path) -> Forks:
    """The process that forks, once it has imported what the commands import."""
    wide = {"check", "publish, artifact"}
    faulty.warm_up(logs, COMPARE, *(scenario.arguments for scenario in SCENARIOS if scenario.name in wide))
    return faulty


@pytest.mark.parametrize("scenario", _DRAWN, ids=lambda scenario: scenario.name)
def test_faults_of_reports(faulty: Forks, place: Path, scenario: Scenario) -> None:
    """A few faults of every report; these come first, since a process forked later on hangs when it draws."""
    assert run_trials(Stage(scenario, faulty, place), scenario.points).total() == scenario.points


@pytest.mark.parametrize("scenario", _OTHERS, ids=lambda scenario: scenario.name)
def test_faults_of_every_command(warm: Forks, place: Path, scenario: Scenario) -> None:
    """A share of the faults at every call of every other command that writes."""
    tried = run_trials(Stage(scenario, warm, place), scenario.points)
    assert tried.total() == scenario.points
    assert not any(kind == "not met" for _, kind in tried)


@pytest.mark.parametrize(("name", "readings"), _CLOCKED.items())
def test_clock_set_back(warm: Forks, place: Path, name: str, readings: int) -> None:
    """A clock that goes back by an hour while a command runs changes nothing of what it says and writes."""
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    stage = Stage(scenario, warm, place)
    assert stage.try_clock(after=_NEVER) == readings
    for after in range(readings):
        stage.try_clock(after)
