"""Exports as neptune-exporter lays them out, written here."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyarrow import parquet

from tests.importers.trackers.neptune.schedule import Points, Schedule

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
    ("file_value", pa.struct([("path", pa.string())])),
    (
        "histogram_value",
        pa.struct([("type", pa.string()), ("edges", pa.list_(pa.float64())), ("values", pa.list_(pa.float64()))]),
    ),
]
SCHEMA: "pa.Schema" = pa.schema(_FIELDS)
PROJECT = "acme/gpu-opt"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_COLUMNS = {bool: ("bool", "bool_value"), int: ("int", "int_value"), float: ("float", "float_value")}

Row = dict[str, Any]


def when(microseconds: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=microseconds // 1000)


def single(path: str, value: object) -> Row:
    if isinstance(value, datetime):
        return {"attribute_path": path, "attribute_type": "datetime", "datetime_value": value}
    if isinstance(value, list):
        return {"attribute_path": path, "attribute_type": "string_set", "string_set_value": value}
    kind, column = _COLUMNS.get(type(value), ("string", "string_value"))
    return {"attribute_path": path, "attribute_type": kind, column: value}


def points(path: str, values: Points) -> list[Row]:
    return [
        {
            "attribute_path": path,
            "attribute_type": "float_series",
            "step": Decimal(step),
            "timestamp": when(at),
            "float_value": value,
        }
        for step, (at, value) in enumerate(values)
    ]


def text(path: str, lines: Iterable[str], at: int) -> list[Row]:
    kind = {"attribute_path": path, "attribute_type": "string_series", "timestamp": when(at)}
    return [kind | {"string_value": line, "step": Decimal(step)} for step, line in enumerate(lines)]


def beside(namespace: str, hostname: str = "node-a") -> list[Row]:
    found = {"hostname": hostname, "pid": "1404", "tid": "140273204612160"}
    return [single(f"{namespace}/{name}", value) for name, value in found.items()]


def run(
    *schedules: Schedule,
    run_id: str = "OPT-1",
    created: int | None = None,
    series: Mapping[str, Points] | None = None,
    singles: Mapping[str, object] | None = None,
    hostname: str = "node-a",
) -> list[Row]:
    first = schedules[0].start if schedules else 0
    made = when(created if created is not None else first - 6_000)
    about: dict[str, object] = {"sys/id": run_id, "sys/name": "baseline", "sys/state": "Inactive"}
    rows = [single(path, value) for path, value in (about | {"sys/creation_time": made} | dict(singles or {})).items()]
    for schedule in schedules:
        rows += beside(schedule.namespace, hostname)
    for schedule in schedules:
        for path, values in reversed(schedule.series().items()):
            rows += points(path, values)
    for path, values in (series or {}).items():
        rows += points(path, values)
    return [{"project_id": PROJECT, "run_id": run_id, **row} for row in rows]


def local(rows: list[Row], zone: str) -> list[Row]:
    """Return rows whose times are those of a clock on the wall, as an exporter wrote them that took it for UTC."""
    times = (row.get("timestamp") and row["timestamp"].astimezone(ZoneInfo(zone)).replace(tzinfo=UTC) for row in rows)
    return [row | ({"timestamp": time} if time else {}) for row, time in zip(rows, times, strict=True)]


def name(text: str) -> str:
    plain = "".join(sign if sign.isalnum() or sign in "_-" else "_" for sign in text)
    return f"{plain}-{blake2b(text.encode(), digest_size=8).hexdigest()}"


def path(folder: Path, run_id: str = "OPT-1", part: int = 0) -> Path:
    return folder / name(PROJECT) / f"{name(run_id)}_part_{part}.parquet"


def write(folder: Path, rows: list[Row], *, part: int = 0, groups: int = 2) -> Path:
    return write_to(path(folder, rows[0]["run_id"], part), rows, groups=groups)


def write_to(place: Path, rows: list[Row], *, groups: int = 1, schema: "pa.Schema" = SCHEMA) -> Path:
    place.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=schema)
    parquet.write_table(table, place, compression="snappy", row_group_size=max(-(-len(rows) // groups), 1))
    return place
