"""The log of operations of Neptune's client, as plain lines of JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, STEP_UNITS, Series
from gpureport.json_text import parse_json
from gpureport.limits import FIRST_MICROSECOND, LAST_MICROSECOND, MOST_RECORD_BYTES
from gpureport.regular_files import UnsafeFileError, read_regular_file

if TYPE_CHECKING:
    from gpureport.importers.trackers.neptune.run_content import Scalar

_SECOND, _MS = 1e6, 1000
_MOST_COUNT = 2**62
_REMEMBERED = 1_000
"""Lines that are held against those below: a buffer of 8 KiB has some fifty, and each worker writes it once."""
_ASSIGNED = {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}

Point = tuple[float, float, float | None]


class Operations:
    """What the operations of a run come to, in the order they were given."""

    def __init__(self, root: Path) -> None:
        """Begin with nothing; no log is read that lies outside a folder."""
        self._root = root
        self.scalars: dict[str, Scalar] = {}
        self.moments: dict[str, int] = {}
        self.tags: set[str] = set()
        self.points: dict[str, list[Point]] = {}
        self.highest: dict[str, float] = {}
        self.first: int | None = None
        self.last: int | None = None
        self.newest = 0
        self.bytes = 0
        self.torn: int | None = None
        self.copies = 0
        self._recent: dict[bytes, None] = {}

    def read(self, path: Path) -> None:
        """Apply the operations of one log, in order.

        Raises:
            SourceError: when it cannot be read, or a line before the last is no operation.
        """
        try:
            data = read_regular_file(path, root=self._root, most=MOST_RECORD_BYTES)
        except OSError as error:
            hint = error.hint if isinstance(error, UnsafeFileError) else "check its permissions"
            raise SourceError(str(path), error.strerror or "cannot be read", hint, code="cannot_read") from error
        self.bytes += len(data)
        lines = data.rstrip(b"\r\n\0 ").split(b"\n")
        for number, line in enumerate(lines, 1):
            if line.strip() and not self._copied(line):
                self._line(path, number, line, last=number == len(lines))

    def _copied(self, line: bytes) -> bool:
        """Return whether a line stood there before: a forked process writes what was buffered a second time."""
        if line in self._recent:
            self.copies += 1
            return True
        if len(self._recent) >= _REMEMBERED:
            del self._recent[next(iter(self._recent))]
        self._recent[line] = None
        return False

    def _line(self, path: Path, number: int, line: bytes, *, last: bool) -> None:
        try:
            entry = parse_json(line)
            operation = entry["obj"]
            self._apply(operation["type"], "/".join(operation.get("path", ())), operation)
            version, at = _version(entry["version"]), entry.get("at")
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            # a killed process leaves half a line, and only at the end
            if not last:
                what = f"line {number} is no operation of Neptune's client"
                raise SourceError(str(path), what, "copy the folder again", code="damaged_run") from error
            self.torn = number
            return
        self.newest = max(self.newest, version)
        if isinstance(at, int | float) and _is_dated(at):
            moment = round(at * _SECOND)
            self.first = moment if self.first is None else self.first
            self.last = moment if self.last is None else max(self.last, moment)

    def _apply(self, kind: str, path: str, operation: Mapping[str, Any]) -> None:
        if kind == "LogFloats":
            points = [_point(each) for each in operation["values"]]
            self.points.setdefault(path, []).extend(points)
        elif kind in _ASSIGNED:
            self.scalars[path] = _scalar(operation["value"])
        elif kind == "AssignDatetime":
            if _is_dated(operation["value"] / _MS):
                self.moments[path] = int(operation["value"]) * _MS
        elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
            self.highest[path] = float(operation["max"])
        elif kind == "ClearFloatLog":
            self.points.pop(path, None)
        elif kind == "DeleteAttribute":
            self._delete(path)
        elif path == "sys/tags" and kind == "AddStrings":
            self.tags |= set(map(str, operation["values"]))
        elif path == "sys/tags" and kind == "RemoveStrings":
            self.tags -= set(map(str, operation["values"]))

    def _delete(self, path: str) -> None:
        held: tuple[dict[str, Any], ...] = (self.points, self.scalars, self.moments, self.highest)
        for each in held:
            each.pop(path, None)

    def series(self) -> dict[str, Series]:
        """Return the series of numbers by path."""
        return {path: _series(points) for path, points in self.points.items() if points}


def _is_dated(seconds: float) -> bool:
    """Return whether seconds since 1970 have a date; NaN has none."""
    return FIRST_MICROSECOND / _SECOND <= seconds < LAST_MICROSECOND / _SECOND


def _version(value: object) -> int:
    number = int(value) if isinstance(value, int | float | str) else -1
    if not 0 <= number < _MOST_COUNT:
        raise ValueError("a version is no count")
    return number


def _scalar(value: object) -> "Scalar":
    if not isinstance(value, str | int | float):
        raise TypeError("a value is neither a text nor a number")
    return value


def _point(logged: Mapping[str, Any]) -> Point:
    """Return a point.

    Raises:
        ValueError: when its time is no date, or its step no count; TypeError, KeyError: when it is no point.
    """
    time, value, step = float(logged["ts"]), float(logged["value"]), logged.get("step")
    if not isinstance(step, int | float | None):
        raise TypeError("a step is no number")
    if not _is_dated(time) or not abs(step or 0) * STEP_UNITS < _MOST_COUNT:
        raise ValueError("a point has no time, or no step")
    return time, value, step


def _series(points: list[Point]) -> Series:
    times, values, steps = zip(*points, strict=True)
    return Series(
        np.rint(np.array(times, dtype=np.float64) * _SECOND).astype(np.int64),
        np.array(values, dtype=np.float64),
        np.array([STEP_NOT_RECORDED if step is None else round(step * STEP_UNITS) for step in steps], dtype=np.int64),
    )
