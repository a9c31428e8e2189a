"""Opens another program's SQLite database without changing it or writing beside it."""

import shutil
import sqlite3
import struct
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.parsing import MOST_VALUE_BYTES
from gpureport.regular_files import UnsafeFileError, check_regular_file, make_temporary_folder

_WAL_BYTE, _IN_WAL_MODE = 18, b"\2"
_NOT_UNDERSTOOD = (sqlite3.Error, struct.error, ValueError, TypeError, AttributeError, IndexError, OverflowError)
_PATIENCE = 10.0
"""Seconds to wait for another writer; MLflow itself waits for 20 s."""
_STEPS_AT_ONCE, _FREE_STEPS, _STEPS_PER_BYTE = 1_000_000, 200_000_000, 20
"""SQLite steps between checks, and the maximum: a fixed number, plus a number per byte (reading takes one)."""


def is_database(path: Path) -> bool:
    with suppress(OSError):
        return read_head(path).startswith(b"SQLite format 3\0")
    return False


def read_head(path: Path) -> bytes:
    check_regular_file(path)
    with path.open("rb") as file:
        return file.read(_WAL_BYTE + 1)


def unreadable(error: OSError, path: Path, code: str = "cannot_read") -> SourceError:
    """Return a SourceError about the error's own path, or else `path`."""
    hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions, or copy it"
    return SourceError(str(error.filename or path), error.strerror or "cannot be read", hint, code=code)


@contextmanager
def open_database(
    path: Path, tables: Collection[str], title: str, code: str = "not_an_mlflow_database"
) -> Iterator[sqlite3.Connection]:
    """Yield a read-only connection to a tracker's database. Raises SourceError, even for invalid column content.

    SQLite creates files beside a database in WAL mode. So such a database is opened as immutable if its log is empty;
    otherwise, copies of the database and log are read.
    """
    hint = f"give one written by {title}, or copy it again while nothing is writing to it"
    try:
        log = path.with_name(f"{path.name}-wal")
        uri = f"{path.resolve().as_uri()}?mode=ro"
        if read_head(path)[_WAL_BYTE:] == _IN_WAL_MODE:
            is_empty = not (log.is_file() and log.stat().st_size)
            uri = f"{uri}&immutable=1" if is_empty else f"{_copy(path, log).as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE)) as connection:
            left = iter(range((_FREE_STEPS + _STEPS_PER_BYTE * path.stat().st_size) // _STEPS_AT_ONCE))
            # queries are interrupted after the last step
            connection.set_progress_handler(lambda: next(left, None) is None, _STEPS_AT_ONCE)
            connection.execute("pragma trusted_schema = off")
            connection.execute("pragma query_only = on")
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_VALUE_BYTES)
            connection.text_factory = lambda text: text.decode(errors="replace")
            held = {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}
            if lacking := {*tables} - held:
                raise SourceError(str(path), f"not written by {title} (no table {min(lacking)})", hint, code=code)
            yield connection
    except OSError as error:
        raise unreadable(error, path) from error
    except _NOT_UNDERSTOOD as error:
        raise SourceError(
            str(path), f"it is locked, damaged, or was not written by {title} ({error})", hint, code=code
        ) from error


def holds_tables(path: Path, tables: Collection[str]) -> bool:
    with suppress(SourceError):
        if is_database(path):
            with open_database(path, tables, ""):
                return True
    return False


def _copy(path: Path, log: Path) -> Path:
    for _ in range(3):
        state = path.stat().st_mtime_ns, log.stat().st_mtime_ns, log.stat().st_size
        copy = _copy_state(path.resolve(), log.resolve(), state)
        if (path.stat().st_mtime_ns, log.stat().st_mtime_ns, log.stat().st_size) == state:
            return copy
    hint = "try again, or copy it when its writer has finished"
    raise SourceError(str(path), "it was written to while being copied", hint, code="copied_while_written")


@lru_cache(256)
def _copy_state(path: Path, log: Path, _: tuple[int, int, int]) -> Path:
    """Copy a database and its log, once per state, and return the path of the copied database."""
    folder = make_temporary_folder()
    for each in (path, log):
        shutil.copyfile(each, folder / each.name)
    return folder / path.name
