"""The log of operations of Neptune's client, as plain lines of JSON."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune_hardware.point_series import STEP_NOT_RECORDED, STEP_UNITS, Series

if TYPE_CHECKING:
    from gpureport.importers.trackers.neptune.run_content import Scalar

_SECOND = 1e6
_REMEMBERED = 1_000
"""Lines that are held against those below: a buffer of 8 KiB has some fifty, and each worker writes it once."""
_ASSIGNED = {"AssignFloat", "AssignInt", "AssignBool", "AssignString"}

Point = tuple[float, float, float | None]


class Operations:
    """What the operations of a run come to, in the order they were given."""

    def __init__(self) -> None:
        """Begin with nothing."""
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
            data = path.read_bytes()
        except OSError as error:
            raise SourceError(str(path), error.strerror or "cannot be read", "check its permissions") from error
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
            entry = json.loads(line)
            operation = entry["obj"]
            self._apply(operation["type"], "/".join(operation.get("path", ())), operation)
            version, at = int(entry["version"]), entry.get("at")
        except (ValueError, TypeError, KeyError) as error:
            # a killed process leaves half a line, and only at the end
            if not last:
                what = f"line {number} is no operation of Neptune's client"
                raise SourceError(str(path), what, "copy the folder again") from error
            self.torn = number
            return
        self.newest = max(self.newest, version)
        if isinstance(at, int | float):
            moment = round(at * _SECOND)
            self.first = moment if self.first is None else self.first
            self.last = moment if self.last is None else max(self.last, moment)

    def _apply(self, kind: str, path: str, operation: Mapping[str, Any]) -> None:
        if kind == "LogFloats":
            points = [(float(each["ts"]), float(each["value"]), each.get("step")) for each in operation["values"]]
            self.points.setdefault(path, []).extend(points)
        elif kind in _ASSIGNED:
            self.scalars[path] = operation["value"]
        elif kind == "AssignDatetime":
            self.moments[path] = int(operation["value"]) * 1000
        elif kind == "ConfigFloatSeries" and operation.get("max") is not None:
            self.highest[path] = float(operation["max"])
        elif kind == "ClearFloatLog":
            self.points.pop(path, None)
        elif kind == "DeleteAttribute":
            self._delete(path)
        elif path == "sys/tags" and kind == "AddStrings":
            self.tags |= set(operation["values"])
        elif path == "sys/tags" and kind == "RemoveStrings":
            self.tags -= set(operation["values"])

    def _delete(self, path: str) -> None:
        held: tuple[dict[str, Any], ...] = (self.points, self.scalars, self.moments, self.highest)
        for each in held:
            each.pop(path, None)

    def series(self) -> dict[str, Series]:
        """Return the series of numbers by path."""
        return {path: _series(points) for path, points in self.points.items() if points}


def _series(points: list[Point]) -> Series:
    times, values, steps = zip(*points, strict=True)
    return Series(
        np.rint(np.array(times, dtype=np.float64) * _SECOND).astype(np.int64),
        np.array(values, dtype=np.float64),
        np.array([STEP_NOT_RECORDED if step is None else round(step * STEP_UNITS) for step in steps], dtype=np.int64),
    )
