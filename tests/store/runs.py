"""Logs large enough to be written in several steps, and a store that holds one of them."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from gpureport.importers import IMPORTER_VERSION, Labels, Reading, ReadOptions, find_runs
from gpureport.store import Store
from gpureport.testing import Recording
from tests.importers.written_logs import HEADER, row
from tests.local_place import local

SCALE = int(os.environ.get("GPUREPORT_TRIALS", "1"))
"""How many times more trials are made than in an ordinary run of the tests."""
_ROWS = 1500


def noisy(seed: int, rows: int = _ROWS, gpus: int = 2) -> str:
    """Return a log whose values differ from row to row."""
    lines = [
        row(second, gpu, util=(second * 31 + gpu * 7 + seed) % 100, power=f"{second * (7919 + seed) % 1000}.50 W")
        for second in range(rows)
        for gpu in range(gpus)
    ]
    return "\n".join([HEADER, *lines, ""])


def reading(log: Path, labels: Labels | None = None) -> Reading:
    """Return a log being read."""
    (inputs,) = find_runs(log)
    return Reading(inputs, ReadOptions(), labels or Labels())


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A store that holds `old` and not `new`, their logs, and what they are read as."""

    folder: Path
    old: Path
    new: Path
    old_recording: Recording
    new_series: pa.Table

    def copy(self, folder: Path) -> Store:
        """Return a copy of the store."""
        shutil.copytree(self.folder, folder)
        return Store(folder)


def known(folder: Path) -> Known:
    """Make such a store in a folder."""
    old, new = folder / "old.csv", folder / "new.csv"
    old.write_text(noisy(0))
    new.write_text(noisy(1))
    store = Store(folder / "store")
    entry = store.write(reading(old, Labels(name="old", step="a", tags=(("by", "hand"),))), IMPORTER_VERSION)
    return Known(
        folder=local(store.folder),
        old=old,
        new=new,
        old_recording=store.read(entry),
        new_series=reading(new).recording().series,
    )


def leftovers(store: Store) -> list[Path]:
    """Return what writers left anywhere in a store."""
    return [path for path in local(store.folder).rglob("*") if ".tmp" in path.name]
