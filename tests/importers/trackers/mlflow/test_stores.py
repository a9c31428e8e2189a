"""MLflow's stores: which runs are meant, lines of the file store, and reading that changes nothing of a store."""

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.importers.trackers.mlflow.stores import START, TICKS, Made, database, folder, monitored, run_id
from tests.importers.trackers.tracked import ids, readable, recording, refused, state
from tests.readers.conftest import Hold
from tests.support.program import Program

USED = monitored(TICKS[:2], {"gpu_0_utilization_percentage": 90.0})


def _runs(tmp_path: Path, *numbers: int) -> Path:
    return folder(tmp_path / "mlruns", [Made(id=run_id(n), series=monitored(TICKS)) for n in numbers])


def test_lines_of_every_form(tmp_path: Path, hold: Hold) -> None:
    for place, text in enumerate(
        (
            *("5 1.5 0\n6 2e-3 1\n", "5 1.5 7 data set\n", "5 1.5 7 data abc\n6 2.5 8\n4 0.5\n", "\0\0\0"),
            *("6 inf 1\n5 nan 0\n7 -inf 2\n", "5 1 1\n5 0 1\n5 2 0\n5 0 1\n", "5 1.5 0\n6 2.5 1"),
            *("5 1.5 0\nx y z\n6 2.5 0\n\n", "5 1.5 0\n17952217"),
        )
    ):
        source = folder(tmp_path / f"{place}", [Made(id=run_id(1), series=USED | {"loss": []})])
        next(source.rglob("metrics/loss")).write_text(text)
        hold(text, partial(recording, source))


@pytest.mark.parametrize("name", ["meta.yaml", "mlflow.runName", "batch_size"])
def test_what_one_may_not_read_is_no_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    made = Made(
        id=run_id(1), name="", series=monitored(TICKS), params={"batch_size": "8"}, tags={"mlflow.runName": "r"}
    )
    source, opening = folder(tmp_path / "mlruns", [made]), os.open

    def open_file(path: Path, flags: int) -> int:
        if path.name == name:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opening(path, flags)

    # the tests may be run by one who may read all
    monkeypatch.setattr("gpureport.regular_files.os.open", open_file)
    error = refused(source)
    assert (error.code, error.where.endswith(name)) == ("cannot_read", True)


def _damaged(source: Path, number: int, content: bytes | None) -> None:
    path = next(source.rglob(f"{run_id(number)}/meta.yaml"))
    path.unlink() if content is None else path.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"name: x\n", None], ids=["empty", "binary", "other", "gone"])
def test_one_damaged_run_keeps_no_other_out(gpureport: Program, tmp_path: Path, content: bytes | None) -> None:
    source = _runs(tmp_path, *range(1, 6))
    _damaged(source, 3, content)
    found, (fault,) = readable(source)
    assert len(found) == 4
    assert f"{run_id(3)}/meta.yaml: " in fault
    listed = gpureport("ingest", "--list", str(source))
    assert (listed.code, f"{run_id(3)}/meta.yaml: " in listed.out + listed.err) == (3, True), listed
    for named in (run_id(3), run_id(3)[:8]):
        error = refused(source, runs=named)
        assert (error.code, error.where.endswith(f"{run_id(3)}/meta.yaml")) == ("damaged_run", True)
    assert ids(source, runs=run_id(1)[:8]) == [run_id(1)]
    assert len(readable(source, latest=1)[0]) == 1
    for number in (1, 2, 4, 5):
        _damaged(source, number, content)
    assert refused(source).code == "damaged_run"


@pytest.mark.parametrize("content", [b"", b"name: x\n", None], ids=["empty", "other", "gone"])
def test_a_damaged_experiment_hides_no_run(tmp_path: Path, content: bytes | None) -> None:
    source = _runs(tmp_path, 1)
    meta = next(source.rglob(run_id(1))).parent / "meta.yaml"
    meta.unlink() if content is None else meta.write_bytes(content)
    assert ids(source) == ids(source, experiment=meta.parent.name if content != b"name: x\n" else "x") == [run_id(1)]


def test_deleted_experiments_lie_in_the_trash(tmp_path: Path) -> None:
    made = [Made(id=run_id(1), series=monitored(TICKS)), Made(id=run_id(2), series=monitored(TICKS), experiment="b")]
    source = folder(tmp_path / "mlruns", made)
    (source / ".trash").mkdir()
    number = next(path for path in source.iterdir() if (path / run_id(1)).is_dir())
    text = (number / "meta.yaml").read_text(encoding="utf-8").replace("active", "deleted")
    (number / "meta.yaml").write_text(text, encoding="utf-8")
    number.rename(source / ".trash" / number.name)
    assert ids(source) == [run_id(2)]
    assert recording(source, runs=run_id(1)).run.name == "run"


