"""The result of an importer: one run with its devices, its quality, and its series in one wide Arrow table.

Times are integer microseconds since 1970-01-01. If `Run.timezone` is set, times are in UTC; otherwise they are the
local time of the recording machine, stored as if it were UTC and printed without an offset.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpureport import columns, names
from gpureport.data_quality import Quality
from gpureport.metrics import METRICS, Scope
from gpureport.redaction import redact_column, redact_extra_columns, redact_pairs, redact_text

if TYPE_CHECKING:
    import pandas as pd

HOST = "host"  # Device id of the machine with the GPUs.
TRACKER_KINDS = {"mlflow", "neptune", "trackio", "accounting"}  # Kinds of sources that are runs in trackers.


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A GPU (`gpu:0`, or `node_1/gpu:0` with several nodes) or a `host`, which has no index. None means not logged.

    The power limit is the lowest one that was in force. Power readings are averages over the `power_window`: `1 s`,
    `instant` or `unknown`. The rows of a `mixed` device may come from several GPUs that cannot be distinguished.
    """

    id: str
    index: int | None = None
    node: str | None = None
    uuid: str | None = None
    bus_id: str | None = None
    serial: str | None = None
    model: str | None = None
    memory_total_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    power_limit_watts: float | None = None
    power_limit_default_watts: float | None = None
    power_window: str = "unknown"
    driver: str | None = None
    mig: bool | None = None
    mixed: bool = False

    def __post_init__(self) -> None:
        _set(self, model=self.model and redact_text(self.model), driver=self.driver and redact_text(self.driver))

    @property
    def scope(self) -> Scope:
        return Scope.HOST if self.index is None else Scope.GPU


def _set(instance: "Device | Run | Recording", **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source of data: its kind (`nvidia_smi`, `host`), locator as typed, SHA-256 and size in bytes."""

    kind: str
    locator: str
    sha256: str
    bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A named part of a run (preprocessing, training, validation), with times in microseconds."""

    name: str
    start: int
    end: int
    node: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The total work of a run in steps, samples, tokens or epochs. It `is_common` if given once for several runs."""

    amount: float
    unit: str
    is_common: bool = field(default=False, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One training run with its identity, time base, devices and labels.

    The id is derived from the bytes of its sources and options that select or place rows. A run lasts from its
    first sample to its last; `interval` is the median time between samples, in seconds. `params` are its
    configuration, and `tags` its labels.
    """

    id: str
    name: str
    started: int
    ended: int
    sources: tuple[Source, ...]
    devices: tuple[Device, ...]
    quality: Quality
    step: str | None = None
    timezone: str | None = None
    interval: float | None = None
    stages: tuple[Stage, ...] = ()
    params: tuple[tuple[str, str], ...] = ()
    tags: tuple[tuple[str, str], ...] = ()
    work: Work | None = None

    def __post_init__(self) -> None:
        """Replace secrets in all texts, so no output can show them. The run's id does not change."""
        _set(
            self,
            name=redact_text(self.name),
            step=self.step and redact_text(self.step),
            sources=tuple(replace(each, locator=redact_text(each.locator)) for each in self.sources),
            stages=tuple(replace(each, name=redact_text(each.name)) for each in self.stages),
            work=self.work and replace(self.work, unit=redact_text(self.work.unit)),
            params=redact_pairs(self.params),
            tags=redact_pairs(self.tags),
            quality=self.quality.redacted(),
        )

    @property
    def tracked(self) -> bool:
        """Whether a tracker recorded the run, so its account counts points, not lines."""
        return any(source.kind in TRACKER_KINDS for source in self.sources)

    @property
    def is_mean(self) -> bool:
        """Whether the run comes from a table that has only means over whole runs."""
        return any(source.kind == "accounting" for source in self.sources)

    @property
    def params_and_tags(self) -> tuple[tuple[str, str], ...]:
        return (*self.params, *self.tags)

    @property
    def states_setup(self) -> bool:
        """Whether any param or tag describes the run's configuration rather than its owner or location."""
        return any(name not in names.BY_NAME for name, _ in self.params_and_tags)

    @property
    def gpus(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.scope is Scope.GPU)

    @property
    def hosts(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.scope is Scope.HOST)


_TEXT, _TIME = pa.dictionary(pa.int32(), pa.string()), pa.timestamp("us")
_find_type: Any = pa.type_for_alias
METRIC_TYPES: dict[str, pa.DataType] = {metric.name: _find_type(metric.dtype) for metric in METRICS}
KEY_FIELDS: tuple["pa.Field[Any]", ...] = (
    pa.field("device", _TEXT, nullable=False),
    pa.field("timestamp", _TIME, nullable=False),
    pa.field("stage", _TEXT),
    pa.field("imputed", pa.bool_(), nullable=False),
)
"""First columns of every series table."""
SCHEMA = pa.schema([*KEY_FIELDS, *(pa.field(name, kind) for name, kind in METRIC_TYPES.items())])
"""All columns that a series table can have, except unknown `extra_` columns."""
_POINT = {"timestamp": _TIME, "step": pa.int64(), "name": _TEXT, "value": pa.float64()}
TRAINING_SCHEMA = pa.schema([pa.field(name, kind) for name, kind in _POINT.items()])


class DeviceRows:
    def __init__(self, schema: pa.Schema, length: int, column: "Callable[[str], pa.ChunkedArray[Any]]") -> None:
        self.schema, self.column_names, self.column, self._length = schema, schema.names, column, length

    def __len__(self) -> int:
        return self._length

    def filter(self, selected: columns.BoolArray) -> "DeviceRows":
        mask = columns.to_arrow(selected, pa.bool_())
        return DeviceRows(self.schema, int(np.count_nonzero(selected)), lambda name: self.column(name).filter(mask))


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class SeriesRows:
    """The rows of all devices in a run, with their counts and a function that reads columns."""

    schema: pa.Schema
    counts: Mapping[str, int]
    read: "Callable[[Sequence[str], Sequence[str]], pa.Table]"
    in_memory: bool = False

    def __len__(self) -> int:
        return sum(self.counts.values())

    def table(self) -> pa.Table:
        return self.read([*self.counts], self.schema.names)

    def rows_of(self, device: str) -> DeviceRows:
        rows = self.counts.get(device, 0)
        return DeviceRows(self.schema, rows, lambda name: self.read([device], [name]).column(name))


def hold_rows(table: pa.Table) -> SeriesRows:
    tables: dict[str, pa.Table] = {}
    if len(table):
        chunks: list[Any] = table.column("device").unify_dictionaries().chunks
        names = chunks[0].dictionary.to_pylist()
        codes = np.concatenate([columns.read_codes(chunk.indices) for chunk in chunks])
        starts = [0, *(np.flatnonzero(codes[1:] != codes[:-1]) + 1).tolist(), len(codes)]
        tables = {names[codes[start]]: table.slice(start, stop - start) for start, stop in pairwise(starts)}

    def read(devices: Sequence[str], wanted: Sequence[str]) -> pa.Table:
        # callers request one device or all
        rows = table if [*devices] == [*tables] else tables.get(devices[0], table.slice(0, 0))
        return rows.select([*wanted])

    return SeriesRows(table.schema, {name: len(rows) for name, rows in tables.items()}, read, in_memory=True)


def arrange_series(tables: Sequence[pa.Table]) -> pa.Table:
    """Return the rows of several tables as one table, in the form of `Recording.series`.

    The result has the key columns, then all metrics in the order of METRICS, then extra columns by name, with one chunk
    per column. Without tables, it has only the key columns.
    """
    if not tables:
        return pa.Table.from_batches([], schema=pa.schema(KEY_FIELDS))
    joined = pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()
    extras = sorted(set(joined.column_names) - set(SCHEMA.names))
    fields = [field for field in SCHEMA if field.name in joined.column_names]
    fields += [joined.schema.field(name).with_nullable(nullable=True) for name in extras]
    arrays = [joined.column(field.name) for field in fields]
    return redact_extra_columns(pa.Table.from_arrays(arrays, schema=pa.schema(fields)))


def sort_by_time(table: pa.Table, device: str | None = None) -> pa.Table:
    times = columns.integers(table.column("timestamp"))
    if (times[1:] < times[:-1]).any():
        table = table.take(columns.to_arrow(np.argsort(times, kind="stable"), pa.int64()))
    if device is not None:
        place = table.schema.get_field_index("device")
        table = table.set_column(place, table.schema.field(place), columns.category(device, len(table)))
    return table


def collect_series(batches: Iterable[pa.Table], devices: Iterable[str]) -> pa.Table:
    kept = names.group_pairs((batch.column("device")[0].as_py(), batch) for batch in batches)
    return arrange_series(
        [sort_by_time(pa.concat_tables(kept[each], promote_options="default")) for each in devices if each in kept]
    )


def empty_training() -> pa.Table:
    return pa.Table.from_batches([], schema=TRAINING_SCHEMA)


def local_times(times: "pd.Series[Any]", zone: str | None) -> "pd.Series[Any]":
    """Return a recording's times (timestamps or microseconds) in its time zone, or without a time zone if unknown."""
    import pandas as pd

    stamps = pd.to_datetime(times, unit="us").astype("datetime64[us]")
    return stamps if zone is None else stamps.dt.tz_localize("UTC").dt.tz_convert(zone)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, init=False)
