"""Series on disk: wide Parquet, sorted by device then time, with page checksums.

Delta-encoded timestamps and dictionaries take 4.0 bytes a row of nine varying columns, the defaults 5.9 (measured).
A page checksum turns every flipped bit into an error instead of a wrong value, at no measurable cost.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from hashlib import file_digest, sha256
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.places import Place
from gpureport.series_table import (
    KEY_FIELDS,
    METRIC_TYPES,
    SCHEMA,
    TRAINING_SCHEMA,
    arrange_series,
    empty_training,
    sort_by_time,
)

ROW_GROUP = 196_608
"""Rows after which those of one device are written; a row group never holds two devices."""
_MOST_ROWS_HELD = 950_272
"""Rows of all devices that are held at most, then the fullest device is written: about 65 MB for ten columns."""
_ZSTD_LEVEL = 5
"""Of zstd: 2 % fewer bytes than 3, and nothing is gained above (measured 1 to 9)."""
_PAGE_BYTES, _MOST_PAGE_ROWS = 64 * 2**20, 2**20
_KEYS = tuple(field.name for field in KEY_FIELDS)
_RUN_ID = pa.field("run_id", pa.dictionary(pa.int32(), pa.string()), nullable=False)


class SeriesWriter:
    """Writes batches of one device each; holds about a million rows of all devices in memory at most.

    Arrow needs the columns of a file before its first row. If a log names a column late, another file is begun, and in
    the end all files become one.
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
            self._write(device)
        elif self._rows.total() >= _MOST_ROWS_HELD:
            self._write(max(self._rows, key=self._rows.__getitem__))

    def close(self, devices: Sequence[str], renamed: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Write what is left, in the order of `devices`; return the columns that were recorded, in order.

        Rows that came in another order than that of devices and time, or in several files, are written once more.

        Args:
            devices: device ids in the end.
            renamed: by their old ids, the devices whose rows came under another one.
        """
        for device in [*(renamed or {}), *devices]:
            if self._held.get(device):
                self._write(device)
        # a run of a tracker may hold only training metrics
        (self._writer or self._begin()).close()
        if renamed or not self._ordered or len(self._parts) > 1:
            self._rearrange(devices, renamed or {})
        else:
            self._parts[0].rename(self._path)
        known = [name for name in (*_KEYS, *METRIC_TYPES) if name in self._columns]
        return (*known, *_extra_columns(self._columns))

    def abandon(self) -> None:
        """Close the file; its content does not matter."""
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def _write(self, device: str) -> None:
        """Write the rows held of a device as a row group."""
        table = pa.concat_tables(self._held.pop(device), promote_options="default")
        del self._rows[device]
        times = columns.integers(table.column("timestamp"))
        rises = times[0] >= self._newest.get(device, times[0]) and bool((times[1:] >= times[:-1]).all())
        self._ordered = self._ordered and rises
        self._newest[device] = int(times[-1])
        writer = self._writer
        if writer is None or self._columns.keys() - {*self._schema.names}:
            writer = self._begin()
        self._put(writer, table)

    def _begin(self) -> "parquet.ParquetWriter":
        """Begin a file of the columns known by now."""
        if self._writer is not None:
            self._writer.close()
        self._schema = _build_schema(self._columns)
        self._parts.append(self._path.with_suffix(f".{len(self._parts)}"))
        self._writer = parquet.ParquetWriter(self._parts[-1], self._schema, **_writer_options(self._columns))
        return self._writer

    def _put(self, writer: "parquet.ParquetWriter", table: "pa.Table") -> None:
        """Write rows of one device as a row group, with the id of the run and nulls for columns they lack."""
        rows = len(table)
        recorded = {name: table.column(name) for name in table.column_names}
        recorded["run_id"] = pa.chunked_array([columns.category(self._run_id(), rows)])
        arrays = [recorded.get(field.name, pa.nulls(rows, field.type)) for field in self._schema]
        writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=rows)

    def _rearrange(self, devices: Iterable[str], renamed: Mapping[str, str]) -> None:
        """Write all files as one by device and time."""
        with ExitStack() as opened:
            files = [opened.enter_context(parquet.ParquetFile(part)) for part in self._parts]
            groups: dict[str, list[tuple[parquet.ParquetFile, int]]] = {}
            for file in files:
                for index in range(file.num_row_groups):
                    device = file.read_row_group(index, columns=["device"]).column("device")[0].as_py()
                    groups.setdefault(renamed.get(device, device), []).append((file, index))
            options = _writer_options(self._columns)
            writer = opened.enter_context(parquet.ParquetWriter(self._path, self._schema, **options))
            for device in (device for device in devices if device in groups):
                tables = [file.read_row_group(index) for file, index in groups[device]]
                table = sort_by_time(pa.concat_tables(tables, promote_options="default"), device)
                for start in range(0, len(table), ROW_GROUP):
                    self._put(writer, table.slice(start, ROW_GROUP))
        for part in self._parts:
            part.unlink()


def _writer_options(recorded: Iterable[str]) -> dict[str, Any]:
    """Return how these columns are written."""
    return {
        "compression": "zstd",
        "compression_level": _ZSTD_LEVEL,
        "use_dictionary": [name for name in ("run_id", *recorded) if name != "timestamp"],
        "column_encoding": {"timestamp": "DELTA_BINARY_PACKED"},
        # what a reader prunes row groups by; bounds of every other column cost a tenth of the writing
        "write_statistics": ["run_id", "device", "timestamp"],
        "write_page_checksum": True,
        # a row group is read whole: one page a column saves 5 % of the bytes and a tenth of the writing
        "data_page_size": _PAGE_BYTES,
        "max_rows_per_page": _MOST_PAGE_ROWS,
        "write_page_index": False,
    }


def _build_schema(recorded: Collection[str]) -> "pa.Schema":
    """Return run_id, the keys and the metrics that were recorded, then extras."""
    text = pa.dictionary(pa.int32(), pa.string())
    known = [field for field in SCHEMA if field.name in recorded]
    return pa.schema([_RUN_ID, *known, *(pa.field(name, text) for name in _extra_columns(recorded))])


def _extra_columns(recorded: Iterable[str]) -> list[str]:
    """Return the columns that are not those of a metric, in order."""
    return [name for name in recorded if name not in SCHEMA.names]


def hash_file(path: Place) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read_series(path: Place, names: Sequence[str], devices: Iterable[str], expected: str | None = None) -> "pa.Table":
    """Return the series of a run, checksums verified.

    Args:
        path: the Parquet file.
        names: columns wanted.
        devices: device ids in the order wanted.
        expected: sha256 of the file, None where it is not known.

    Raises:
        OSError: when a page does not match its checksum or the file is cut.
        ValueError: when the file is another than expected, or lacks a column.
    """
    file = parquet.ParquetFile(pa.BufferReader(_read_verified(path, expected)), page_checksum_verification=True)
    if missing := {*names} - {*file.schema_arrow.names}:
        msg = f"{path} lacks {', '.join(sorted(missing))}"
        raise ValueError(msg)
    if not (rows := [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]):
        return arrange_series([])
    named = file.read(columns=["device"]).column("device")
    order = {device: place for place, device in enumerate(devices)}
    places = [order[named[begin].as_py()] for begin in accumulate(rows[:-1], initial=0)]
    groups = sorted(range(len(rows)), key=places.__getitem__)
    # at once: put one below the other afterwards, all of it would be copied
    return arrange_series([file.read_row_groups(groups, columns=list(names))])


def write_training(table: "pa.Table", path: Path) -> None:
    """Write training metrics."""
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def read_training(path: Place, expected: str | None) -> "pa.Table":
    """Return training metrics, checksums verified; none where none are expected.

    Raises:
        OSError: when the file is missing or damaged.
        ValueError: when it is another than expected.
    """
    if expected is None:
        return empty_training()
    file = parquet.ParquetFile(pa.BufferReader(_read_verified(path, expected)), page_checksum_verification=True)
    return file.read().cast(TRAINING_SCHEMA)


def _read_verified(path: Place, expected: str | None) -> bytes:
    """Return the content of a file: hashed and read from memory, so that what was verified is what is read.

    Raises:
        OSError: when it cannot be read.
        ValueError: when it is another than expected.
    """
    content = path.read_bytes()
    if expected is not None and sha256(content).hexdigest() != expected:
        msg = f"{path} does not have the sha256 {expected}"
        raise ValueError(msg)
    return content


def split_by_device(series: "pa.Table") -> Iterator["pa.Table"]:
    """Yield the rows of a series table device by device."""
    codes: Any = series.column("device").unify_dictionaries().combine_chunks()
    indices = columns.integers(codes.indices)
    starts = np.flatnonzero(np.diff(indices, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(indices)], strict=True):
        yield series.slice(int(start), int(end - start))
