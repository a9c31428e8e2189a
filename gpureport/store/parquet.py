"""Series on disk: wide Parquet, sorted by device then time, with page checksums.

Delta encoding of the stamps is what makes the file small; every other column is dictionary-encoded (measured:
4.0 bytes a row of nine varying columns against 5.9 with defaults). A page checksum turns every flipped bit into
an error instead of a wrong value, at no measurable cost.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from hashlib import file_digest, sha256
from itertools import accumulate
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from gpureport import columns
from gpureport.recording import KEY_FIELDS, METRIC_TYPES, TRAINING_SCHEMA, arranged, in_time_order, no_training
from gpureport.store.row_groups import Encoded, RowGroupFile, encode

ROW_GROUP = 196_608
"""Rows after which those of one device are written; a row group never holds two devices."""
_HELD = 950_272
"""Rows of all devices that are held at most, the fullest is written first: about 65 MB of a log of ten columns.

Fewer make the end of a log shorter, at which nothing is left to be parsed meanwhile, and its row groups smaller.
"""
_LEVEL = 5
"""Of zstd: 2 % fewer bytes than 3, and nothing is gained above (measured 1 to 9)."""
_ENCODERS = 2
"""Row groups that are encoded at a time."""
_PAGE_BYTES, _MOST_ROWS = 64 * 2**20, 2**20
_KEYS = tuple(field.name for field in KEY_FIELDS)
_RUN_ID = pa.field("run_id", pa.dictionary(pa.int32(), pa.string()), nullable=False)


class SeriesWriter:
    """Writes batches of one device each; holds about a million rows of all devices in memory at most.

    Row groups are encoded aside, two at a time, while the next batches are read.
    """

    def __init__(self, path: Path, run_id: Callable[[], str]) -> None:
        """Prepare to write; the file is made, and the run's id asked for, with the first row group."""
        self._path = path
        self._run_id = cache(run_id)
        self._asking = Lock()
        self._file: RowGroupFile | None = None
        self._aside = ThreadPoolExecutor(_ENCODERS, thread_name_prefix="parquet")
        self._encoding: deque[Future[Encoded]] = deque()
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
        elif self._rows.total() >= _HELD:
            self._write(max(self._rows, key=self._rows.__getitem__))

    def close(self, devices: Sequence[str], renamed: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Write what is left, in the order of `devices`; return the columns that were recorded, in order.

        Rows that came in another order than that of devices and time are written once more.

        Args:
            devices: device ids in the end.
            renamed: by their old ids, the devices whose rows came under another one.
        """
        for device in [*(renamed or {}), *devices]:
            if self._held.get(device):
                self._write(device)
        while self._encoding:
            self._take()
        self._aside.shutdown()
        # a run of a tracker may hold training metrics alone
        file = self._file or RowGroupFile(self._path)
        file.close(_schema(self._columns), _options(self._columns))
        if renamed or not self._ordered:
            self._rearrange(devices, renamed or {})
        known = [name for name in (*_KEYS, *METRIC_TYPES) if name in self._columns]
        return (*known, *(name for name in self._columns if name not in {*METRIC_TYPES, *_KEYS}))

    def abandon(self) -> None:
        """Close the file without caring for its content."""
        self._aside.shutdown(cancel_futures=True)
        if self._file is not None:
            with suppress(OSError):
                self._file.abandon()

    def _write(self, device: str) -> None:
        """Have the rows held of a device encoded, once one of those before is written."""
        table = pa.concat_tables(self._held.pop(device), promote_options="default")
        del self._rows[device]
        times = columns.integers(table.column("timestamp"))
        rises = times[0] >= self._newest.get(device, times[0]) and bool((times[1:] >= times[:-1]).all())
        self._ordered = self._ordered and rises
        self._newest[device] = int(times[-1])
        if len(self._encoding) >= _ENCODERS:
            self._take()
        self._encoding.append(self._aside.submit(self._encoded, table))

    def _encoded(self, table: "pa.Table") -> Encoded:
        """Return rows of one device as a row group, without the columns in which none has a value."""
        held = [name for name in table.column_names if table.column(name).null_count < len(table)]
        with self._asking:
            # the rest of a log may be read for it: once, not by each thread
            run_id = self._run_id()
        return encode(_identified(table.select(held), run_id), _options(held))

    def _take(self) -> None:
        """Write what was encoded first; an error of it is raised here."""
        encoded = self._encoding.popleft().result()
        self._file = self._file or RowGroupFile(self._path)
        self._file.take(encoded)

    def _rearrange(self, devices: Iterable[str], renamed: Mapping[str, str]) -> None:
        """Write the file again by device and time, because the log had its rows in another order."""
        mixed = self._path.rename(self._path.with_suffix(".mixed"))
        groups: dict[str, list[int]] = {}
        again = RowGroupFile(self._path)
        with parquet.ParquetFile(mixed) as file:
            for index in range(file.num_row_groups):
                device = file.read_row_group(index, columns=["device"]).column("device")[0].as_py()
                groups.setdefault(renamed.get(device, device), []).append(index)
            for device in (device for device in devices if device in groups):
                table = in_time_order(file.read_row_groups(groups[device], columns=[*self._columns]), device)
                for start in range(0, len(table), ROW_GROUP):
                    again.take(self._encoded(table.slice(start, ROW_GROUP)))
        again.close(_schema(self._columns), _options(self._columns))
        mixed.unlink()


def _options(recorded: Iterable[str]) -> dict[str, Any]:
    """Return how these columns are written."""
    return {
        "compression": "zstd",
        "compression_level": _LEVEL,
        "use_dictionary": [name for name in ("run_id", *recorded) if name != "timestamp"],
        "column_encoding": {"timestamp": "DELTA_BINARY_PACKED"},
        # what a reader prunes row groups by; bounds of every other column cost a tenth of the writing
        "write_statistics": ["run_id", "device", "timestamp"],
        "write_page_checksum": True,
        # a row group is read whole: one page a column saves 5 % of the bytes and a tenth of the writing
        "data_page_size": _PAGE_BYTES,
        "max_rows_per_page": _MOST_ROWS,
        "write_page_index": False,
    }


def _schema(recorded: Iterable[str]) -> "pa.Schema":
    """Return run_id, the keys and every metric, recorded or not, so that all runs share their columns; then extras."""
    extras = [name for name in recorded if name not in {*METRIC_TYPES, *_KEYS}]
    text = pa.dictionary(pa.int32(), pa.string())
    return pa.schema(
        [
            _RUN_ID,
            *KEY_FIELDS,
            *(pa.field(name, kind) for name, kind in METRIC_TYPES.items()),
            *(pa.field(name, text) for name in extras),
        ]
    )


def _identified(table: "pa.Table", run_id: str) -> "pa.Table":
    """Return a table with the id of its run, its columns in the order of the schema."""
    recorded = {name: table.column(name) for name in table.column_names}
    recorded["run_id"] = pa.chunked_array([columns.category(run_id, len(table))])
    schema = pa.schema([field for field in _schema(table.column_names) if field.name in recorded])
    return pa.Table.from_arrays([recorded[field.name] for field in schema], schema=schema)


def digest(path: Path) -> str:
    """Return the sha256 of a file."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


def read(path: Path, names: Sequence[str], devices: Iterable[str], expected: str | None = None) -> "pa.Table":
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
    file = parquet.ParquetFile(pa.BufferReader(_verified(path, expected)), page_checksum_verification=True)
    if missing := {*names} - {*file.schema_arrow.names}:
        msg = f"{path} lacks {', '.join(sorted(missing))}"
        raise ValueError(msg)
    if not (rows := [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]):
        return arranged([])
    named = file.read(columns=["device"]).column("device")
    order = {device: place for place, device in enumerate(devices)}
    places = [order[named[begin].as_py()] for begin in accumulate(rows[:-1], initial=0)]
    groups = sorted(range(len(rows)), key=places.__getitem__)
    # at once: put one below the other afterwards, all of it would be copied
    return arranged([file.read_row_groups(groups, columns=list(names))])


def write_training(table: "pa.Table", path: Path) -> None:
    """Write training metrics."""
    parquet.write_table(table, path, compression="zstd", write_page_checksum=True)


def read_training(path: Path, expected: str | None) -> "pa.Table":
    """Return training metrics, checksums verified; none where none are expected.

    Raises:
        OSError: when the file is missing or damaged.
        ValueError: when it is another than expected.
    """
    if expected is None:
        return no_training()
    file = parquet.ParquetFile(pa.BufferReader(_verified(path, expected)), page_checksum_verification=True)
    return file.read().cast(TRAINING_SCHEMA)


def _verified(path: Path, expected: str | None) -> bytes:
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


def batches(series: "pa.Table") -> Iterator["pa.Table"]:
    """Yield the rows of a series table device by device."""
    codes: Any = series.column("device").unify_dictionaries().combine_chunks()
    indices = columns.integers(codes.indices)
    starts = np.flatnonzero(np.diff(indices, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(indices)], strict=True):
        yield series.slice(int(start), int(end - start))
