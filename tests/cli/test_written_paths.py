"""Other people's files: what a command reads, what lies in a store or a tracker, is never written over."""

import json
import os
from pathlib import Path

import click
import pytest

from gpureport.cli.main import COMMANDS, Commands
from tests.support.logs import log
from tests.support.program import Program
from tests.support.tables import read_table, words_of


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Fill a folder with everything a command may read, and links to it."""
    folder = tmp_path
    for name in ("gpu.csv", "gpu.txt", "logs/gpu.csv", "logs/odd.dat", "other.csv"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(log(90))
    for name in (".gpureport/runs", "kept/runs", "mlruns/0/run", "folder.html"):
        (folder / name).mkdir(parents=True)
    for name, text in {
        "cpu.txt": "timestamp,cpu_percent\n2026-03-14 09:00:00,50\n2026-03-14 09:00:30,50\n",
        "jobs.txt": "JobID|User|Start|End\n1|ann|2026-03-14T09:00:00|2026-03-14T09:01:00\n",
        **{"gpureport.toml": "[prices]\n", "policy.xml": "[[policy]]\nlimit = 'problem'\n", "logo.svg": "<svg/>"},
        **{"look.toml": '[report]\nlogo = "logo.svg"\n', ".gpureport/store.json": '{"format": 1}\n'},
        "kept/store.json": '{"format": 1}\n',
        "mlruns/0/meta.yaml": "artifact_location: x\nexperiment_id: '0'\nlifecycle_stage: active\n",
    }.items():
        (folder / name).write_text(text)
    links = {"link.html": "gpu.csv", "again.html": "up/logs/../link.html", "up": ".", "old.md": "foreign.html"}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    os.link(folder / "gpu.csv", folder / "hard.html")
    os.mkfifo(folder / "pipe.html")
    return folder


def state(folder: Path) -> dict[str, bytes | str]:
    """Return what a folder holds: the bytes of files, the kind of anything else."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else str(path.lstat().st_mode)
        for path in folder.rglob("*")
    }


REFUSED = read_table(Path(__file__).with_name("refused.tsv"))


def test_what_is_not_ours_is_refused_before_any_work(gpureport: Program, home: Path) -> None:
    before = state(home)
    for command, expected in REFUSED:
        done = gpureport(*words_of(command))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), (command, done.err)
        assert done.err.startswith(f"gpureport: {expected}"), command
        assert state(home) == before, command


def test_what_is_ours_is_written_again(gpureport: Program, home: Path) -> None:
    (home / "pipe.html").unlink()
    files = "--junit logs/j.xml --summary logs/s.md --export openmetrics=logs/m.prom"
    for _ in range(2):
        for command in (
            "report logs --detail full -o logs/r.json -o logs/r.txt",
            f"check logs/gpu.csv --fail-on 'idle_ratio <= 99%' {files}",
        ):
            assert gpureport(*words_of(command)).code == 0
    assert (home / "logs/gpu.csv").read_text() == log(90)
    assert json.loads((home / "logs/r.json").read_text())["verdict"]


def test_links_and_folders_that_may_not_be_written(
    gpureport: Program, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "foreign.html").write_text("mine")
    assert gpureport("report", "gpu.csv", "-o", "old.md").code == 0
    assert (home / "foreign.html").read_text() == "mine"
    assert "# " in (home / "old.md").read_text()
    before = state(home)
    monkeypatch.setattr("os.access", lambda *_: False)
    for command in (
        *("check gpu.csv --fail-on problem --junit new/j.xml", "nightly gpu.csv --site site"),
        *("report gpu.csv -o r.html", "demo -o d.html"),
    ):
        done = gpureport(*words_of(command))
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert "no permission to write to" in done.err
    assert state(home) == before


def commands(group: click.Group, context: click.Context) -> list[click.Command]:
    found = [each for name in group.list_commands(context) if (each := group.get_command(context, name))]
    return [
        one for each in found for one in ([each, *commands(each, context)] if isinstance(each, click.Group) else [each])
    ]


def test_every_option_that_writes_is_refused_what_is_not_ours() -> None:
    group = Commands("gpureport")
    every = {str(each.name): each for each in commands(group, click.Context(group))}
    assert set(every) >= set(COMMANDS) - {"runs", "baseline"}
    names = {"-o", "--junit", "--summary", "--export", "--site"}
    writing = {(name, opt) for name, each in every.items() for param in each.params for opt in names & {*param.opts}}
    assert {name for name, _ in writing} == {"check", "demo", "export", "fleet", "nightly", "record", "report", "try"}
    commands_refused = [words_of(command) for command, _ in REFUSED]
    refused = {(word, opt) for words in commands_refused for word in words[:2] for opt in names & {*words}}
    assert writing - refused == set()
