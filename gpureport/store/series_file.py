"""Writes series: wide Parquet, sorted by device then time, with page checksums.

Delta-encoded timestamps and dictionaries take 4.0 bytes a row of nine varying columns, the defaults 5.9 (measured).
A page checksum turns every flipped bit into an error instead of a wrong value, at no measurable cost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.redaction import redact_extra_columns
from gpureport.series_table import KEY_FIELDS, METRIC_TYPES, SCHEMA, sort_by_time

ROW_GROUP = 196_608
"""Rows after which those of one device are written as a row group."""
SHARED_ROWS = 65_536
"""Rows of a row group that short devices share. A row group a device of 720 rows takes 11.6 bytes a row."""
_MOST_ROWS_HELD = 950_272
"""Rows of all devices that are held at most, then the fullest device is written: about 65 MB for ten columns."""
_KEYS = tuple(field.name for field in KEY_FIELDS)
_RUN_ID = pa.field("run_id", pa.dictionary(pa.int32(), pa.string()), nullable=False)


class SeriesWriter:
    """Writes batches of one device each; holds about a million rows of all devices in memory at most.

    Arrow needs the columns of a file before its first row. If a log names a column late, another file is begun, and all
    become one in the end.
    """

    def __init__(self, path: Path, run_id: Callable[[], str]) -> None:
        """Prepare to write; the file is made, and the id of the run is read, with the first row group."""
        self._path = path
        self._run_id = cache(run_id)
        self._parts: list[Path] = []
        self._writer: parquet.ParquetWriter | None = None
        self._schema = pa.schema([])
        self._held: dict[str, list[pa.Table]] = {}
        self._rows: Counter[str] = Counter()
        self._columns: dict[str, None] = dict.fromkeys(name for name in _KEYS if name != "stage")
        self._newest: dict[str, int] = {}
        self._ordered = True

    def add(self, batch: "pa.Table") -> None:
        """Take a batch; write what makes a full row group, or the fullest where too many rows are held."""
        device = batch.column("device")[0].as_py()
        self._columns |= dict.fromkeys(batch.column_names)
        self._held.setdefault(device, []).append(batch)
        self._rows[device] += len(batch)
        if self._rows[device] >= ROW_GROUP:
            self._write_group(self._take(device))
        elif self._rows.total() >= _MOST_ROWS_HELD:
            self._write_group(self._take(max(self._rows, key=self._rows.__getitem__)))

    def close(self, devices: Sequence[str]) -> tuple[str, ...]:
        """Write what is left, in the order of `devices`; return the columns that were recorded, in order.

        Rows that came in another order than that of devices and time, or in several files, are written once more.
        """
        rest = [self._take(device) for device in devices if self._held.get(device)]
        late = bool(self._parts) and bool(self._columns.keys() - {*self._schema.names})
        rearranged = late or not self._ordered or len(self._parts) > 1
        for table in rest if rearranged else _share_groups(rest):
            self._write_group(table)
        # a run of a tracker may hold only training metrics
        (self._writer or self._begin()).close()
        if rearranged:
            self._rearrange(devices)
        else:
            self._parts[0].rename(self._path)
        known = [name for name in (*_KEYS, *METRIC_TYPES) if name in self._columns]
        return (*known, *_extra_columns(self._columns))

    def abandon(self) -> None:
        """Close the file; its content does not matter."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def _take(self, device: str) -> "pa.Table":
        """Return the rows held of a device, which are no longer held."""
        table = pa.concat_tables(self._held.pop(device), promote_options="default")
        del self._rows[device]
        times = columns.integers(table.column("timestamp"))
        rises = times[0] >= self._newest.get(device, times[0]) and bool((times[1:] >= times[:-1]).all())
        self._ordered = self._ordered and rises
        self._newest[device] = int(times[-1])
        return table

    def _write_group(self, table: "pa.Table") -> None:
        """Write a row group; begin another file where this one lacks a column."""
        is_late = self._columns.keys() - {*self._schema.names}
        self._put(self._begin() if self._writer is None or is_late else self._writer, table)

    def _begin(self) -> "parquet.ParquetWriter":
        """Begin a file of the columns known by now: run_id, the keys and the metrics, then extras."""
        if self._writer is not None:
            self._writer.close()
        text = pa.dictionary(pa.int32(), pa.string())
        known = [field for field in SCHEMA if field.name in self._columns]
        extras = [pa.field(name, text) for name in _extra_columns(self._columns)]
        self._schema = pa.schema([_RUN_ID, *known, *extras])
        self._parts.append(self._path.with_suffix(f".{len(self._parts)}"))
        self._writer = parquet.ParquetWriter(self._parts[-1], self._schema, **_writer_options(self._columns))
        return self._writer

    def _put(self, writer: "parquet.ParquetWriter", table: "pa.Table") -> None:
        """Write rows as a row group, with the id of the run and nulls for columns they lack."""
        rows = len(table)
        recorded = {name: table.column(name) for name in table.column_names}
        recorded["run_id"] = pa.chunked_array([columns.category(self._run_id(), rows)])
        arrays = [recorded.get(field.name, pa.nulls(rows, field.type)) for field in self._schema]
        writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=rows)

    def _rearrange(self, devices: Iterable[str]) -> None:
        """Write all files as one by device and time."""
        with ExitStack() as opened:
            groups: dict[str, list[tuple[parquet.ParquetFile, int]]] = {}
            for part in self._parts:
                file = opened.enter_context(parquet.ParquetFile(part))
                for index in range(file.num_row_groups):
                    device = file.read_row_group(index, columns=["device"]).column("device")[0].as_py()
                    groups.setdefault(device, []).append((file, index))

            def join(device: str) -> pa.Table:
                tables = [file.read_row_group(index) for file, index in groups[device]]
                return sort_by_time(pa.concat_tables(tables, promote_options="default"), device)

            options = _writer_options(self._columns)
            writer = opened.enter_context(parquet.ParquetWriter(self._path, self._schema, **options))
            for table in _share_groups(join(device) for device in devices if device in groups):
                self._put(writer, table)
        for part in self._parts:
            part.unlink()


