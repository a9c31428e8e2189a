"""The recipes for CI: their files parse, and their commands do what they say with a recorder and a job to stand in."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from gpureport.nightly.history.night_history import History
from tests.docs.test_pages import ROOT, blocks
from tests.importers.written_logs import log

RECIPES = ROOT / "docs" / "how-to" / "ci"
_DAY = 86_400
_WHOLE = slice(None)
_RECORDER = """#!/bin/sh
# stands in for nvidia-smi: writes tonight's log to the file named last, if there is one tonight
for last; do :; done
if [ -n "$TONIGHT" ]; then cp "$TONIGHT" "$last"; fi
touch "$SCRATCH/recording"
exec sleep 60
"""
_JOB = """#!/bin/sh
while [ ! -e "$SCRATCH/recording" ]; do sleep 0.05; done
rm "$SCRATCH/recording"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A machine to run recipes on: its folder of programs, its home, and the logs of its nights."""

    folder: Path

    def environment(self, night: int, tonight: Path | None, given: dict[str, str]) -> dict[str, str]:
        """Return the variables of a night; without a log its recorder writes nothing."""
        return {
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "SCRATCH": str(self.folder),
            "SOURCE_DATE_EPOCH": str(1_773_400_000 + night * _DAY),
            "TONIGHT": "" if tonight is None else str(tonight),
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@localhost",
            "GIT_COMMITTER_NAME": "a",
            "GIT_COMMITTER_EMAIL": "a@localhost",
            **given,
        }

    def run(
        self, words: Sequence[str], night: int, tonight: Path | None, folder: Path, **given: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of a recipe in a folder."""
        environment = self.environment(night, tonight, given)
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def program(path: Path, text: str) -> Path:
    """Write a program."""
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A machine with a recorder and a job; `pip` has nothing left to do."""
    programs = tmp_path / "bin"
    programs.mkdir()
    program(programs / "gpureport", f'#!/bin/sh\nexec {sys.executable} -m gpureport "$@"\n')
    program(programs / "nvidia-smi", _RECORDER)
    program(programs / "pip", '#!/bin/sh\n[ "$*" = "install --find-links wheels gpureport" ]\n')
    return Bench(folder=tmp_path)


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Logs of two nights."""
    paths = [tmp_path / f"night-{number}.csv" for number in range(2)]
    for number, path in enumerate(paths):
        path.write_text(log(120 + number))
    return paths


def job(folder: Path) -> Path:
    """Make a folder with a job in it."""
    folder.mkdir(parents=True, exist_ok=True)
    program(folder / "train.sh", _JOB)
    return folder


def kept(store: Path) -> list[tuple[int, str]]:
    """Return for each night of a history how many runs it has, and why there are none."""
    nights = History(store).read_latest()
    return [(len(night.measured_runs), " ".join(part.reason for part in night.missing_runs)) for night in nights]


def steps(page: Path) -> list[dict[str, Any]]:
    """Return the steps of the recipe for GitHub."""
    (text,) = blocks(page, "yaml")
    content: Any = yaml.safe_load(text)
    # `on` is true in YAML 1.1
    assert content[True]["schedule"][0]["cron"].count(" ") == 4
    found: list[dict[str, Any]] = content["jobs"]["train"]["steps"]
    return found


def github(bench: Bench, page: Path, night: int, tonight: Path | None, part: slice = _WHOLE) -> tuple[int, Path]:
    """Run the job of a night, or a part of its steps, as its runner would; return its exit code and the workspace."""
    folder = job(bench.folder / f"workspace-{night}")
    code = 0
    summary = folder / "summary.md"
    for step in steps(page)[part]:
        if code and step.get("if") != "always()":
            continue
        if step.get("with", {}).get("ref"):
            done = bench.run(
                ["git", "clone", "-qb", step["with"]["ref"], str(bench.folder / "remote.git"), "history"],
                night,
                None,
                folder,
            )
            assert done.returncode == 0, done.stderr
        if "run" in step:
            script = program(bench.folder / f"step-{night}.sh", step["run"])
            words = [word.replace("{0}", str(script)) for word in step.get("shell", "bash -e {0}").split()]
            given = {"GITHUB_SHA": f"{night}abcdef0123", "GITHUB_STEP_SUMMARY": str(summary)}
            done = bench.run(words, night, tonight, folder, **given)
            code = code or done.returncode
    return code, folder


