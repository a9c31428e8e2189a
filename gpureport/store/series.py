"""Writes series and training metrics as Parquet: wide tables ordered by device and time, with a hash per file.

Delta-encoded timestamps and dictionaries need 4.0 bytes per row of nine columns; the defaults need 5.9 (measured). A
checksum per page turns flipped bits into errors instead of wrong values, at no measurable cost.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from hashlib import file_digest, sha256
from io import BytesIO
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.parsing import MOST_SERIES_BYTES
from gpureport.places import Place
from gpureport.recording import (
    KEY_FIELDS,
    METRIC_TYPES,
    SCHEMA,
    TRAINING_SCHEMA,
    SeriesRows,
    arrange_series,
    empty_training,
    sort_by_time,
)
from gpureport.redaction import EXTRA, redact_extra_columns
from gpureport.regular_files import check_regular_file
from gpureport.store.run_records import read_stored_file

_ROW_GROUP = 196_608
_SHARED_ROWS = 65_536
"""Rows in a row group shared by devices with few rows. Groups of 720 rows would need 11.6 bytes per row."""
_MOST_ROWS_HELD = 950_272
"""Maximum number of rows in memory, about 65 MB for ten columns. The device with the most rows is written first."""
_KEYS = tuple(field.name for field in KEY_FIELDS)
_TEXTS = pa.dictionary(pa.int32(), pa.string())


class SeriesWriter:
    """Writes batches of one device each, and keeps at most about a million rows in memory.

    Arrow must know a file's columns before the first row. A new column starts another file; all files
    are merged at the end.
    """

    def __init__(self, path: Path, run_id: Callable[[], str]) -> None:
        self._path, self._run_id = path, cache(run_id)
        self._parts: list[Path] = []
        self._writer: parquet.ParquetWriter | None = None
        self._schema = pa.schema([])
        self._held: dict[str, list[pa.Table]] = {}
        self._rows: Counter[str] = Counter()
        self._columns: dict[str, None] = dict.fromkeys(name for name in _KEYS if name != "stage")
        self._newest: dict[str, int] = {}
        self._ordered = True

    def add(self, batch: "pa.Table") -> None:
        device = batch.column("device")[0].as_py()
        self._columns |= dict.fromkeys(batch.column_names)
        self._held.setdefault(device, []).append(batch)
        self._rows[device] += len(batch)
        if self._rows[device] >= _ROW_GROUP:
            self._write(self._take(device))
        elif self._rows.total() >= _MOST_ROWS_HELD:
            self._write(self._take(max(self._rows, key=self._rows.__getitem__)))

    def close(self, devices: Sequence[str]) -> tuple[str, ...]:
        """Write the remaining rows, in the order of `devices`, and return the recorded columns in order."""
        rest = [self._take(device) for device in devices if self._held.get(device)]
        is_late = bool(self._parts) and self._lacks_column()
        is_first = self._ordered and not is_late and len(self._parts) <= 1
        for table in _share_groups(rest) if is_first else rest:
            self._write(table)
        if is_first:
            # a tracker's run may contain only training metrics
            (self._writer or self._begin(self._path.with_suffix(".0"))).close()
            self._parts[0].rename(self._path)
        else:
            self._arrange(devices)
        known = [name for name in (*_KEYS, *METRIC_TYPES) if name in self._columns]
        return (*known, *(name for name in self._columns if name not in SCHEMA.names))

    def abandon(self) -> None:
        if self._writer is not None:
            with suppress(OSError):
                self._writer.close()

    def _lacks_column(self) -> bool:
        return bool(self._columns.keys() - {*self._schema.names})

    def _take(self, device: str) -> "pa.Table":
        table = pa.concat_tables(self._held.pop(device), promote_options="default")
        del self._rows[device]
        times = columns.integers(table.column("timestamp"))
        rises = times[0] >= self._newest.get(device, times[0]) and bool((times[1:] >= times[:-1]).all())
        self._ordered, self._newest[device] = self._ordered and rises, int(times[-1])
        return table

    def _begin(self, path: Path) -> "parquet.ParquetWriter":
        if self._writer is not None:
            self._writer.close()
        known = [
            pa.field("run_id", _TEXTS, nullable=False),
            *(each for each in SCHEMA if each.name in self._columns),
        ]
        extras = [pa.field(name, _TEXTS) for name in self._columns if name not in SCHEMA.names]
        self._schema = pa.schema([*known, *extras])
        self._parts.append(path)
        self._writer = parquet.ParquetWriter(path, self._schema, **_writer_options(self._columns))
        return self._writer

    def _write(self, table: "pa.Table") -> None:
        writer, rows = self._writer, len(table)
        if writer is None or self._lacks_column():
            writer = self._begin(self._path.with_suffix(f".{len(self._parts)}"))
        recorded = {name: table.column(name) for name in table.column_names}
        recorded["run_id"] = pa.chunked_array([columns.category(self._run_id(), rows)])
        arrays = [recorded.get(field.name, pa.nulls(rows, field.type)) for field in self._schema]
        writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=rows)

    def _arrange(self, devices: Iterable[str]) -> None:
        parts = [*self._parts]
        writer = self._begin(self._path)
        with ExitStack() as opened:
            groups: dict[str, list[tuple[parquet.ParquetFile, int]]] = {}
            for part in parts:
                file = opened.enter_context(parquet.ParquetFile(part))
                for index in range(file.num_row_groups):
                    device = file.read_row_group(index, columns=["device"]).column("device")[0].as_py()
                    groups.setdefault(device, []).append((file, index))

            def join(device: str) -> pa.Table:
                tables = [file.read_row_group(index) for file, index in groups[device]]
                return sort_by_time(pa.concat_tables(tables, promote_options="default"), device)

            for table in _share_groups(join(device) for device in devices if device in groups):
                self._write(table)
        writer.close()
        for part in parts:
            part.unlink()


def _share_groups(devices: Iterable["pa.Table"]) -> Iterator["pa.Table"]:
    """Yield row groups. Devices with few rows share a row group, and others have their own."""
    short: list[pa.Table] = []
    for table in chain(devices, [None]):
        if short and (table is None or sum(map(len, short)) + len(table) > _SHARED_ROWS):
            # chunks are combined, since Parquet keeps a dictionary only if all chunks share it
            yield pa.concat_tables(short, promote_options="default").unify_dictionaries().combine_chunks()
            short = []
        if table is not None and len(table) > _SHARED_ROWS:
            yield from (table.slice(start, _ROW_GROUP) for start in range(0, len(table), _ROW_GROUP))
        elif table is not None:
            short.append(table)


def _writer_options(recorded: Iterable[str]) -> dict[str, Any]:
    return {
        "compression": "zstd",
        # level 5 takes 2% fewer bytes than level 3; higher levels gain nothing (measured for 1 to 9)
        "compression_level": 5,
        "use_dictionary": [name for name in ("run_id", *recorded) if name != "timestamp"],
        "column_encoding": {"timestamp": "DELTA_BINARY_PACKED"},
        # readers select row groups by these columns; with bounds for other columns, writing would take 10% longer
        "write_statistics": ["run_id", "device", "timestamp"],
        "write_page_checksum": True,
        # row groups are read as a whole, so one page per column saves 5% of the bytes and 10% of the time
        "data_page_size": 64 * 2**20,
        "max_rows_per_page": 2**20,
        "write_page_index": False,
    }


def redact_series(content: bytes) -> bytes:
    with parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True) as file:
        schema = file.schema_arrow
        if not any(name.startswith(EXTRA) for name in schema.names):
            return content
        redacted = BytesIO()
        with parquet.ParquetWriter(redacted, schema, **_writer_options(schema.names)) as writer:
            for index in range(file.num_row_groups):
                group = redact_extra_columns(file.read_row_group(index))
                writer.write_table(group, row_group_size=len(group))
    return redacted.getvalue()


def write_training(table: "pa.Table", path: Path) -> None:
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def open_series(path: Place, names: Sequence[str], devices: Sequence[str], expected: str | None) -> SeriesRows:
    """Return a file's rows, which are read on demand from a copy in memory."""
    file = _open_verified(path, expected)
    if missing := {*names} - {*file.schema_arrow.names}:
        raise ValueError(f"{path} lacks {', '.join(sorted(missing))}")
    schema = arrange_series([file.schema_arrow.empty_table().select([*names])]).schema
    parts: dict[str, list[tuple[int, int, int]]] = {device: [] for device in devices}
    for group in range(file.num_row_groups):
        for device, start, end in _find_devices(file.read_row_group(group, columns=["device"])):
            parts[device].append((group, start, end))

    def read(wanted: Sequence[str], chosen: Sequence[str]) -> "pa.Table":
        held = [part for device in wanted for part in parts.get(device, ())]
        groups = {group: file.metadata.row_group(group).num_rows for group, _, _ in held}
        if not groups:
            return schema.empty_table().select([*chosen])
        table = file.read_row_groups([*groups], columns=[*chosen])
        begins = dict(zip(groups, accumulate(groups.values(), initial=0), strict=False))
        ranges: list[tuple[int, int]] = []
        for group, start, end in held:
            begin = begins[group] + start
            # adjacent ranges are joined, which avoids copying them one by one
            first = ranges.pop()[0] if ranges and ranges[-1][1] == begin else begin
            ranges.append((first, begins[group] + end))
        return arrange_series([table.slice(begin, end - begin) for begin, end in ranges])

    return SeriesRows(schema, {each: sum(end - start for _, start, end in held) for each, held in parts.items()}, read)


