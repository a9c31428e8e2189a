"""The summaries that a store keeps: one table, and beside it a small file for every run since the last table.

A run is written as soon as it is summarised, so that a process that is killed loses the runs in its hands alone. At
the end all small files become part of the table. Two processes may write at once: each removes only files that it has
read or written, and a summary that is lost on the way is made again.
"""

from collections.abc import Iterable, Sequence
from io import BytesIO

import pyarrow as pa
from pyarrow import parquet

from gpureport.fleet.gpu_summary import GpuSummary
from gpureport.fleet.summaries import summary_table
from gpureport.places import Place
from gpureport.store import atomic_writes

FOLDER, TABLE, _PARTS = "fleet", "summaries.parquet", "parts"
FORMAT = 1
"""Version of the layout. 1 (2026-11): a row for each run and GPU."""
_KEY = b"gpureport.fleet"
_DAMAGED = (OSError, ValueError, KeyError, TypeError, pa.ArrowException)


class SummaryFile:
    """The summaries of a store.

    Attributes:
        path: the table.
        damaged: files that could not be read, after `load`.
    """

    def __init__(self, store: Place) -> None:
        """Take the folder of a store; nothing is written yet."""
        self._folder = store / FOLDER
        self._parts = self._folder / _PARTS
        self.path = self._folder / TABLE
        self.damaged: list[Place] = []
        self._found: list[Place] = []
        self._loaded: list[GpuSummary] = []

    def load(self) -> list[GpuSummary]:
        """Return what is kept, without damaged files; their runs are summarised again."""
        self.damaged = []
        self._found = sorted(self._parts.glob("[!.]*.parquet"))
        tables = (self._read(path) for path in (self.path, *self._found) if path.exists())
        self._loaded = [summary for summaries in tables for summary in summaries]
        return self._loaded

    def _read(self, path: Place) -> list[GpuSummary]:
        try:
            return load_summaries(path.read_bytes())
        except _DAMAGED:
            self.damaged.append(path)
            return []

    def add(self, summaries: Sequence[GpuSummary]) -> None:
        """Keep the summaries of one run.

        Raises:
            StoreError: when they cannot be written.
        """
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._parts.mkdir(parents=True, exist_ok=True)
            path = self._parts / f"{summaries[0].run_id}.parquet"
            atomic_writes.write_bytes(path, dump_summaries(summaries), self._parts)
        self._found.append(path)

    def replace(self, summaries: Iterable[GpuSummary]) -> None:
        """Make these summaries the table, in an order that depends on them alone, and remove the small files.

        Raises:
            StoreError: when it cannot be written.
        """
        ordered = sorted(summaries, key=_sort_key)
        if ordered == self._loaded and self.path.exists() and not self._found:
            return
        content = dump_summaries(ordered)
        with atomic_writes.raise_store_errors(self._folder.parent):
            self._folder.mkdir(parents=True, exist_ok=True)
            for folder in (self._folder, self._parts):
                atomic_writes.remove_stale_files(folder)
            atomic_writes.write_bytes(self.path, content, self._folder)
            for path in self._found:
                path.unlink(missing_ok=True)


def _sort_key(summary: GpuSummary) -> tuple[int, str, bool, int, str]:
    device = summary.device or ""
    return summary.started or 0, summary.run_id, summary.device is None, len(device), device


def dump_summaries(summaries: Sequence[GpuSummary]) -> bytes:
    """Return summaries as the bytes of a Parquet file, the same for the same summaries."""
    table = summary_table.to_table(summaries).replace_schema_metadata({_KEY: str(FORMAT).encode()})
    file = BytesIO()
    parquet.write_table(table, file, compression="zstd", write_page_checksum=True)
    return file.getvalue()


def load_summaries(content: bytes) -> list[GpuSummary]:
    """Return the summaries in the bytes of a Parquet file.

    Raises:
        ArrowException, OSError: when it is damaged.
        KeyError, TypeError, ValueError: when it is none of this layout.
    """
    file = parquet.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    version = int((file.schema_arrow.metadata or {}).get(_KEY, b"0"))
    if version != FORMAT:
        msg = f"format {version} is not {FORMAT}"
        raise ValueError(msg)
    return summary_table.from_table(file.read())


def group_by_run(summaries: Iterable[GpuSummary]) -> dict[str, list[GpuSummary]]:
    """Return summaries by the id of their run, in their order."""
    runs: dict[str, list[GpuSummary]] = {}
    for summary in summaries:
        runs.setdefault(summary.run_id, []).append(summary)
    return runs
