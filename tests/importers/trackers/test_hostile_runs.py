"""A run that somebody broke, or made to break the reader: it is named, and the others of its store are read."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

import gpureport
from gpureport.errors import SourceError
from gpureport.testing import Run
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule
from tests.importers.trackers.tracked import readable, refused
from tests.support.logs import gpustat_log, log, read

HERE = Path(__file__).parent
RUNS = [Made(id=run_id(n), name=f"run{n}", series=monitored(range(0, 30_000, 1000))) for n in (1, 2)]
USED = "metrics/system/gpu_0_utilization_percentage"
Break = Callable[[Path], object]
SCHEDULE = Schedule(utilization=[[90.0] * 20], cpu=[60.0] * 20)


def _points(time: object = START, value: object = 50, step: object = 0) -> Break:
    return lambda run: (run / USED).write_text(f"{START} 50 0\n{time} {value} {step}\n{START + 1000} 50 1\n")


def _meta(before: str, after: str) -> Break:
    def change(run: Path) -> None:
        text = (run / "meta.yaml").read_text()
        assert before in text
        (run / "meta.yaml").write_text(text.replace(before, after))

    return change


def _replace(name: str, make: Break) -> Break:
    def change(run: Path) -> None:
        path = run / name
        if path.is_dir():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        make(path)

    return change


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 20_000_000_000)


def _link(to: str) -> Break:
    return lambda path: path.symlink_to(to)


READABLE: dict[str, Break] = {
    "value 1e308": _points(value="1e308"),
    "infinite value": _points(value="-inf"),
    "value that is text": _points(value="abc"),
    "time of 30 digits": _points(time=10**30),
    "time before 1970": _points(time=-1),
    "time after 9999": _points(time=10**16),
    "step of 30 digits": _points(step=10**30),
    "start of 5000 digits": _meta("start_time: 1", "start_time: " + "9" * 5000),
    "start that is no number": _meta("start_time: 1", "start_time: ²"),
    "start before 1970": _meta("start_time: 1", "start_time: -1"),
    "no character of Unicode": _meta("run_name: run1", r'run_name: "\UFFFFFFFF\uD800"'),
    "pipe among the artifacts": _replace("artifacts/gpureport/gpu.csv", os.mkfifo),
    "link out among the artifacts": _replace("artifacts/gpureport/gpu.csv", _link("/etc/passwd")),
}
"""What is read without what is broken."""
NAMED: dict[str, Break] = {
    "pipe as metric": _replace(USED, os.mkfifo),
    "pipe as meta.yaml": _replace("meta.yaml", os.mkfifo),
    "pipe as param": _replace("params/lr", os.mkfifo),
    "pipe as tag": _replace("tags/mlflow.parentRunId", os.mkfifo),
    "device as metric": _replace(USED, _link("/dev/zero")),
    "link out as param": _replace("params/lr", _link("/etc/passwd")),
    "link out as params": _replace("params", _link("/etc")),
    "huge metric": _replace(USED, _sparse),
    "huge meta.yaml": _replace("meta.yaml", _sparse),
    "huge param": _replace("params/lr", _sparse),
}
"""What makes a run unreadable: shown where it is found in a listing, else where the run is read."""


@pytest.mark.parametrize("how", [*READABLE, *NAMED])
def test_a_broken_run_of_a_file_store(tmp_path: Path, how: str) -> None:
    source = folder(tmp_path / "mlruns", RUNS)
    (READABLE | NAMED)[how](next(source.glob(f"*/{RUNS[0].id}")))
    (whole,) = readable(source, runs=RUNS[1].id)[0]
    assert len(whole.series) == len(whole.run.devices) * 30
    if how in NAMED:
        error = refused(source, runs=RUNS[0].id)
        assert (error.code, RUNS[0].id in error.where) == ("cannot_read", True)
    else:
        found, faults = readable(source)
        assert (len(found), faults) == (2, [])
        run = next(each.run for each in found if each.run.sources[0].locator.endswith(RUNS[0].id))
        assert run.quality.rejected or run.quality.absent_cells or "value" not in how


CHANGES = HERE.joinpath("damage.sql").read_text(encoding="utf-8").splitlines()[1:]


@pytest.mark.parametrize("change", CHANGES)
def test_a_broken_run_of_a_database(tmp_path: Path, change: str) -> None:
    source = database(tmp_path / "mlflow.db", RUNS)
    with sqlite3.connect(source) as connection:
        connection.execute(change.replace("RUN", RUNS[0].id) + f" where run_uuid = '{RUNS[0].id}'" * ("set" in change))
    connection.close()
    (whole,) = readable(source, runs=RUNS[1].id)[0]
    assert len(whole.series) == len(whole.run.devices) * 30
    with suppress(SourceError):
        readable(source, runs=RUNS[0].id)


def test_a_database_does_not_work_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpureport.importers.read_only_sqlite._FREE_STEPS", 3_000_000)
    source = database(tmp_path / "mlflow.db", RUNS)
    with sqlite3.connect(source) as connection:
        connection.executescript("alter table tags rename to t; create table tags (run_uuid, key, value)")
        connection.execute(
            "with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000) "
            "insert into tags select r.run_uuid, 'mlflow.runName', x from n, runs r"
        )
        connection.execute("insert into tags select run_uuid, 'mlflow.parentRunId', value from tags")
    connection.close()
    assert refused(source).code == "not_an_mlflow_database"


OPERATIONS = [*HERE.joinpath("no_operations.jsonl").read_text(encoding="utf-8").splitlines(), "[" * 100_000]
OPERATION = '{"obj": {"type": "AssignInt", "path": ["a"], "value": 1}, "version": 0'


def test_a_line_that_is_not_an_operation_is_named(tmp_path: Path) -> None:
    log = folders.write(tmp_path / ".neptune", folders.operations(SCHEDULE)) / "data-1.log"
    whole = log.read_text()
    for line in OPERATIONS:
        log.write_text(f"{line}\n{whole}")
        error = refused(f"neptune:{tmp_path}/.neptune")
        assert (error.code, "line 1 " in error.what) == ("damaged_run", True), line[:100]


def test_a_time_that_is_none_dates_no_operation(tmp_path: Path) -> None:
    log = folders.write(tmp_path / ".neptune", folders.operations(SCHEDULE)) / "data-1.log"
    whole = log.read_text()
    started = readable(tmp_path / ".neptune")[0][0].run.started
    for time in ("1e400", "9" * 400, "-1", '"x"', "NaN"):
        log.write_text(f'{OPERATION}, "at": {time}}}\n{whole}')
        (found,), faults = readable(tmp_path / ".neptune")
        assert (found.run.started, dict(found.run.params)["a"], faults) == (started, "1", []), time


@pytest.mark.parametrize("how", ["damaged line", "named pipe", "link out"])
def test_a_broken_run_of_neptune(tmp_path: Path, how: str) -> None:
    source, other = tmp_path / ".neptune", folders.RUN.replace("3", "4")
    log = folders.write(source, folders.operations(SCHEDULE)) / "data-1.log"
    folders.write(source, folders.operations(SCHEDULE), run=other)
    if how == "damaged line":
        log.write_text("{}\n" + log.read_text())
    else:
        log.unlink()
        os.mkfifo(log) if how == "named pipe" else log.symlink_to("/etc/passwd")
    assert len(readable(source, runs=other)[0]) == 1
    assert refused(source, runs=folders.RUN).code in {"damaged_run", "not_a_regular_file", "link_out_of_folder"}


@pytest.mark.parametrize("word", [b"attribute_path", b"OPT-1", b"float_series", b"schema"])
def test_a_damaged_word_of_an_export(tmp_path: Path, word: bytes) -> None:
    path = dumps.write(tmp_path, dumps.run(SCHEDULE))
    content = path.read_bytes()
    places = [found.start() for found in re.finditer(re.escape(word), content)]
    assert places
    for place in places:
        for byte in (b"\xff", b"x"):
            path.write_bytes(content[: place + 1] + byte + content[place + 2 :])
            with suppress(SourceError):
                readable(f"neptune:{path}")


_FLIP = """
import sys
from pathlib import Path
import gpureport
from gpureport.errors import SourceError

