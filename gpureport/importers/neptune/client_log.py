"""Runs in `.neptune` folders of the client up to 1.x: recordings that were never uploaded, and what is left of others.

Their logs are lines of JSON, an operation each. They are opened for reading only: the client's own reader truncates and
removes them.
"""

import os
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.neptune.exports import EPOCH
from gpureport.importers.neptune.hardware import STEP_NOT_RECORDED, STEP_UNITS, make_series
from gpureport.importers.neptune.stored import Content, Scalar, StoredRun, merge_contents
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE
from gpureport.json_text import parse_json
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_RECORD_BYTES
from gpureport.regular_files import UnsafeFileError, check_regular_file, read_regular_file, walk_folder

_LOG = re.compile(r"data-(\d{1,18})\.log", re.ASCII)
_HEAD = 4096
_SECOND = 1e6
_MOST_COUNT = 2**62
_REMEMBERED = 1_000
"""Lines that are held against those below: a buffer of 8 KiB has some fifty, and each worker writes it once."""
_NOT_AN_OPERATION = (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError)


def is_operation_log(path: Path) -> bool:
    """Return whether a file is such a log: its name says so, and its first line is an operation."""
    if _LOG.fullmatch(path.name) is None:
        return False
    try:
        check_regular_file(path)
        with path.open("rb") as file:
            head = file.read(_HEAD).strip()
    except OSError:
        return True
    return head.startswith(b'{"obj"') or not head


def find_local_runs(source: Path) -> list[StoredRun]:
    """Return the runs whose logs lie in a folder or below; other things the client keeps, such as models, are none."""
    root = source if source.is_dir() else source.parent
    walked = walk_folder(root) if source.is_dir() else [(root, [], os.listdir(root))]
    by_id: dict[str, list[_Process]] = defaultdict(list)
    for folder in sorted(place for place, _, names in walked if any(map(_LOG.fullmatch, names))):
        found = _describe(folder, root)
        if found.kind == "run":
            by_id[found.id].append(found)
    return [_make_run(run_id, found) for run_id, found in by_id.items()]


@dataclass(slots=True, kw_only=True)
class _Process:
    """What one process recorded in a folder of its own: what its operations come to, in the order they were given.

    Attributes:
        kind, id, mode: of what it is a part, and whether it was uploaded at once.
        made: when that was made; None where nothing says so.
        points: time, value and step.
        last: time of the last operation.
        newest: number of the last operation.
        torn: number of a last line that is cut.
        copies: lines that were written twice.
    """

    folder: Path
    root: Path
    kind: str
    id: str
    mode: str
    made: int | None
    scalars: dict[str, Scalar] = field(default_factory=dict)
    moments: dict[str, int] = field(default_factory=dict)
    points: dict[str, list[tuple[int, float, int]]] = field(default_factory=dict)
    highest: dict[str, float] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    last: int | None = None
    newest: int = 0
    bytes: int = 0
    torn: int | None = None
    copies: int = 0


