"""Runs that Neptune's clients left on disk: `.neptune` folders up to 1.x, databases of neptune-scale.

The client's logs are JSON lines of one operation each, complete for runs never uploaded,
remains for others. Databases of neptune-scale hold operations as protobuf messages. Both are only read: the
client's own reader truncates and removes logs. Errors in a database are pickled and not read.
"""

import os
import re
import sqlite3
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.hardware import Scalar, Stored, make_broken_run
from gpureport.importers.protobuf import read_message
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, TORN
from gpureport.importers.read_only_sqlite import is_database, open_database
from gpureport.importers.tracker_series import is_dated
from gpureport.limits import MOST_RECORD_BYTES
from gpureport.parsing import parse_json
from gpureport.regular_files import check_regular_file, read_regular_file

_LOG = re.compile(r"data-(\d{1,18})\.log", re.ASCII)
_DATABASE, _TABLES = "run_operations.sqlite3", ("metadata", "run_operations")
_MOST_COUNT, _MOST_INTEGER = 2**62, 2**63
_NO_OPERATION = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)
_CREATED, _SNAPSHOT = 1, 0
"""Kinds of operations in a database."""

Points = dict[str, list[tuple[int, float, float]]]


def is_operation_log(path: Path) -> bool:
    """Return whether a file is a log of the client, by its name and an operation on its first line."""
    if _LOG.fullmatch(path.name) is None:
        return False
    try:
        check_regular_file(path)
        with path.open("rb") as file:
            head = file.read(4096).strip()
    except OSError:
        return True
    return head.startswith(b'{"obj"') or not head


def is_scale_database(path: Path) -> bool:
    """Return whether a file is a database of neptune-scale; an unreadable one counts, so that it is reported."""
    return path.name == _DATABASE and (is_database(path) or not os.access(path, os.R_OK))


