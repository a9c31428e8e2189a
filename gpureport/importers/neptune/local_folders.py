"""Runs that Neptune's clients left on disk: `.neptune` folders of the client up to 1.x, databases of neptune-scale.

The logs of the client are lines of JSON, an operation each; it made them for runs that were never uploaded, and they
are what is left of others. A database of neptune-scale holds operations as protobuf messages. Both are only read: the
client's own reader truncates and removes logs. What a database says of errors is pickled and is not read.
"""

import os
import re
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import make_series
from gpureport.importers.neptune.stored import Scalar, Stored, make_broken_run
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE
from gpureport.importers.read_only_sqlite import is_database, open_read_only
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_RECORD_BYTES
from gpureport.parsing import parse_json
from gpureport.regular_files import check_regular_file, read_regular_file

_LOG = re.compile(r"data-(\d{1,18})\.log", re.ASCII)
_MOST_COUNT = 2**62
_NOT_AN_OPERATION = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)

Points = dict[str, list[tuple[int, float, float]]]


def is_operation_log(path: Path) -> bool:
    """Return whether a file is such a log: its name says so, and its first line is an operation."""
    if _LOG.fullmatch(path.name) is None:
        return False
    try:
        check_regular_file(path)
        with path.open("rb") as file:
            head = file.read(4096).strip()
    except OSError:
        return True
    return head.startswith(b'{"obj"') or not head


