"""What `gpureport` alone says of a folder, in ten lines: its recordings, GPU logs and stored runs, and what to do next.

Only names and beginnings of files are looked at.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from gpureport.errors import GpureportError
from gpureport.record_folder import COMPRESSED_SUFFIXES, read_run_file
from gpureport.store.stored_names import StoredName, find_store_folder, list_stored_names

_DEPTH = 3
"""Levels of folders below this one that may be recordings: `runs/base/1`."""
_MOST_FILES, _MOST_FOLDERS, _MOST_LISTED = 400, 4000, 5
_LOG_ENDINGS = {"", ".csv", ".log", ".txt", ".out", ".json", ".jsonl", *COMPRESSED_SUFFIXES}


@dataclass(slots=True)
class _Found:
    """What a folder holds.

    Attributes:
        recordings: when each began, its path, and whether it ended.
        logs: the files of this folder that are GPU logs, and the folders below it that hold such files.
    """

    recordings: list[tuple[int, str, bool]] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


def describe_folder(folder: Path) -> list[str]:
    """Return the lines that say what a folder holds, and the next command."""
    found = _look_through(folder)
    store = find_store_folder(folder)
    stored = list_stored_names(store)
    if not (found.recordings or found.logs or stored):
        return [
            "No GPU logs in this folder.",
            "  Record a job:      gpureport record -- COMMAND",
            "  See an example:    gpureport demo",
            "  All commands:      gpureport --help",
        ]
    recordings = [path if has_ended else f"{path}  (no end written)" for _, path, has_ended in found.recordings]
    counts = [_count(len(paths), one) for paths, one in ((recordings, "recording"), (found.logs, "GPU log")) if paths]
    lines = [f"{' and '.join(counts)} here:"] if counts else []
    named = [*recordings, *found.logs]
    lines += [f"  {path}" for path in named[:_MOST_LISTED]]
    if len(named) > _MOST_LISTED:
        lines.append(f"  and {len(named) - _MOST_LISTED} more")
    if stored:
        lines.append(f"{_count(len(stored), 'run')} in the store {store}. List them: gpureport runs")
    return [*lines, f"Next: {_choose_command(found, stored)}", "All commands: gpureport --help"]


def _choose_command(found: _Found, stored: Sequence[StoredName]) -> str:
    """Return the command to go on with: a comparison of several runs, the report of one."""
    # recordings come first: they are whole, and a log may be a copy of a part
    ended = [path for _, path, has_ended in found.recordings if has_ended]
    paths = ended or [path for _, path, _ in found.recordings] or found.logs
    if not paths:
        return f"gpureport report {shlex.quote(stored[-1].word)} -o report.html"
    if len(paths) == 1:
        return f"gpureport report {shlex.quote(paths[0])} -o report.html"
    steps = list(dict.fromkeys(map(_name_step, paths))) if found.recordings else []
    compared = steps if len(steps) > 1 else paths
    if len(compared) <= _MOST_LISTED:
        return f"gpureport compare {shlex.join(compared)}"
    return "gpureport report . -o report.html"


def _name_step(path: str) -> str:
    """Return the folder of the step that a recording repeats: that of `runs/base/2` is `runs/base`."""
    folder = Path(path)
    return str(folder.parent) if folder.name.isdecimal() and folder.parent != Path() else path


def _look_through(top: Path) -> _Found:
    """Return the recordings in the order of time, and the logs that belong to none of them."""
    found = _Found()
    files = iter(range(_MOST_FILES))
    for folder in islice(_list_folders(top, _DEPTH), _MOST_FOLDERS):
        name = str(folder.relative_to(top))
        if run := read_run_file(folder):
            found.recordings.append((run.started, name, run.ended is not None))
            continue
        logs = (path for path in _list_entries(folder) if _may_be_log(path) and next(files, None) is not None)
        if folder == top:
            found.logs += [path.name for path in logs if _is_gpu_log(path)]
        elif any(map(_is_gpu_log, logs)):
            found.logs.append(name)
    found.recordings.sort()
    return found


def _list_folders(folder: Path, depth: int) -> Iterator[Path]:
    """Yield a folder and those below it."""
    yield folder
    if depth:
        for path in _list_entries(folder):
            if path.is_dir():
                yield from _list_folders(path, depth - 1)


def _list_entries(folder: Path) -> list[Path]:
    """Return what a folder holds, without what is hidden and without links; nothing of one that cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith(".") and not path.is_symlink())
    except OSError:
        return []


def _may_be_log(path: Path) -> bool:
    return path.suffix.lower() in _LOG_ENDINGS and path.is_file()


def _is_gpu_log(path: Path) -> bool:
    """Return whether a file is a log of GPUs by the beginning of its content."""
    from gpureport.importers.decoding.raw_file import RawFile  # noqa: PLC0415 - loads numpy
    from gpureport.importers.protocol.registry import IMPORTERS  # noqa: PLC0415 - as above
    from gpureport.importers.sources import read_head  # noqa: PLC0415 - as above

    try:
        head = read_head(RawFile(path))
    except (OSError, GpureportError):
        return False
    return bool(head) and any(each.identify(head) for each in IMPORTERS)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