class Recording:
    """A run and its series.

    Attributes:
        run: the known facts about the run.
        series: the recorded columns of SCHEMA, then `extra_` columns, sorted by device (in the order of
            `run.devices`) and then by time.
        training: a long table of training metrics, which may be empty.
    """

    run: Run
    rows: SeriesRows
    training: pa.Table

    def __init__(
        self,
        *,
        run: Run,
        series: "pa.Table | None" = None,
        training: "pa.Table | None" = None,
        rows: SeriesRows | None = None,
    ) -> None:
        """Take a run and its series, as one table in the form of `series` or as `rows`."""
        if series is not None or rows is None:
            rows = hold_rows(arrange_series([]) if series is None else series)
        training = empty_training() if training is None else redact_column(training, "name")
        _set(self, run=run, rows=rows, training=training)

    @property
    def series(self) -> pa.Table:
        """All rows in one table. A long stored run is read again on each access."""
        return self.rows.table()

    def with_series(self, series: pa.Table) -> "Recording":
        return Recording(run=self.run, series=series, training=self.training)

    def rows_of(self, device: str) -> pa.Table:
        return self.rows.read([device], self.rows.schema.names)

    def by_device(self) -> "dict[str, pa.Table]":
        """Return each device's rows, if any, by device id, in time order. Do not modify them."""
        return {device: self.rows_of(device) for device, count in self.rows.counts.items() if count}

    def to_pandas(self) -> "pd.DataFrame":
        """Return the series as a pandas DataFrame with one row per sample and device.

        `timestamp` is in the run's time zone, or has none if the log does not specify it.
        """
        frame = self.series.to_pandas()
        frame["timestamp"] = local_times(frame["timestamp"], self.run.timezone)
        return frame

    def __repr__(self) -> str:
        length = timedelta(seconds=round((self.run.ended - self.run.started) / 1e6))
        gpus = f"{len(self.run.gpus)} GPU{'' if len(self.run.gpus) == 1 else 's'}"
        return f"<Recording {self.run.name!r}: {gpus}, {length}, {len(self.rows)} rows>"