def _find_devices(group: "pa.Table") -> Iterator[tuple[str, int, int]]:
    """Yield each device in a row group with its first row and the row after its last."""
    codes: Any = group.column("device").unify_dictionaries().combine_chunks()
    indices = columns.read_codes(codes.indices)
    if len(indices) and not 0 <= indices.min() <= indices.max() < len(codes.dictionary):
        raise ValueError("a row contains none of the file's devices")
    starts = [*np.flatnonzero(np.diff(indices, prepend=-1)).tolist(), len(indices)]
    for start, end in pairwise(starts):
        yield codes.dictionary[int(indices[start])].as_py(), start, end


def read_training(path: Place, expected: str | None) -> "pa.Table":
    if expected is None:
        return empty_training()
    return _open_verified(path, expected).read().cast(TRAINING_SCHEMA)


def _open_verified(path: Place, expected: str | None) -> "parquet.ParquetFile":
    """Open a file from verified bytes in memory, so that it cannot change after the check."""
    content = read_stored_file(path, MOST_SERIES_BYTES)
    if expected is not None and sha256(content).hexdigest() != expected:
        raise ValueError(f"the sha256 of {path} is not {expected}")
    return parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)


def hash_file(path: Place) -> str:
    if not isinstance(path, Path):
        return sha256(path.read_bytes()).hexdigest()
    check_regular_file(path, most=MOST_SERIES_BYTES)
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
