"""Runs in local folders of neptune-scale: an sqlite database of operations, each a protobuf message.

The database is never written. What it says of errors is pickled and is not read.
"""

import os
import sqlite3
import struct
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import STEP_NOT_RECORDED, STEP_UNITS, make_series
from gpureport.importers.neptune.stored import Content, Scalar, StoredRun, merge_contents
from gpureport.importers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.regular_files import UnsafeFileError, check_regular_file, walk_folder

_NAME = "run_operations.sqlite3"
_HINT = "copy the folder again while nothing writes to it, with the file that ends in -wal"
_QUERY = "select operation_type, operation from run_operations order by sequence_id"
_DOUBLE = struct.Struct("<d")

Fields = dict[int, list[int | bytes]]


def is_scale_database(path: Path) -> bool:
    """Return whether a file is such a database; one that may not be read is taken for one, so that this is said."""
    return path.name == _NAME and (is_database(path) or not os.access(path, os.R_OK))


def find_scale_runs(source: Path) -> list[StoredRun]:
    """Return the runs whose databases lie in a folder or below."""
    if source.is_file():
        return [_make_run(source, source.parent)] if source.name == _NAME else []
    return [_make_run(place / _NAME, source) for place, _, names in sorted(walk_folder(source)) if _NAME in names]


def _make_run(path: Path, root: Path) -> StoredRun:
    try:
        check_regular_file(path, root=root)
        with open_read_only(path) as connection:
            return _read(connection, path)
    except SourceError as error:
        fault = error
    except UnsafeFileError as error:
        fault = SourceError(str(path), str(error.strerror), error.hint, code="not_a_regular_file")
    except (sqlite3.Error, ValueError, TypeError, OverflowError, OSError) as error:
        what = f"not a database of neptune-scale ({error})"
        fault = SourceError(str(path), what, _HINT, code="not_a_scale_database")
    return StoredRun(key=f"broken {path.parent.name}", id=path.parent.name, fault=fault)


def _read(connection: sqlite3.Connection, path: Path) -> StoredRun:
    about = connection.execute("select version, project, run_id from metadata").fetchone()
    if about is None:
        raise ValueError("it names no run")
    version, project, run_id = map(str, about)
    scalars: dict[str, Scalar] = {}
    points: dict[str, list[tuple[int, float, int]]] = defaultdict(list)
    count, experiment, created, last = 0, "", None, None
    # an operation of kind 1 makes the run, one of kind 0 is a snapshot of values
    for count, (kind, message) in enumerate(connection.execute(_QUERY), 1):  # noqa: B007 - how many there are
        parts = _fields(message)
        if kind == 1:
            created = _moment(_last(parts, 3))
            experiment = _last(parts, 5).decode(errors="replace")
        elif kind == 0:
            moment, whole = _moment(_last(parts, 2)), _fields(_last(parts, 1))
            step = _whole(whole, 1) * STEP_UNITS + _whole(whole, 2) if 1 in parts else STEP_NOT_RECORDED
            if not FIRST_MICROSECOND <= moment < LAST_MICROSECOND or not STEP_NOT_RECORDED <= step < -STEP_NOT_RECORDED:
                raise ValueError("an operation has a time that is no date, or a step that is no count")
            last = max(last or 0, moment)
            # 4 is what is assigned, 8 what is appended
            scalars |= _entries(parts, 4)
            for name, value in _entries(parts, 8).items():
                if isinstance(value, int | float) and not isinstance(value, bool):
                    points[name].append((moment, float(value), step))
    content = Content(
        series={name: make_series(found) for name, found in points.items()},
        scalars=scalars,
        project=project,
        last=last,
        notes=() if version in {"v3", "v4", "v5"} else (f"the database is of version {version}, newer than is known",),
        state=f"{count}",
        size=path.stat().st_size,
    )
    run = merge_contents([content], f"{project} {run_id}", run_id)
    return replace(run, title=experiment, kept="local", made=created)


def _entries(parts: Fields, number: int) -> dict[str, Scalar]:
    """Return values by path; those of another kind, such as files and histograms, are left out."""
    found: dict[str, Scalar] = {}
    for each in parts.get(number, ()):
        entry = _fields(each if isinstance(each, bytes) else b"")
        path, value = _last(entry, 1).decode(errors="replace"), _fields(_last(entry, 2))
        if len(double := _last(value, 1)) == _DOUBLE.size:
            found[path] = _DOUBLE.unpack(double)[0]
        elif value.get(3):
            found[path] = _whole(value, 3)
        elif flags := value.get(5):
            found[path] = bool(flags[-1])
        elif value.get(6):
            found[path] = _last(value, 6).decode(errors="replace")
    return found


def _moment(message: bytes) -> int:
    """Return a time in microseconds: 1 its seconds, 2 nanoseconds."""
    parts = _fields(message)
    return _whole(parts, 1) * 1_000_000 + _whole(parts, 2) // 1000


def _last(parts: Fields, number: int) -> bytes:
    value = parts.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _whole(parts: Fields, number: int) -> int:
    """Return a whole number of 64 bits with a sign; 0 where it is not there."""
    value = parts.get(number, [0])[-1]
    whole = 0 if isinstance(value, bytes) else value
    return whole - (1 << 64) if whole >= 1 << 63 else whole


def _fields(data: bytes) -> Fields:
    """Return the values of each field of a protobuf message, by its number; ValueError when the data is no message."""
    found: Fields = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind, size = tag & 7, {1: 8, 5: 4}.get(tag & 7, 0)
        if not size:
            size, at = _number(data, at)
        found[tag >> 3].append(data[at : at + size] if kind else size)
        at += size if kind else 0
        if kind not in {0, 1, 2, 5} or at > len(data):
            raise ValueError("a field is cut, or of no kind that is known")
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where the next byte lies."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + place + 1
    raise ValueError("a number is cut")
