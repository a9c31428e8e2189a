"""Opening another's SQLite database: nothing is written beside it, nothing in it changes."""

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
_WAL_BYTE, _IN_WAL_MODE = 18, b"\2"
_PATIENCE = 10.0
"""Seconds to wait for a writer; MLflow itself waits 20."""
_ATTEMPTS = 3
_STEPS_AT_ONCE, _FREE_STEPS, _STEPS_PER_BYTE = 1_000_000, 200_000_000, 20
"""Steps of SQLite's machine between two looks, and those a connection has: a point takes about 1 a byte (measured)."""


def is_database(path: Path) -> bool:
    """Return whether a file is a SQLite database, by its first bytes; false if unreadable."""
    with suppress(OSError):
        return _read_head(path).startswith(_MAGIC)
    return False


def _read_head(path: Path) -> bytes:
    check_regular_file(path)
    with path.open("rb") as file:
        return file.read(_WAL_BYTE + 1)


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a read-only connection.

    SQLite makes files beside a database in WAL mode to read it, which fails in a read-only folder: with an empty log it
    is opened as unchanging, else a copy of both is read. A hostile schema is bounded: the functions it calls, a value's
    size, and a query's work. Text that is not UTF-8 is read too. Raise `SourceError` when it was written to while it
    was copied, `OSError` or `sqlite3.Error` when it cannot be read.
    """
    log, options = path.with_name(f"{path.name}-wal"), "mode=ro"
    if _read_head(path)[_WAL_BYTE:] == _IN_WAL_MODE:
        if log.is_file() and log.stat().st_size:
            path = _copy(path, log)
        else:
            options += "&immutable=1"
    with closing(sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True, timeout=_PATIENCE)) as connection:
        left = iter(range((_FREE_STEPS + _STEPS_PER_BYTE * path.stat().st_size) // _STEPS_AT_ONCE))
        # the end of the steps interrupts the query
        connection.set_progress_handler(lambda: next(left, None) is None, _STEPS_AT_ONCE)
        connection.execute("pragma trusted_schema = off")
        connection.execute("pragma query_only = on")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
        connection.text_factory = lambda text: text.decode(errors="replace")
        yield connection


def _copy(path: Path, log: Path) -> Path:
    """Return a copy of a database and its log in a folder, made once per state of both."""
    for _ in range(_ATTEMPTS):
        begun = path.stat().st_mtime_ns, log.stat().st_mtime_ns, log.stat().st_size
        copy = _copy_state(path.resolve(), log.resolve(), begun)
        if (path.stat().st_mtime_ns, log.stat().st_mtime_ns, log.stat().st_size) == begun:
            return copy
    hint = "try again, or copy it when its writer is done"
    raise SourceError(str(path), "it was written to while it was copied", hint, code="copied_while_written")


@lru_cache(256)
def _copy_state(path: Path, log: Path, _: tuple[int, int, int]) -> Path:
    folder = make_temporary_folder()
    for each in (path, log):
        shutil.copyfile(each, folder / each.name)
    return folder / path.name
