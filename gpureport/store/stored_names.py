"""The folder of a store, and the names of its baselines, without Arrow."""

from pathlib import Path

from gpureport.places import Place

FOLDER = ".gpureport"
"""Folder of a store."""
BASELINES = "baselines"
"""Folder of a store that holds its named baselines."""


def find_store_folder(start: Path) -> Path:
    """Return the store of a folder or of the nearest one above it, else the place of a new one in it."""
    above = next((each for each in (start, *start.parents) if (each / FOLDER).is_dir()), start)
    return above / FOLDER


def list_baseline_names(store: Place) -> list[str]:
    """Return the names of a store's baselines, in their order."""
    return sorted(path.name for path in (store / BASELINES).glob("[!.]*/"))
