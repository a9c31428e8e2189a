"""What a folder holds, as far as anybody reads it: files by their names, without what writers leave half done."""

import json
import os
import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

_LEFTOVER = re.compile(r"(?:^|/)(?:\.tmp-[^/]*|\.[^/]+\.part|run\.part)(?:/|$)|^tmp/")
"""Names of files that are being written; those below `tmp` are temporary files of the system."""

_CACHE = ".gpureport/fleet/"
"""What a fleet keeps so as to be quicker; it lacks runs that could not be read."""

Unit = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a folder holds.

    Attributes:
        units: hash of every file, by its name, for each unit: a run, a baseline, or a file that stands alone.
        leftovers: names of files that are half done, without what chance adds to them.
    """

    units: dict[str, Unit]
    leftovers: tuple[str, ...]

    def key(self) -> tuple[object, ...]:
        return tuple(sorted(self.units.items())), self.leftovers


def read_state(folder: Path) -> State:
    units: dict[str, list[tuple[str, str]]] = {}
    leftovers = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if name.startswith(_CACHE):
            continue
        if _LEFTOVER.search(name):
            leftovers.append(re.sub(r"-\d+-[0-9a-f]{8}|\.\w{8}\.part", "-", name))
        else:
            units.setdefault(find_unit(name), []).append((name, _hash_file(path)))
    return State(units={name: tuple(files) for name, files in units.items()}, leftovers=tuple(sorted(leftovers)))


def _hash_file(path: Path) -> str:
    content = path.read_bytes()
    if path.name == "run.json":
        said = {key: value for key, value in json.loads(content).items() if key != "sha256"}
        content = json.dumps(said).encode()
    return sha256(content).hexdigest()


def find_unit(name: str) -> str:
    """Return the unit that a file is part of: its baseline or its run, else itself."""
    parts = name.split("/")
    for folder in ("baselines", "runs"):
        if folder in parts[:-2]:
            return "/".join(parts[: parts.index(folder) + 2])
    return name


def age_leftovers(folder: Path) -> None:
    """Let everything half done be years old, so that it is cleared away."""
    for path in folder.rglob("*"):
        if _LEFTOVER.search(path.relative_to(folder).as_posix()):
            os.utime(path, (1, 1), follow_symlinks=False)
