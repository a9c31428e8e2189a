"""One metric of MLflow's file store: a line a point, `time value step`, without the step or with a dataset after it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from gpureport import columns
from gpureport.importers.trackers.mlflow.run_store import MetricSeries, order_points
from gpureport.limits import MOST_RECORD_BYTES
from gpureport.regular_files import read_regular_file

_FORMS = (
    ("time", "value", "step"),
    ("time", "value"),
    ("time", "value", "step", "dataset", "digest"),
)
"""Columns by number of fields; the common one first."""
_MOST_COUNT = 2**63
_TYPES: dict[str, Any] = {"time": pa.int64(), "value": pa.float64(), "step": pa.int64()}


def read_metric(path: Path, key: str, root: Path) -> MetricSeries:
    """Return the points of a metric; lines that are none are counted.

    Args:
        path: its file.
        key: its name.
        root: the folder of the store.

    Raises:
        UnsafeFileError: when it is no regular file, lies outside the store, or is too large.
    """
    content = read_regular_file(path, root=root, most=MOST_RECORD_BYTES)
    fields = content.partition(b"\n")[0].count(b" ") + 1
    names = next((form for form in _FORMS if len(form) == fields), None)
    if names is not None and content.endswith(b"\n"):
        try:
            table = csv.read_csv(
                _open_buffer(content),
                read_options=csv.ReadOptions(column_names=list(names), use_threads=False),
                parse_options=csv.ParseOptions(delimiter=" ", quote_char=False),
                # text that stands for nothing is no value here: nan is a number that was logged
                convert_options=csv.ConvertOptions(column_types=_TYPES, null_values=[]),
            )
        except pa.ArrowInvalid:
            return _read_lines(content, key)
        times = columns.integers(table.column("time"))
        steps = columns.integers(table.column("step")) if "step" in names else np.zeros(len(times), dtype=np.int64)
        return order_points(key, times, columns.floats(table.column("value")), steps)
    return _read_lines(content, key)


def _open_buffer(content: bytes) -> Any:
    return pa.BufferReader(content)


def _read_lines(content: bytes, key: str) -> MetricSeries:
    """Return the points of lines that have not all the same fields, or are not all whole."""
    lines = [line for line in content.split(b"\n") if line.strip()]
    # the last line of a process that was killed may have been cut anywhere
    whole = lines if content.endswith(b"\n") else lines[:-1]
    points = [point for line in whole if (point := _parse_point(line)) is not None]
    times, values, steps = zip(*points, strict=True) if points else ((), (), ())
    return order_points(
        key,
        np.array(times, dtype=np.int64),
        np.array(values, dtype=np.float64),
        np.array(steps, dtype=np.int64),
        len(lines) - len(points),
    )


def _parse_point(line: bytes) -> tuple[int, float, int] | None:
    fields = line.split(b" ")
    if len(fields) not in {len(form) for form in _FORMS}:
        return None
    try:
        time, value, step = int(fields[0]), float(fields[1]), int(fields[2]) if len(fields) > 2 else 0  # noqa: PLR2004 - time, value
    except ValueError:
        return None
    # larger ones are no counts of 64 bits
    return (time, value, step) if max(abs(time), abs(step)) < _MOST_COUNT else None
