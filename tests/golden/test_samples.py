"""Every sample and recorded job: its facts and its screen as `samples/` keeps them, and what holds of every report.

`--update-golden` accepts what changed; the commit says why, for each file.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpureport import read
from tests.golden.digests import write_comparison_digest, write_digest
from tests.golden.properties import Made, find_faults
from tests.support.program import Outcome, Program, program

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).with_name("samples")
SAMPLES = ROOT / "sample_logs"
FORMS = ("json", "html", "md", "txt")
PLANTED = tomllib.loads((ROOT / "tests/samples/planted.toml").read_text(encoding="utf-8"))
SCHEMA = json.loads((ROOT / "docs/reference/report-2.schema.json").read_text(encoding="utf-8"))
TIMELESS = {"dmon.txt", "dmon-csv.csv"}
NO_LOGS = {"truth.json", "host.csv.gz", "vmstat.txt.gz"}


def make_strict(schema: Any) -> Any:
    """Return a schema that allows for no further field, to find what is not described."""
    if isinstance(schema, list):
        return [make_strict(entry) for entry in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {name: make_strict(entry) for name, entry in schema.items()}
    return inner | ({"additionalProperties": False} if inner.get("type") == "object" else {})


@cache
def strict_schema() -> Any:
    """Return what checks a report; only the process that needs it loads the library, which takes long."""
    from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types

    return Draft202012Validator(make_strict(SCHEMA))


def list_jobs() -> dict[str, list[str]]:
    """Return the arguments after `gpureport analyze` by job: of a sample what its README tells to type."""
    jobs = {}
    for readme in sorted(SAMPLES.glob("*/README.md")):
        name, text = readme.parent.name, readme.read_text(encoding="utf-8")
        typed = re.search(rf"^gpureport analyze (sample_logs/{name}/.*)$", text, re.MULTILINE)
        jobs[f"{name}/phases" if name == "recorded" else name] = (typed[1] if typed else f"sample_logs/{name}").split()
    chains = (SAMPLES / "recorded/training_steps", SAMPLES / "recorded/training_steps_0p1s")
    folders = [*chains, *(SAMPLES / "input_starved").glob("*-*"), *(SAMPLES / "recorded/causes").iterdir()]
    return jobs | {path.relative_to(SAMPLES).as_posix(): [path.relative_to(ROOT).as_posix()] for path in folders}


JOBS = list_jobs()
WRITTEN_TWICE = {*[*JOBS][::5]}
QUICK = {*[*JOBS][::4], "recorded/training_steps_0p1s"}
"""Jobs whose report is built in the quick tests, too."""
LOGS = sorted(
    path.relative_to(SAMPLES).as_posix()
    for folder in ("forms", "phases")
    for path in (SAMPLES / "recorded" / folder).iterdir()
    if path.name not in NO_LOGS
)


def run(gpureport: Program, *arguments: str) -> Outcome:
    done = gpureport(*arguments)
    assert "Traceback" not in done.err, done.err
    return done


def write_report(gpureport: Program, path: Path, source: list[str]) -> dict[str, str]:
    outputs = {form: path.with_suffix(f".{form}") for form in FORMS}
    done = run(gpureport, "report", *source, *(word for output in outputs.values() for word in ("-o", str(output))))
    assert done.code == 0, done.err
    return {form: output.read_text(encoding="utf-8") for form, output in outputs.items()}


def compare_with_expected(name: str, text: str, *, update: bool) -> None:
    path = EXPECTED / f"{name}.txt"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")
    expected = path.read_text(encoding="utf-8") if path.exists() else ""
    changes = difflib.unified_diff(expected.splitlines(), text.splitlines(), "expected", "actual", lineterm="", n=2)
    assert text == expected, f"{path.name}; --update-golden accepts:\n" + "\n".join(changes)


def check_planted(name: str, analysis: dict[str, Any]) -> Iterator[str]:
    """Yield what a sample was made to show and nobody found, and the warnings and problems beside that."""
    found = [finding for run in analysis["runs"] for finding in run["findings"]]
    for planted in PLANTED.get(name, ()):
        hits = [each for each in found if all(planted.get(key, each[key]) == each[key] for key in ("kind", "gpu"))]
        if not any(each["severity"] in planted.get("severities", ("warning", "problem")) for each in hits):
            yield f"{planted} is not found"
    known = {planted["kind"] for planted in PLANTED.get(name, found)}
    yield from (f"blamed {each['kind']}" for each in found if each["kind"] not in known and each["severity"] != "info")


@pytest.fixture
def gpureport(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.setenv("COLUMNS", "80")
    return program(capsys, monkeypatch, ROOT)


@pytest.mark.parametrize("name", JOBS)
def test_a_job(gpureport: Program, name: str, *, update_golden: bool) -> None:
    screen, document = (run(gpureport, "analyze", *JOBS[name], *form).out for form in ((), ("--format", "json")))
    analysis = json.loads(document)
    faults = list(check_planted(name, analysis))
    assert not faults, "\n".join(faults)
    compare_with_expected(name, f"{write_digest(analysis)}\n{screen}", update=update_golden)


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in JOBS])
def test_its_report(gpureport: Program, tmp_path: Path, name: str) -> None:
    screen, full, document = (
        run(gpureport, "analyze", *JOBS[name], *form).out for form in ((), ("--detail", "full"), ("--format", "json"))
    )
    pages = write_report(gpureport, tmp_path / "r", JOBS[name])
    assert name not in WRITTEN_TWICE or write_report(gpureport, tmp_path / "again", JOBS[name]) == pages
    made = Made(analysis=json.loads(document), screen=screen, full=full, pages=pages)
    faults = [*find_faults(made), *(error.message for error in strict_schema().iter_errors(made.report))]
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", LOGS)
def test_a_recorded_log(gpureport: Program, name: str, *, update_golden: bool) -> None:
    options = ["--interval", "1"] if Path(name).name in TIMELESS else []
    screen, document = (
        run(gpureport, "analyze", f"sample_logs/{name}", *options, *form) for form in ((), ("--format", "json"))
    )
    facts = write_digest(json.loads(document.out)) if document.code == 0 else f"exit {document.code}\n"
    if document.code == 0:
        (recording,) = read(SAMPLES / name, interval=1.0 if options else None)
        assert recording.run.quality.accounted
        facts += f"  further columns {sorted(each for each in recording.series.column_names if each[:6] == 'extra_')}\n"
    compare_with_expected(name, f"{facts}\n{screen.out}", update=update_golden)


@pytest.mark.parametrize(
    ("name", "work"), [("input_starved", "1000:steps"), ("recorded/training_steps", "32768:images")]
)
def test_a_comparison(gpureport: Program, name: str, work: str, *, update_golden: bool) -> None:
    command = ("compare", f"sample_logs/{name}", "--by", "folder", "--work", work)
    screen, document = (run(gpureport, *command, *form).out for form in ((), ("--format", "json")))
    facts = write_comparison_digest(json.loads(document))
    compare_with_expected(f"compare/{Path(name).name}", f"{facts}\n{screen}", update=update_golden)