def _share_groups(devices: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
    """Yield row groups of the rows of each device: several short devices together, a long one by itself."""
    short: list[pa.Table] = []
    for table in devices:
        if short and sum(map(len, short)) + len(table) > SHARED_ROWS:
            yield _join_tables(short)
            short = []
        if len(table) > SHARED_ROWS:
            yield from (table.slice(start, ROW_GROUP) for start in range(0, len(table), ROW_GROUP))
        else:
            short.append(table)
    if short:
        yield _join_tables(short)


def _join_tables(tables: Sequence["pa.Table"]) -> "pa.Table":
    """Return tables below each other, as one chunk: Parquet keeps a dictionary only where all chunks share it."""
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="default").unify_dictionaries().combine_chunks()


def _writer_options(recorded: Iterable[str]) -> dict[str, Any]:
    """Return how these columns are written."""
    return {
        "compression": "zstd",
        # 2 % fewer bytes than 3, and nothing is gained above (measured 1 to 9)
        "compression_level": 5,
        "use_dictionary": [name for name in ("run_id", *recorded) if name != "timestamp"],
        "column_encoding": {"timestamp": "DELTA_BINARY_PACKED"},
        # what a reader prunes row groups by; bounds of every other column cost a tenth of the writing
        "write_statistics": ["run_id", "device", "timestamp"],
        "write_page_checksum": True,
        # a row group is read whole: one page a column saves 5 % of the bytes and a tenth of the writing
        "data_page_size": 64 * 2**20,
        "max_rows_per_page": 2**20,
        "write_page_index": False,
    }


def _extra_columns(recorded: Iterable[str]) -> list[str]:
    """Return the columns that are not those of a metric, in order."""
    return [name for name in recorded if name not in SCHEMA.names]


def redact_series(content: bytes) -> bytes:
    """Return a file of series without the secrets of its extra columns; as it is where they hold none."""
    with parquet.ParquetFile(pa.BufferReader(content)) as file:
        schema = file.schema_arrow
        extras = _extra_columns(name for name in schema.names if name != _RUN_ID.name)
        others = [name for name in schema.names if name not in extras]
        held = [file.read_row_group(index, extras) for index in range(file.num_row_groups) if extras]
        shown = [redact_extra_columns(table) for table in held]
        if all(after is before for before, after in zip(held, shown, strict=True)):
            return content
        redacted = BytesIO()
        with parquet.ParquetWriter(redacted, schema, **_writer_options(schema.names)) as writer:
            for index, texts in enumerate(shown):
                rest = file.read_row_group(index, others)
                whole = [(texts if name in extras else rest).column(name) for name in schema.names]
                writer.write_table(pa.Table.from_arrays(whole, schema=schema), row_group_size=len(rest))
    return redacted.getvalue()


def write_training(table: "pa.Table", path: Path) -> None:
    """Write training metrics."""
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)
