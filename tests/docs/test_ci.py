"""The recipes for CI: their files keep their schemas, and their commands do what they say with a stand-in."""

import configparser
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from gpureport import __version__
from gpureport.nightly.history.night_history import History
from tests.docs.test_pages import ROOT, blocks
from tests.recorder.stand_in import install_stand_in

RECIPES = ROOT / "docs" / "how-to" / "ci"
HEALTHY = ROOT / "sample_logs" / "healthy" / "nvidia-smi.csv"
HOT = ROOT / "sample_logs" / "thermal_throttle" / "nvidia-smi.csv.gz"
"""Logs of a night that keeps `--fail-on problem`, and of one that breaks it."""
_DAY = 86_400
_WHOLE = slice(None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Night:
    """What a machine does in one night: the log its driver plays (None: it has no driver), and its job's exit code."""

    number: int
    played: Path | None = HEALTHY
    trained: int = 0


NIGHTS = (
    Night(number=0),
    Night(number=1),
    Night(number=2, played=None),
    Night(number=3, played=HOT),
    Night(number=4, trained=9),
)


WHEEL = f"gpureport-{__version__}-py3-none-any.whl"
"""The file that a recipe installs."""
_VENV = """#!/bin/sh
# stands in for python -m venv DIR
[ "$1 $2" = "-m venv" ] || exit 9
mkdir -p "$3/bin" && cp {programs}/pip {programs}/gpureport "$3/bin"
echo "PATH=$PWD/$3/bin:\\$PATH" > "$3/bin/activate"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A machine to run recipes on: its folders of programs and of the driver, its home, and its job."""

    folder: Path

    def run(
        self, words: Sequence[str], night: Night, folder: Path, path: Sequence[str] = (), **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command of a recipe in a folder; programs are looked for in the folders of `path` first."""
        driver = [str(self.folder / "driver")] if night.played else []
        environment = {
            "PATH": os.pathsep.join([*path, str(self.folder / "bin"), *driver, os.environ["PATH"]]),
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.folder),
            "SOURCE_DATE_EPOCH": str(1_773_400_000 + night.number * _DAY),
            "STAND_IN_LOG": str(night.played),
            "STAND_IN_PAST": "yes",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": "protocol.file.allow",
            "GIT_CONFIG_VALUE_0": "always",
            **variables,
        }
        return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    def run_all(self, commands: Sequence[Sequence[str]], folder: Path, **variables: str) -> None:
        """Run commands that must succeed."""
        for words in commands:
            done = self.run(words, NIGHTS[0], folder, **variables)
            assert done.returncode == 0, f"{words}\n{done.stdout}{done.stderr}"


def program(path: Path, text: str) -> Path:
    """Write a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    """A machine with a driver and the programs that recipes name; `pip` has nothing left to do.

    A virtual environment that `python` makes holds `pip` and `gpureport`.
    """
    programs = tmp_path / "bin"
    program(programs / "gpureport", f'#!/bin/sh\nexec {sys.executable} -m gpureport "$@"\n')
    program(programs / "pip", f'#!/bin/sh\n[ "$*" = "install wheels/{WHEEL}" ]\n')
    for name in ("python", "python3"):
        program(programs / name, _VENV.format(programs=programs))
    program(
        programs / "buildkite-agent", f'#!/bin/sh\n[ "$*" = "annotate --context gpu" ] && cat > {tmp_path}/shown.md\n'
    )
    program(programs / "gh", f'#!/bin/sh\n[ "$1$2$4$6" = rundownload--name--dir ] && cp -r {tmp_path}/$5-$3 "$7"\n')
    install_stand_in(tmp_path / "driver")
    return Bench(folder=tmp_path)


def workspace(folder: Path, night: Night) -> Path:
    """Make a folder with the job of a night in it."""
    program(folder / "train.sh", f"#!/bin/sh\nsleep 1\nexit {night.trained}\n")
    return folder


def count_runs(store: Path) -> list[int]:
    """Return how many runs each night of a history has."""
    return [len(night.measured_runs) for night in History(store).read_latest()]


RUNS = [1, 1, 0, 1, 1]
"""Runs that a history holds of NIGHTS."""


def only_block(page: str, language: str) -> str:
    """Return the one code block of a recipe in a language."""
    (text,) = blocks(RECIPES / f"{page}.md", language)
    return text


NIGHTLY, PULL_REQUEST = blocks(RECIPES / "github-actions.md", "yaml")
"""The workflows for GitHub."""
SET_NIGHTLY, SET_PULL_REQUEST = blocks(RECIPES / "github-actions.md", "bash")
"""How the baseline of each is set."""


def read_steps(workflow: str = NIGHTLY) -> list[dict[str, Any]]:
    """Return the steps of the one job of a workflow for GitHub."""
    content: Any = yaml.safe_load(workflow)
    # `on` is true in YAML 1.1
    assert "workflow_dispatch" in content[True]
    fields = [each["cron"].count(" ") for each in content[True].get("schedule", ())]
    assert fields == ([4] if workflow == NIGHTLY else [])
    (job,) = content["jobs"].values()
    steps: list[dict[str, Any]] = job["steps"]
    return steps


def run_github(bench: Bench, night: Night, part: slice = _WHOLE, rule: str = "--fail-on problem") -> int:
    """Run the job of a night, or a part of its steps, as its runner would; return its exit code."""
    steps = read_steps()[part]
    for step in steps:
        step["run"] = step.get("run", "").replace("--fail-on problem", rule)
    return run_steps(bench, night, steps)


_BY_HAND, _PULL_REQUEST = "workflow_dispatch", "pull_request"
_NOT_BY_HAND = "always() && github.event_name != 'workflow_dispatch'"
_CONDITIONS = {"always()", _NOT_BY_HAND}


def run_steps(bench: Bench, night: Night, steps: Sequence[dict[str, Any]], event: str = _PULL_REQUEST) -> int:
    """Run steps as the runner of GitHub would on an event; return the exit code of the first that fails."""
    place = workspace(bench.folder / f"workspace-{night.number}", night)
    code, path = 0, place / "path"
    path.touch()
    for step in steps:
        uses, given = step.get("uses", "").partition("@")[0], step.get("with", {})
        condition = step.get("if")
        if (code and condition not in _CONDITIONS) or (condition == _NOT_BY_HAND and event == _BY_HAND):
            continue
        if uses == "actions/checkout" and given:
            remote = f"file://{bench.folder}/remote.git"
            words = ["git", "clone", "-q", "--depth", "1", "--branch", given["ref"], remote, given["path"]]
            bench.run_all([words], place)
        elif uses == "actions/upload-artifact" and (place / given["path"]).exists():
            kept = bench.folder / f"{given['name']}-{night.number}"
            if (place / given["path"]).is_dir():
                shutil.copytree(place / given["path"], kept)
            else:
                kept.mkdir()
                shutil.copy(place / given["path"], kept)
        elif uses == "actions/upload-pages-artifact":
            shutil.copytree(place / given["path"], bench.folder / "published", dirs_exist_ok=True)
        elif step.get("run"):
            variables = {"GITHUB_SHA": f"{night.number}abcdef0123", "GITHUB_STEP_SUMMARY": str(place / "summary.md")}
            variables["GITHUB_PATH"] = str(path)
            folder = place / step.get("working-directory", ".")
            words = ["bash", "-e", "-c", step["run"]]
            done = bench.run(words, night, folder, path.read_text().splitlines(), **variables)
            code = code or done.returncode
    assert path.read_text() in {f"{place}/.venv/bin\n", ""}
    return code


_PERSON = {f"GIT_{role}_{what}": "a@localhost" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def begin_history(bench: Bench) -> Path:
    """Make the branch of the history as the page says, and return a clone of the repository."""
    clone = bench.folder / "clone"
    bench.run_all(
        [["git", "init", "-q", "--bare", "-b", "main", "remote.git"], ["git", "clone", "-q", "remote.git", "clone"]],
        bench.folder,
    )
    commit = ["git", "commit", "-q", "--allow-empty", "-m", "Begin"]
    bench.run_all([commit, ["git", "push", "-q", "origin", "HEAD"]], clone, **_PERSON)
    begin = only_block("github-actions", "sh")
    bench.run_all([["sh", "-e", "-c", begin]], clone, **_PERSON)
    return clone


def clone_history(bench: Bench) -> Path:
    """Return a fresh clone of the branch of the history."""
    bench.run_all([["git", "clone", "-qb", "gpu-history", "remote.git", "end"]], bench.folder)
    return bench.folder / "end"


@pytest.mark.slow
def test_github(bench: Bench) -> None:
    """Every night is pushed and published, with a summary; training, driver and gate each turn the job red."""
    begin_history(bench)
    assert [run_github(bench, night) for night in NIGHTS] == [0, 0, 3, 1, 9]
    assert count_runs(clone_history(bench) / ".gpureport") == RUNS
    summaries = [(bench.folder / f"workspace-{night.number}" / "summary.md").read_text() for night in NIGHTS]
    verdicts = [text.split("## gpureport nightly ")[1].split(" (")[0].split(":")[0] for text in summaries]
    assert verdicts == ["PASSED", "PASSED", "NOT ASSESSED", "FAILED", "PASSED"]
    published = bench.folder / "published"
    assert "No data." in (published / "index.html").read_text()
    assert len(list((published / "nights").glob("*.html"))) == 4
    assert len(list((bench.folder / "end" / "site" / "nights").glob("*.html"))) == 4


@pytest.mark.slow
def test_github_first_night_without_data(bench: Bench) -> None:
    """It is pushed as one without data, and the next night joins it."""
    begin_history(bench)
    assert [run_github(bench, night) for night in (NIGHTS[2], replace(NIGHTS[0], number=3))] == [3, 0]
    assert count_runs(clone_history(bench) / ".gpureport") == [0, 1]
    assert "No data." in (bench.folder / "published" / "index.html").read_text()


@pytest.mark.slow
def test_github_baseline(bench: Bench) -> None:
    """A rule against a baseline is not assessed until nights are made the baseline as the page says."""
    clone = begin_history(bench)
    page = (RECIPES / "github-actions.md").read_text()
    (rule,) = re.findall(r"replace `--fail-on problem` by\s`(.*?)`", page)
    nights = [replace(NIGHTS[0], number=number) for number in range(4)]
    assert [run_github(bench, night, rule=rule) for night in nights[:3]] == [4, 4, 4]
    bench.run_all([["bash", "-e", "-c", SET_NIGHTLY]], clone, RUNS="0 1 2", **_PERSON)
    assert run_github(bench, nights[3], rule=rule) == 0
    assert run_github(bench, replace(NIGHTS[3], number=4), rule=rule) == 1
    summaries = [(bench.folder / f"workspace-{number}" / "summary.md").read_text() for number in (0, 3, 4)]
    lines = [next(line for line in text.splitlines() if "| no new warning |" in line) for text in summaries]
    assert [line.split("|")[1].strip(" *") for line in lines] == ["not assessed", "passed", "failed"]


@pytest.mark.slow
def test_github_jobs_that_push_at_once(bench: Bench) -> None:
    """Jobs of two nights that began with the same history both end well, and the branch holds all of both."""
    begin_history(bench)
    keep = next(place for place, step in enumerate(read_steps()) if "git push" in step.get("run", ""))
    for night in NIGHTS[:2]:
        assert run_github(bench, night, slice(keep)) == 0
    with ThreadPoolExecutor() as runners:
        ended = list(runners.map(lambda night: run_github(bench, night, slice(keep, None)), NIGHTS[:2]))
    assert ended == [0, 0]
    end = clone_history(bench)
    assert count_runs(end / ".gpureport") == RUNS[:2]
    bench.run_all([["gpureport", "nightly", "--site", "site"]], end)
    index = (end / "site" / "index.html").read_text()
    reports = [f"nights/{path.name}" for path in (end / "site" / "nights").glob("*.html")]
    assert len(reports) == 2
    assert all(name in index for name in reports)


@pytest.mark.slow
def test_github_pull_request(bench: Bench) -> None:
    """It is not assessed before the baseline is set as the page says; then a slower job fails, and so does no log."""
    clone, steps = begin_history(bench), read_steps(PULL_REQUEST)
    nights = [replace(NIGHTS[0], number=number) for number in range(4)]
    assert [run_steps(bench, night, steps, _BY_HAND) for night in nights[:3]] == [0, 0, 0]
    assert run_steps(bench, Night(number=9), steps) == 4
    (clone / "run-old").mkdir()
    bench.run_all([["bash", "-e", "-c", SET_PULL_REQUEST]], clone, RUNS="0 1 2", **_PERSON)
    checked = [nights[3], Night(number=4, played=HOT), Night(number=5, played=None), Night(number=6, trained=9)]
    for night in checked:
        shutil.copytree(clone / ".gpureport", bench.folder / f"workspace-{night.number}" / ".gpureport")
    assert [run_steps(bench, night, steps) for night in checked] == [0, 1, 3, 9]
    verdicts = [(bench.folder / f"workspace-{number}" / "summary.md").read_text().split()[3] for number in (3, 4, 5)]
    assert verdicts == ["PASSED", "FAILED:", "NOT"]
    assert (bench.folder / "rules-4" / "gpu.xml").is_file()
    assert "main → " in (bench.folder / "report-4" / "report.html").read_text()


def test_recipes_install_this_version() -> None:
    """The file of every installation in the guides is the wheel of this version."""
    pages = [*RECIPES.glob("*.md"), RECIPES.parent / "nightly.md"]
    named = [name for page in pages for name in re.findall(r"gpureport-[\w.-]+\.whl", page.read_text(encoding="utf-8"))]
    assert len(named) == 4
    assert set(named) == {WHEEL}


@pytest.mark.slow
def test_pull_request(bench: Bench, tmp_path: Path) -> None:
    """It is checked against the baseline on the branch; an old recording never speaks for a run that has none."""
    (recipe,) = blocks(RECIPES.parent / "gates.md", "bash")
    lines = "".join(blocks(RECIPES.parent / "gates.md", "sh")).splitlines()
    (baseline,) = (line.split() for line in lines if line.startswith("gpureport baseline set"))
    folder, good = tmp_path / "workspace", [f"good-{number}" for number in (1, 2, 3, 4, 5)]
    for number, name in enumerate(good):
        night = Night(number=number)
        done = bench.run(["gpureport", "record", "-o", name, "--", "./train.sh"], night, workspace(folder, night))
        assert done.returncode == 0
    bench.run_all([baseline], folder)
    done = bench.run(["bash", "-e", "-c", recipe], Night(number=6), workspace(folder, NIGHTS[0]))
    assert (done.returncode, "5 baseline runs, 1 checked" in done.stdout) == (0, True), done.stdout
    undriven = bench.run(["bash", "-c", recipe], Night(number=7, played=None), folder)
    assert (undriven.returncode, "NOT ASSESSED" in undriven.stdout) == (4, True)


def find_faults(schema: str, file: Path, text: str) -> str:
    """Return what the schema of those who run a file says against it; the checker brings the schema along."""
    file.write_text(text)
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


@pytest.mark.slow
def test_github_workflow_is_valid(tmp_path: Path) -> None:
    """It keeps the schema of workflows, and its actions are GitHub's own."""
    (shown,) = blocks(RECIPES.parent / "publish.md", "yaml")
    for step in [*read_steps(), *read_steps(PULL_REQUEST), *yaml.safe_load(shown)]:
        assert ("uses" in step) != ("run" in step)
        assert step.get("if", "always()") in _CONDITIONS
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v1"))
    workflow = tmp_path / "nightly.yml"
    assert "runs-on" in find_faults("github-workflows", workflow, NIGHTLY.replace("runs-on", "runs_on"))
    assert find_faults("github-workflows", workflow, NIGHTLY + textwrap.indent(shown, "      ")) == ""
    assert find_faults("github-workflows", workflow, PULL_REQUEST) == ""


def test_github_workflow_passes_its_linter(tmp_path: Path) -> None:
    """It finds a key and a function that are none, and nothing in the recipe."""
    linter = shutil.which("actionlint")
    if linter is None:
        pytest.skip("needs the program actionlint on the path")
    (shown,) = blocks(RECIPES.parent / "publish.md", "yaml")
    for whole in (NIGHTLY + textwrap.indent(shown, "      "), PULL_REQUEST):
        for right, wrong in (("", ""), ("runs-on", "runs_on"), ("always", "ever")):
            content = whole.replace(right, wrong) if right else whole
            (tmp_path / "nightly.yml").write_text(content)
            done = subprocess.run([linter, "nightly.yml"], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert (done.returncode, wrong in done.stdout, bool(done.stdout)) == (int(bool(wrong)), True, bool(wrong))


@pytest.mark.slow
def test_gitlab_pipeline_is_valid(tmp_path: Path) -> None:
    """It keeps the schema of pipelines."""
    text = only_block("gitlab-ci", "yaml")
    pipeline = tmp_path / "pipeline.yml"
    assert "script" in find_faults("gitlab-ci", pipeline, text.replace("  script:", "  scripts:", 1))
    assert find_faults("gitlab-ci", pipeline, text) == ""


@pytest.mark.slow
def test_gitlab(bench: Bench, tmp_path: Path) -> None:
    """Every night is added and served; the baseline lies in the repository, and the next night reads it."""
    content: Any = yaml.safe_load(only_block("gitlab-ci", "yaml"))
    script = "\n".join(content["nightly"]["before_script"] + content["nightly"]["script"])
    folder, ended = tmp_path / "workspace", []
    for night in NIGHTS:
        # the runner cleans the workspace and restores the cache
        for place in (folder / "night", folder / ".gpureport" / "runs"):
            shutil.rmtree(place, ignore_errors=True)
        workspace(folder, night)
        ended.append(bench.run(["bash", "-e", "-c", script], night, folder, CI_COMMIT_SHORT_SHA="abc").returncode)
        if night.played:
            shutil.copytree(folder / "night", folder / f"night-{len(list(folder.glob('night-*'))) + 1}")
        bench.run_all([["bash", "-e", "-c", content["pages"]["script"]]], folder)
    assert ended == [0, 0, 4, 1, 9]
    assert count_runs(folder / ".gpureport") == RUNS
    assert set(content["nightly"]["cache"]["paths"]) == {".gpureport/history/", "public/"}
    assert (folder / "gpu.xml").is_file()
    shutil.rmtree(folder / ".gpureport" / "runs")
    (folder / ".gitignore").write_text(".gpureport\n")
    bench.run_all([["git", "init", "-q"]], folder)
    set_baseline = only_block("gitlab-ci", "sh").replace("git push", "").replace(" night-5", "")
    bench.run_all([["sh", "-e", "-c", set_baseline]], folder, **_PERSON)
    tracked = bench.run(["git", "ls-files"], NIGHTS[0], folder).stdout
    assert ".gpureport/baselines/main/" in tracked
    assert ".gpureport/runs" not in tracked


@pytest.mark.slow
def test_jenkins(bench: Bench, tmp_path: Path) -> None:
    """Every build adds its night and has pages to archive, and one of them becomes the baseline."""
    text = only_block("jenkins", "groovy")
    assert text.count("{") == text.count("}")
    train, record, copy = re.findall(r"sh (?:'''(.*?)'''|'([^']*)')", text, re.DOTALL)
    folder, ended = tmp_path / "workspace", []
    for night in NIGHTS:
        workspace(folder, night)
        given = {"BUILD_TAG": f"nightly-{night.number}", "NIGHT": f"nights/{night.number}"}
        given["GPU_HISTORY"] = str(tmp_path / "history")
        codes = [
            bench.run(["sh", "-xe", "-c", "".join(words)], night, folder, **given).returncode
            for words in (train, record, copy)
        ]
        ended.append(codes)
    assert ended == [[0, 0, 0], [0, 0, 0], [3, 4, 0], [0, 1, 0], [9, 0, 0]]
    assert (folder / "site" / "index.html").is_file()
    assert count_runs(tmp_path / "history") == RUNS
    set_baseline = (
        only_block("jenkins", "sh")
        .replace("main nights/10 nights/11 nights/12 nights/13 nights/14", "main nights/0 nights/1 nights/3")
        .replace("/var/lib/gpu-history", "history")
    )
    bench.run_all([["sh", "-e", "-c", set_baseline]], tmp_path)


@pytest.mark.slow
def test_buildkite_pipeline_is_valid(tmp_path: Path) -> None:
    """It keeps the schema of pipelines, and has no variable for the upload to fill in."""
    text = only_block("buildkite", "yaml")
    pipeline = tmp_path / "pipeline.yml"
    assert "agents" in find_faults("buildkite", pipeline, text.replace("{queue: gpu}", "7"))
    assert find_faults("buildkite", pipeline, text) == ""
    assert "$" not in text


@pytest.mark.slow
def test_buildkite(bench: Bench, tmp_path: Path) -> None:
    """Every build adds its night, shows its rules, and ends with the training's exit code, else with the gate's."""
    folder, ended = tmp_path / "workspace", []
    script = only_block("buildkite", "bash")
    history = {"GPU_HISTORY": str(tmp_path / "history")}
    for night in NIGHTS:
        # the agent cleans the workspace
        shutil.rmtree(folder / "night", ignore_errors=True)
        program(workspace(folder, night) / "nightly.sh", script)
        done = bench.run(["./nightly.sh"], night, folder, BUILDKITE_BUILD_NUMBER=str(night.number), **history)
        ended.append(done.returncode)
        assert (tmp_path / "shown.md").read_text()
        (tmp_path / "shown.md").unlink()
    assert ended == [0, 0, 3, 1, 9]
    assert (folder / "site" / "index.html").is_file()
    assert count_runs(tmp_path / "history") == RUNS


@pytest.mark.slow
def test_cron_and_systemd(bench: Bench, tmp_path: Path) -> None:
    """The line of the table and the service run the script; nothing that fails is swallowed."""
    page = RECIPES / "cron-systemd.md"
    folder, ended = tmp_path / "job", []
    program(folder / "nightly.sh", only_block("cron-systemd", "sh"))
    program(tmp_path / "bin" / "date", '#!/bin/sh\necho "$SOURCE_DATE_EPOCH"\n')
    line = only_block("cron-systemd", "crontab")
    times, command = line.split()[:5], line.split(maxsplit=5)[5]
    assert all(re.fullmatch(r"[\d*/,-]+", part) for part in times)
    units = [configparser.ConfigParser(interpolation=None, strict=True) for _ in blocks(page, "ini")]
    for unit, text in zip(units, blocks(page, "ini"), strict=True):
        unit.optionxform = str  # type: ignore[assignment, method-assign]  # keys of units have capitals
        unit.read_string(text)
    service, timer = units
    assert timer["Timer"]["OnCalendar"] == "*-*-* 02:00:00"
    start = service["Service"]["ExecStart"].replace("%h", str(tmp_path))
    for night in NIGHTS:
        workspace(folder, night)
        words = [start] if night.number % 2 else ["sh", "-c", command]
        done = bench.run(words, night, tmp_path)
        ended.append(done.returncode)
        assert bool(done.stdout) == bool(done.returncode), "a night that is green is no mail"
        assert done.stderr == ""
    assert ended == [0, 0, 3, 1, 9]
    assert count_runs(folder / ".gpureport") == RUNS
    assert ".venv/bin/gpureport baseline set" in page.read_text()


_SRUN = """#!/bin/bash
# stands in for srun: starts its command once a node
codes=0
for node in ${NODES:-n0}; do SLURMD_NODENAME=$node "$@" & done
for job in $(jobs -p); do wait "$job" || codes=$?; done
exit $codes
"""


@pytest.mark.slow
def test_slurm(bench: Bench, tmp_path: Path) -> None:
    """Every job adds its night and ends with the training's exit code, else with the gate's."""
    batch, epilog = blocks(RECIPES / "slurm.md", "sh")
    program(tmp_path / "bin" / "srun", _SRUN)
    folder, history, ended = tmp_path / "job", tmp_path / "gpu-history", []
    for night in NIGHTS:
        given = {"SLURM_JOB_NAME": "train", "SLURM_JOB_ID": f"1{night.number}"}
        ended.append(bench.run(["bash", "-c", batch], night, workspace(folder, night), **given).returncode)
    assert ended == [0, 0, 3, 1, 9]
    assert count_runs(history) == RUNS
    set_baseline, _ = blocks(RECIPES / "slurm.md", "bash")
    bench.run_all(
        [
            [
                "bash",
                "-e",
                "-c",
                re.sub(r"nights/48.*nights/4871", "nights/10 nights/11 nights/13", set_baseline),
            ]
        ],
        folder,
    )
    given = {"SLURM_JOB_ID": "15", "SLURM_JOB_NAME": "train", "SLURM_JOB_USER": "ada", "GPU_LOGS": str(tmp_path)}
    night = Night(number=5)
    done = bench.run(["bash", "-c", epilog], night, folder, GPU_HISTORY=str(history), **given)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1), "nothing but the error"
    assert count_runs(history)[5:] == [0]
    done = bench.run(["bash", "-c", epilog], night, folder, GPU_HISTORY=str(tmp_path / "none"), **given)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_slurm_with_several_nodes(bench: Bench, tmp_path: Path) -> None:
    """Each node records into a folder of its own, and one report tells of all."""
    _, batch = blocks(RECIPES / "slurm.md", "bash")
    program(tmp_path / "bin" / "srun", _SRUN)
    program(tmp_path / "bin" / "scontrol", "#!/bin/sh\nprintf 'n0\\nn1\\n'\n")
    program(tmp_path / "bin" / "torchrun", '#!/bin/sh\necho "$*" > "torchrun-$SLURMD_NODENAME"\nsleep 1\n')
    given = {"SLURM_JOB_ID": "7", "SLURM_JOB_NODELIST": "n[0-1]", "SLURM_NNODES": "2", "NODES": "n0 n1"}
    done = bench.run(["bash", "-e", "-c", batch], NIGHTS[0], tmp_path, **given)
    assert done.returncode == 0, done.stderr
    assert "--nnodes=2" in (tmp_path / "torchrun-n1").read_text()
    assert "--rdzv-endpoint=n0:29500" in (tmp_path / "torchrun-n1").read_text()
    assert sorted(path.name for path in (tmp_path / "runs" / "7").iterdir()) == ["n0", "n1"]
    assert (tmp_path / "report-7.html").is_file()


@pytest.mark.slow
def test_first_command_of_the_guide(bench: Bench, tmp_path: Path) -> None:
    """The commands of the guide to nights run in a repository, histories merge, and its query reads them."""
    import duckdb  # noqa: PLC0415 - a tool of the tests alone

    page = ROOT / "docs" / "how-to" / "nightly.md"
    record, merge = blocks(page, "sh")
    folder = tmp_path / "repository"
    for night, place in zip(NIGHTS, (folder, folder / "other"), strict=False):
        workspace(place, night)
        commands = [["git", "init", "-q"], ["git", "commit", "-q", "--allow-empty", "-m", "Begin"]]
        bench.run_all(commands, place, **_PERSON)
        done = bench.run(["sh", "-e", "-c", record], night, place, GIT_CEILING_DIRECTORIES=str(folder))
        assert done.returncode == 0, done.stderr
        if place == folder:
            (folder / ".gpureport").rename(tmp_path / "aside")
    (tmp_path / "aside").rename(folder / ".gpureport")
    bench.run_all([["sh", "-e", "-c", merge]], folder)
    assert count_runs(folder / ".gpureport") == RUNS[:2]
    (query,) = blocks(page, "sql")
    table = duckdb.sql(query.replace("'.gpureport", f"'{folder}/.gpureport").rstrip().rstrip(";"))
    assert table is not None
    rows = table.fetchall()
    assert [len(row) for row in rows] == [3, 3]
