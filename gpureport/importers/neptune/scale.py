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
from gpureport.importers.trackers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND
from gpureport.regular_files import UnsafeFileError, check_regular_file, walk_folder

_NAME = "run_operations.sqlite3"
_VERSIONS = {"v3", "v4", "v5"}
_HINT = "copy the folder again while nothing writes to it, with the file that ends in -wal"
_QUERY = "select operation_type, operation from run_operations order by sequence_id"
_SNAPSHOT, _CREATE = 0, 1

Field = int | float | bytes
Fields = dict[int, list[Field]]


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
    for count, (kind, message) in enumerate(connection.execute(_QUERY), 1):  # noqa: B007 - how many there are
        if not isinstance(message, bytes):
            raise TypeError("an operation is no message")
        parts = _fields(message)
        if kind == _CREATE:
            created = _moment(_last(parts, 3))
            experiment = _last(parts, 5).decode(errors="replace")
        elif kind == _SNAPSHOT:
            moment, step = _moment(_last(parts, 2)), STEP_NOT_RECORDED
            if 1 in parts:
                whole = _fields(_last(parts, 1))
                step = _whole(whole, 1) * STEP_UNITS + _whole(whole, 2)
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
        notes=() if version in _VERSIONS else (f"the database is of version {version}, newer than is known",),
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
        match value:
            case {1: [*_, float(double)]}:
                found[path] = double
            case {3: _}:
                found[path] = _whole(value, 3)
            case {5: [*_, flag]}:
                found[path] = bool(flag)
            case {6: [*_, bytes(text)]}:
                found[path] = text.decode(errors="replace")
            case _:
                pass
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
    whole = 0 if isinstance(value, bytes) else int(value)
    return whole - (1 << 64) if whole >= 1 << 63 else whole


def _fields(data: bytes) -> Fields:
    """Return the values of each field of a protobuf message, by its number.

    Raises:
        ValueError: when the data is no message.
    """
    found: Fields = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        value: Field
        match tag & 7:
            case 0:
                value, at = _number(data, at)
            case 1 | 5 as kind:
                form = "<d" if kind == 1 else "<f"
                size = struct.calcsize(form)
                value, at = struct.unpack(form, data[at : at + size].ljust(size, b"?"))[0], at + size
            case 2:
                length, at = _number(data, at)
                value, at = data[at : at + length], at + length
            case kind:
                raise ValueError(f"a field is of kind {kind}")
        if at > len(data):
            raise ValueError("a field is cut")
        found[tag >> 3].append(value)
    return found


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where the next byte lies."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + place + 1
    raise ValueError("a number is cut")
