"""What `gpureport` alone says of a folder: the recordings, logs and stored runs in it, and the next command.

Only names and the beginnings and ends of files are looked at. Nothing is analysed.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpureport.cli.messages.found_runs import FoundRun, read_log, read_recording
from gpureport.record_folder import COMPRESSED_SUFFIXES
from gpureport.store.stored_names import StoredName, find_store_folder, list_stored_names

_DEPTH = 3
"""Levels of folders below this one that may be recordings: `runs/base/1`. Logs are looked for one level less deep."""
_MOST_FILES, _MOST_FOLDERS, _MOST_LISTED, _MOST_COMPARED = 400, 4000, 8, 5
_LOG_ENDINGS = {"", ".csv", ".log", ".txt", ".out", ".json", ".jsonl", *COMPRESSED_SUFFIXES}


@dataclass(frozen=True, slots=True)
class _Budget:
    """How many files and folders may still be looked at."""

    files: Iterator[int]
    folders: Iterator[int]


def describe_folder(folder: Path) -> list[str]:
    """Return the lines that say what a folder holds, and the next command."""
    budget = _Budget(iter(range(_MOST_FILES)), iter(range(_MOST_FOLDERS)))
    runs = sorted(_find_runs(folder, folder, _DEPTH, budget), key=lambda run: run.started)
    store = find_store_folder(folder)
    stored = list_stored_names(store)
    if not runs and not stored:
        return [
            "No GPU logs in this folder.",
            "  Record a job:      gpureport record -- COMMAND",
            "  See an example:    gpureport demo",
            "  All commands:      gpureport --help",
        ]
    lines = []
    for group, one in (
        ([run for run in runs if run.is_recording], "recording"),
        ([run for run in runs if not run.is_recording], "GPU log"),
    ):
        if group:
            lines += [f"{_count(len(group), one)} here:", *_list_runs(group)]
    if stored:
        lines.append(f"{_count(len(stored), 'run')} in the store {store}. List them: gpureport runs")
    return [*lines, f"Next: {_choose_command(runs, stored)}", "All commands: gpureport --help"]


def _list_runs(runs: Sequence[FoundRun]) -> Iterator[str]:
    newest = runs[-_MOST_LISTED:]
    width = max(len(run.path) for run in newest)
    if len(runs) > len(newest):
        yield f"  {len(runs) - len(newest)} more, then"
    for run in newest:
        length = None if run.seconds is None else _format_length(run.seconds)
        state = "still recording" if run.is_growing else "cut off: its recorder was killed" if run.is_cut else None
        facts = ", ".join(filter(None, (length, _count(run.gpus, "GPU") if run.gpus else None, state)))
        yield f"  {run.path:{width}}  {facts}".rstrip()


def _choose_command(runs: Sequence[FoundRun], stored: Sequence[StoredName]) -> str:
    """Return the command to go on with: a comparison of several runs, the report of one."""
    # a log of dmon beside a log with a header is of the same run
    headed = {Path(run.path).parent for run in runs if run.has_header}
    logs = [run.path for run in runs if run.has_header or Path(run.path).parent not in headed]
    # recordings come first: they are whole, and a log may be a copy of a part
    recordings = [run for run in runs if run.is_recording]
    finished = [run for run in recordings if not run.is_growing]
    whole = [run for run in finished if not run.is_cut]
    paths = [run.path for run in whole or finished or recordings] or logs
    if not paths:
        return f"gpureport report {shlex.quote(stored[-1].word)} -o report.html"
    if len(paths) == 1:
        # what lies beside the log is read with it where the folder is named
        source = paths[0] if len(logs) == len(runs) or paths[0] not in logs else str(Path(paths[0]).parent)
        return f"gpureport report {shlex.quote(source)} -o report.html"
    steps = list(dict.fromkeys(map(_name_step, paths))) if recordings else []
    compared = steps if len(steps) > 1 else paths
    if len(compared) <= _MOST_COMPARED:
        return f"gpureport compare {shlex.join(compared)}"
    return "gpureport report . -o report.html"


def _name_step(path: str) -> str:
    """Return the folder of the step that a recording repeats: that of `runs/base/2` is `runs/base`."""
    folder = Path(path)
    return str(folder.parent) if folder.name.isdecimal() and folder.parent != Path() else path


def _find_runs(folder: Path, top: Path, depth: int, budget: _Budget) -> Iterator[FoundRun]:
    """Yield the runs of a folder and of those below it, until as much as the budget allows was looked at.

    Below a recording only recordings are looked for, since its logs are its own.
    """
    if next(budget.folders, None) is None:
        return
    recording = read_recording(folder, top)
    if recording is not None:
        yield recording
    if not depth:
        return
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return
    for path in entries:
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            yield from _find_runs(path, top, depth - 1, budget)
        elif recording is None and _may_be_log(path) and next(budget.files, None) is not None:
            found = read_log(path, top)
            if found is not None:
                yield found


def _may_be_log(path: Path) -> bool:
    return path.suffix.lower() in _LOG_ENDINGS and path.is_file()


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _format_length(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
