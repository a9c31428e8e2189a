"""The store: a folder of runs, each written beside its place and moved there when it is whole."""

import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from gpureport.errors import StoreError
from gpureport.recording import Recording, Run
from gpureport.store import parquet, run_json, swap
from gpureport.store.run_json import StoredRun

FOLDER = ".gpureport"
FORMAT = 1
"""Version of the store's layout. 1 (2026-11): run.json, hardware.parquet, rejects.jsonl.zst a run."""
_RUN, _SERIES, _REJECTS = "run.json", "hardware.parquet", "rejects.jsonl.zst"
_SHORTEST_PREFIX = 4
_STALE = 86_400


class Readable(Protocol):
    """A run that is being read: batches first, then what is known about it."""

    @property
    def run_id(self) -> str:
        """Its id, best asked for when the batches are out."""
        ...

    def batches(self) -> Iterator["pa.Table"]:
        """Yield its series."""
        ...

    def run(self) -> Run:
        """Return the run, after the last batch."""
        ...

    def rejects(self) -> bytes:
        """Return its rejected lines, after the last batch."""
        ...


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
        above = next((each for each in (start, *start.parents) if (each / FOLDER).is_dir()), start)
        return cls(above / FOLDER)

    @staticmethod
    def _check(marker: Path) -> None:
        try:
            version = int(json.loads(marker.read_text(encoding="utf-8"))["format"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(str(marker), "cannot be read", "restore it or ingest into a new store") from error
        if version > FORMAT:
            raise StoreError(str(marker), f"format {version} is newer than {FORMAT}", "upgrade gpureport")

    def write(self, reading: Readable, importer_version: str) -> Entry:
        """Read a run into the store; an existing run of the same id is replaced whole."""
        with self._place(lambda: reading.run_id) as folder:
            writer = parquet.SeriesWriter(folder / _SERIES, lambda: reading.run_id)
            try:
                for batch in reading.batches():
                    writer.add(batch)
            except BaseException:
                writer.abandon()
                raise
            run = reading.run()
            columns = writer.close([device.id for device in run.devices])
            stored = StoredRun(run=run, columns=columns, importer_version=importer_version)
            if rejects := reading.rejects():
                (folder / _REJECTS).write_bytes(rejects)
            (folder / _RUN).write_text(run_json.dump(stored), encoding="utf-8")
        return Entry(stored, self._runs / run.id)

    @contextmanager
    def _place(self, run_id: Callable[[], str]) -> Iterator[Path]:
        """Give a folder to write a run to; move it to the place of its id when all went well, else remove it."""
        try:
            self._runs.mkdir(parents=True, exist_ok=True)
            marker = self.folder / "store.json"
            if not marker.exists():
                _replace(marker, json.dumps({"format": FORMAT}) + "\n")
            self._sweep()
            folder = self._runs / f".tmp-{os.getpid()}-{secrets.token_hex(8)}"
            folder.mkdir()
        except OSError as error:
            what = error.strerror or "cannot be written"
            raise StoreError(str(self.folder), what, "choose another store with --store") from error
        try:
            yield folder
            for file in folder.iterdir():
                _sync(file)
            _sync(folder)
            swap.into_place(folder, self._runs / run_id())
            _sync(self._runs)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what writers left that were killed a day ago or longer."""
        for left in self._runs.glob(".tmp-*"):
            with suppress(OSError):
                if left.stat().st_mtime < time.time() - _STALE:
                    shutil.rmtree(left, ignore_errors=True)

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
            return Entry(run_json.load((folder / _RUN).read_text(encoding="utf-8")), folder)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(str(folder / _RUN), "cannot be read", "ingest the run again") from error

    def get(self, run_id: str) -> Entry | None:
        """Return the run of exactly this id, None when it is not there."""
        folder = self._runs / run_id
        return self._entry(folder) if (folder / _RUN).is_file() else None

    def may_hold(self, sizes: Sequence[int]) -> bool:
        """Return whether a run may be here whose sources have these sizes; what no size is known of may be any."""
        wanted = sorted(sizes)
        for folder in self._folders():
            entry = self._readable(folder)
            known = [source.bytes for source in entry.run.sources] if entry else []
            held = [size for size in known if size is not None]
            if len(held) < len(known) or sorted(held) == wanted:
                return True
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
            raise StoreError(name, f"{len(found)} runs are called so", f"name one by its id: {ids}")
        close = get_close_matches(name, [entry.run.name for entry in entries], n=1)
        hint = f"did you mean {close[0]!r}?" if close else "gpureport runs lists what the store holds"
        raise StoreError(name, f"no such file, and no such run in {self.folder}", hint)

    def read(self, entry: Entry) -> Recording:
        """Return a run with its series.

        Raises:
            StoreError: when the file is damaged.
        """
        devices = [device.id for device in entry.run.devices]
        path = entry.folder / _SERIES
        try:
            series = parquet.read(path, entry.stored.columns, devices)
        except (OSError, pa.ArrowException) as error:
            raise StoreError(str(path), "damaged or missing", "ingest the run again") from error
        return Recording(run=entry.run, series=series)

    def relabel(self, entry: Entry, run: Run) -> Entry:
        """Keep what is now said about a run: its name, step, params, tags and work."""
        stored = replace(entry.stored, run=run)
        _replace(entry.folder / _RUN, run_json.dump(stored))
        return Entry(stored, entry.folder)

    def remove(self, entry: Entry) -> None:
        """Remove a run: gone from the list at once, its files right after."""
        gone = self._runs / f".tmp-{entry.run.id}-{os.getpid()}-{secrets.token_hex(4)}"
        entry.folder.rename(gone)
        shutil.rmtree(gone)

    def export(self, entry: Entry, target: Path) -> None:
        """Copy the series of a run to a Parquet file."""
        if target.suffix != ".parquet":
            raise StoreError(str(target), "the series are exported as Parquet", "name a file that ends in .parquet")
        part = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            shutil.copyfile(entry.folder / _SERIES, part)
            part.replace(target)
        except OSError as error:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise StoreError(str(target), error.strerror or "cannot be written", "choose another file") from error


def _sync(path: Path) -> None:
    """Make sure a file or folder has reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace(path: Path, text: str) -> None:
    """Write a small file whole or not at all."""
    part = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    part.write_text(text, encoding="utf-8")
    _sync(part)
    part.replace(path)
