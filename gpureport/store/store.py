"""The store: a folder of runs, on this machine or in a bucket. A run appears only once it is complete."""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from gpureport.errors import StoreError
from gpureport.parsing import MOST_SETTINGS_BYTES
from gpureport.places import Place
from gpureport.recording import Recording, Run, hold_rows
from gpureport.redaction import redact_column, redact_extra_columns
from gpureport.regular_files import UnsafeFileError, code_system_error
from gpureport.store import atomic_writes, run_records, series
from gpureport.store.run_records import RUN_FILE, RunIndex, StoredRun, read_stored_file, read_stored_run
from gpureport.store.run_selection import RunLookup, find_store_folder

FORMAT = 1
"""Version of the store's layout; version 1 (2026-11) has run.json and hardware.parquet for each run."""
_SERIES, _TRAINING = "hardware.parquet", "training.parquet"
_MOST_ROWS_IN_MEMORY = 6_000_000
"""Maximum number of a run's rows read at once, about 400 MB."""
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Entry:
    stored: StoredRun
    folder: Place

    @property
    def run(self) -> Run:
        return self.stored.run


class Store:
    def __init__(self, folder: Place) -> None:
        self.folder = folder
        self._runs = folder / "runs"
        self._marker = folder / "store.json"
        if not self._marker.exists():
            return
        try:
            version = int(json.loads(read_stored_file(self._marker, MOST_SETTINGS_BYTES))["format"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            hint = "restore it, or ingest into a new store"
            raise StoreError(str(self._marker), "cannot be read", hint, code="damaged_store") from error
        if version > FORMAT:
            raise StoreError(str(self._marker), f"has format {version}", "upgrade gpureport", code="newer_store")

    @classmethod
    def find(cls, start: Path) -> "Store":
        return cls(find_store_folder(start))

    def write(self, reading: Any, importer_version: str, label_source: Run | None = None) -> Entry:
        """Write a run to the store, with another run's labels if given, replacing any run with the same id.

        All `batches()` of `reading` must be consumed before its `run_id`, `run()` and `training()` are used.
        """
        with atomic_writes.raise_store_errors(self.folder):
            self._runs.mkdir(parents=True, exist_ok=True)
            atomic_writes.remove_stale_files(self._runs)
            if not self._marker.exists():
                marker = json.dumps({"format": FORMAT}) + "\n"
                atomic_writes.write_bytes(self._marker, marker.encode(), self._runs)
        with atomic_writes.write_folder(self._runs, lambda: reading.run_id, RUN_FILE) as folder:
            columns, run = self._write_series(reading, folder / _SERIES)
            points = redact_column(reading.training(), "name")
            with atomic_writes.raise_store_errors(self.folder):
                if len(points):
                    series.write_training(points, folder / _TRAINING)
                stored = StoredRun(
                    run=_copy_labels(run, label_source or run),
                    columns=columns,
                    importer_version=importer_version,
                    series_sha256=series.hash_file(folder / _SERIES),
                    training_sha256=series.hash_file(folder / _TRAINING) if len(points) else None,
                )
                (folder / RUN_FILE).write_text(run_records.dump_run(stored), encoding="utf-8")
        return Entry(stored, self._runs / run.id)

    def _write_series(self, reading: Any, path: Path) -> tuple[tuple[str, ...], Run]:
        writer = series.SeriesWriter(path, lambda: reading.run_id)
        try:
            for batch in reading.batches():
                with atomic_writes.raise_store_errors(self.folder):
                    writer.add(redact_extra_columns(batch))
            run = reading.run()
            with atomic_writes.raise_store_errors(self.folder):
                return writer.close([device.id for device in run.devices]), run
        except BaseException:
            writer.abandon()
            raise

    def index(self) -> RunIndex:
        return run_records.read_index(self._runs)

    def get(self, run_id: str) -> Entry | None:
        folder = self._runs / run_id
        return Entry(read_stored_run(folder), folder) if (folder / RUN_FILE).is_file() else None

    def may_hold(self, sizes: Sequence[int]) -> bool:
        """Return whether the store may contain a run with sources of these sizes. Unknown sizes match any."""
        # training metrics are not part of a run's identity
        held = [[each.bytes for each in known.run.sources if each.kind != "training"] for known in self.index().runs]
        return any(None in logs or Counter(logs) == Counter(sizes) for logs in held)

    def intact(self, entry: Entry) -> bool:
        stored = entry.stored
        with suppress(OSError):
            training = stored.training_sha256
            whole = training is None or training == series.hash_file(entry.folder / _TRAINING)
            return whole and stored.series_sha256 in {None, series.hash_file(entry.folder / _SERIES)}
        return False

    def lookup(self) -> RunLookup:
        return RunLookup(self)

    def named(self, name: str) -> Entry:
        return self.lookup().find(name)

    def read(self, entry: Entry) -> Recording:
        stored, path = entry.stored, entry.folder / _SERIES
        try:
            devices = [device.id for device in entry.run.devices]
            rows = series.open_series(path, stored.columns, devices, stored.series_sha256)
            # without a hash, only reading reveals damage
            if len(rows) <= _MOST_ROWS_IN_MEMORY or stored.series_sha256 is None:
                rows = hold_rows(rows.table())
            training = series.read_training(entry.folder / _TRAINING, stored.training_sha256)
        except UnsafeFileError as error:
            raise atomic_writes.refuse_file(error.filename, error) from error
        except _UNREADABLE as error:
            now = self.get(entry.run.id)
            if now is not None and now.stored.series_sha256 != stored.series_sha256:
                # another process replaced the run after the entry was read
                return self.read(now)
            raise _refuse_damaged(path) from error
        return Recording(run=entry.run, rows=rows, training=training)

    def relabel(self, entry: Entry, run: Run) -> Entry:
        with atomic_writes.raise_store_errors(self.folder):
            current = self.get(entry.run.id) or entry
            stored = replace(current.stored, run=_copy_labels(current.run, run))
            atomic_writes.write_bytes(entry.folder / RUN_FILE, run_records.dump_run(stored).encode(), self._runs)
        return Entry(stored, entry.folder)

    def remove(self, entry: Entry) -> None:
        with atomic_writes.raise_store_errors(self.folder):
            atomic_writes.remove_folder(entry.folder, RUN_FILE)

    def export(self, entry: Entry, target: Place) -> None:
        """Copy a run's series to a Parquet file, hiding secrets defined after the run was stored."""
        if target.suffix != ".parquet":
            raise StoreError(str(target), "not a Parquet file", "use the extension .parquet", code="unknown_file_type")
        if not self.intact(entry):
            raise _refuse_damaged(entry.folder / _SERIES)
        try:
            content = series.redact_series((entry.folder / _SERIES).read_bytes())
            atomic_writes.replace_file(target, content, target.parent)
        except OSError as error:
            what = error.strerror or "cannot be written"
            code = code_system_error(error, "cannot_write")
            raise StoreError(str(target), what, "choose another file", code=code) from error


def _refuse_damaged(path: Place) -> StoreError:
    return StoreError(str(path), "damaged or missing", "ingest the run again", code="damaged_run")


def _copy_labels(run: Run, of: Run) -> Run:
    return replace(run, name=of.name, step=of.step, params=of.params, tags=of.tags, work=of.work)