def find_local_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs whose logs lie in a folder, without the client's other things, such as models.

    Each process of a run wrote to a folder of its own.
    """
    found: dict[str, Stored] = {}
    points: dict[str, Points] = defaultdict(lambda: defaultdict(list))
    for folder in sorted({path.parent for path in files if _LOG.fullmatch(path.name)}):
        about: Any = None
        with suppress(OSError, ValueError, RecursionError):
            about = parse_json(read_regular_file(folder / "metadata.json", root=root))
        said = {key: text for key, text in about.items() if isinstance(text, str)} if isinstance(about, dict) else {}
        # run__ID__PROCESS__LETTERS, of older clients run__ID or ID
        named = folder.name.split("__")
        run_id = said.get("containerId") or named[min(1, len(named) - 1)]
        if (said.get("containerType", "").lower() or (named[0] if len(named) > 1 else "run")) != "run":
            continue
        mode = said.get("mode") or ("async" if "async" in folder.parts else "offline")
        run = found.setdefault(run_id, Stored(key=f"local {run_id}", id=run_id, scalars={"sys/state": mode}))
        try:
            for name, each in _read_folder(run, folder, root).items():
                points[run_id][name] += each
        except (OSError, SourceError) as error:
            found[run_id] = make_broken_run(run_id, folder, error)
    return [run.hold(points[run_id]) for run_id, run in found.items()]


def _read_folder(run: Stored, folder: Path, root: Path) -> Points:
    points: Points = defaultdict(list)
    logs = sorted((int(match[1]), path) for path in folder.iterdir() if (match := _LOG.fullmatch(path.name)))
    newest = put = 0
    for _, path in logs:
        data = read_regular_file(path, root=root, most=MOST_RECORD_BYTES)
        run.size += len(data)
        lines, torn, seen = data.rstrip(b"\r\n\0 ").split(b"\n"), list[int](), {b""}
        for number, line in enumerate(lines, 1):
            # a forked process writes what was buffered a second time
            if line in seen:
                continue
            seen.add(line)
            try:
                newest = max(newest, _apply(run, points, parse_json(line)))
            except _NO_OPERATION:
                torn.append(number)
        if torn[:1] == [1] and len(lines) > 1:
            what = "line 1 is not an operation of Neptune's client"
            raise SourceError(str(path), what, "copy the folder again", code="damaged_run")
        if torn:
            # a killed process leaves half a line, and only at the end
            reason = CUT_LAST_LINE if torn == [len(lines)] else TORN
            run.rejected.append(Rejected(reason=reason, rows=len(torn), first_line=torn[0]))
    if logs[0][0] > 1:
        run.notes.append(f"the log begins with operation {logs[0][0]}: what was before it was uploaded and deleted")
    with suppress(OSError, ValueError):
        put = int(read_regular_file(folder / "last_put_version", root=root).decode().strip() or "0")
    if put > newest:
        lost = f"{put - newest} operations were lost when the process was killed"
        run.notes.append(f"{lost}: {put} were given, {newest} are in the log")
    return points


def _apply(run: Stored, points: Points, entry: Mapping[str, Any]) -> int:
    operation, version, at = entry["obj"], int(entry["version"]), entry.get("at")
    kind, path, value = operation["type"], "/".join(operation.get("path", ())), operation.get("value")
    if not 0 <= version < _MOST_COUNT:
        raise ValueError("a version is no count")
    if kind == "LogFloats":
        points[path] += [_read_point(each) for each in operation["values"]]
    elif kind in {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}:
        if not isinstance(value, str | int | float):
            raise TypeError("a value is neither a text nor a number")
        run.scalars[path] = value
    elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
        run.highest[path] = float(operation["max"])
    elif kind in {"ClearFloatLog", "DeleteAttribute"}:
        points.pop(path, None)
        run.scalars.pop(path, None)
    elif path == "sys/tags" and kind in {"AddStrings", "RemoveStrings"}:
        given = set(map(str, operation["values"]))
        run.tags = sorted({*run.tags} | given if kind == "AddStrings" else {*run.tags} - given)
    if isinstance(at, int | float) and is_dated(at * 1_000_000):
        run.last = max(round(at * 1e6), run.last or 0)
        run.started = round(at * 1e6) if run.started is None else run.started
    return version


def _read_point(logged: Mapping[str, Any]) -> tuple[int, float, float]:
    time, value, step = float(logged["ts"]), float(logged["value"]), logged.get("step")
    if not is_dated(time * 1_000_000) or not abs(step or 0) < _MOST_COUNT:
        raise ValueError("a point has no time, or no step")
    return round(time * 1e6), value, float("nan") if step is None else float(step)


def find_scale_runs(files: Sequence[Path], root: Path) -> list[Stored]:
    """Return the runs of the databases in a folder."""
    found = []
    for path in (path for path in files if path.name == _DATABASE):
        try:
            check_regular_file(path, root=root)
            with open_database(path, _TABLES, "neptune-scale", "not_a_scale_database") as connection:
                found.append(_read_database(connection, path))
        except (OSError, SourceError) as error:
            found.append(make_broken_run(path.parent.name, path, error))
    return found


def _read_database(connection: sqlite3.Connection, path: Path) -> Stored:
    version, project, run_id = map(str, connection.execute("select version, project, run_id from metadata").fetchone())
    run = Stored(key=f"{project} {run_id}", id=run_id, project=project, size=path.stat().st_size)
    points: Points = defaultdict(list)
    for kind, message in connection.execute(
        "select operation_type, operation from run_operations order by sequence_id"
    ):
        parts = read_message(message)
        if kind == _CREATED:
            run.started = _read_moment(parts[3][-1])
            run.scalars |= {"sys/state": "local", "sys/name": b"".join(parts[5]).decode(errors="replace")}
        elif kind == _SNAPSHOT:
            # 1 is the step, 2 the time, 4 an assigned value, 8 an appended one
            moment, step = _read_moment(parts[2][-1]), float("nan")
            for each in map(read_message, parts[1]):
                step = sum(each[1]) + sum(each[2]) / 1e6
            run.last = max(run.last or 0, moment)
            run.scalars |= _read_entries(parts[4])
            for name, value in _read_entries(parts[8]).items():
                if not isinstance(value, bool | str):
                    points[name].append((moment, float(value), step))
    if version not in {"v3", "v4", "v5"}:
        run.notes.append(f"the database is of version {version}, newer than is known")
    return run.hold(points)


def _read_entries(entries: Iterable[bytes]) -> dict[str, Scalar]:
    found: dict[str, Scalar] = {}
    for entry in map(read_message, entries):
        path, value = entry[1][-1].decode(errors="replace"), read_message(entry[2][-1])
        # 1 is a float, 3 an integer with its sign, 5 a truth, 6 a text
        values = [
            *(struct.unpack("<d", each)[0] for each in value[1]),
            *(each - 2 * _MOST_INTEGER * (each >= _MOST_INTEGER) for each in value[3]),
            *(each != 0 for each in value[5]),
            *(each.decode(errors="replace") for each in value[6]),
        ]
        if values:
            found[path] = values[-1]
    return found


def _read_moment(message: bytes) -> int:
    """Return a time in microseconds: 1 its seconds, 2 nanoseconds."""
    time = read_message(message)
    moment = int(sum(time[1]) * 1_000_000 + sum(time[2]) // 1000)
    if not is_dated(moment):
        raise ValueError("an operation has a time that is no date")
    return moment
