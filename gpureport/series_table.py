"""The series of a recording: tables of known columns in a fixed order, in memory or read from a file."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpureport import columns
from gpureport.metrics import METRICS
from gpureport.redaction import redact_extra_columns

if TYPE_CHECKING:
    import pandas as pd

_find_type: Any = pa.type_for_alias
METRIC_TYPES: dict[str, "pa.DataType"] = {metric.name: _find_type(metric.dtype) for metric in METRICS}
"""Arrow type of every metric column."""

KEY_FIELDS: tuple["pa.Field[Any]", ...] = (
    pa.field("device", pa.dictionary(pa.int32(), pa.string()), nullable=False),
    pa.field("timestamp", pa.timestamp("us"), nullable=False),
    pa.field("stage", pa.dictionary(pa.int32(), pa.string())),
    pa.field("imputed", pa.bool_(), nullable=False),
)
"""Columns every series table begins with."""

SCHEMA: "pa.Schema" = pa.schema([*KEY_FIELDS, *(pa.field(name, kind) for name, kind in METRIC_TYPES.items())])
"""All columns a series table can hold, unknown `extra_` columns aside."""

TRAINING_SCHEMA: "pa.Schema" = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("us")),
        pa.field("step", pa.int64()),
        pa.field("name", pa.dictionary(pa.int32(), pa.string())),
        pa.field("value", pa.float64()),
    ]
)


class DeviceRows:
    """The rows of one device in order of time, with columns read one by one."""

    def __init__(self, schema: "pa.Schema", length: int, column: "Callable[[str], pa.ChunkedArray[Any]]") -> None:
        self.schema, self.column_names, self.column, self._length = schema, schema.names, column, length

    def __len__(self) -> int:
        return self._length

    def filter(self, selected: columns.BoolArray) -> "DeviceRows":
        """Return some of the rows."""
        mask = columns.to_arrow(selected, pa.bool_())
        return DeviceRows(self.schema, int(np.count_nonzero(selected)), lambda name: self.column(name).filter(mask))


class SeriesRows:
    """The rows of all devices of a run, wherever they are."""

    def __init__(
        self,
        schema: "pa.Schema",
        counts: Mapping[str, int],
        read: "Callable[[Sequence[str], Sequence[str]], pa.Table]",
        *,
        in_memory: bool = False,
    ) -> None:
        """Take the number of rows of each device, in order, and what reads their columns."""
        self.schema, self.in_memory, self._counts, self._read = schema, in_memory, counts, read

    def __len__(self) -> int:
        return sum(self._counts.values())

    def table(self) -> "pa.Table":
        """Return all rows, in the order that `Recording.series` has."""
        return self._read([*self._counts], self.schema.names)

    def list_devices(self) -> list[str]:
        """Return the ids of the devices that have rows, in their order."""
        return [device for device, rows in self._counts.items() if rows]

    def rows_of(self, device: str) -> DeviceRows:
        """Return the rows of one device, none where it has none."""
        rows = self._counts.get(device, 0)
        return DeviceRows(self.schema, rows, lambda name: self._read([device], [name]).column(name))

    def table_of(self, device: str) -> "pa.Table":
        """Return the same with all columns."""
        return self._read([device], self.schema.names)


def hold_rows(table: "pa.Table") -> SeriesRows:
    """Return the rows of a table, sorted by device, then by time."""
    tables: dict[str, pa.Table] = {}
    if len(table):
        chunks: list[Any] = table.column("device").unify_dictionaries().chunks
        names = chunks[0].dictionary.to_pylist()
        codes = np.concatenate([columns.read_codes(chunk.indices) for chunk in chunks])
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        tables = {names[codes[start]]: table.slice(start, stop - start) for start, stop in pairwise(starts)}

    def read(devices: Sequence[str], wanted: Sequence[str]) -> "pa.Table":
        if [*devices] == [*tables]:
            return table.select([*wanted])
        (device,) = devices
        return (tables[device] if device in tables else table.slice(0, 0)).select([*wanted])

    return SeriesRows(table.schema, {name: len(rows) for name, rows in tables.items()}, read, in_memory=True)


def arrange_series(tables: Sequence["pa.Table"]) -> "pa.Table":
    """Return tables one below the other in the form `Recording.series` has.

    Key columns first, then the metrics that any table holds in the order of METRICS, then extra columns by name;
    one chunk a column. Without tables, the key columns without rows.
    """
    if not tables:
        return pa.Table.from_batches([], schema=pa.schema(KEY_FIELDS))
    joined = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    extras = sorted(set(joined.column_names) - set(SCHEMA.names))
    fields = [field for field in SCHEMA if field.name in joined.column_names]
    fields += [joined.schema.field(name).with_nullable(nullable=True) for name in extras]
    arrays = [joined.column(field.name) for field in fields]
    return redact_extra_columns(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def sort_by_time(table: "pa.Table", device: str | None = None) -> "pa.Table":
    """Return the rows of one device in order of time, under another id if given; itself if ordered."""
    times = columns.integers(table.column("timestamp"))
    if (times[1:] < times[:-1]).any():
        table = table.take(columns.to_arrow(np.argsort(times, kind="stable"), pa.int64()))
    if device is not None:
        place = table.schema.get_field_index("device")
        table = table.set_column(place, table.schema.field(place), columns.category(device, len(table)))
    return table


def collect_series(batches: Iterable["pa.Table"], devices: Iterable[str]) -> "pa.Table":
    """Return tables of one device each as one series, in device order."""
    kept: dict[str, list[pa.Table]] = {}
    for batch in batches:
        kept.setdefault(batch.column("device")[0].as_py(), []).append(batch)
    return arrange_series(
        [sort_by_time(pa.concat_tables(kept[each], promote_options="default")) for each in devices if each in kept]
    )


def empty_training() -> "pa.Table":
    """Return an empty training table."""
    return pa.Table.from_batches([], schema=TRAINING_SCHEMA)


def local_times(times: "pd.Series[Any]", zone: str | None) -> "pd.Series[Any]":
    """Return times of a recording, as stamps or microseconds, in its zone; without one where none is known."""
    import pandas as pd

    stamps = pd.to_datetime(times, unit="us").astype("datetime64[us]")
    return stamps if zone is None else stamps.dt.tz_localize("UTC").dt.tz_convert(zone)
