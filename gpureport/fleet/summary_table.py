"""The summaries that a store keeps: one table, and beside it a small file for every run since the last table.

A summary is a row: a value for each column of SCHEMA, None where it is not recorded. A run has a row for each of its
GPUs; without a GPU, or failed, it is one row without a device.

A run is written as soon as it is summarised, so that a process that is killed loses the runs in its hands alone. At
the end all small files become part of the table. Two processes may write at once: each removes only files that it has
read or written, and a summary that is lost on the way is made again.
"""

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Any, TypeAlias

import pyarrow as pa
from pyarrow import parquet

from gpureport.analysis.results import GPU_TIME_CLASSES
from gpureport.places import Place
from gpureport.store import atomic_writes

Row: TypeAlias = dict[str, Any]
"""A summary by the columns of SCHEMA; times are microseconds, params and tags are pairs."""

_TEXT = pa.dictionary(pa.int32(), pa.string())
_FINDING = pa.struct(
    [
        *((name, pa.string()) for name in ("kind", "cause", "severity")),
        ("count", pa.int32()),
        ("lost_gpu_seconds", pa.float64()),
        ("fingerprint", pa.string()),
        ("is_consequence", pa.bool_()),
        ("steps", pa.list_(pa.string())),
    ]
)
"""The findings of one run that share kind, cause and devices, as far as they concern one GPU.

`lost_gpu_seconds` is what they lost on this GPU at most, `steps` what they ask for, the most promising first. Those
that are a consequence follow from another finding, whose loss theirs is part of.
"""
CLASS_COLUMNS = {name: f"{name}_seconds" for name in GPU_TIME_CLASSES}
"""The column of each class of GPU time; together they are the time from first to last sample."""
_COLUMNS: tuple[tuple[str, pa.DataType], ...] = (
    ("key", pa.string()),
    ("run_id run_name source step node device uuid model", _TEXT),
    ("started ended", pa.timestamp("us")),
    ("timezone", _TEXT),
    (" ".join(("observed_seconds", *CLASS_COLUMNS.values(), "lost_seconds energy_joules utilisation")), pa.float64()),
    ("memory_peak_bytes memory_total_bytes", pa.int64()),
    ("findings", pa.list_(_FINDING)),
    ("not_judged", pa.list_(pa.string())),
    ("max_temperature_celsius heat_slowed_seconds hardware_slowed_seconds", pa.float64()),
    ("ecc_corrected ecc_uncorrected remapped_rows", pa.int64()),
    ("gpu_lost slow_link", _TEXT),
    ("work_amount", pa.float64()),
    ("work_unit", _TEXT),
    ("params tags", pa.map_(pa.string(), pa.string())),
    ("error", _TEXT),
)
_NEVER_NULL = "key run_id run_name findings not_judged gpu_lost slow_link params tags error"
SCHEMA = pa.schema(
    [
        pa.field(name, kind, nullable=name not in _NEVER_NULL.split())
        for names, kind in _COLUMNS
        for name in names.split()
    ]
)
"""Columns of the table; null is not recorded. Times without a zone are local, as in `Run`."""

FORMAT = 1
"""Version of the layout. 1 (2026-11): a row for each run and GPU."""
_KEY = b"gpureport.fleet"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, pa.ArrowException)
_EMPTY = dict.fromkeys(SCHEMA.names) | {"gpu_lost": "not assessed", "slow_link": "not assessed", "error": ""}


def make_row(key: str, run_id: str, **known: object) -> Row:
    lists: Row = {name: [] for name in ("findings", "not_judged", "params", "tags")}
    return {**_EMPTY, **lists, "key": key, "run_id": run_id, **known}


class SummaryFile:
    """The summaries of a store; `path` is the table, `damaged` are files that `load` could not read."""

    def __init__(self, store: Place) -> None:
        self._folder = store / "fleet"
        self._parts = self._folder / "parts"
        self.path = self._folder / "summaries.parquet"
        self.damaged: list[Place] = []
        self._found: list[Place] = []
        self._loaded: list[Row] = []

    def load(self) -> list[Row]:
        self._found = sorted(self._parts.glob("[!.]*.parquet"))
        for path in (self.path, *self._found):
            if path.exists():
                try:
                    self._loaded += _load_rows(path.read_bytes())
                except _DAMAGED:
                    self.damaged.append(path)
        return self._loaded

    def add(self, rows: Sequence[Row]) -> None:
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._parts.mkdir(parents=True, exist_ok=True)
            path = self._parts / f"{rows[0]['run_id']}.parquet"
            atomic_writes.write_bytes(path, _dump_rows(rows), self._parts)
        self._found.append(path)

    def replace(self, rows: Iterable[Row]) -> None:
        ordered = sorted(rows, key=_sort_key)
        if ordered == self._loaded and self.path.exists() and not self._found:
            return
        content = _dump_rows(ordered)
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
            for folder in (self._folder, self._parts):
                atomic_writes.remove_stale_files(folder)
            atomic_writes.write_bytes(self.path, content, self._folder)
            for path in self._found:
                path.unlink(missing_ok=True)


def _sort_key(row: Row) -> tuple[int, str, bool, int, str]:
    device = row["device"] or ""
    return row["started"] or 0, row["run_id"], row["device"] is None, len(device), device


def _dump_rows(rows: Sequence[Row]) -> bytes:
    table = pa.Table.from_pylist(list(rows), schema=SCHEMA).replace_schema_metadata({_KEY: str(FORMAT).encode()})
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def _load_rows(content: bytes) -> list[Row]:
    """Return the summaries in the bytes of a Parquet file; one of an earlier version may lack columns of this one."""
    file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    version = int((file.schema_arrow.metadata or {}).get(_KEY, b"0"))
    if version != FORMAT:
        msg = f"format {version} is not {FORMAT}"
        raise ValueError(msg)
    table = file.read()
    for field in SCHEMA:
        if field.nullable and field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    # as integers: a timestamp without a zone would become a naive datetime
    plain = [pa.field(field.name, pa.int64()) if pa.types.is_timestamp(field.type) else field for field in SCHEMA]
    rows: list[Row] = table.select(SCHEMA.names).cast(pa.schema(plain)).to_pylist()
    return rows
