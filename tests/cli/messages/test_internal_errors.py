"""A fault of gpureport itself: one line, a code of its own, and the other runs are served."""

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from gpureport.analysis.detectors.idle.idle_gap import IdleGap
from gpureport.analysis.rules.rule import Context
from gpureport.cli.runs import run_storing
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.importers import Reading
from gpureport.nightly.history.night_figures import Figure
from gpureport.nightly.history.night_history import History
from gpureport.report.formats.json import analysis_json
from gpureport.store import Entry, Store
from gpureport.testing import Recording
from tests.cli.program import Program
from tests.importers.written_logs import log

BROKEN = "idle_ratio <= 0.5%"
KEPT = "idle_ratio <= 50%"
SAID = "internal error (ValueError in analysis/"


@pytest.fixture(autouse=True)
def logs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of three logs, and a rule that fails on one of them."""
    (tmp_path / "logs").mkdir()
    for number, name in enumerate(("a", "b", "c")):
        (tmp_path / "logs" / f"{name}.csv").write_text(log(1200 + number))
    whole = IdleGap.find

    def failing(rule: IdleGap, context: Context) -> Iterator[Any]:
        if context.recording.run.name == "b":
            raise ValueError("the truth\nof an array")
        yield from whole(rule, context)

    monkeypatch.setattr(IdleGap, "find", failing)


@pytest.mark.parametrize(
    "command",
    [
        ("analyze",),
        ("analyze", "--format", "json"),
        ("report", "-o", "report.md"),
        ("compare", "logs/a.csv"),
        ("check", "--fail-on", KEPT),
        ("check", "--fail-on", BROKEN),
        ("nightly", "--site", "site"),
        ("nightly", "--site", "site", "--fail-on", BROKEN),
    ],
    ids=" ".join,
)
def test_a_fault_is_one_line_and_a_code_of_its_own(gpureport: Program, command: tuple[str, ...]) -> None:
    """It is no broken gate, no kept one, and nothing that cannot be judged; the log and the rule are named."""
    outcome = gpureport(*command, "logs/b.csv")
    assert outcome.code == 5
    (line,) = [each for each in outcome.err.splitlines() if SAID in each]
    assert "logs/b.csv: " in line
    hint = "this is a bug in gpureport: please report it with the traceback that --debug prints"
    assert line.endswith(f"the truth of an array); {hint}")
    assert "Traceback" not in outcome.err
    assert "Traceback" in gpureport(*command, "logs/b.csv", "--debug").err


def test_the_other_runs_of_a_folder_are_served(gpureport: Program, tmp_path: Path) -> None:
    """The run that is not is named, and the code says so whatever else the command found."""
    analysed = gpureport("analyze", "logs", "--format", "json")
    assert [run["run"]["name"] for run in json.loads(analysed.out)["runs"]] == ["a", "c"]
    for command in (("report", "-o", "report.md"), ("compare",), ("check", "--fail-on", KEPT), ("analyze",)):
        outcome = gpureport(*command, "logs")
        assert outcome.code == 5
        assert f"gpureport: left out: logs/b.csv: {SAID}" in outcome.err
    assert "b.csv" not in (tmp_path / "report.md").read_text()


def test_a_gate_names_the_run_it_could_not_hold_against_limits(gpureport: Program, tmp_path: Path) -> None:
    """In its own output, where a fault is neither kept nor broken."""
    checked = gpureport("check", "logs", "--fail-on", KEPT, "--format", "json", "--junit", "junit.xml")
    outcomes = {each["run"]: each["outcome"] for each in json.loads(checked.out)["checks"]}
    assert outcomes == {"logs/b.csv": "cannot judge", "a": "passed", "c": "passed"}
    assert "<error" in (tmp_path / "junit.xml").read_text()


def test_a_night_with_a_fault_is_one_without_data_of_that_run(gpureport: Program, tmp_path: Path) -> None:
    """The others are recorded as ever."""
    assert gpureport("nightly", "logs", "--site", "site", "--date", "2026-03-01").code == 5
    (night,) = History(tmp_path / ".gpureport").read_latest()
    assert sorted(part.name for part in night.measured_runs) == ["a", "c"]
    ((reason,)) = [part.reason for part in night.missing_runs]
    assert reason.startswith(SAID)


def test_a_fault_of_the_reading_leaves_the_other_logs(gpureport: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a log that cannot be read does; where a limit was asked for, all or none are served."""
    whole = Reading.recording

    def failing(reading: Reading) -> Recording:
        if reading.locator.endswith("a.csv"):
            raise ZeroDivisionError
        return whole(reading)

    monkeypatch.setattr(Reading, "recording", failing)
    read = gpureport("report", "logs/a.csv", "logs/c.csv", "-o", "report.md")
    assert read.code == 5
    assert "logs/a.csv: internal error (ZeroDivisionError" in read.err
    folder = gpureport("report", "logs", "-o", "report.md")
    assert (folder.code, folder.err.count("gpureport: left out: logs/")) == (5, 2)
    strict = gpureport("analyze", "logs", "--fail-on", KEPT)
    assert (strict.code, strict.out, strict.err.count("\n")) == (5, "", 1)
    checked = gpureport("check", "logs/a.csv", "logs/c.csv", "--fail-on", KEPT)
    assert (checked.code, "logs/a.csv" in checked.err) == (5, True)


