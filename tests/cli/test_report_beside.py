"""`gpureport report` of long runs: a second process judges stored runs and draws, and nothing else is written."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from gpureport.cli import beside
from gpureport.second_process import SecondProcess
from tests.cli.program import Program
from tests.importers.logs import log

NAMES = ("one", "two", "three")
WRITTEN = ("-o", "report.html", "-o", "report.pdf", "-o", "report.json")


@pytest.fixture
def runs(gpureport: Program, tmp_path: Path) -> Path:
    """Lay out three runs, in the store and as logs."""
    (tmp_path / "logs").mkdir()
    for place, name in enumerate(NAMES):
        (tmp_path / "logs" / f"{name}.csv").write_text(log(120 + place))
    assert gpureport("ingest", *(f"logs/{name}.csv" for name in NAMES)).code == 0
    return tmp_path


@dataclass(frozen=True)
class Spy:
    """Whether the second process did what it was asked for, each time."""

    answers: list[bool]
    monkeypatch: pytest.MonkeyPatch

    def short(self) -> None:
        """Let no run be a long one."""
        self.monkeypatch.setattr(beside, "LONG", 10**9)


@pytest.fixture
def spy(monkeypatch: pytest.MonkeyPatch) -> Spy:
    """Let any run be a long one, and look at what the second process answers."""
    found: list[bool] = []
    received = SecondProcess.received

    def spied(second: SecondProcess) -> tuple[bool, object]:
        answer = received(second)
        found.append(answer[0])
        return answer

    monkeypatch.setattr(SecondProcess, "received", spied)
    monkeypatch.setattr(beside, "LONG", 1)
    monkeypatch.setattr("gpureport.second_process._processors", lambda: 2)
    return Spy(found, monkeypatch)


def written(folder: Path) -> list[bytes]:
    """Return the reports that were written."""
    return [(folder / name).read_bytes() for name in WRITTEN[1::2]]


@pytest.mark.parametrize(
    ("sources", "asked"),
    [
        ((*NAMES, "--step", "a", "--step", "b", "--step", "a"), 3),
        ((*NAMES, "--from", "10s", "--anonymise"), 2),
        (("one", "logs/two.csv"), 2),
    ],
)
def test_a_second_process_changes_nothing(
    gpureport: Program, runs: Path, spy: Spy, sources: tuple[str, ...], asked: int
) -> None:
    """Page, PDF and JSON are the same byte for byte, whoever judges and draws; runs that were cut are judged here."""
    assert gpureport("report", *sources, *WRITTEN).code == 0
    assert spy.answers == [True] * asked
    with_it = written(runs)
    spy.short()
    assert gpureport("report", *sources, *WRITTEN).code == 0
    assert len(spy.answers) == asked
    assert written(runs) == with_it


@pytest.mark.parametrize("command", [("report", "-o", "report.json"), ("compare", "--format", "json"), ("compare",)])
def test_several_runs_are_judged_by_both(gpureport: Program, runs: Path, spy: Spy, command: tuple[str, ...]) -> None:
    """Where nothing is drawn, the process judges half of the stored runs, and what is said is the same."""
    with_it = gpureport(*command, *NAMES), [path.read_bytes() for path in runs.glob("report.json")]
    assert spy.answers == [True]
    spy.short()
    assert (gpureport(*command, *NAMES), [path.read_bytes() for path in runs.glob("report.json")]) == with_it
    assert len(spy.answers) == 1


def test_no_process_for_one_run_without_figures(gpureport: Program, runs: Path, spy: Spy) -> None:
    """There is nothing for it to do."""
    assert gpureport("report", "one", "-o", "report.md").code == 0
    assert spy.answers == []
    assert (runs / "report.md").exists()


def test_a_process_that_fails_is_made_up_for(
    gpureport: Program, runs: Path, spy: Spy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the process cannot do its work, the report is written all the same, without a word."""
    monkeypatch.setattr("gpureport.second_process._BEGIN", "raise SystemExit")
    outcome = gpureport("report", *NAMES, *WRITTEN)
    assert outcome.code == 0
    assert True not in spy.answers
    assert "rror" not in outcome.err
    assert all(written(runs))


@pytest.mark.parametrize(
    ("arguments", "code"), [(("one", "four"), 3), (("one", "--fail-on", "nothing"), 2), (("one", "--select", "no"), 2)]
)
@pytest.mark.usefixtures("runs")
def test_errors_are_as_ever(gpureport: Program, spy: Spy, arguments: tuple[str, ...], code: int) -> None:
    """What is wrong is said as it is said without a second process."""
    beside_it = gpureport("report", *arguments, *WRITTEN)
    spy.short()
    assert gpureport("report", *arguments, *WRITTEN) == beside_it
    assert beside_it.code == code
    assert spy.answers == []


def test_a_damaged_run_is_named(gpureport: Program, runs: Path, spy: Spy) -> None:
    """A run whose series are gone is named as ever, though it was read ahead."""
    assert spy.answers == []
    next(runs.glob(".gpureport/runs/*/hardware.parquet")).unlink()
    outcome = gpureport("report", *NAMES, *WRITTEN)
    assert outcome.code == 3
    assert "damaged or missing" in outcome.err
