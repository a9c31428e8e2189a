"""Opening a SQLite database that belongs to someone else: nothing is written beside it, nothing in it changes."""

import atexit
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from gpureport.errors import SourceError

_MAGIC = b"SQLite format 3\0"
_WAL = 2
_WAL_BYTE = 18
_PATIENCE = 10.0
"""Seconds to wait for a writer; MLflow itself waits 20."""
_ATTEMPTS = 3
_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database, by its first bytes."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    except OSError:
        return False


def holds_runs(path: Path) -> bool:
    """Return whether a file is a database that holds MLflow's tables."""
    if not is_database(path):
        return False
    try:
        with open_database(path) as connection:
            return missing_tables(connection) == set()
    except SourceError:
        return False


def missing_tables(connection: sqlite3.Connection) -> set[str]:
    """Return which tables of MLflow a database lacks."""
    return _TABLES - {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read.

    A database in WAL mode cannot be read without files beside it being made, which fails in a read-only folder: with
    nothing in its log it is opened as one that does not change, with something in it a copy of both is read.

    Raises:
        SourceError: when it is no database, damaged, locked for long, or was copied while being written.
    """
    try:
        with closing(_connected(path)) as connection:
            yield connection
    except sqlite3.Error as error:
        raise _said(path, error) from error
    except OSError as error:
        raise SourceError(str(path), error.strerror or "cannot be read", "check its permissions") from error


def _connected(path: Path) -> sqlite3.Connection:
    options = "mode=ro"
    if _in_wal_mode(path):
        if _size(_beside(path, "-wal")):
            path = _copied(path)
        else:
            options += "&immutable=1"
    return sqlite3.connect(f"file:{quote(str(path.resolve()))}?{options}", uri=True, timeout=_PATIENCE)


def _in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_WAL_BYTE + 2)
    return len(head) > _WAL_BYTE and head[_WAL_BYTE] == _WAL


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


_copies: dict[tuple[Path, int, int], Path] = {}


def _copied(path: Path) -> Path:
    """Return a copy of a database and its log in a folder of its own, made once for each state of both."""
    for _ in range(_ATTEMPTS):
        state = _state(path)
        if state in _copies:
            return _copies[state]
        folder = Path(tempfile.mkdtemp(prefix="gpureport-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        for each in (path, _beside(path, "-wal")):
            shutil.copyfile(each, folder / each.name)
        if _state(path) == state:
            _copies[state] = folder / path.name
            return _copies[state]
    raise SourceError(
        str(path), "it was written to while it was copied", "try again, or copy it when its writer is done"
    )


def _state(path: Path) -> tuple[Path, int, int]:
    log = _beside(path, "-wal")
    return path.resolve(), path.stat().st_mtime_ns, log.stat().st_mtime_ns + log.stat().st_size


def _said(path: Path, error: sqlite3.Error) -> SourceError:
    """Return what SQLite complains of, in words a person can act on."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_BUSY") or name == "SQLITE_LOCKED":
        return SourceError(str(path), "the database is locked by a writer", "try again")
    if name == "SQLITE_READONLY_ROLLBACK":
        journal = _beside(path, "-journal").name
        hint = f"copy it again with {journal} after the writer ends, or copy it with `sqlite3 {path.name} .backup`"
        return SourceError(str(path), "it was copied while being written", hint)
    if name == "SQLITE_CANTOPEN":
        return SourceError(str(path), "the database cannot be opened", "check its permissions, or copy it")
    return SourceError(str(path), f"not an MLflow database ({error})", "give the mlflow.db of a tracking server")
