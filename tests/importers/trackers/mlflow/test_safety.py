"""A store belongs to someone else: reading it changes nothing, wherever it lies and however it was left."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.importers.trackers.mlflow.stores import TICKS, Made, database, folder, monitored, run_id
from tests.importers.trackers.tracked import recording, refused, state

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


def test_a_locked_database_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpureport.importers.read_only_sqlite._PATIENCE", 0.2)
    source = database(tmp_path / "mlflow.db", [RUN])
    writer = sqlite3.connect(source)
    writer.execute("begin exclusive")
    assert refused(f"mlflow:{source}").code == "not_an_mlflow_database"
    writer.close()


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


def _damaged(path: Path, how: str) -> None:
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
    _damaged(source, how)
    before = state(tmp_path)
    assert refused(f"mlflow:{source}").code == "not_an_mlflow_database"
    assert state(tmp_path) == before


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    database(tmp_path / "mlflow.db", [RUN])
    error = refused(f"mlflow:{tmp_path}/absent.db")
    assert (error.code, "mlflow.db" in error.hint) == ("no_mlflow_store", True)
    assert "mlflow.db" in refused(f"mlflow:{tmp_path}").hint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db"]