def test_a_fault_of_no_run_names_the_command(gpureport: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing could be served, nothing is printed."""

    def failing(*_: object) -> NoReturn:
        raise KeyError("idle")

    monkeypatch.setattr(analysis_json, "render", failing)
    outcome = gpureport("analyze", "logs/a.csv", "--format", "json")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (5, "", 1)
    assert outcome.err.startswith("gpureport: analyze: internal error (KeyError")


@pytest.mark.parametrize("command", ["ingest", "nightly"])
def test_a_fault_of_storing_one_log_leaves_the_others(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: str
) -> None:
    """They are in the store, and the one that is not is named."""
    whole = run_storing.store_run

    def failing(store: Store, reading: Reading, *, force: bool) -> tuple[Entry, str]:
        if reading.locator.endswith("c.csv"):
            raise IndexError(3)
        stored: tuple[Entry, str] = whole(store, reading, force=force)
        return stored

    for module in ("commands.ingest", "results.captured_night"):
        monkeypatch.setattr(importlib.import_module(f"gpureport.cli.{module}"), "store_run", failing)
    outcome = gpureport(command, "logs", *(["--site", "site"] if command == "nightly" else []))
    assert (outcome.code, "left out: logs/c.csv: internal error (IndexError" in outcome.err) == (5, True)
    assert sorted(entry.run.name for entry in Store(tmp_path / ".gpureport").entries()) == ["a", "b"]


def test_a_night_keeps_its_other_runs_where_figures_of_one_fail(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where its analysis fails."""
    tonight = importlib.import_module("gpureport.nightly.history.capture")
    whole = tonight.measure_figures

    def failing(run: SampledRun) -> tuple[Figure, ...]:
        if run.analysis.run.name == "c":
            raise ZeroDivisionError
        figures: tuple[Figure, ...] = whole(run)
        return figures

    monkeypatch.setattr(tonight, "measure_figures", failing)
    outcome = gpureport("nightly", "logs/a.csv", "logs/c.csv", "--site", "site", "--date", "2026-03-01")
    assert (outcome.code, "left out: logs/c.csv: internal error (ZeroDivisionError" in outcome.err) == (5, True)
    (night,) = History(tmp_path / ".gpureport").read_latest()
    assert ([part.name for part in night.measured_runs], len(night.missing_runs)) == (["a"], 1)


def test_a_night_has_its_pages_where_its_report_fails(
    gpureport: Program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It has no report then."""

    def failing(*_: object, **__: object) -> NoReturn:
        raise KeyError("idle")

    monkeypatch.setattr(importlib.import_module("gpureport.report"), "build", failing)
    outcome = gpureport("nightly", "logs/a.csv", "--site", "site", "--date", "2026-03-01")
    assert (outcome.code, "left out: the report of 2026-03-01" in outcome.err) == (5, True)
    assert (tmp_path / "site" / "index.html").is_file()
    assert not list((tmp_path / "site" / "nights").iterdir())
