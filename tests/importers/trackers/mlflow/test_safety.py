"""A store belongs to someone else: reading it changes nothing, wherever it lies and however it was left."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from gpureport.errors import SourceError
from gpureport.importers.trackers.mlflow.local.mlflow_database import holds_runs, open_database
from tests.importers.trackers.mlflow.stores import Made, database, folder, monitored, run_id
from tests.importers.trackers.mlflow.test_mapping import TICKS, read

_NOBODY = 65534
RUN = Made(id=run_id(1), series=monitored(TICKS))


def state(root: Path) -> dict[str, tuple[str, int]]:
    """Return the content and time of every file below a folder."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path): (sha256(path.read_bytes()).hexdigest(), path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("make", [database, folder])
def test_a_store_is_the_same_after_it_was_read(make: object, tmp_path: Path) -> None:
    """No byte, no time and no file differ."""
    source = tmp_path / "store" / "mlflow.db"
    source.parent.mkdir()
    (database if make is database else folder)(source, [RUN])
    before = state(tmp_path)
    assert len(read(source).series) == 18
    assert state(tmp_path) == before


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


def _wal(path: Path, *, checkpointed: bool) -> None:
    """Put a database in WAL mode, its last change in the log or not."""
    database(path, [RUN])
    arguments = [str(path), *(["checkpointed"] if checkpointed else [])]
    subprocess.run([sys.executable, "-c", _TO_WAL, *arguments], check=True)


@pytest.mark.parametrize("checkpointed", [True, False], ids=["empty log", "log with changes"])
def test_a_database_in_wal_mode_gets_no_files_beside_it(tmp_path: Path, *, checkpointed: bool) -> None:
    """What is still in its log is read, and nothing is written into it or beside it."""
    source = tmp_path / "mlflow.db"
    _wal(source, checkpointed=checkpointed)
    if not checkpointed:
        (tmp_path / "mlflow.db-shm").unlink()
    before = state(tmp_path)
    assert read(source).run.name == "renamed"
    assert state(tmp_path) == before


@pytest.fixture
def share() -> Iterator[Path]:
    """A folder that cannot be written to once it is closed, since root may write to any it becomes nobody there."""
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
    """A database on a share that cannot be written to is read."""
    source = share / "mlflow.db"
    if wal:
        _wal(source, checkpointed=False)
    else:
        database(source, [RUN])
    share.chmod(0o555)
    if os.geteuid() == 0:
        os.seteuid(_NOBODY)
    with pytest.raises(PermissionError):
        (share / "new").touch()
    assert len(read(source).series) == 18


def test_a_database_can_be_read_while_it_is_written(tmp_path: Path) -> None:
    """A training script that logs holds no lock between its transactions, nor while it writes one."""
    source = database(tmp_path / "mlflow.db", [RUN])
    writer = sqlite3.connect(source)
    writer.execute("begin immediate")
    writer.execute("update runs set name = 'later'")
    assert read(source).run.name == "run"
    writer.commit()
    writer.close()
    assert read(source).run.name == "later"


def test_a_locked_database_is_said_to_be_locked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a time of waiting the person is told what it waits for."""
    monkeypatch.setattr("gpureport.importers.trackers.read_only_sqlite._PATIENCE", 0.2)
    source = database(tmp_path / "mlflow.db", [RUN])
    writer = sqlite3.connect(source)
    writer.execute("begin exclusive")
    with pytest.raises(SourceError, match=r"mlflow.db: the database is locked by a writer; try again"):
        read(Path(f"mlflow:{source}"))
    writer.close()


def test_a_database_copied_while_it_was_written_is_said_to_be(tmp_path: Path) -> None:
    """Its journal lies beside it and would have to be rolled back, which would change it."""
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
    with pytest.raises(SourceError, match=r"it was copied while being written; copy it again with mlflow.db-journal"):
        read(Path(f"mlflow:{source}"))
    assert state(source.parent) == before


def test_a_revision_stays_what_it_is(tmp_path: Path) -> None:
    """A database of an older MLflow can still be opened with it."""
    source = database(tmp_path / "mlflow.db", [RUN])
    read(source)
    with open_database(source) as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [("acf3f17fdcc7",)]
        with pytest.raises(SourceError, match="readonly"), open_database(source) as other:
            other.execute("update alembic_version set version_num = 'x'")


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
    else:
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("create table something (x)")
        connection.commit()
        connection.close()


@pytest.mark.parametrize("how", ["cut", "overwritten", "text", "empty", "of something else"])
def test_what_is_no_database_of_mlflow_is_said_to_be_none(how: str, tmp_path: Path) -> None:
    """One sentence with the path, and nothing is made."""
    source = tmp_path / "mlflow.db"
    _damaged(source, how)
    before = state(tmp_path)
    with pytest.raises(SourceError, match=r"mlflow\.db: not an MLflow database"):
        read(Path(f"mlflow:{source}"))
    assert not holds_runs(source)
    assert state(tmp_path) == before


def test_a_missing_database_is_not_made(tmp_path: Path) -> None:
    """MLflow itself would make one, with folders; here what lies beside is named."""
    database(tmp_path / "mlflow.db", [RUN])
    with pytest.raises(
        SourceError, match=r"absent.db: no MLflow database or mlruns folder here; did you mean .*mlflow.db"
    ):
        read(Path(f"mlflow:{tmp_path}/absent.db"))
    with pytest.raises(SourceError, match="did you mean"):
        read(Path(f"mlflow:{tmp_path}"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mlflow.db"]