def begun(bench: Bench, page: Path) -> Path:
    """Return a repository with the branch of the history."""
    remote, first = bench.folder / "remote.git", bench.folder / "repository"
    bench.run(["git", "init", "-q", "--bare", str(remote)], 0, None, bench.folder)
    bench.run(["git", "clone", "-q", str(remote), str(first)], 0, None, bench.folder)
    (begin,) = blocks(page, "sh")
    assert bench.run(["sh", "-e", "-c", begin], 0, None, first).returncode == 0
    return remote


@pytest.mark.slow
def test_github(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """Two nights are recorded, with summary, pages and a pushed history; a third without a log fails with 4."""
    page = RECIPES / "github-actions.md"
    remote = begun(bench, page)
    ended = [github(bench, page, night, tonight) for night, tonight in enumerate([*logs, None])]
    assert [code for code, _ in ended] == [0, 0, 4]
    second, third = ((folder / "summary.md").read_text() for _, folder in ended[1:])
    assert "no data from gpu.csv.\n  gpu.csv: no such file" in third
    assert "8 more nights needed before changes show." in second
    assert "## gpureport check PASSED (1 passed)" in second
    assert "## gpureport check NOT ASSESSED" in third
    bench.run(["git", "clone", "-qb", "gpu-history", str(remote), "end"], 0, None, tmp_path)
    assert kept(tmp_path / "end" / ".gpureport") == [(1, ""), (1, ""), (0, "no such file or run")]
    site = tmp_path / "end" / "site"
    assert len(list((site / "nights").glob("*.html"))) == 2
    assert "No data." in (site / "index.html").read_text()


@pytest.mark.slow
def test_github_jobs_that_push_at_once(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """Jobs of two nights that began with the same history both end well, and the branch holds all of both."""
    page = RECIPES / "github-actions.md"
    remote = begun(bench, page)
    keep = next(place for place, step in enumerate(steps(page)) if step.get("name") == "Keep the history")
    for night, tonight in enumerate(logs):
        assert github(bench, page, night, tonight, slice(keep))[0] == 0
    with ThreadPoolExecutor() as runners:
        ended = list(runners.map(lambda night: github(bench, page, night, None, slice(keep, None))[0], (0, 1)))
    assert ended == [0, 0]
    bench.run(["git", "clone", "-qb", "gpu-history", str(remote), "end"], 0, None, tmp_path)
    assert kept(tmp_path / "end" / ".gpureport") == [(1, ""), (1, "")]
    site = tmp_path / "end" / "site"
    reports = sorted(path.name for path in (site / "nights").glob("*.html"))
    assert len(reports) == 2
    assert all(f"nights/{name}" in (site / "index.html").read_text() for name in reports)
    again = tmp_path / "end" / "again"
    (again / "nights").mkdir(parents=True)
    for name in reports:
        shutil.copy(site / "nights" / name, again / "nights" / name)
    done = bench.run(["gpureport", "nightly", "--site", "again"], 0, None, tmp_path / "end")
    assert done.returncode == 0, done.stderr
    pages = [path.relative_to(site) for path in site.rglob("*.html")]
    assert [page for page in pages if (site / page).read_bytes() != (again / page).read_bytes()] == []


def faults(schema: str, file: Path, text: str) -> str:
    """Return what the schema of those who run a file says against it; the checker brings the schema along."""
    file.write_text(text)
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


def test_github_workflow_is_valid(tmp_path: Path) -> None:
    """It keeps the schema of workflows, and every step is one thing."""
    (text,) = blocks(RECIPES / "github-actions.md", "yaml")
    content: Any = yaml.safe_load(text)
    assert set(content) <= {"name", True, "permissions", "env", "defaults", "concurrency", "jobs"}
    (job,) = content["jobs"].values()
    assert set(job) <= {"name", "runs-on", "needs", "if", "env", "timeout-minutes", "permissions", "container", "steps"}
    (shown,) = blocks(RECIPES.parent / "publish.md", "yaml")
    for step in [*job["steps"], *yaml.safe_load(shown)]:
        assert set(step) <= {"name", "id", "if", "uses", "with", "run", "shell", "env", "working-directory"}
        assert ("uses" in step) != ("run" in step)
        assert step.get("if", "always()") == "always()"
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v1"))
    workflow = tmp_path / "nightly.yml"
    assert "runs-on" in faults("github-workflows", workflow, text.replace("runs-on", "runs_on"))
    assert faults("github-workflows", workflow, text + textwrap.indent(shown, "      ")) == ""


def test_github_workflow_passes_its_linter(tmp_path: Path) -> None:
    """It finds a key and a function that are none, and nothing in the recipe."""
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("needs the program actionlint on the path")
    (text,) = blocks(RECIPES / "github-actions.md", "yaml")
    (shown,) = blocks(RECIPES.parent / "publish.md", "yaml")
    whole = text + textwrap.indent(shown, "      ")
    for right, wrong in (("", ""), ("runs-on", "runs_on"), ("always", "ever")):
        content = whole.replace(right, wrong) if right else whole
        (tmp_path / "nightly.yml").write_text(content)
        done = subprocess.run([linter, "nightly.yml"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, wrong in done.stdout, bool(done.stdout)) == (int(bool(wrong)), True, bool(wrong))


@pytest.mark.slow
def test_gitlab(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """The file keeps its schema; a night with a log succeeds and is served; one without fails with 4."""
    (text,) = blocks(RECIPES / "gitlab-ci.md", "yaml")
    content: Any = yaml.safe_load(text)
    pipeline = tmp_path / "pipeline.yml"
    assert "script" in faults("gitlab-ci", pipeline, text.replace("  script:", "  scripts:", 1))
    assert faults("gitlab-ci", pipeline, text) == ""
    folder = job(tmp_path / "workspace")
    script = "\n".join(content["nightly"]["before_script"] + content["nightly"]["script"])
    for night, (tonight, code) in enumerate([(logs[0], 0), (None, 4)]):
        (folder / "gpu.csv").unlink(missing_ok=True)
        done = bench.run(["bash", "-e", "-c", script], night, tonight, folder, CI_COMMIT_SHORT_SHA="abc")
        assert done.returncode == code, done.stderr
        (serve,) = content["pages"]["script"]
        assert bench.run(["bash", "-e", "-c", serve], night, None, folder).returncode == 0
    assert kept(folder / ".gpureport") == [(1, ""), (0, "no such file or run")]
    assert {".gpureport/", "public/"} == set(content["nightly"]["cache"]["paths"])


@pytest.mark.slow
def test_jenkins(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """The shell of each stage runs; a night without a log fails with 4 and its pages are there to be archived."""
    (text,) = blocks(RECIPES / "jenkins.md", "groovy")
    assert text.count("{") == text.count("}")
    train, record = re.findall(r"sh '''\n(.*?)'''", text, re.DOTALL)
    given = {"BUILD_TAG": "nightly-1", "GPU_HISTORY": str(tmp_path / "history")}
    for night, (tonight, code) in enumerate([(logs[0], 0), (None, 4)]):
        folder = job(tmp_path / f"workspace-{night}")
        assert bench.run(["sh", "-xe", "-c", train], night, tonight, folder, **given).returncode == 0
        assert bench.run(["sh", "-xe", "-c", record], night, None, folder, **given).returncode == code
        assert (folder / "site" / "index.html").is_file()
    assert kept(tmp_path / "history") == [(1, ""), (0, "no such file or run")]


def test_cron_and_systemd(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """The line of the table and the service run the script; its exit code is that of the night."""
    page = RECIPES / "cron-systemd.md"
    folder = job(tmp_path / "job")
    (script,) = blocks(page, "sh")
    program(folder / "nightly.sh", script)
    (line,) = blocks(page, "crontab")
    times, command = line.split()[:5], line.split(maxsplit=5)[5]
    assert all(re.fullmatch(r"[\d*/,-]+", part) for part in times)
    assert bench.run(["sh", "-c", command], 0, logs[0], tmp_path).returncode == 0
    units = [configparser.ConfigParser(interpolation=None, strict=True) for _ in blocks(page, "ini")]
    for unit, text in zip(units, blocks(page, "ini"), strict=True):
        unit.optionxform = str  # type: ignore[assignment, method-assign]  # keys of units have capitals
        unit.read_string(text)
    service, timer = units
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:00:00"
    start = service["Service"]["ExecStart"].replace("%h", str(tmp_path))
    assert bench.run([start], 1, None, tmp_path).returncode == 4
    assert kept(folder / ".gpureport") == [(1, ""), (0, "no such file or run")]


@pytest.mark.slow
def test_slurm(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """The job records itself also when its training fails, and the epilog never fails a node."""
    batch, epilog = blocks(RECIPES / "slurm.md", "sh")
    folder = job(tmp_path / "job")
    history = tmp_path / "gpu-history"
    for night, number in enumerate(("11", "12")):
        given = {"SLURM_JOB_NAME": "train", "SLURM_JOB_ID": number}
        if night:
            (folder / "train.sh").write_text(f"{_JOB}exit 9\n")
        done = bench.run(["bash", "-c", batch], night, logs[night], folder, **given)
        assert done.returncode == (9 if night else 0), done.stderr
    assert kept(history / ".gpureport") == [(1, ""), (1, "")]
    (gate,) = re.findall(r"`(--fail-on .*?)`", (RECIPES / "slurm.md").read_text())
    given = {"SLURM_JOB_NAME": "gate", "SLURM_JOB_ID": "12", "GPU_HISTORY": str(tmp_path / "gated")}
    (folder / "train.sh").write_text(_JOB)
    done = bench.run(["bash", "-c", batch.replace("\n}", f" {gate}\n}}")], 1, None, folder, **given)
    assert done.returncode == 4, done.stderr
    given = {"SLURM_JOB_ID": "13", "SLURM_JOB_NAME": "train", "SLURM_JOB_USER": "ada", "GPU_LOGS": str(tmp_path)}
    done = bench.run(["bash", "-c", epilog], 2, None, folder, GPU_HISTORY=str(history), **given)
    assert done.returncode == 0
    assert kept(history / ".gpureport")[2:] == [(0, "no such file or run")]
    done = bench.run(["bash", "-c", epilog], 2, None, folder, GPU_HISTORY=str(tmp_path / "none"), **given)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_first_command_of_the_guide(bench: Bench, logs: list[Path], tmp_path: Path) -> None:
    """The commands of the guide to nights run in a repository, histories merge, and its query reads them."""
    import duckdb  # noqa: PLC0415 - a tool of the tests alone

    page = ROOT / "docs" / "how-to" / "nightly.md"
    record, merge = blocks(page, "sh")
    folder = tmp_path / "repository"
    for place, tonight in ((folder, logs[0]), (folder / "other", logs[1])):
        place.mkdir()
        (place / "gpu.csv").write_bytes(tonight.read_bytes())
        bench.run(["git", "init", "-q"], 0, None, place)
        bench.run(["git", "commit", "-q", "--allow-empty", "-m", "Begin"], 0, None, place)
        done = bench.run(["sh", "-e", "-c", record], place != folder, None, place, GIT_CEILING_DIRECTORIES=str(folder))
        assert done.returncode == 0, done.stderr
        if place == folder:
            (folder / ".gpureport").rename(tmp_path / "aside")
    (tmp_path / "aside").rename(folder / ".gpureport")
    done = bench.run(["sh", "-e", "-c", merge], 1, None, folder)
    assert done.returncode == 0, done.stderr
    assert kept(folder / ".gpureport") == [(1, ""), (1, "")]
    (query,) = blocks(page, "sql")
    table = duckdb.sql(query.replace("'.gpureport", f"'{folder}/.gpureport").rstrip().rstrip(";"))
    assert table is not None
    rows = table.fetchall()
    assert [len(row) for row in rows] == [3, 3]
