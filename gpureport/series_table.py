"""The Arrow tables that hold the series and the training metrics of a recording: their columns, and their order."""

from collections.abc import Iterable, Sequence
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

SCHEMA: "pa.Schema" = pa.schema(
    [*KEY_FIELDS, *(pa.field(name, kind, metadata=None) for name, kind in METRIC_TYPES.items())]
)
"""All columns a series table can hold, unknown `extra_` columns aside."""


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
    """Return the rows of one device in the order of time; the table itself where they are.

    Args:
        table: rows of one device.
        device: id the device gets, None to keep what it has.
    """
    times = columns.integers(table.column("timestamp"))
    if (times[1:] < times[:-1]).any():
        table = table.take(columns.to_arrow(np.argsort(times, kind="stable"), pa.int64()))
    if device is not None:
        place = table.schema.get_field_index("device")
        named = columns.category(device, len(table))
        table = table.set_column(place, table.schema.field(place), pa.chunked_array([named]))
    return table


TRAINING_SCHEMA: "pa.Schema" = pa.schema(
    [
        pa.field("timestamp", pa.timestamp("us")),
        pa.field("step", pa.int64()),
        pa.field("name", pa.dictionary(pa.int32(), pa.string())),
        pa.field("value", pa.float64()),
    ]
)


def empty_training() -> "pa.Table":
    """Return an empty training table."""
    return pa.Table.from_batches([], schema=TRAINING_SCHEMA)


def local_times(times: "pd.Series[Any]", zone: str | None) -> "pd.Series[Any]":
    """Return times of a recording, as stamps or microseconds, in its zone; without one where none is known."""
    import pandas as pd  # noqa: PLC0415 - most runs are never put in a frame

    stamps = pd.to_datetime(times, unit="us").astype("datetime64[us]")
    return stamps if zone is None else stamps.dt.tz_localize("UTC").dt.tz_convert(zone)


def collect_series(batches: Iterable["pa.Table"], devices: Iterable[str]) -> "pa.Table":
    """Return tables of one device each as one series, device by device.

    Args:
        batches: the tables.
        devices: the devices in their order.
    """
    kept: dict[str, list[pa.Table]] = {}
    for batch in batches:
        device = batch.column("device")[0].as_py()
        kept.setdefault(device, []).append(batch)
    return arrange_series(
        [sort_by_time(pa.concat_tables(kept[each], promote_options="default")) for each in devices if each in kept]
    )