def test_a_folder_without_experiments_is_not_a_store(tmp_path: Path) -> None:
    (tmp_path / "0").mkdir()
    assert refused(f"mlflow:{tmp_path}").code in {"no_runs", "no_mlflow_store"}
    source = folder(tmp_path / "mlruns", [Made(id=run_id(1), series=monitored(TICKS), start=START)])
    assert refused(f"mlflow:{next(source.iterdir())}").code in {"no_runs", "no_mlflow_store"}


_HARDWARE = monitored(TICKS[:2])
PARENT = run_id(10)
APART = 10_000
"""Milliseconds between the starts of two runs."""
_NESTED = {"mlflow.parentRunId": PARENT}
_LOSS = {"loss": [(START, 1.0, 0)]}


def _made(number: int, place: int, name: str, **more: Any) -> Made:
    made = Made(id=run_id(number), name=name, series=_HARDWARE, start=START + place * APART)
    return replace(made, **more)


RUNS = [
    _made(1, 0, "baseline"),
    _made(2, 1, "amp"),
    _made(3, 2, "twice"),
    _made(4, 3, "twice", status="FAILED", experiment="second"),
    _made(5, 4, "still running", status="RUNNING", end=None),
    _made(6, 5, "no hardware", series=_LOSS),
    _made(7, 6, "gone", deleted=True),
    _made(10, 7, "sweep"),
    _made(11, 8, "lr 1", tags=_NESTED),
    _made(12, 9, "lr 2", series=_LOSS, tags=_NESTED),
]


