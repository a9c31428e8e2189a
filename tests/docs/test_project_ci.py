"""The project's own CI: its workflow runs the scripts in .ci, on the versions that pyproject.toml promises."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.ci_bench import find_faults
from tests.docs.test_pages import ROOT, blocks

CI = ROOT / ".ci"
WORKFLOW = ROOT / ".github" / "workflows" / "ci.yml"
SCRIPTS = ("run", "versions", "release")


def read_jobs() -> dict[str, Any]:
    """Return the jobs of the workflow."""
    jobs: dict[str, Any] = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    return jobs


def run_script(name: str, *words: Path) -> "subprocess.CompletedProcess[str]":
    """Run a Python script of .ci."""
    command = [sys.executable, str(CI / name), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", [*SCRIPTS, "setup.sh"])
def test_scripts_are_bash(name: str) -> None:
    """Bash can read every script, and those that are run may be."""
    done = subprocess.run(
        [shutil.which("bash") or "bash", "-n", str(CI / name)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert name == "setup.sh" or (CI / name).stat().st_mode & 0o111


def test_each_job_runs_its_script() -> None:
    """The workflow has a job for each script; its actions are GitHub's own, of the versions that the guides name."""
    jobs = read_jobs()
    assert tuple(jobs) == SCRIPTS
    guides = [ROOT / "docs" / "how-to" / name for name in ("ci/github-actions.md", "publish.md")]
    shown = set(re.findall(r"actions/[a-z-]+@v\d+", "".join(page.read_text(encoding="utf-8") for page in guides)))
    for name, job in jobs.items():
        commands = [step["run"].split()[0] for step in job["steps"] if "run" in step]
        assert commands == [f".ci/{name}"]
        used = {step["uses"] for step in job["steps"] if "uses" in step}
        assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in used)
        assert used - {"actions/setup-python@v5"} <= shown


def test_matrix_is_what_the_package_promises() -> None:
    """The oldest and the newest Python of pyproject.toml are tested, and it leaves none out between them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(project["classifiers"]))
    minors = [int(minor) for minor in named]
    assert project["requires-python"] == f">=3.{minors[0]}"
    assert minors == list(range(minors[0], minors[-1] + 1))
    matrix = read_jobs()["versions"]["strategy"]["matrix"]
    assert matrix == {"versions": ["lowest", "newest"], "python": [f"3.{minors[0]}", f"3.{minors[-1]}"]}
    command = ".ci/versions ${{ matrix.versions }}-${{ matrix.python }}"
    assert command in [step.get("run") for step in read_jobs()["versions"]["steps"]]


def test_versions_run_the_test_command_of_the_readme() -> None:
    """The newest versions are installed as the README says, and all run its tests."""
    (command,) = [line for block in blocks(ROOT / "README.md", "sh") for line in block.splitlines() if "pytest" in line]
    install, test = command.split(" && ")
    lines = [line.strip() for line in (CI / "versions").read_text(encoding="utf-8").splitlines()]
    assert install in lines
    assert f'{test} "$@"' in lines


def test_a_cell_that_is_none_is_refused() -> None:
    """It is named before anything is installed."""
    done = subprocess.run([CI / "versions", "lowest"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("versions: no cell: lowest; give lowest-3.11")


@pytest.mark.slow
def test_workflow_is_valid(tmp_path: Path) -> None:
    """It keeps the schema of workflows."""
    assert find_faults("github-workflows", tmp_path / "ci.yml", WORKFLOW.read_text(encoding="utf-8")) == ""


def test_workflow_passes_its_linter() -> None:
    """Nothing is said of it."""
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("needs the program actionlint on the path")
    done = subprocess.run([linter, str(WORKFLOW)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    ("licence", "code"),
    [
        ("MIT", 0),
        ("Apache-2.0 AND MIT", 0),
        ("GPL-3.0-only OR BSD-3-Clause", 0),
        ("Apache Software License; BSD License", 0),
        ("GPL-3.0-only", 1),
        ("MIT AND GPL-3.0-only", 1),
        ("MIT License; GNU General Public License (GPL)", 1),
        ("(MIT OR GPL-3.0-only) AND GPL-2.0-only", 1),
        ("UNKNOWN", 1),
    ],
)
def test_licences_are_held_against_the_list(licence: str, code: int, tmp_path: Path) -> None:
    """A package whose licence is not on the list, or not known, ends the release and is named."""
    found = tmp_path / "licences.json"
    found.write_text(json.dumps([{"Name": "some", "Version": "1.0", "License": licence}]))
    done = run_script("licences.py", found)
    assert done.returncode == code
    assert f"| some 1.0 | {licence} |" in done.stdout
    assert (f"licences: some 1.0: {licence}" in done.stderr) == bool(code)


def test_licence_that_only_a_file_names(tmp_path: Path) -> None:
    """It is taken where metadata name none, and for no other package."""
    found = tmp_path / "licences.json"
    found.write_text(json.dumps([{"Name": "huey", "Version": "3.5.4", "License": "UNKNOWN"}]))
    assert "| huey 3.5.4 | MIT |" in run_script("licences.py", found).stdout
    found.write_text(json.dumps([{"Name": "huey", "Version": "9.9.9", "License": "GPL-3.0-only"}]))
    assert run_script("licences.py", found).returncode == 1


SKIPPED = {"name": "some", "skip_reason": "Dependency not found on PyPI and could not be audited: some (1.0)"}
CLEAN = {"name": "other", "version": "2.0", "vulns": []}
HOLED = {"name": "third", "version": "3.0", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3.1"]}]}


TIP = "Tip: your network may be blocking this service. Try another service with `-s SERVICE`"
REFUSED = "urllib3.exceptions.NewConnectionError: x\nrequests.exceptions.ProxyError: HTTPSConnectionPool(host='h')\n"


@pytest.mark.parametrize(
    ("packages", "log", "code", "last"),
    [
        (None, REFUSED, 0, "not audited: requests.exceptions.ProxyError: HTTPSConnectionPool(host='h')"),
        (None, f"ERROR:pip_audit._cli:{TIP}\n", 0, f"not audited: ERROR:pip_audit._cli:{TIP}"),
        (None, "usage: x\npip-audit: error: unrecognized arguments: -x\n\n", 1, "not audited: pip-audit: error: unrec"),
        (None, f"{REFUSED}KeyError: 'name'\n", 1, "not audited: KeyError: 'name'"),
        (None, "", 1, "not audited: pip-audit wrote nothing"),
        ([], "No known vulnerabilities found\n", 1, "not audited: No known vulnerabilities found"),
        ([SKIPPED], "", 0, "not audited: every package was skipped, such as Dependency not found on PyPI"),
        ([SKIPPED, CLEAN], "", 0, "1 of 2 packages audited, 0 known vulnerabilities"),
        ([CLEAN, HOLED], "", 1, "2 of 2 packages audited, 1 known vulnerability"),
    ],
)
def test_an_audit_that_had_no_answer_is_not_clean(
    packages: list[dict[str, Any]] | None, log: str, code: int, last: str, tmp_path: Path
) -> None:
    """Packages that pip-audit skipped are never counted as free of holes; a failure of it is none of the network."""
    found, written = tmp_path / "audit.json", tmp_path / "audit.log"
    written.write_text(log)
    if packages is not None:
        found.write_text(json.dumps({"dependencies": packages}))
    done = run_script("audit.py", found, written)
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines()[-1].startswith(last)
    assert ("third 3.0: PYSEC-1, mended in 3.1" in done.stdout) == (packages == [CLEAN, HOLED])