path = Path(sys.argv[1])
content = path.read_bytes()
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for place in range(footer, footer + 130):
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    try:
        gpureport.read(f"neptune:{path}")
    except SourceError:
        pass
print("alive")
"""


def test_a_flipped_bit_of_an_export_ends_no_process(tmp_path: Path) -> None:
    path = dumps.write(tmp_path, dumps.run(SCHEDULE))
    ended = subprocess.run([sys.executable, "-c", _FLIP, str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr


HALF = r"\ud800"


def reported(source: Path, training: Path | None = None) -> Run:
    recording = read(source, training=training or ())
    for form in ("json", "md", "html"):
        gpureport.report(recording, format=form).encode()
    assert training is None or "� loss" in recording.training.column("name").to_pylist()
    return recording.run


def test_half_characters_in_every_json(tmp_path: Path) -> None:
    (tmp_path / "gpustat.json").write_text(gpustat_log(30).replace("NVIDIA", HALF))
    assert all((device.model or "").startswith("�") for device in reported(tmp_path / "gpustat.json").gpus)
    (tmp_path / "gpu.csv").write_text(log(30))
    (tmp_path / "gpu.csv.json").write_text(f'{{"name": "{HALF}", "params": {{"a{HALF}": 1}}}}')
    (tmp_path / "train.jsonl").write_text(
        "".join(f'{{"step": {step}, "loss": 2.5, "{HALF} loss": 1}}\n' for step in range(3))
    )
    run = reported(tmp_path / "gpu.csv", tmp_path / "train.jsonl")
    assert (run.name, run.params) == ("�", (("a�", "1"),))
    operations = folders.operations(Schedule(utilization=[[90.0] * 20]), name="HALF")
    path = folders.write(tmp_path / ".neptune", operations) / "data-1.log"
    path.write_text(path.read_text().replace(json.dumps("HALF"), f'"{HALF}"'))
    assert reported(tmp_path / ".neptune").name == "�"
