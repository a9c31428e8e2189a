"""What a store holds, by the `run.json` of each run: ten thousand of them are read in two seconds."""

from dataclasses import dataclass

from gpureport.errors import StoreError
from gpureport.places import Place, map_places
from gpureport.store.indexed_run import IndexedRun, summarise_stored_run
from gpureport.store.run_files import RUN_FILE, list_run_folders, read_stored_run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIndex:
    """What a store holds: its runs, oldest first, and the names of folders whose `run.json` cannot be read."""

    runs: tuple[IndexedRun, ...]
    damaged: tuple[str, ...]


def read_index(store: Place) -> RunIndex:
    """Return what a store holds."""
    folders = [store / "runs" / name for name in list_run_folders(store / "runs")]
    runs, damaged = [], []
    for folder, run in zip(folders, map_places(_read_run, folders), strict=True):
        if run is not None:
            runs.append(run)
        elif (folder / RUN_FILE).is_file():
            # not one that was removed meanwhile
            damaged.append(folder.name)
    return RunIndex(runs=tuple(sorted(runs, key=lambda run: (run.started, run.id))), damaged=tuple(damaged))


def _read_run(folder: Place) -> IndexedRun | None:
    """Return what runs are listed by; None where the `run.json` cannot be read."""
    try:
        return summarise_stored_run(read_stored_run(folder))
    except StoreError:
        return None