@pytest.fixture(params=[database, folder], ids=["sqlite", "file store"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made: Path = request.param(tmp_path / "mlflow.db", RUNS)
    return made


Meant = Callable[..., list[int]]


@pytest.fixture
def meant(source: Path) -> Meant:

    def found(run: str = "", **options: Any) -> list[int]:
        return [int(each[:6], 16) for each in ids(f"mlflow:{source}#{run}" if run else source, **options)]

    return found


def test_runs_that_started_at_once_stand_by_name(tmp_path: Path) -> None:
    names = ["run " + "9" * 5000, "run 010", "run 9", "run"]
    made = [Made(id=run_id(n), name=name, series=_HARDWARE, start=START + 10 - n) for n, name in enumerate(names)]
    made.append(Made(id=run_id(9), name="a later one", series=_HARDWARE, start=START + 6_000))
    assert ids(database(tmp_path / "mlflow.db", made)) == [run_id(number) for number in (3, 2, 1, 0, 9)]


def test_runs_are_those_that_ended_in_the_order_of_time_or_as_named(meant: Meant) -> None:
    assert meant() == [1, 2, 3, 4, 10]
    assert meant(latest=2) == [4, 10]
    for name, number in {
        "baseline": 1, run_id(2): 2, run_id(2)[:6]: 2, "still running": 5, "no hardware": 6, run_id(7): 7,
    }.items():  # fmt: skip
        assert meant(name) == meant(runs=name) == [number], name
    assert meant(runs=("amp", "baseline", run_id(2))) == [2, 1]
    assert meant(runs="tw*") == [3, 4]
    assert meant(runs=("tw*", "amp", "*")) == [3, 4, 2, 1, 5, 6, 10, 11, 12]
    assert meant(runs="tw*", latest=1) == [4]
    assert meant("baseline", runs="amp") == [1, 2]


def test_a_name_that_several_or_no_runs_have(source: Path) -> None:
    several = refused(f"mlflow:{source}#twice")
    assert (several.code, run_id(3)[:6] in several.hint) == ("several_runs", True)
    for name in ("baselin", "gone", "0000"):
        error = refused(f"mlflow:{source}#{name}")
        assert (error.code, "--list" in error.hint) == ("unknown_run", True), name


def test_children_and_experiments_narrow_a_selection(meant: Meant, source: Path) -> None:
    assert meant("sweep", children=True) == meant(PARENT, children=True) == [10, 11, 12]
    assert meant(children=True) == [1, 2, 3, 4, 10, 11, 12]
    assert meant(experiment="second") == meant("twice", experiment="second") == [4]
    assert refused(source, experiment="secund").code == "no_such_experiment"
    assert refused(source, filter="params.lr = '0.1'").code == "filter_needs_server"


def test_nothing_to_read_is_refused(tmp_path: Path) -> None:
    assert refused(database(tmp_path / "mlflow.db", [RUNS[4], RUNS[5]])).code == "no_finished_run"


def test_a_listing_shows_what_distinguishes_runs(gpureport: Program, source: Path) -> None:
    done = gpureport("ingest", "--list", str(source))
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines] == [run_id(number) for number in (12, 11, 10, 6, 5, 4, 3, 2, 1)]
    for line, holds in zip(
        lines, (f"nested in {PARENT}", "1 GPU, host, nested", "1 GPU, host", "no hardware series"), strict=False
    ):
        assert holds in line
    newest = gpureport("ingest", "--list", str(source), "--latest", "3").out
    assert (run_id(7) in done.err, newest.count("\n")) == (True, 3)
    skipped = gpureport("ingest", str(source)).err
    for reason in ("1 still RUNNING", "2 nested in another", "1 without hardware series", "--run NAME reads one"):
        assert reason in skipped, reason


_NOBODY = 65534
RUN = Made(id=run_id(1), series=monitored(TICKS))


_TO_WAL = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("pragma journal_mode=wal")
connection.execute("update runs set name = ?", ("renamed",))
connection.commit()
if sys.argv[2:]:
    connection.close()
# a process that ends here leaves its log
os._exit(0)
"""


def _wal(path: Path, *, checkpointed: bool) -> Path:
    database(path, [RUN])
    arguments = [str(path), *(["checkpointed"] if checkpointed else [])]
    subprocess.run([sys.executable, "-c", _TO_WAL, *arguments], check=True)
    return path


@pytest.mark.parametrize("how", ["database", "folder", "empty log", "log with changes"])
def test_a_store_is_the_same_after_it_was_read(how: str, tmp_path: Path) -> None:
    source = tmp_path / "store" / "mlflow.db"
    source.parent.mkdir()
    if "log" in how:
        _wal(source, checkpointed=how == "empty log")
        (source.parent / "mlflow.db-shm").unlink(missing_ok=True)
    else:
        (database if how == "database" else folder)(source, [RUN])
    before = state(tmp_path)
    found = recording(source)
    assert (len(found.series), found.run.name) == (18, "renamed" if "log" in how else "run")
    assert state(tmp_path) == before


@pytest.fixture
def share() -> Iterator[Path]:
    root = Path(tempfile.mkdtemp())
    user = os.geteuid()
    try:
        yield root
    finally:
        os.seteuid(user)
        root.chmod(0o755)
        shutil.rmtree(root)


@pytest.mark.parametrize("wal", [False, True])
def test_a_read_only_folder_will_do(share: Path, *, wal: bool) -> None:
    source = share / "mlflow.db"
    _ = _wal(source, checkpointed=False) if wal else database(source, [RUN])
    share.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(_NOBODY)
    with pytest.raises(PermissionError):
        (share / "new").touch()
    assert len(recording(source).series) == 18


def test_a_database_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    source = database(tmp_path / "mlflow.db", [RUN])
    writer = sqlite3.connect(source)
    writer.execute("begin immediate")
    writer.execute("update runs set name = 'later'")
    assert recording(source).run.name == "run"
    writer.commit()
    writer.close()
    assert recording(source).run.name == "later"


def test_a_database_copied_while_it_was_written_is_refused(tmp_path: Path) -> None:
    original = database(tmp_path / "original.db", [RUN])
    script = (
        "import sqlite3, sys, os\n"
        "c = sqlite3.connect(sys.argv[1])\n"
        "c.execute('pragma cache_size = 1')\n"
        "c.execute('begin')\n"
        "c.executemany('insert into params values (?, ?, ?)', [(str(i), 'x' * 900, 'r') for i in range(4000)])\n"
        "os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(original)], check=True)
    source = tmp_path / "copied" / "mlflow.db"
    source.parent.mkdir()
    shutil.copy(original, source)
    shutil.copy(f"{original}-journal", f"{source}-journal")
    before = state(source.parent)
    assert refused(f"mlflow:{source}").code == "not_an_mlflow_database"
    assert state(source.parent) == before


def _damaged_database(path: Path, how: str) -> None:
    database(path, [RUN])
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "overwritten":
        path.write_bytes(content[:100] + b"\xff" * 4000 + content[4100:])
    elif how == "text":
        path.write_text("timestamp, nothing\n", encoding="utf-8")
    elif how == "empty":
        path.write_bytes(b"")
    elif how.startswith("schema"):
        place = content.lower().index(b"create table runs")
        path.write_bytes(content[: place + 40] + bytes([int(how.split()[1])]) * 3 + content[place + 43 :])
    else:
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("create table something (x)")
        connection.commit()
        connection.close()


@pytest.mark.parametrize("how", ["cut", "overwritten", "text", "empty", "of something else", "schema 225", "schema 0"])
def test_what_is_not_a_database_of_mlflow_is_said_to_be_none(how: str, tmp_path: Path) -> None:
    source = tmp_path / "mlflow.db"
    _damaged_database(source, how)
    before = state(tmp_path)
    assert refused(f"mlflow:{source}").code == "not_an_mlflow_database"
    assert state(tmp_path) == before


def test_locked_databases_and_missing_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpureport.importers.read_only_sqlite._PATIENCE", 0.2)
    source = database(tmp_path / "mlflow.db", [RUN])
    writer = sqlite3.connect(source)
    writer.execute("begin exclusive")
    assert refused(f"mlflow:{source}").code == "not_an_mlflow_database"
    writer.close()
    error = refused(f"mlflow:{tmp_path}/absent.db")
    assert (error.code, "mlflow.db" in error.hint) == ("no_mlflow_store", True)
    assert "mlflow.db" in refused(f"mlflow:{tmp_path}").hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db"]
