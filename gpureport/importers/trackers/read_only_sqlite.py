"""Opening a SQLite database that belongs to someone else: nothing is written beside it, nothing in it changes."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.fetched_copies import make_temporary_folder
from gpureport.limits import MOST_VALUE_BYTES
from gpureport.regular_files import check_regular_file

_MAGIC = b"SQLite format 3\0"
_WAL = 2
_WAL_BYTE = 18
_PATIENCE = 10.0
"""Seconds to wait for a writer; MLflow itself waits 20."""
_ATTEMPTS = 3
_STEPS_AT_ONCE, _FREE_STEPS, _STEPS_PER_BYTE = 1_000_000, 200_000_000, 20
"""Steps of SQLite's machine between two looks, and those a connection has: a point takes about 1 a byte (measured)."""


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database, by its first bytes; false where it cannot be read."""
    with suppress(OSError):
        check_regular_file(path)
        with path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC
    return False


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read.

    A database in WAL mode cannot be read without files beside it being made, which fails in a read-only folder: with
    nothing in its log it is opened as one that does not change, with something in it a copy of both is read.

    Raises:
        SourceError: when it was written to while it was copied.
        OSError: when a file cannot be read.
        sqlite3.Error: when it is no database, damaged, or locked for long.
    """
    check_regular_file(path)
    options = "mode=ro"
    if _in_wal_mode(path):
        if _size(_log_of(path)):
            path = _copy(path.resolve(), _state(path))
        else:
            options += "&immutable=1"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, timeout=_PATIENCE)) as connection:
        _distrust(connection, path.stat().st_size)
        yield connection


def _distrust(connection: sqlite3.Connection, size: int) -> None:
    """Bound what a hostile schema can do: functions it calls, the size of a value, and the work of a query.

    Text that is not UTF-8 is read as well.
    """
    left = iter(range((_FREE_STEPS + _STEPS_PER_BYTE * size) // _STEPS_AT_ONCE))
    # the end of the steps interrupts the query
    connection.set_progress_handler(lambda: next(left, None) is None, _STEPS_AT_ONCE)
    connection.execute("pragma trusted_schema = off")
    connection.execute("pragma query_only = on")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
    connection.text_factory = lambda text: text.decode(errors="replace")


def _in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(_WAL_BYTE + 1)
    return len(head) > _WAL_BYTE and head[_WAL_BYTE] == _WAL


def _log_of(path: Path) -> Path:
    return path.with_name(f"{path.name}-wal")


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


@lru_cache(16)
def _copy(path: Path, state: tuple[int, ...]) -> Path:
    """Return a copy of a database and its log in a folder of its own, made once for each state of both."""
    for _ in range(_ATTEMPTS):
        folder = make_temporary_folder()
        for each in (path, _log_of(path)):
            shutil.copyfile(each, folder / each.name)
        if _state(path) == state:
            return folder / path.name
        state = _state(path)
    raise SourceError(
        str(path),
        "it was written to while it was copied",
        "try again, or copy it when its writer is done",
        code="copied_while_written",
    )


def _state(path: Path) -> tuple[int, ...]:
    log = _log_of(path).stat()
    return path.stat().st_mtime_ns, log.st_mtime_ns, log.st_size
