"""What `gpureport` alone says: recordings, logs and trackers of this folder by their names, and the next command."""

import shlex
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from gpureport.cli.messages import count, list_names
from gpureport.record_folder import COMPRESSED_SUFFIXES, RUN_FILE

_LOGS = {".csv", ".log", ".txt", ".xml"}
_TRACKERS = ("mlflow.db", "mlruns", ".neptune")
_MOST, _NAMED = 1000, 3
"""Entries that are looked at on each of two levels, and names that are listed."""
_ALWAYS = (
    "Record a job:           gpureport record -- COMMAND",
    "Report on this folder:  gpureport report . -o report.html",
    "See an example:         gpureport demo",
    "All commands:           gpureport --help",
)


def describe_folder(folder: Path) -> Iterator[str]:
    """Yield what a folder holds, with the command that reads each, and how to begin."""
    entries = _list_entries(folder)
    inner = [path for path in entries if path.is_dir() and not path.name.startswith(".")]
    below = [each for path in inner for each in _list_entries(path) if each.is_dir()]
    recordings = [path for path in (*inner, *below[:_MOST]) if (path / RUN_FILE).is_file()]
    bare = {path: path.with_suffix("") if path.suffix.lower() in COMPRESSED_SUFFIXES else path for path in entries}
    logs = [path for path in entries if bare[path].suffix.lower() in _LOGS and path.is_file()]
    for found, noun in ((recordings, "recording"), (logs, "log")):
        if found:
            names = list_names((str(path) for path in found), _NAMED)
            yield _form(f"{count(len(found), noun)} ({names}):", f"analyze {shlex.quote(str(found[-1]))}")
    yield from (_form(f"Runs in {name}:", f"ingest {name} --list") for name in _TRACKERS if (folder / name).exists())
    if (folder / ".gpureport").is_dir():
        yield _form("Stored runs:", "runs")
    yield from _ALWAYS


def _form(what: str, command: str) -> str:
    return f"{what:<23} gpureport {command}"


def _list_entries(folder: Path) -> list[Path]:
    """Return what lies in a folder, by name; nothing of one that cannot be read."""
    try:
        return sorted(islice(folder.iterdir(), _MOST))
    except OSError:
        return []
