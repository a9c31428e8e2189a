"""Reads one run from a server through Neptune's client, in a process of its own: `python -m` this module.

The client takes its time limit from the environment when it is imported, gives times in the zone of its process, and
writes to standard output. So it gets a process with a zone, a limit and a standard output of its own, which can be
ended. What it reads is written in the form of an export.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyarrow import parquet

_FIELDS: list[tuple[str, pa.DataType]] = [
    ("project_id", pa.string()),
    ("run_id", pa.string()),
    ("attribute_path", pa.string()),
    ("attribute_type", pa.string()),
    ("step", pa.decimal128(18, 6)),
    ("timestamp", pa.timestamp("ms", "UTC")),
    ("int_value", pa.int64()),
    ("float_value", pa.float64()),
    ("string_value", pa.string()),
    ("bool_value", pa.bool_()),
    ("datetime_value", pa.timestamp("ms", "UTC")),
    ("string_set_value", pa.list_(pa.string())),
]
SCHEMA: "pa.Schema" = pa.schema(_FIELDS)
"""Columns of an export, files and histograms left out."""
COLUMNS = ["sys/id", "sys/name", "sys/state", "sys/creation_time", "sys/trashed"]
"""What is asked of every run for a listing."""
_SINGLE: dict[str, tuple[str, str]] = {
    "Float": ("float", "float_value"),
    "Integer": ("int", "int_value"),
    "String": ("string", "string_value"),
    "Boolean": ("bool", "bool_value"),
    "RunState": ("string", "string_value"),
    "Datetime": ("datetime", "datetime_value"),
    "StringSet": ("string_set", "string_set_value"),
}
"""Class of an attribute to its type and column in an export."""

Row = dict[str, Any]
Progress = Callable[[str], None]


def read_run(project: str, run_id: str, report_progress: Progress) -> "pa.Table":
    """Return a run in the form of an export; series of text and files are not asked for.

    Args:
        project: `workspace/project`.
        run_id: id of the run in it.
        report_progress: called with a word whenever the server has answered.
    """
    import neptune  # noqa: PLC0415 - an extra, and slow to load

    report_progress("imported")
    with neptune.init_run(project=project, with_id=run_id, mode="read-only") as run:
        report_progress("connected")
        attributes = dict(_flatten(run.get_structure(), ()))
        singles = dict(_flatten(run.fetch(), ()))
        report_progress("described")
        rows: list[Row] = []
        for path, attribute in attributes.items():
            kind = type(attribute).__name__
            if kind == "FloatSeries":
                rows += _points(path, attribute.fetch_values(progress_bar=False))
                report_progress(path)
            elif kind in _SINGLE and path in singles:
                rows.append(_single(path, kind, singles[path]))
    whole = [{"project_id": project, "run_id": run_id, **row} for row in rows]
    return pa.Table.from_pylist(whole, schema=SCHEMA)


def list_runs(project: str, query: str | None, report_progress: Progress) -> "pa.Table":
    """Return the single values of every run of a project that a listing shows, in the form of an export.

    Args:
        project: `workspace/project`.
        query: which runs, in Neptune's query language; all when None.
        report_progress: called with a word whenever the server has answered.
    """
    import neptune  # noqa: PLC0415 - as above

    report_progress("imported")
    with neptune.init_project(project=project, mode="read-only") as container:
        report_progress("connected")
        frame = container.fetch_runs_table(query=query, columns=COLUMNS, progress_bar=False).to_pandas()
    rows = [
        {"project_id": project, "run_id": str(entry["sys/id"]), **cell_row(path, value)}
        for entry in frame.to_dict("records")
        for path, value in entry.items()
        if value is not None and value == value  # noqa: PLR0124 - NaN, as pandas has it where there is nothing
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def cell_row(path: str, value: object) -> Row:
    """Return a cell of a listing as a row of an export."""
    if isinstance(value, bool):
        return {"attribute_path": path, "attribute_type": "bool", "bool_value": value}
    if isinstance(value, datetime):
        return {"attribute_path": path, "attribute_type": "datetime", "datetime_value": _as_utc(value)}
    return {"attribute_path": path, "attribute_type": "string", "string_value": str(value)}


def _flatten(structure: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    for name, value in structure.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, (*above, name))
        else:
            yield "/".join((*above, name)), value


def _points(path: str, frame: Any) -> Iterator[Row]:
    """Yield the points of a series; the client gives times without a zone, in that of the process."""
    for point in frame.to_dict("records"):
        step = point.get("step")
        yield {
            "attribute_path": path,
            "attribute_type": "float_series",
            "step": None if step is None else Decimal(str(round(float(step), 6))),
            "timestamp": _as_utc(point["timestamp"]),
            "float_value": float(point["value"]),
        }


def _single(path: str, kind: str, value: object) -> Row:
    name, column = _SINGLE[kind]
    if isinstance(value, datetime):
        value = _as_utc(value)
    elif isinstance(value, set | frozenset):
        value = sorted(value)
    return {"attribute_path": path, "attribute_type": name, column: value}


def _as_utc(moment: datetime) -> datetime:
    """Return a time with its zone: one without is in that of the process, which is UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def main() -> int:
    """Read what the arguments ask for, tell of it on the standard output that was, and keep the client off it."""
    asked = json.loads(sys.argv[1])
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def report_progress(word: str) -> None:
        line.write(f"{json.dumps({'told': word})}\n")
        line.flush()

    try:
        if asked["run"]:
            table = read_run(asked["project"], asked["run"], report_progress)
        else:
            table = list_runs(asked["project"], asked["query"], report_progress)
        parquet.write_table(table, asked["out"])
    except Exception as error:
        first = next((text for text in str(error).splitlines() if text.strip()), "")
        line.write(f"{json.dumps({'error': type(error).__name__, 'what': first.strip()[:200]})}\n")
        line.flush()
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
