"""A run that somebody broke, or made to break the reader: it is named, and the others of its store are read."""

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

from gpureport.errors import SourceError
from gpureport.importers import TrackedReading, join_attached_logs
from gpureport.importers.protocol.importer import Labels, ReadOptions
from gpureport.importers.protocol.tracker import Selection, Tracker
from gpureport.importers.trackers.mlflow import Mlflow
from gpureport.importers.trackers.mlflow.local.mlflow_database import holds_runs
from gpureport.importers.trackers.neptune import Neptune
from gpureport.importers.trackers.neptune.local.operation_log import Operations
from gpureport.testing import Recording
from tests.importers.trackers.mlflow.stores import START, Made, database, folder, monitored, run_id
from tests.importers.trackers.neptune import dumps, folders
from tests.importers.trackers.neptune.schedule import Schedule

RUNS = [Made(id=run_id(n), name=f"run{n}", series=monitored(range(0, 30_000, 1000))) for n in (1, 2)]
USED = "metrics/system/gpu_0_utilization_percentage"
Break = Callable[[Path], object]


def _read(tracker: Tracker, source: Path) -> tuple[dict[str, Recording], list[SourceError]]:
    """Return the runs of a store that can be read, and why the others cannot."""
    read, faults = {}, []
    for run in tracker.runs(str(source), Selection()).runs:
        try:
            if run.fault is not None:
                raise run.fault
            reading = TrackedReading("x", run, ReadOptions(), Labels(), strict=False, join=join_attached_logs)
            read[run.key] = reading.recording()
        except SourceError as error:
            faults.append(error)
    return read, faults


def _points(time: object = START, value: object = 50, step: object = 0) -> Break:
    """Return what adds a line to a metric, between lines that are whole."""
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
    "1e308": _points(value="1e308"),
    "infinite": _points(value="-inf"),
    "text": _points(value="abc"),
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
NAMED: dict[str, tuple[Break, str]] = {
    "pipe as metric": (_replace(USED, os.mkfifo), "a named pipe, not a regular file"),
    "pipe as meta.yaml": (_replace("meta.yaml", os.mkfifo), "a named pipe, not a regular file"),
    "pipe as param": (_replace("params/lr", os.mkfifo), "a named pipe, not a regular file"),
    "pipe as tag": (_replace("tags/mlflow.parentRunId", os.mkfifo), "a named pipe, not a regular file"),
    "device as metric": (_replace(USED, _link("/dev/zero")), "a link out of"),
    "link out as param": (_replace("params/lr", _link("/etc/passwd")), "a link out of"),
    "link out as params": (_replace("params", _link("/etc")), "a link out of"),
    "huge metric": (_replace(USED, _sparse), "too large: 20,000,000,000 bytes"),
    "huge meta.yaml": (_replace("meta.yaml", _sparse), "too large: 20,000,000,000 bytes"),
    "huge param": (_replace("params/lr", _sparse), "too large: 20,000,000,000 bytes"),
}


@pytest.mark.parametrize("how", [*READABLE, *NAMED])
def test_a_broken_run_of_a_file_store(tmp_path: Path, how: str) -> None:
    """It is read without what is broken, or named; the other one is read."""
    source = folder(tmp_path / "mlruns", RUNS)
    change, reason = NAMED.get(how, (READABLE.get(how), ""))
    assert change is not None
    change(next(source.glob(f"*/{RUNS[0].id}")))
    read, faults = _read(Mlflow(), source)
    assert RUNS[1].id in read
    if reason:
        assert [reason in fault.what for fault in faults] == [True]
    else:
        (run,) = (each.run for key, each in read.items() if key == RUNS[0].id)
        assert run.quality.rejected or run.quality.absent_cells or "value" not in how


@pytest.mark.parametrize(
    "change",
    [
        "update metrics set value = x'00ff'",
        "update metrics set value = 'abc'",
        "update metrics set value = 1e308",
        "update or replace metrics set timestamp = 'abc'",
        "update or replace metrics set timestamp = 1e300",
        "update or replace metrics set step = null",
        "update or replace metrics set key = x'ff'",
        "update runs set name = x'ff00', status = 5, start_time = 'abc', end_time = 9223372036854775807",
        "update runs set artifact_uri = 'file://[::1/x'",
        "insert into params values ('a', null, 'RUN'), ('b', x'ff00', 'RUN'), (5, cast(x'fffe' as text), 'RUN')",
        "update latest_metrics set value = 'abc'",
    ],
)
def test_a_broken_run_of_a_database(tmp_path: Path, change: str) -> None:
    """A column of SQLite holds values of any type."""
    source = database(tmp_path / "mlflow.db", RUNS)
    with sqlite3.connect(source) as connection:
        connection.execute(change.replace("RUN", RUNS[0].id) + f" where run_uuid = '{RUNS[0].id}'" * ("set" in change))
    connection.close()
    read, _ = _read(Mlflow(), source)
    assert len(read[RUNS[1].id].series) == len(read[RUNS[1].id].run.devices) * 30


@pytest.mark.parametrize("byte", [b"\xe1", b"\x00"])
def test_a_database_whose_schema_is_damaged(tmp_path: Path, byte: bytes) -> None:
    """SQLite repeats the damaged word, which need not be text."""
    source = database(tmp_path / "mlflow.db", RUNS)
    content = source.read_bytes()
    place = content.lower().index(b"create table runs")
    source.write_bytes(content[: place + 40] + byte * 3 + content[place + 43 :])
    assert not holds_runs(source)
    with pytest.raises(SourceError, match="not an MLflow database"):
        _read(Mlflow(), source)


