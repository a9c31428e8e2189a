"""Opening MLflow's SQLite database, and saying why one cannot be read."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.trackers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import MOST_VALUE_BYTES
from gpureport.regular_files import UnsafeFileError

_SERVER = "give the mlflow.db of a tracking server"
_TABLES = {"experiments", "runs", "metrics", "latest_metrics", "params", "tags"}


def holds_runs(path: Path) -> bool:
    """Return whether a file is a database that holds MLflow's tables."""
    with suppress(SourceError):
        if is_database(path):
            with open_database(path) as connection:
                return missing_tables(connection) == set()
    return False


def missing_tables(connection: sqlite3.Connection) -> set[str]:
    """Return which tables of MLflow a database lacks."""
    return _TABLES - {name for (name,) in connection.execute("select name from sqlite_master where type = 'table'")}


@contextmanager
def open_database(path: Path) -> Iterator[sqlite3.Connection]:
    """Give a connection that can only read.

    Raises:
        SourceError: when it is no database, damaged, locked for long, or was copied while being written.
    """
    try:
        with open_read_only(path) as connection:
            yield connection
    except sqlite3.Error as error:
        raise _explain(path, error) from error
    except UnicodeDecodeError as error:
        # SQLite repeats a damaged schema in its own words, and Python takes them for text
        raise SourceError(
            str(path), f"not an MLflow database ({error.reason} in its schema)", _SERVER, code="not_an_mlflow_database"
        ) from error
    except OSError as error:
        hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions"
        raise SourceError(str(path), error.strerror or "cannot be read", hint, code="cannot_read") from error


def _explain(path: Path, error: sqlite3.Error) -> SourceError:
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_BUSY") or name == "SQLITE_LOCKED":
        return SourceError(str(path), "the database is locked by a writer", "try again", code="database_locked")
    if name == "SQLITE_READONLY_ROLLBACK":
        journal = f"{path.name}-journal"
        hint = f"copy it again with {journal} after the writer ends, or copy it with `sqlite3 {path.name} .backup`"
        return SourceError(str(path), "it was copied while being written", hint, code="copied_while_written")
    if name == "SQLITE_INTERRUPT":
        return SourceError(
            str(path), "its queries take far longer than its size explains", "leave it out", code="queries_too_slow"
        )
    if name == "SQLITE_TOOBIG":
        return SourceError(
            str(path), f"a value is larger than {MOST_VALUE_BYTES:,} bytes", "leave the run out", code="value_too_large"
        )
    if name == "SQLITE_CANTOPEN":
        return SourceError(
            str(path), "the database cannot be opened", "check its permissions, or copy it", code="cannot_read"
        )
    return SourceError(str(path), f"not an MLflow database ({error})", _SERVER, code="not_an_mlflow_database")