def _describe(folder: Path, root: Path) -> _Process:
    """Return what the client wrote of a folder when it made it, else what its name says."""
    try:
        about = parse_json(read_regular_file(folder / "metadata.json", root=root))
    except (OSError, ValueError, RecursionError):
        about = {}
    said = {name: value for name, value in about.items() if isinstance(value, str)} if isinstance(about, dict) else {}
    # older clients made a folder for each process below that of the run, and no description when there were only runs
    named = (folder.parent if folder.name.startswith("exec-") else folder).name.split("__")
    made = None
    with suppress(ValueError):
        stamp = datetime.fromisoformat(said.get("createdAt", ""))
        made = None if stamp.tzinfo is None else max((stamp - EPOCH) // timedelta(microseconds=1), FIRST_MICROSECOND)
    return _Process(
        folder=folder,
        root=root,
        kind=said.get("containerType", "").lower() or (named[0] if len(named) > 1 else "run"),
        id=said.get("containerId") or named[min(1, len(named) - 1)],
        mode=said.get("mode") or ("async" if "async" in folder.parts else "offline"),
        made=made,
    )


def _make_run(run_id: str, processes: list[_Process]) -> StoredRun:
    try:
        contents = [_read(process) for process in processes]
    except SourceError as error:
        return StoredRun(key=f"local {run_id}", id=run_id, fault=error)
    made = min((each.made for each in processes if each.made is not None), default=None)
    return replace(merge_contents(contents, f"local {run_id}", run_id), kept=processes[0].mode, made=made)


def _read(process: _Process) -> Content:
    """Apply the operations of all logs of a process.

    Raises:
        SourceError: when one cannot be read, or a line before the last is no operation.
    """
    # a forked process writes what was buffered a second time
    recent: dict[bytes, None] = {}
    found = [(int(match[1]), path) for path in process.folder.iterdir() if (match := _LOG.fullmatch(path.name))]
    numbered = sorted(found)
    for _, path in numbered:
        try:
            data = read_regular_file(path, root=process.root, most=MOST_RECORD_BYTES)
        except OSError as error:
            hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions"
            raise SourceError(str(path), error.strerror or "cannot be read", hint, code="cannot_read") from error
        process.bytes += len(data)
        lines = data.rstrip(b"\r\n\0 ").split(b"\n")
        for number, line in enumerate(lines, 1):
            if line in recent:
                process.copies += 1
            elif line.strip():
                if len(recent) >= _REMEMBERED:
                    del recent[next(iter(recent))]
                recent[line] = None
                try:
                    _read_line(process, line)
                except _NOT_AN_OPERATION as error:
                    # a killed process leaves half a line, and only at the end
                    if number < len(lines):
                        what = f"line {number} is no operation of Neptune's client"
                        raise SourceError(str(path), what, "copy the folder again", code="damaged_run") from error
                    process.torn = number
    torn = process.torn
    return Content(
        series={path: make_series(points) for path, points in process.points.items() if points},
        scalars=process.scalars,
        moments=process.moments,
        tags=tuple(sorted(process.tags)),
        highest=process.highest,
        last=process.last,
        rejected=(Rejected(reason=CUT_LAST_LINE, rows=1, first_line=torn),) if torn else (),
        notes=tuple(_notes(process, numbered[0][0])),
        state=f"{process.newest} {process.bytes}",
        size=process.bytes,
    )


def _read_line(process: _Process, line: bytes) -> None:
    entry = parse_json(line)
    operation = entry["obj"]
    _apply(process, operation["type"], "/".join(operation.get("path", ())), operation)
    version, at = int(entry["version"]), entry.get("at")
    if not 0 <= version < _MOST_COUNT:
        raise ValueError("a version is no count")
    process.newest = max(process.newest, version)
    if isinstance(at, int | float) and _is_dated(at):
        moment = round(at * _SECOND)
        process.made = moment if process.made is None else process.made
        process.last = max(process.last or 0, moment)


def _apply(process: _Process, kind: str, path: str, operation: Mapping[str, Any]) -> None:
    if kind == "LogFloats":
        points = [_point(each) for each in operation["values"]]
        process.points.setdefault(path, []).extend(points)
    elif kind in {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}:
        if not isinstance(operation["value"], str | int | float):
            raise TypeError("a value is neither a text nor a number")
        process.scalars[path] = operation["value"]
    elif kind == "AssignDatetime" and _is_dated(operation["value"] / 1000):
        process.moments[path] = int(operation["value"]) * 1000
    elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
        process.highest[path] = float(operation["max"])
    elif kind == "ClearFloatLog":
        process.points.pop(path, None)
    elif kind == "DeleteAttribute":
        held: tuple[dict[str, Any], ...] = (process.points, process.scalars, process.moments, process.highest)
        for each in held:
            each.pop(path, None)
    elif path == "sys/tags" and kind == "AddStrings":
        process.tags |= set(map(str, operation["values"]))
    elif path == "sys/tags" and kind == "RemoveStrings":
        process.tags -= set(map(str, operation["values"]))


def _is_dated(seconds: float) -> bool:
    """Return whether seconds since 1970 have a date; NaN has none."""
    return FIRST_MICROSECOND / _SECOND <= seconds < LAST_MICROSECOND / _SECOND


def _point(logged: Mapping[str, Any]) -> tuple[int, float, int]:
    """Return a point.

    Raises:
        ValueError: when its time is no date, or its step no count; TypeError, KeyError: when it is no point.
    """
    time, value, step = float(logged["ts"]), float(logged["value"]), logged.get("step")
    if not _is_dated(time) or not abs(step or 0) * STEP_UNITS < _MOST_COUNT:
        raise ValueError("a point has no time, or no step")
    return round(time * _SECOND), value, STEP_NOT_RECORDED if step is None else round(step * STEP_UNITS)


def _notes(process: _Process, oldest: int) -> Iterator[str]:
    if oldest > 1:
        yield f"the log begins with operation {oldest}: what was before it was uploaded and deleted"
    if process.copies:
        yield f"{process.copies} operations that forked processes wrote again count once"
    if process.torn:
        yield "the last line of the log is cut, its operation is lost"
    try:
        put = int(read_regular_file(process.folder / "last_put_version", root=process.root).decode().strip() or "0")
    except (OSError, ValueError):
        return
    if put > process.newest:
        lost = f"{put - process.newest} operations were lost"
        yield f"{lost} when the process was killed: {put} were given, {process.newest} are in the log"
