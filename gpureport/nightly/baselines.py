"""Named baselines: copies of runs in the store's `baselines/` folder, which may be kept in git or a bucket.

Each is a small store. A copy does not change when its run is relabelled or removed.
"""

import re
import shutil
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from gpureport.errors import DamagedRunError, SettingsError, StoreError
from gpureport.places import Place, fetch
from gpureport.recording import Recording, Run
from gpureport.store import atomic_writes
from gpureport.store.run_records import list_run_folders
from gpureport.store.run_selection import BASELINES
from gpureport.store.store import Entry, Store

_MARKER = "store.json"
"""The file that marks a folder as a store, and a baseline as complete."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Baseline(NamedTuple):
    """A named baseline and its runs; a damaged baseline has none."""

    name: str
    runs: tuple[Run, ...]


def open_baseline(store: Store, name: str) -> Store:
    """Return a baseline as a store. Raises StoreError, which suggests a similar name."""
    folder = _baseline_folder(store, name)
    if not (folder / _MARKER).is_file():
        names = [each.name for each in list_baselines(store)]
        close = get_close_matches(name, names, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"create it with gpureport baseline set {name} SOURCE"
        raise StoreError(name, "no such baseline", hint, code="no_such_baseline")
    return Store(folder)


def set_baseline(store: Store, name: str, entries: Sequence[Entry]) -> Baseline:
    place = _baseline_folder(store, name)
    damaged = next((entry for entry in entries if not store.intact(entry)), None)
    if damaged is not None:
        what = "its series are damaged or missing"
        raise StoreError(damaged.run.name, what, "ingest the run again", code="damaged_run")
    with atomic_writes.raise_store_errors(store.folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        atomic_writes.remove_stale_files(place.parent)
    with (
        atomic_writes.write_folder(place.parent, lambda: name, _MARKER) as part,
        atomic_writes.raise_store_errors(store.folder),
    ):
        (part / _MARKER).write_bytes((store.folder / _MARKER).read_bytes())
        for entry in entries:
            copy = part / "runs" / entry.run.id
            shutil.copytree(fetch(entry.folder), copy)
            for file in copy.iterdir():
                atomic_writes.flush_to_disk(file)
    return Baseline(name=name, runs=tuple(entry.run for entry in entries))


def list_baselines(store: Store) -> tuple[Baseline, ...]:
    folders = sorted(path.parent for path in (store.folder / BASELINES).glob(f"[!.]*/{_MARKER}"))
    return tuple(
        Baseline(name=folder.name, runs=tuple(stored.run for stored in Store(folder).index().runs))
        for folder in folders
    )


def remove_baseline(store: Store, name: str) -> None:
    folder = open_baseline(store, name).folder
    with atomic_writes.raise_store_errors(store.folder):
        atomic_writes.remove_folder(folder, _MARKER)


def read_baseline(store: Store, name: str) -> list[Recording]:
    """Return the runs of a baseline. Raises StoreError if it is missing or damaged."""
    small = open_baseline(store, name)
    runs = small.folder / "runs"
    try:
        found = [small.get(run_id) for run_id in list_run_folders(runs)]
    except DamagedRunError:
        found = []
    entries = sorted(filter(None, found), key=lambda entry: (entry.run.started, entry.run.id))
    if not entries and not runs.is_dir():
        hint = "if git ignored the baseline, run this where it was set: git add --force .gpureport/baselines"
        raise StoreError(f"baseline {name}", f"damaged: {runs} is missing", hint, code="damaged_baseline")
    if not entries:
        hint = f"restore it, or run gpureport baseline set {name} SOURCE"
        raise StoreError(f"baseline {name}", "damaged", hint, code="damaged_baseline")
    return [small.read(entry) for entry in entries]


def _baseline_folder(store: Store, name: str) -> Place:
    if not _NAME.fullmatch(name):
        hint = "use letters, digits, '.', '_' and '-', and begin with a letter or digit"
        raise SettingsError(name, "not a valid baseline name", hint, code="not_a_baseline_name")
    return store.folder / BASELINES / name
