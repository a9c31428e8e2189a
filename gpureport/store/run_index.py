"""The index of a store: a Parquet file with a row a run, so that listing ten thousand runs reads one file.

It is a copy that is never trusted against the runs: a row counts only while size and time of its `run.json` are those
in the folder, and every other `run.json` is read. Readers write the index; no writer of runs has to know it. Without
it, or where it cannot be written, everything works, and takes longer.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from io import BytesIO
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from gpureport.errors import PlaceError, StoreError
from gpureport.places import Place, map_places
from gpureport.redaction import OwnSecrets, get_own_secrets
from gpureport.store import atomic_writes
from gpureport.store.indexed_run import IndexedRun, summarise_stored_run
from gpureport.store.run_files import RUN_FILE, FileStamp, list_run_files, read_stored_run

INDEX = "index.parquet"
"""Its name, in the folder of the store."""
FEWEST_RUNS = 200
"""Runs from which an index is kept: the files of fewer are read in 60 ms (measured)."""
_SHARE = 64
"""The index is written again once one run in 64 has changed: while runs come in one by one, that costs little a run."""
_DOUBTFUL_NS = 3_000_000_000
"""A file that was written this shortly before may be written again under the same time: some stamps are whole seconds,
those of FAT two."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, pa.ArrowException)

_TEXTS, _PAIRS, _TIME = pa.list_(pa.string()), pa.map_(pa.string(), pa.string()), pa.timestamp("us")
_TYPES: dict[str, "pa.DataType"] = {
    "id": pa.string(),
    "name": pa.string(),
    "step": pa.string(),
    "started": _TIME,
    "ended": _TIME,
    "timezone": pa.string(),
    "synthetic_time": pa.bool_(),
    "interval": pa.float64(),
    "gpus": pa.int64(),
    "models": _TEXTS,
    "hosts": _TEXTS,
    "uuids": _TEXTS,
    "params": _PAIRS,
    "tags": _PAIRS,
    "source_kinds": _TEXTS,
    "source_sizes": pa.list_(pa.int64()),
    "columns": _TEXTS,
    "importer_version": pa.string(),
    "series_sha256": pa.string(),
    "training_sha256": pa.string(),
    "work_amount": pa.float64(),
    "work_unit": pa.string(),
    # of the run.json that the row was made from; no size where the file was too new to be sure of
    "folder": pa.string(),
    "run_json_size": pa.int64(),
    "run_json_modified_ns": pa.int64(),
}
_SCHEMA = pa.schema(_TYPES, metadata={"gpureport_index": "1"})
_FIELDS = [field.name for field in fields(IndexedRun)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIndex:
    """What a store holds: its runs, oldest first, and the names of folders whose `run.json` cannot be read."""

    runs: tuple[IndexedRun, ...]
    damaged: tuple[str, ...]


def read_index(store: Place) -> RunIndex:
    """Return what a store holds. The index is used where it is right, and written again where much of it is not."""
    now = time.time_ns()
    files = list_run_files(store / "runs")
    indexed = _load_rows(store / INDEX) if len(files) >= FEWEST_RUNS else {}
    runs = {folder: run for folder, (stamp, run) in indexed.items() if files.get(folder) == stamp}
    outdated, damaged = len(indexed) - len(runs), []
    has_secrets, hidden = get_own_secrets() != OwnSecrets(), {}
    missing = [store / "runs" / folder for folder in files.keys() - runs.keys()]
    for path, run in zip(missing, map_places(_read_run, missing), strict=True):
        if run is not None and has_secrets and run.is_redacted:
            hidden[path.name] = run
        elif run is not None:
            runs[path.name] = run
            outdated += path.name not in indexed
        elif (path / RUN_FILE).is_file():
            # not one that was removed meanwhile
            damaged.append(path.name)
    if len(files) >= FEWEST_RUNS and outdated * _SHARE > len(files):
        # without what may be no secret to who reads it next
        _write_rows(store, runs, files, now)
    shown = [run.redacted() for run in runs.values()] if has_secrets else runs.values()
    ordered = sorted((*shown, *hidden.values()), key=lambda run: (run.started, run.id))
    return RunIndex(runs=tuple(ordered), damaged=tuple(sorted(damaged)))


def _read_run(folder: Place) -> IndexedRun | None:
    """Return what the index says of a run; None where its `run.json` cannot be read."""
    try:
        return summarise_stored_run(read_stored_run(folder))
    except StoreError:
        return None


def _load_rows(path: Place) -> dict[str, tuple[FileStamp, IndexedRun]]:
    """Return what the index says of each folder, and of which file; nothing where it is missing or damaged."""
    with suppress(*_UNREADABLE):
        file = parquet.ParquetFile(pa.BufferReader(path.read_bytes()), page_checksum_verification=True)
        table = file.read()
        if table.schema.equals(_SCHEMA) and table.schema.metadata == _SCHEMA.metadata:
            cells = [_list_cells(table.column(name)) for name in _FIELDS]
            runs = [IndexedRun(**dict(zip(_FIELDS, row, strict=True))) for row in zip(*cells, strict=True)]
            sizes, times = (_list_cells(table.column(f"run_json_{name}")) for name in ("size", "modified_ns"))
            stamps = [FileStamp(size=size, modified_ns=each) for size, each in zip(sizes, times, strict=True)]
            return dict(zip(_list_cells(table.column("folder")), zip(stamps, runs, strict=True), strict=True))
    return {}


def _list_cells(column: "pa.ChunkedArray[Any]") -> list[Any]:
    """Return the values of a column as `IndexedRun` has them: times in microseconds, lists and maps as tuples."""
    cells: list[Any] = (column.cast(pa.int64()) if column.type == _TIME else column).to_pylist()
    return [tuple(cell) for cell in cells] if pa.types.is_nested(column.type) else cells


def _write_rows(store: Place, runs: Mapping[str, IndexedRun], files: Mapping[str, FileStamp], now: int) -> None:
    """Write the index; a store that cannot be written to is read without."""
    rows = [
        {
            **{name: getattr(run, name) for name in _FIELDS},
            "folder": folder,
            "run_json_size": files[folder].size if files[folder].modified_ns < now - _DOUBTFUL_NS else None,
            "run_json_modified_ns": files[folder].modified_ns,
        }
        for folder, run in runs.items()
    ]
    # a name that is no Unicode goes into JSON, and not into Parquet
    with suppress(PlaceError, StoreError, *_UNREADABLE):
        content = BytesIO()
        parquet.write_table(pa.Table.from_pylist(rows, _SCHEMA), content, compression="zstd", write_page_checksum=True)
        atomic_writes.write_bytes(store / INDEX, content.getvalue(), store / "runs")