def find_local_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs whose logs lie in a folder; other things the client keeps, such as models, are none.

    Each process of a run wrote to a folder of its own.
    """
    found: dict[str, tuple[Stored, list[Path]]] = {}
    for folder in sorted({path.parent for path in files if _LOG.fullmatch(path.name)}):
        about: Any = {}
        with suppress(OSError, ValueError, RecursionError):
            about = parse_json(read_regular_file(folder / "metadata.json", root=root))
        said = {key: text for key, text in about.items() if isinstance(text, str)} if isinstance(about, dict) else {}
        # older clients made a folder for each process below that of the run, and wrote nothing about it
        named = (folder.parent if folder.name.startswith("exec-") else folder).name.split("__")
        run_id = said.get("containerId") or named[min(1, len(named) - 1)]
        if (said.get("containerType", "").lower() or (named[0] if len(named) > 1 else "run")) != "run":
            continue
        mode = said.get("mode") or ("async" if "async" in folder.parts else "offline")
        run, folders = found.setdefault(run_id, (Stored(key=f"local {run_id}", id=run_id, kept=mode), []))
        folders.append(folder)
        with suppress(ValueError, OverflowError):
            stamp = datetime.fromisoformat(said.get("createdAt", ""))
            made = max(round(stamp.timestamp() * 1e6), FIRST_MICROSECOND) if stamp.tzinfo else run.made
            run.made = made if run.made is None else min(run.made, made or run.made)
    return [_read_run(run, folders, root) for run, folders in found.values()]


def _read_run(run: Stored, folders: Sequence[Path], root: Path) -> Stored:
    points: Points = defaultdict(list)
    try:
        for folder in folders:
            for name, found in _read_folder(run, folder, root).items():
                points[name] += found
    except (OSError, SourceError) as error:
        path = Path(getattr(error, "filename", None) or folders[0])
        return make_broken_run(run.id, path, error, "check its permissions", "cannot_read")
    return run.hold({path: make_series(each) for path, each in points.items() if each})


def _read_folder(run: Stored, folder: Path, root: Path) -> Points:
    """Apply the operations of all logs of a process, in the order they were given; return its points."""
    points: Points = defaultdict(list)
    logs = sorted((int(match[1]), path) for path in folder.iterdir() if (match := _LOG.fullmatch(path.name)))
    copies, newest, size, put = 0, 0, 0, 0
    for _, path in logs:
        data = read_regular_file(path, root=root, most=MOST_RECORD_BYTES)
        size += len(data)
        lines, seen = data.rstrip(b"\r\n\0 ").split(b"\n"), set[bytes]()
        for number, line in enumerate(lines, 1):
            # a forked process writes what was buffered a second time
            copies += line in seen
            if line in seen or not line.strip():
                continue
            seen.add(line)
            try:
                newest = max(newest, _read_operation(run, points, line))
            except _NOT_AN_OPERATION as error:
                # a killed process leaves half a line, and only at the end
                if number < len(lines):
                    what = f"line {number} is no operation of Neptune's client"
                    raise SourceError(str(path), what, "copy the folder again", code="damaged_run") from error
                run.rejected.append(Rejected(reason=CUT_LAST_LINE, rows=1, first_line=number))
                run.notes.append("the last line of the log is cut, its operation is lost")
    run.size += size
    run.state = f"{run.state} {newest} {size}".strip()
    if logs[0][0] > 1:
        run.notes.append(f"the log begins with operation {logs[0][0]}: what was before it was uploaded and deleted")
    if copies:
        run.notes.append(f"{copies} operations that forked processes wrote again count once")
    with suppress(OSError, ValueError):
        put = int(read_regular_file(folder / "last_put_version", root=root).decode().strip() or "0")
    if put > newest:
        lost = f"{put - newest} operations were lost when the process was killed"
        run.notes.append(f"{lost}: {put} were given, {newest} are in the log")
    return points


def _read_operation(run: Stored, points: Points, line: bytes) -> int:
    """Apply an operation; return its number."""
    entry = parse_json(line)
    _apply(run, points, entry["obj"])
    version, at = int(entry["version"]), entry.get("at")
    if not 0 <= version < _MOST_COUNT:
        raise ValueError("a version is no count")
    if isinstance(at, int | float) and _is_dated(at):
        run.made = round(at * 1e6) if run.made is None else run.made
        run.last = max(run.last or 0, round(at * 1e6))
    return version


def _apply(run: Stored, points: Points, operation: Mapping[str, Any]) -> None:
    kind, path, value = operation["type"], "/".join(operation.get("path", ())), operation.get("value")
    if kind == "LogFloats":
        points[path] += [_read_point(each) for each in operation["values"]]
    elif kind in {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}:
        if not isinstance(value, str | int | float):
            raise TypeError("a value is neither a text nor a number")
        run.scalars[path] = value
    elif kind == "AssignDatetime" and _is_dated(operation["value"] / 1000):
        run.moments[path] = int(operation["value"]) * 1000
    elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
        run.highest[path] = float(operation["max"])
    elif kind == "ClearFloatLog":
        points.pop(path, None)
    elif kind == "DeleteAttribute":
        held: tuple[dict[str, Any], ...] = (points, run.scalars, run.moments, run.highest)
        for each in held:
            each.pop(path, None)
    elif path == "sys/tags" and kind in {"AddStrings", "RemoveStrings"}:
        given = set(map(str, operation["values"]))
        run.tags = sorted({*run.tags} | given if kind == "AddStrings" else {*run.tags} - given)


def _is_dated(seconds: float) -> bool:
    """Return whether seconds since 1970 have a date; NaN has none."""
    return FIRST_MICROSECOND <= seconds * 1_000_000 < LAST_MICROSECOND


def _read_point(logged: Mapping[str, Any]) -> tuple[int, float, float]:
    time, value, step = float(logged["ts"]), float(logged["value"]), logged.get("step")
    if not _is_dated(time) or not abs(step or 0) < _MOST_COUNT:
        raise ValueError("a point has no time, or no step")
    return round(time * 1e6), value, float("nan") if step is None else float(step)


_NAME = "run_operations.sqlite3"
_COPY = "copy the folder again while nothing writes to it, with the file that ends in -wal"
_CREATED, _SNAPSHOT = 1, 0
"""Kinds of operations."""

Fields = dict[int, list[bytes]]


def is_scale_database(path: Path) -> bool:
    """Return whether a file is such a database; one that may not be read is taken for one, so that this is said."""
    return path.name == _NAME and (is_database(path) or not os.access(path, os.R_OK))


def find_scale_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs of the databases in a folder."""
    return [_open_database(path, root) for path in files if path.name == _NAME]


