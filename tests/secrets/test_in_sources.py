"""Secrets in every text of a source, in files that people write, and in options: no output shows one."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.importers.trackers.mlflow.stores import START as MLFLOW_START
from tests.importers.trackers.mlflow.stores import Made, database, monitored, run_id
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import START, Schedule, loss, square
from tests.recorder.recorded import run_record
from tests.secrets.planted_secrets import HIDDEN, Exits, Planter
from tests.support.logs import log, stamp
from tests.support.program import Program
from tests.support.tables import read_table, words_of

FILES = Path(__file__).with_name("files")
"""What a person writes, with `{secret}` and `{shaped}` where a secret is planted."""


def _write_neptune_export(folder: Path, planter: Planter) -> None:
    for number in (1, 2):
        own = json.loads(planter.fill((FILES / "neptune.json").read_text(), "export of Neptune"))
        series = {f"train/loss {planter.plant_shaped('Neptune series')}": loss(START, 40)}
        schedule = Schedule(utilization=[square(busy=3, idle=2 + number, ticks=60)])
        host = f"node {planter.plant_shaped('Neptune host')}"
        dumps.write(folder, dumps.run(schedule, run_id=f"OPT-{number}", singles=own, series=series, hostname=host))


def _write_neptune_folder(folder: Path, planter: Planter) -> None:
    schedule = Schedule(utilization=[square(busy=3, idle=2, ticks=60)])
    given = folders.operations(
        schedule,
        name=f"run {planter.plant_shaped('name in a folder of Neptune')}",
        hostname=f"node {planter.plant_shaped('host in a folder of Neptune')}",
    )
    given += [
        folders.operation("AssignString", "parameters/token", value=planter.plant("param in a folder of Neptune")),
        folders.operation("AddStrings", "sys/tags", values=[planter.plant_shaped("tag in a folder of Neptune")]),
        *folders.floats(planter.plant_shaped("series in a folder of Neptune"), loss(START, 40)),
    ]
    folders.write(folder / ".neptune", given)


_NAMES = ("api_key", "wandb.api_key", "HF_TOKEN", "db.password", "aws_secret_access_key", "neptune_api_token", "passwd")


def _write_mlflow(path: Path, planter: Planter) -> Path:
    shaped = planter.plant_shaped
    params = {name: planter.plant(f"MLflow param {name}") for name in _NAMES}
    params |= {f"setting{place}": shaped("MLflow param") for place in range(20)}
    tags = {f"label{place}": shaped("MLflow tag") for place in range(20)}
    own = ("mlflow.note.content", "mlflow.user", "mlflow.source.name")
    tags |= {name: f"see {shaped(name)}" for name in own}
    ticks = [10_050 * (place + 1) for place in range(60)]
    more: dict[str, Any] = {"series": monitored(ticks), "end": MLFLOW_START + 610_000, "params": params, "tags": tags}
    names = [f"run{number} {shaped('MLflow run name')}" for number in (1, 2)]
    return database(path, [Made(id=run_id(number), name=name, **more) for number, name in enumerate(names)])


@pytest.mark.slow
def test_runs_of_trackers(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    export = tmp_path / f"export token={planter.plant('name of an export')}"
    _write_neptune_export(export, planter)
    _write_neptune_folder(tmp_path / "project", planter)
    mlflow = _write_mlflow(tmp_path / "mlflow.db", planter)
    exits.sources = set(tmp_path.rglob("*"))
    for source in (f"neptune:{export}", f"neptune:{tmp_path / 'project'}", str(mlflow)):
        exits.run_all(gpureport, "trackers", source=source)
        # the next source writes over them
        exits.collect_files()
    exits.run(gpureport, "compare", f"neptune:{export}", "--by", "param:params/note", "--format", "json")
    exits.run(gpureport, "runs")
    exits.run(gpureport, "runs", "list", "--format", "json")
    assert {done.code for _, done in exits.outcomes} <= {0, 1, 4}
    assert exits.collect_files() >= {"run.json", "training.parquet", "r.pdf", "j.xml", "s.md"}
    assert any(HIDDEN.encode() in content for contents in exits.texts.values() for content in contents)
    assert exits.find_leaks(planter) == []


def _write_recording(folder: Path, planter: Planter, seconds: int) -> None:
    folder.mkdir()
    header, *rows = (
        log(seconds).replace("NVIDIA L4", f"NVIDIA L4 {planter.plant_shaped('model of a GPU')}").splitlines()
    )
    cell = planter.plant("cell of a column")
    lines = [f"{header}, api_key", *(f"{each}, {cell}" for each in rows)]
    lines.insert(5, f"[2026/03/14] wget {planter.plant_shaped('noise of a log')}")
    lines.insert(9, f"2026/03/14 09:00:09.000, 0, {planter.plant_shaped('torn row')}")
    lines.insert(12, f"NVRM: Xid (PCI:0000:01:00): 79, pid=7, name={planter.plant_shaped('driver message')}")
    (folder / "gpu.csv").write_text("\n".join([*lines, ""]))
    (folder / "training.csv").write_text(
        f"timestamp,step,loss {planter.plant_shaped('training metric')}\n"
        + "".join(f"2026-03-14T09:00:{second:02d},{second},{1 / (second + 1)}\n" for second in range(50))
    )
    for path in (FILES / "recording").iterdir():
        text = path.read_text().replace("{ended}", str((1_773_478_800 + seconds) * 1_000_000))
        (folder / path.name).write_text(planter.fill(text, f"{path.name} of a recording"))


@pytest.mark.slow
def test_recordings(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    for number in range(6):
        _write_recording(tmp_path / f"rec{number}", planter, 60 + number)
    exits.sources = set(tmp_path.rglob("*"))
    steps = [word for number in range(6) for word in ("--step", f"s{number // 2} {planter.plant_shaped('step')}")]
    recorded = [f"rec{number}" for number in range(6)]
    exits.run(gpureport, "-v", "ingest", *recorded, *steps)
    exits.run_all(gpureport, "recordings")
    assert exits.collect_files() >= {"run.json", "r.pdf", "j.xml", "s.md", "n.xml", "f.json"}
    assert exits.find_leaks(planter) == []


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in_driver")
def test_what_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exits, planter = Exits(tmp_path), Planter()
    monkeypatch.setenv("WANDB_API_KEY", planter.plant("environment"))
    monkeypatch.setenv("NCCL_SOCKET_IFNAME", planter.plant_shaped("variable that is recorded"))
    job = [sys.executable, "-c", "import time; time.sleep(0.5)", "--hf-token", planter.plant("option of a job")]
    job += [planter.plant_shaped("word of a job"), f"PASSWORD={planter.plant('variable of a job')}"]
    done = run_record("-o", tmp_path / "rec", "--interval", "0.1", "--", *job)
    assert done.returncode == 0
    exits.texts["record"] = [done.stdout.encode(), done.stderr.encode()]
    assert "run.json" in exits.collect_files()
    assert exits.find_leaks(planter) == []


_COMMANDS = {"--policy": "check", "--steps": "report", "--labels": "ingest"}


@pytest.mark.slow
def test_files_of_a_person(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    options = {path.name: f"--{path.name.partition('-')[0]}" for path in sorted((FILES / "wrong").iterdir())}
    for name in options:
        (tmp_path / name).write_text(planter.fill((FILES / "wrong" / name).read_text(), name))
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "odd.csv").write_text(f"note\ncurl {planter.plant_shaped('first line of a log')}\n{stamp(1)}, 3\n")
    for letters in range(40, 62, 3):
        url = f"https://me:{planter.plant('URL that an error cuts')}@host/x"
        (tmp_path / f"cut{letters}.csv").write_text(f"{'x' * letters} {url}\n")
    table = "".join(f"{stamp(second)},{second},{planter.plant('cell of an unknown table')}\n" for second in range(9))
    (tmp_path / "table.csv").write_text(f"when,watts,api_key\n{table}")
    (tmp_path / "bad.csv").write_text(f"token: {planter.plant('line of a log')}\n")
    exits.sources = set(tmp_path.rglob("*"))
    for name, option in options.items():
        command = _COMMANDS.get(option, "analyze")
        source = [] if option == "--steps" else ["log.csv"]
        exits.run(
            gpureport, "--debug", command, *source, option, name, *(["-o", "s.html"] if command == "report" else [])
        )
    cut = [f"cut{letters}.csv" for letters in range(40, 62, 3)]
    for name in (*cut, "table.csv", "odd.csv", "bad.csv", *(name for name in options if name.endswith(".csv"))):
        exits.run(gpureport, "--debug", "analyze", name)
        exits.run(gpureport, "-v", "ingest", name, "--source-kind", "mapped")
    exits.collect_files()
    assert {done.code for _, done in exits.outcomes} <= {0, 2, 3}
    assert exits.find_leaks(planter) == []


@pytest.mark.slow
def test_options(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    (tmp_path / "log.csv").write_text(log(60))
    (tmp_path / "two.csv").write_text(log(61))
    exits.sources = set(tmp_path.rglob("*"))
    for ends, command in read_table(Path(__file__).with_name("options.tsv")):
        words = [planter.fill(word, command) for word in words_of(command)]
        assert exits.run(gpureport, "--debug", *words).code in ({2, 3} if ends == "refused" else {0, 4}), command
    exits.collect_files()
    assert exits.find_leaks(planter) == []
    assert len(planter.places) > 50


def _write_right_files(folder: Path, planter: Planter) -> None:
    heading = planter.plant_shaped("heading in a map")
    for path in (FILES / "right").iterdir():
        (folder / path.name).write_text(planter.fill(path.read_text().replace("{heading}", heading), path.name))
    rows = "".join(f"{1_773_000_000 + second},{200 + second % 9},{second}\n" for second in range(90))
    other = planter.plant_shaped("heading that no map names")
    (folder / "table.csv").write_text(f"when,power {heading},other {other}\n{rows}")
    for number in (1, 2):
        (folder / f"log{number}.csv").write_text(log(90 + number))


@pytest.mark.slow
def test_files_that_are_right(gpureport: Program, tmp_path: Path) -> None:
    exits, planter = Exits(tmp_path), Planter()
    _write_right_files(tmp_path, planter)
    exits.sources = set(tmp_path.rglob("*"))
    exits.run_all(gpureport, "right files")
    assert exits.collect_files() >= {"j.xml", "s.md", "n.xml", "r.pdf", "f.json", "hardware.parquet"}
    assert exits.find_leaks(planter) == []


def test_settings_stay(gpureport: Program, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(log())
    settings = read_table(Path(__file__).with_name("settings.tsv"))
    params = [word for name, value in settings for word in ("--param", f"{name}={value}")]
    shown = gpureport("analyze", "log.csv", *params, "--format", "json").out
    assert json.loads(shown)["runs"][0]["run"]["params"] == {name: value for name, value in settings}
