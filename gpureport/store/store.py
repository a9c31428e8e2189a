"""The store: a folder of runs, each written beside its place and moved there when it is whole."""

import json
import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from gpureport.errors import StoreError
from gpureport.recording import Recording, Run
from gpureport.store import atomic_writes, run_json, series_file
from gpureport.store.readable_run import ReadableRun
from gpureport.store.run_json import StoredRun
from gpureport.store.stored_names import find_store_folder

FORMAT = 1
"""Version of the store's layout. 1 (2026-11): run.json, hardware.parquet, rejects.jsonl.zst a run."""
_RUN, _SERIES, _TRAINING, _REJECTS = "run.json", "hardware.parquet", "training.parquet", "rejects.jsonl.zst"
_SHORTEST_PREFIX = 4
_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, pa.ArrowException)


@dataclass(frozen=True, slots=True)
class Entry:
    """A run in the store, without its series."""

    stored: StoredRun
    folder: Path

    @property
    def run(self) -> Run:
        """The run."""
        return self.stored.run


class Store:
    """A folder of runs."""

    def __init__(self, folder: Path) -> None:
        """Take a folder; it is made with the first run.

        Raises:
            StoreError: when it was written by a newer version.
        """
        self.folder = folder
        self._runs = folder / "runs"
        marker = folder / "store.json"
        if marker.exists():
            self._check(marker)

    @classmethod
    def find(cls, start: Path) -> "Store":
        """Return the store of a folder or of the nearest one above it, else a new one in it."""
        return cls(find_store_folder(start))

    @staticmethod
    def _check(marker: Path) -> None:
        try:
            version = int(json.loads(marker.read_text(encoding="utf-8"))["format"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(str(marker), "cannot be read", "restore it or ingest into a new store") from error
        if version > FORMAT:
            raise StoreError(str(marker), f"format {version} is newer than {FORMAT}", "upgrade gpureport")

    def write(self, reading: ReadableRun, importer_version: str, said: Run | None = None) -> Entry:
        """Read a run into the store; an existing run of the same id is replaced whole.

        Args:
            reading: the run.
            importer_version: version of the importers that read it.
            said: a run whose name, step, params, tags and work it is to carry.
        """
        self._prepare()
        with atomic_writes.write_folder(self._runs, lambda: reading.run_id) as folder:
            columns, run = self._write_series(reading, folder / _SERIES)
            stored = StoredRun(
                run=_copy_labels(run, said or run),
                columns=columns,
                importer_version=importer_version,
                series_sha256=series_file.hash_file(folder / _SERIES),
                training_sha256=self._write_training(reading.training(), folder / _TRAINING),
                source_state=reading.source_state,
            )
            with atomic_writes.raise_store_errors(self.folder):
                if rejects := reading.rejects():
                    (folder / _REJECTS).write_bytes(rejects)
                (folder / _RUN).write_text(run_json.dump_run(stored), encoding="utf-8")
        return Entry(stored, self._runs / run.id)

    def _prepare(self) -> None:
        """Make the store's folder where there is none, and clear away what killed writers left."""
        marker = self.folder / "store.json"
        with atomic_writes.raise_store_errors(self.folder):
            self._runs.mkdir(parents=True, exist_ok=True)
            atomic_writes.remove_stale_files(self._runs)
            if not marker.exists():
                atomic_writes.write_text(marker, json.dumps({"format": FORMAT}) + "\n", self._runs)

    def _write_series(self, reading: ReadableRun, path: Path) -> tuple[tuple[str, ...], Run]:
        """Write the series of a run; return their columns and the run."""
        writer = series_file.SeriesWriter(path, lambda: reading.run_id)
        try:
            for batch in reading.batches():
                with atomic_writes.raise_store_errors(self.folder):
                    writer.add(batch)
            run = reading.run()
            with atomic_writes.raise_store_errors(self.folder):
                return writer.close([device.id for device in run.devices], reading.renamed()), run
        except BaseException:
            writer.abandon()
            raise

    def _write_training(self, table: "pa.Table", path: Path) -> str | None:
        """Write training metrics; return the sha256 of the file, None without metrics."""
        if not len(table):
            return None
        with atomic_writes.raise_store_errors(self.folder):
            series_file.write_training(table, path)
            return series_file.hash_file(path)

    def entries(self) -> list[Entry]:
        """Return all runs that can be read, oldest first; `damaged` names the others."""
        found = [entry for folder in self._folders() if (entry := self._readable(folder)) is not None]
        return sorted(found, key=lambda entry: (entry.run.started, entry.run.id))

    def damaged(self) -> list[Path]:
        """Return the folders of runs whose `run.json` cannot be read."""
        return [folder for folder in self._folders() if self._readable(folder) is None]

    def _folders(self) -> list[Path]:
        return sorted(path for path in self._runs.glob("[!.]*") if (path / _RUN).is_file())

    def _readable(self, folder: Path) -> Entry | None:
        try:
            return self._entry(folder)
        except StoreError:
            return None

    @staticmethod
    def _entry(folder: Path) -> Entry:
        try:
            return Entry(run_json.load_run((folder / _RUN).read_text(encoding="utf-8")), folder)
        except _UNREADABLE as error:
            raise StoreError(str(folder / _RUN), "damaged", "ingest the run again") from error

    def get(self, run_id: str) -> Entry | None:
        """Return the run of exactly this id, None when it is not there.

        Raises:
            StoreError: when its `run.json` is damaged.
        """
        folder = self._runs / run_id
        return self._entry(folder) if (folder / _RUN).is_file() else None

    def may_hold(self, sizes: Sequence[int]) -> bool:
        """Return whether a run may be here whose sources have these sizes; what no size is known of may be any."""
        wanted = sorted(sizes)
        for folder in self._folders():
            entry = self._readable(folder)
            # training metrics are no part of a run's identity
            sources = [source for source in entry.run.sources if source.kind != "training"] if entry else []
            known = [source.bytes for source in sources]
            held = [size for size in known if size is not None]
            if len(held) < len(known) or sorted(held) == wanted:
                return True
        return False

    def intact(self, entry: Entry) -> bool:
        """Return whether the series of a run are there, byte for byte as they were written where that is known."""
        stored = entry.stored
        with suppress(OSError):
            training = stored.training_sha256
            whole = training is None or training == series_file.hash_file(entry.folder / _TRAINING)
            return whole and stored.series_sha256 in {None, series_file.hash_file(entry.folder / _SERIES)}
        return False

    def named(self, name: str) -> Entry:
        """Return the one run with this name, or whose id begins so.

        Raises:
            StoreError: when there is none, or more than one.
        """
        entries = self.entries()
        found = [
            entry
            for entry in entries
            if entry.run.name == name or (len(name) >= _SHORTEST_PREFIX and entry.run.id.startswith(name))
        ]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(entry.run.id for entry in found)
            raise StoreError(name, f'{len(found)} runs are named "{name}"', f"name one by its id: {ids}")
        from difflib import get_close_matches  # noqa: PLC0415 - most names are spelt right

        close = get_close_matches(name, [entry.run.name for entry in entries], n=1)
        hint = f"did you mean {close[0]!r}?" if close else "list runs: gpureport runs"
        raise StoreError(name, f'no file or stored run named "{name}"', hint)

    def read(self, entry: Entry) -> Recording:
        """Return a run with its series.

        Raises:
            StoreError: when the file is damaged.
        """
        stored, path = entry.stored, entry.folder / _SERIES
        devices = [device.id for device in entry.run.devices]
        try:
            series = series_file.read_series(path, stored.columns, devices, stored.series_sha256)
            training = series_file.read_training(entry.folder / _TRAINING, stored.training_sha256)
        except _UNREADABLE as error:
            now = self.get(entry.run.id)
            if now is not None and now.stored.series_sha256 != stored.series_sha256:
                # another process replaced the run since the entry was read
                return self.read(now)
            raise StoreError(str(path), "damaged or missing", "ingest the run again") from error
        return Recording(run=entry.run, series=series, training=training)

    def relabel(self, entry: Entry, run: Run, source_state: str | None = None) -> Entry:
        """Keep what is now said about a run: its name, step, params, tags and work, and the state of its tracker."""
        with atomic_writes.raise_store_errors(self.folder):
            current = self.get(entry.run.id) or entry
            state = source_state or current.stored.source_state
            stored = replace(current.stored, run=_copy_labels(current.run, run), source_state=state)
            atomic_writes.write_text(entry.folder / _RUN, run_json.dump_run(stored), self._runs)
        return Entry(stored, entry.folder)

    def remove(self, entry: Entry) -> None:
        """Remove a run: gone from the list at once, its files right after."""
        gone = atomic_writes.temporary_path(self._runs, entry.run.id)
        with atomic_writes.raise_store_errors(self.folder):
            entry.folder.rename(gone)
            shutil.rmtree(gone)

    def export(self, entry: Entry, target: Path) -> None:
        """Copy the series of a run to a Parquet file.

        Raises:
            StoreError: when they are damaged, or the file cannot be written.
        """
        if target.suffix != ".parquet":
            raise StoreError(str(target), "the series are exported as Parquet", "name a file that ends in .parquet")
        if not self.intact(entry):
            raise StoreError(str(entry.folder / _SERIES), "damaged or missing", "ingest the run again")
        part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            shutil.copyfile(entry.folder / _SERIES, part)
            part.replace(target)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise StoreError(str(target), error.strerror or "cannot be written", "choose another file") from error


def _copy_labels(run: Run, said: Run) -> Run:
    """Return a run with the name, step, params, tags and work of another."""
    return replace(run, name=said.name, step=said.step, params=said.params, tags=said.tags, work=said.work)
