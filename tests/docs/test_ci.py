"""The recipes for CI: their files keep their schemas, and their commands do what they say with a stand-in."""

import configparser
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its stubs are not among the tools

from tests.docs.ci_bench import (
    NIGHTS,
    PERSON,
    RECIPES,
    RUNS,
    WHEEL,
    Bench,
    Night,
    count_runs,
    find_faults,
    only_block,
    workspace,
)
from tests.docs.page_runner import ROOT, install, program
from tests.docs.test_pages import blocks


def test_recipes_install_this_version() -> None:
    pages = [*RECIPES.glob("*.md"), RECIPES.parent / "nightly.md"]
    named = [name for page in pages for name in re.findall(r"gpureport-[\w.-]+\.whl", page.read_text(encoding="utf-8"))]
    assert len(named) == 4
    assert set(named) == {WHEEL}


@pytest.mark.slow
def test_pull_request(bench: Bench, tmp_path: Path) -> None:
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "right", "wrong", "fault"),
    [("gitlab-ci", "  script:", "  scripts:", "script"), ("buildkite", "{queue: gpu}", "7", "agents")],
)
def test_a_pipeline_is_valid(tmp_path: Path, page: str, right: str, wrong: str, fault: str) -> None:
    text = only_block(page, "yaml")
    assert fault in find_faults(page, tmp_path / "pipeline.yml", text.replace(right, wrong, 1))
    assert find_faults(page, tmp_path / "pipeline.yml", text) == ""
    assert page != "buildkite" or "$" not in text


@pytest.mark.slow
def test_gitlab(bench: Bench, tmp_path: Path) -> None:
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
    assert ended == [0, 0, 3, 1, 9]
    assert count_runs(folder / ".gpureport") == RUNS
    assert set(content["nightly"]["cache"]["paths"]) == {".gpureport/history/", "public/"}
    assert (folder / "gpu.xml").is_file()
    shutil.rmtree(folder / ".gpureport" / "runs")
    (folder / ".gitignore").write_text(".gpureport\n")
    bench.run_all([["git", "init", "-q"]], folder)
    set_baseline = only_block("gitlab-ci", "sh").replace("git push", "").replace(" night-5", "")
    bench.run_all([["sh", "-e", "-c", set_baseline]], folder, **PERSON)
    tracked = bench.run(["git", "ls-files"], NIGHTS[0], folder).stdout
    assert (".gpureport/baselines/main/" in tracked, ".gpureport/runs" in tracked) == (True, False)


@pytest.mark.slow
def test_jenkins(bench: Bench, tmp_path: Path) -> None:
    text = only_block("jenkins", "groovy")
    assert text.count("{") == text.count("}")
    train, record, copy = re.findall(r"sh (?:'''(.*?)'''|'([^']*)')", text, re.DOTALL)
    folder, ended = tmp_path / "workspace", []
    for night in NIGHTS:
        workspace(folder, night)
        given = {"BUILD_TAG": f"nightly-{night.number}", "NIGHT": f"nights/{night.number}"}
        given["GPU_HISTORY"] = str(tmp_path / "history")
        commands = [["sh", "-xe", "-c", "".join(words)] for words in (train, record, copy)]
        ended.append([bench.run(words, night, folder, **given).returncode for words in commands])
    assert ended == [[0, 0, 0], [0, 0, 0], [3, 4, 0], [0, 1, 0], [9, 0, 0]]
    assert (folder / "site" / "index.html").is_file()
    assert count_runs(tmp_path / "history") == RUNS
    set_baseline = only_block("jenkins", "sh").replace("/var/lib/gpu-history", "history")
    set_baseline = re.sub(r"(nights/1\d ?){5}", "nights/0 nights/1 nights/3 ", set_baseline)
    bench.run_all([["sh", "-e", "-c", set_baseline]], tmp_path)


@pytest.mark.slow
def test_buildkite(bench: Bench, tmp_path: Path) -> None:
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


@pytest.mark.slow
def test_slurm(bench: Bench, tmp_path: Path) -> None:
    batch, epilog = blocks(RECIPES / "slurm.md", "sh")
    install("srun", tmp_path / "bin" / "srun")
    folder, history, ended = tmp_path / "job", tmp_path / "gpu-history", []
    for night in NIGHTS:
        given = {"SLURM_JOB_NAME": "train", "SLURM_JOB_ID": f"1{night.number}"}
        ended.append(bench.run(["bash", "-c", batch], night, workspace(folder, night), **given).returncode)
    assert ended == [0, 0, 3, 1, 9]
    assert count_runs(history) == RUNS
    set_baseline, _ = blocks(RECIPES / "slurm.md", "bash")
    set_baseline = re.sub(r"nights/48.*nights/4871", "nights/10 nights/11 nights/13", set_baseline)
    bench.run_all([["bash", "-e", "-c", set_baseline]], folder)
    given = {"SLURM_JOB_ID": "15", "SLURM_JOB_NAME": "train", "SLURM_JOB_USER": "ada", "GPU_LOGS": str(tmp_path)}
    night = Night(number=5)
    done = bench.run(["bash", "-c", epilog], night, folder, GPU_HISTORY=str(history), **given)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (0, "", 1), "nothing but the error"
    assert count_runs(history)[5:] == [0]
    done = bench.run(["bash", "-c", epilog], night, folder, GPU_HISTORY=str(tmp_path / "none"), **given)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_slurm_with_several_nodes(bench: Bench, tmp_path: Path) -> None:
    _, batch = blocks(RECIPES / "slurm.md", "bash")
    install("srun", tmp_path / "bin" / "srun")
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
    import duckdb

    page = ROOT / "docs" / "how-to" / "nightly.md"
    record, merge = blocks(page, "sh")
    folder = tmp_path / "repository"
    for night, place in zip(NIGHTS, (folder, folder / "other"), strict=False):
        workspace(place, night)
        commands = [["git", "init", "-q"], ["git", "commit", "-q", "--allow-empty", "-m", "Begin"]]
        bench.run_all(commands, place, **PERSON)
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