def _open_database(path: Path, root: Path) -> Stored:
    try:
        check_regular_file(path, root=root)
        with open_read_only(path) as connection:
            return _read_database(connection, path)
    except (sqlite3.Error, struct.error, ValueError, TypeError, OverflowError, OSError, SourceError) as error:
        return make_broken_run(path.parent.name, path, error, _COPY, "not_a_scale_database")


def _read_database(connection: sqlite3.Connection, path: Path) -> Stored:
    about = connection.execute("select version, project, run_id from metadata").fetchone()
    if about is None:
        raise ValueError("it names no run")
    version, project, run_id = map(str, about)
    run = Stored(key=f"{project} {run_id}", id=run_id, project=project, kept="local", size=path.stat().st_size)
    points: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    operations = connection.execute("select operation_type, operation from run_operations order by sequence_id")
    for count, (kind, message) in enumerate(operations, 1):
        parts, run.state = _fields(message), f"{count}"
        if kind == _CREATED:
            run.made, run.title = _moment(parts, 3), _text(parts, 5)
        elif kind == _SNAPSHOT:
            moment, whole = _moment(parts, 2), _fields(_last(parts, 1))
            step = _number(whole, 1) + _number(whole, 2) / 1e6 if 1 in parts else float("nan")
            run.last = max(run.last or 0, moment)
            # 4 is what is assigned, 8 what is appended
            run.scalars |= _entries(parts, 4)
            for name, value in _entries(parts, 8).items():
                if not isinstance(value, bool | str):
                    points[name].append((moment, float(value), step))
    if version not in {"v3", "v4", "v5"}:
        run.notes.append(f"the database is of version {version}, newer than is known")
    return run.hold({name: make_series(found) for name, found in points.items()})


def _entries(parts: Fields, number: int) -> dict[str, Scalar]:
    """Return values by path; those of another kind, such as files and histograms, are left out."""
    found: dict[str, Scalar] = {}
    for each in parts.get(number, ()):
        entry = _fields(each)
        path, value = _text(entry, 1), _fields(_last(entry, 2))
        if 1 in value:
            (found[path],) = struct.unpack("<d", _last(value, 1))
        elif 6 in value:  # noqa: PLR2004 - numbers of fields
            found[path] = _text(value, 6)
        elif {3, 5} & {*value}:
            found[path] = _number(value, 3) if 3 in value else _number(value, 5) != 0  # noqa: PLR2004 - as above
    return found


def _moment(parts: Fields, number: int) -> int:
    """Return a time in microseconds: 1 its seconds, 2 nanoseconds."""
    time = _fields(_last(parts, number))
    moment = _number(time, 1) * 1_000_000 + _number(time, 2) // 1000
    if not FIRST_MICROSECOND <= moment < LAST_MICROSECOND:
        raise ValueError("an operation has a time that is no date")
    return moment


def _last(parts: Fields, number: int) -> bytes:
    return parts.get(number, [b""])[-1]


def _text(parts: Fields, number: int) -> str:
    return _last(parts, number).decode(errors="replace")


def _number(parts: Fields, number: int) -> int:
    """Return a whole number of 64 bits with a sign; 0 where it is not there."""
    return int.from_bytes(_last(parts, number)[:8], "little", signed=True)


def _fields(data: bytes) -> Fields:
    """Return the values of each field of a protobuf message, by its number; ValueError when the data is no message."""
    found: Fields = defaultdict(list)
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind, size = tag & 7, {1: 8, 5: 4}.get(tag & 7, 0)
        if not size:
            size, at = _read_varint(data, at)
        if kind not in {0, 1, 2, 5} or (kind and at + size > len(data)):
            raise ValueError("a field is cut, or of no kind that is known")
        found[tag >> 3].append(data[at : at + size] if kind else (size % 2**64).to_bytes(8, "little"))
        at += size if kind else 0
    return found


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where the next byte lies."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more follows
            return value, at + place + 1
    raise ValueError("a number is cut")