def test_a_database_does_not_work_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its query is interrupted, and a value that is made up in it is not."""
    monkeypatch.setattr("gpureport.importers.trackers.read_only_sqlite._FREE_STEPS", 3_000_000)
    source = database(tmp_path / "mlflow.db", RUNS)
    with sqlite3.connect(source) as connection:
        connection.executescript("alter table tags rename to t; create table tags (run_uuid, key, value)")
        connection.execute(
            "with recursive n(x) as (select 1 union all select x + 1 from n where x < 3000) "
            "insert into tags select r.run_uuid, 'mlflow.runName', x from n, runs r"
        )
        connection.execute("insert into tags select run_uuid, 'mlflow.parentRunId', value from tags")
    connection.close()
    with pytest.raises(SourceError, match="its queries take far longer than its size explains"):
        Mlflow().runs(str(source), Selection())


OPERATIONS = [
    '{"obj": {"type": "AssignInt", "path": ["a"], "value": 1}, "version": Infinity}',
    '{"obj": {"type": "AssignInt", "path": ["a"], "value": 1}, "version": ' + "9" * 30 + "}",
    '{"obj": {"type": "AssignInt", "path": [5], "value": 1}, "version": 5}',
    '{"obj": {"type": "AssignString", "path": ["a"], "value": {}}, "version": 5}',
    '{"obj": {"type": "AssignDatetime", "path": ["a"], "value": "x"}, "version": 5}',
    '{"obj": {"type": "LogFloats", "path": ["a"], "values": [{"ts": Infinity, "value": 1}]}, "version": 5}',
    '{"obj": {"type": "LogFloats", "path": ["a"], "values": [{"ts": 1, "value": 1, "step": "x"}]}, "version": 5}',
    '{"obj": {"type": "LogFloats", "path": ["a"], "values": [{"ts": 1, "value": 1, "step": []}]}, "version": 5}',
    '{"obj": {"type": "LogFloats", "path": ["a"], "values": [5]}, "version": 5}',
    '{"obj": [], "version": 5}',
    "[" * 100_000,
]


@pytest.mark.parametrize("line", range(len(OPERATIONS)))
def test_a_line_that_is_no_operation_is_named(tmp_path: Path, line: int) -> None:
    """Whatever stands in the place of a number, a text or a list."""
    whole = '{"obj": {"type": "AssignInt", "path": ["b"], "value": 1}, "version": 6}'
    (tmp_path / "data-1.log").write_text(f"{OPERATIONS[line]}\n{whole}\n")
    with pytest.raises(SourceError, match="line 1 is no operation of Neptune's client"):
        Operations(tmp_path).read(tmp_path / "data-1.log")


@pytest.mark.parametrize("time", ["1e400", "9" * 400, "-1", '"x"', "NaN"])
def test_a_time_that_is_none_dates_no_operation(tmp_path: Path, time: str) -> None:
    """A whole number of JSON may be larger than any other."""
    (tmp_path / "data-1.log").write_text(
        '{"obj": {"type": "AssignInt", "path": ["b"], "value": 1}, "version": 6, "at": ' + time + "}\n"
    )
    found = Operations(tmp_path)
    found.read(tmp_path / "data-1.log")
    assert (found.scalars, found.first) == ({"b": 1}, None)


@pytest.mark.parametrize("how", ["damaged line", "named pipe", "link out"])
def test_a_broken_run_of_neptune(tmp_path: Path, how: str) -> None:
    """The other run in the folder is read."""
    source, other = tmp_path / ".neptune", folders.RUN.replace("3", "4")
    operations = folders.operations(Schedule(utilization=[[90.0] * 20], cpu=[60.0] * 20))
    log = folders.write(source, operations) / "data-1.log"
    folders.write(source, operations, run=other)
    if how == "damaged line":
        log.write_text("{}\n" + log.read_text())
    else:
        log.unlink()
        os.mkfifo(log) if how == "named pipe" else log.symlink_to("/etc/passwd")
    read, faults = _read(Neptune(), source)
    assert ([key.split()[-1] for key in read], len(faults)) == ([other], 1)


@pytest.mark.parametrize("word", [b"attribute_path", b"OPT-1", b"float_series", b"schema"])
def test_a_damaged_word_of_an_export(tmp_path: Path, word: bytes) -> None:
    """Names of columns, texts and their least and greatest need not be text; each place is damaged in turn."""
    path = dumps.write(tmp_path, dumps.run(Schedule(utilization=[[90.0] * 20])))
    content = path.read_bytes()
    places = [found.start() for found in re.finditer(re.escape(word), content)]
    assert places
    for place in places:
        for byte in (b"\xff", b"x"):
            path.write_bytes(content[: place + 1] + byte + content[place + 2 :])
            with suppress(SourceError):
                _read(Neptune(), path)


_FLIP = """
import sys
from pathlib import Path
from gpureport.errors import SourceError
from gpureport.importers.protocol.tracker import Selection
from gpureport.importers.trackers.neptune import Neptune

path = Path(sys.argv[1])
content = path.read_bytes()
footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
for place in range(footer, footer + 130):
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    try:
        Neptune().runs(str(path), Selection())
    except SourceError:
        pass
print("alive")
"""


def test_a_flipped_bit_of_an_export_ends_no_process(tmp_path: Path) -> None:
    """Whether a column may be null decides what the statistics hold; Arrow ended the process where they differ."""
    path = dumps.write(tmp_path, dumps.run(Schedule(utilization=[[90.0] * 20])))
    ended = subprocess.run([sys.executable, "-c", _FLIP, str(path)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr
