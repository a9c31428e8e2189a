"""Whatever goes wrong at a system call, or with the clock, leaves the old or the new state, and one line of error."""

from pathlib import Path

import pytest

from tests.faults.fault import READS
from tests.faults.trials import COMPARE, READERS, SCENARIOS, Scenario, Stage, run_trials
from tests.recorder.recorded import read_run_file
from tests.store.forking import Forks, Order

_DRAWN = [scenario for scenario in SCENARIOS if scenario.name.startswith("report")]
_OTHERS = [scenario for scenario in SCENARIOS if scenario not in _DRAWN]
_NEVER = 10**9
_CLOCKED = {"nightly, first": 1, "nightly, second": 1}
"""How often a command reads the clock; an ingest and a baseline do not."""
_EACH = pytest.mark.parametrize


@pytest.fixture(scope="module")
def warm(faulty: Forks, logs: Path) -> Forks:
    """The process that forks, once it has imported what the commands import."""
    wide = {"check", "publish, artifact"}
    read = (("ingest", "mlflow:mlflow.db"), ("ingest", "packed.csv.zst"))
    faulty.warm_up(logs, COMPARE, *(scenario.arguments for scenario in SCENARIOS if scenario.name in wide), *read)
    return faulty


def find(name: str) -> Scenario:
    (scenario,) = (each for each in SCENARIOS if each.name == name)
    return scenario


def test_some_faults(faulty: Forks, place: Path) -> None:
    assert run_trials(Stage(find("ingest, replaced run"), faulty, place), number=6).total() == 6


def test_some_faults_while_a_log_is_read(faulty: Forks, place: Path) -> None:
    stage = Stage(READERS[0], faulty, place, READS)
    assert run_trials(stage, number=4).total() == 4
    faults = [fault for call, fault in stage.faults() if fault.kind == "EIO" and call.path.endswith(".parquet")]
    assert len(faults) >= 3
    assert all(stage.try_fault(fault) for fault in faults)


@pytest.mark.slow
@_EACH("scenario", _DRAWN, ids=lambda scenario: scenario.name)
def test_faults_of_reports(faulty: Forks, place: Path, scenario: Scenario) -> None:
    assert run_trials(Stage(scenario, faulty, place), scenario.points).total() == scenario.points


@pytest.mark.slow
@_EACH("scenario", _OTHERS, ids=lambda scenario: scenario.name)
def test_faults_of_every_command_that_writes(warm: Forks, place: Path, scenario: Scenario) -> None:
    tried = run_trials(Stage(scenario, warm, place), scenario.points)
    assert tried.total() == scenario.points
    assert not any(kind == "not met" for _, kind in tried)


@pytest.mark.stress
@_EACH("name", ["new store", "another run", "replaced run"])
def test_an_ingest_killed_or_without_room_at_every_call(warm: Forks, place: Path, name: str) -> None:
    stage = Stage(find(f"ingest, {name}"), warm, place)
    for kinds, least in (({"kill", "kill in half a write"}, 30), ({"ENOSPC", "ENOSPC from then on"}, 30)):
        faults = [fault for _, fault in stage.faults() if fault.kind in kinds]
        assert len(faults) >= least
        assert all(stage.try_fault(fault) for fault in faults)


@pytest.mark.slow
@_EACH("scenario", READERS, ids=lambda scenario: scenario.name)
def test_faults_of_every_command_that_reads(warm: Forks, place: Path, scenario: Scenario) -> None:
    assert run_trials(Stage(scenario, warm, place, READS), scenario.points).total() == scenario.points


@pytest.mark.slow
@_EACH(("name", "readings"), _CLOCKED.items())
def test_clock_set_back(warm: Forks, place: Path, name: str, readings: int) -> None:
    stage = Stage(find(name), warm, place)
    assert stage.try_clock(after=_NEVER) == readings
    for after in range(readings):
        stage.try_clock(after)


@pytest.mark.slow
def test_clock_set_back_while_recording(faulty: Forks, tmp_path: Path) -> None:
    readings = _record(faulty, tmp_path / "never", _NEVER)
    assert readings >= 3, "the start, the end and what lies between"
    for after in range(readings):
        _record(faulty, tmp_path / str(after), after)


def _record(faulty: Forks, folder: Path, after: int) -> int:
    """Check a recording whose clock goes back after so many readings of it; return how many there were."""
    (folder / "tmp").mkdir(parents=True)
    words = ("record", "--host-only", "-o", "recorded", "--", "sleep", "0.3")
    counted = folder / "readings"
    order = Order(arguments=words, folder=str(folder), clock_back=(3600.0, after), readings=str(counted))
    ended = faulty.run(order)
    assert ended.code == 0
    assert "-" not in ended.err.split(" in ")[0] + ended.out.split(" in ")[0]
    run = read_run_file(folder / "recorded")
    assert 0 < run["ended"] - run["started"] < 60e6
    return int(counted.read_text())
