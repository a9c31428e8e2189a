"""The names of stored runs and baselines, without Arrow: for the shell."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from gpureport.limits import MOST_RECORD_BYTES
from gpureport.places import Place
from gpureport.regular_files import read_regular_file

FOLDER = ".gpureport"
"""Folder of a store."""
BASELINES = "baselines"
"""Folder of a store that holds its named baselines."""
_PLAIN = re.compile(r"[\w./+@-]+")
"""A name that a shell takes as one word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredName:
    """What a stored run is called, and when it began, in microseconds since 1970."""

    id: str
    name: str
    started: int

    @property
    def word(self) -> str:
        """The name where it can be typed without quotes, else the id."""
        return self.name if _PLAIN.fullmatch(self.name) and not self.name.startswith("-") else self.id


def find_store_folder(start: Path) -> Path:
    """Return the store of a folder or of the nearest one above it, else the place of a new one in it."""
    above = next((each for each in (start, *start.parents) if (each / FOLDER).is_dir()), start)
    return above / FOLDER


def list_stored_names(store: Path) -> list[StoredName]:
    """Return the runs of a store whose names can be read, oldest first. Damage is not looked for."""
    found = []
    for path in store.glob("runs/[!.]*/run.json"):
        try:
            run = json.loads(read_regular_file(path, most=MOST_RECORD_BYTES))["run"]
            found.append(StoredName(id=str(run["id"]), name=str(run["name"]), started=int(run["started"])))
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            continue
    return sorted(found, key=lambda each: (each.started, each.id))


def list_baseline_names(store: Place) -> list[str]:
    """Return the names of a store's baselines, in their order."""
    return sorted(path.name for path in (store / BASELINES).glob("[!.]*/"))
