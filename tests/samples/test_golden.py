"""Every sample log leads to the findings its expected.json lists, and to those its generator planted."""

import difflib
import gzip
import io
import json
from contextlib import redirect_stdout
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from gpureport.analysis import RULES
from gpureport.cli import main
from tests.samples import generate
from tests.samples.kinds import SCENARIOS
from tests.samples.scenarios import Scenario

SAMPLES = Path(__file__).parents[2] / "sample_logs"
RECORDED = SAMPLES / "recorded"
"""What a real machine wrote; `test_recorded.py` holds it."""
FOLDERS = sorted(
    path.parent.relative_to(SAMPLES).as_posix()
    for path in SAMPLES.rglob("*.*")
    if path.name in generate.WRITERS and RECORDED not in path.parents
)

Digest = dict[str, Any]


@cache
def analyzed(folder: str) -> Digest:
    """Return the analysis of a sample log as `analyze --format json` writes it."""
    log = next(path for path in sorted((SAMPLES / folder).iterdir()) if path.name in generate.WRITERS)
    beside = ((f"--{name}", SAMPLES / folder / f"{name}.csv") for name in ("host", "training"))
    options = [word for option, path in beside if path.exists() for word in (option, str(path))]
    options += next((scenario.options for scenario in SCENARIOS if scenario.folder == folder), ())
    written = io.StringIO()
    with redirect_stdout(written), pytest.raises(SystemExit, match=r"^0$"):
        main(["analyze", str(log), *options, "--format", "json"])
    run: Digest = json.loads(written.getvalue())["runs"][0]
    return run


def unpacked(path: Path) -> bytes:
    """Return the bytes of a file, without its compression."""
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def to_second(moment: str | None) -> str | None:
    """Return an ISO stamp rounded to the second."""
    if moment is None:
        return None
    exact = datetime.fromisoformat(moment) + timedelta(microseconds=500_000)
    return exact.replace(microsecond=0).isoformat()


def digest(run: Digest) -> Digest:
    """Return what of an analysis must not change unnoticed; findings by time, as rank hangs on milliseconds."""
    findings = [
        {
            "kind": finding["kind"],
            "gpu": finding["gpu"],
            "severity": finding["severity"],
            "cause": finding["cause"],
            "start": to_second(finding["start"]),
            "end": to_second(finding["end"]),
        }
        for finding in run["findings"]
    ]
    return {
        "findings": sorted(findings, key=lambda each: [str(each[name]) for name in ("start", "kind", "gpu")]),
        "statistics": {
            device: {
                "mean_utilization_ratio": round(values["gpu_utilization_ratio"]["mean"], 4),
                "memory_peak_bytes": values["gpu_memory_peak_bytes"],
            }
            for device, values in run["statistics"].items()
            if device != "host"
        },
    }


def as_text(content: Digest) -> str:
    """Return a digest the way it is stored."""
    return json.dumps(content, indent=2) + "\n"


@pytest.mark.parametrize("folder", FOLDERS)
def test_sample_log_gives_expected_findings(folder: str, *, update_golden: bool) -> None:
    """A sample log gives the findings and figures its expected.json lists; one without the file is refused."""
    expectation = SAMPLES / folder / "expected.json"
    actual = as_text(digest(analyzed(folder)))
    if update_golden:
        expectation.write_text(actual, encoding="utf-8", newline="\n")
    assert expectation.exists(), f"{expectation} is missing; run pytest --update-golden and review what it writes"
    expected = expectation.read_text(encoding="utf-8")
    if actual != expected:
        changes = difflib.unified_diff(
            expected.splitlines(), actual.splitlines(), "expected", "actual", lineterm="", n=8
        )
        pytest.fail(f"sample_logs/{folder}:\n" + "\n".join(changes), pytrace=False)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.folder)
def test_planted_findings_are_found(scenario: Scenario) -> None:
    """What the generator planted is found, on the GPU it was planted on."""
    found = [(f["kind"], f["gpu"], f["severity"]) for f in analyzed(scenario.folder)["findings"]]
    for planted in scenario.planted:
        hits = [
            (kind, gpu, severity)
            for kind, gpu, severity in found
            if kind == planted.kind and severity in planted.severities and planted.gpu in {None, gpu}
        ]
        assert hits, f"{planted} not among {found}"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.folder)
def test_nothing_is_blamed_that_was_not_planted(scenario: Scenario) -> None:
    """No warning and no problem is found but those planted."""
    planted = {entry.kind for entry in scenario.planted}
    blamed = [
        (finding["kind"], finding["gpu"], finding["severity"], finding["summary"])
        for finding in analyzed(scenario.folder)["findings"]
        if finding["severity"] != "info" and finding["kind"] not in planted
    ]
    assert blamed == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.folder)
def test_generator_reproduces_the_committed_files(scenario: Scenario) -> None:
    """The generator writes the committed logs byte for byte; packed ones hold what it writes."""
    folder = SAMPLES / scenario.folder
    names = {"host.csv", "training.csv", *generate.WRITERS}
    committed = {path.name: unpacked(path) for path in folder.iterdir() if path.name in names}
    generated = {name: text.encode("ascii") for name, text in generate.files(scenario).items()}
    differing = sorted(name for name in committed | generated if committed.get(name) != generated.get(name))
    assert differing == []


def test_every_scenario_has_its_sample_log() -> None:
    """What the generator writes is there; a folder without a scenario says in its README how its log was generated."""
    assert sorted({scenario.folder for scenario in SCENARIOS} - set(FOLDERS)) == []


@pytest.mark.parametrize("kind", sorted({kind for rule in RULES for kind in rule.kinds}))
def test_every_kind_has_a_sample_of_its_name(kind: str) -> None:
    """A kind's name is that of a folder with a log, or with steps of one job, in which it is found."""
    named = [folder for folder in FOLDERS if folder == kind or folder.startswith(f"{kind}/")]
    assert named
    expected = [json.loads((SAMPLES / folder / "expected.json").read_text(encoding="utf-8")) for folder in named]
    assert kind in {finding["kind"] for each in expected for finding in each["findings"]}


def test_every_sample_folder_says_what_it_is() -> None:
    """Each folder of samples holds a README that says the logs are generated, or recorded in the one of these."""
    assert "recorded on" in (RECORDED / "README.md").read_text(encoding="utf-8")
    folders = sorted(path for path in SAMPLES.iterdir() if path.is_dir() and path != RECORDED)
    silent = [path.name for path in folders if "generated" not in (path / "README.md").read_text(encoding="utf-8")]
    assert silent == []


def test_starved_steps_did_the_same_work() -> None:
    """The three steps did as many optimizer steps each, as many as their README gives for --work."""
    readme = (SAMPLES / "input_starved" / "README.md").read_text(encoding="utf-8")
    (steps,) = {scenario.job.steps for scenario in SCENARIOS if scenario.folder.startswith("input_starved/")}
    assert f"--work {steps}:steps" in readme


def test_samples_stay_small() -> None:
    """Generated samples stay under one megabyte and recorded ones under 420 kB, since every wheel carries them."""
    sizes = {path: path.stat().st_size for path in SAMPLES.rglob("*") if path.is_file()}
    recorded = sum(size for path, size in sizes.items() if RECORDED in path.parents)
    assert sum(sizes.values()) - recorded < 1_000_000
    assert recorded < 420_000
