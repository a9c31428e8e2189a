"""Points of training metrics, collected by columns."""

from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.columns import IntArray
from gpureport.importers.values.timestamps import parse_timestamp
from gpureport.series_table import TRAINING_SCHEMA

_ELAPSED_MOST = 1e8
"""Seconds a training may last; a larger number is a date."""
_MOST_STEPS = 2**62


@dataclass(frozen=True, slots=True)
class PointTime:
    """When a point was written.

    Attributes:
        kind: `utc`, `local`, `elapsed` or, where nothing tells, `none`.
        micros: microseconds; since the run began where it is elapsed time.
    """

    kind: str
    micros: int = 0


def parse_point_time(text: str) -> PointTime | None:
    """Return what a cell of time says, None where it holds no time."""
    found = parse_timestamp(text)
    if found is not None:
        return PointTime("utc" if found.utc else "local", found.micros)
    try:
        seconds = float(text)
    except ValueError:
        return None
    return PointTime("elapsed", round(seconds * 1e6)) if 0 <= seconds < _ELAPSED_MOST else None


def parse_step(value: object) -> int | None:
    """Return a step, None where it is none."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return int(number) if number.is_integer() and abs(number) < _MOST_STEPS else None


@dataclass(slots=True)
class Points:
    """Points so far.

    Attributes:
        kind: how their times are told; that of the first one.
    """

    kind: str | None = None
    _times: "array[int]" = field(default_factory=lambda: array("q"))
    _steps: "array[int]" = field(default_factory=lambda: array("q"))
    _stepped: "array[int]" = field(default_factory=lambda: array("b"))
    _names: "array[int]" = field(default_factory=lambda: array("i"))
    _values: "array[float]" = field(default_factory=lambda: array("d"))
    _known: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._values)

    def add(self, at: PointTime, number: int | None, values: Mapping[str, float]) -> bool:
        """Add the points of a row; return whether its time is of the same kind as in earlier rows."""
        if self.kind is None:
            self.kind = at.kind
        if at.kind != self.kind:
            return False
        for name, value in values.items():
            self._times.append(at.micros)
            self._steps.append(0 if number is None else number)
            self._stepped.append(number is not None)
            self._names.append(self._known.setdefault(name, len(self._known)))
            self._values.append(value)
        return True

    @property
    def times(self) -> IntArray:
        """The times as written, in microseconds."""
        return np.array(self._times, dtype=np.int64)

    def table(self, times: IntArray) -> "pa.Table":
        """Return the points as a table in TRAINING_SCHEMA, at these times in microseconds."""
        stepped = np.array(self._stepped, dtype=np.bool_)
        arrays = [
            columns.to_arrow(times, pa.timestamp("us"), np.full(len(self), self.kind != "none")),
            columns.to_arrow(np.array(self._steps, dtype=np.int64), pa.int64(), stepped),
            columns.categories(np.array(self._names, dtype=np.int64), list(self._known) or [""]),
            columns.to_arrow(np.array(self._values, dtype=np.float64), pa.float64()),
        ]
        return pa.Table.from_arrays(arrays, schema=TRAINING_SCHEMA)
