"""What `gpureport` alone says of a folder: the recordings, logs and stored runs in it, and the next command.

Only names and the beginnings and ends of files are looked at. Nothing is analysed.
"""

import csv
import shlex
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from gpureport.errors import GpureportError
from gpureport.record_folder import GPU_LOG, HOST_LOG, RUN_FILE, parse_run_file
from gpureport.store.stored_names import StoredName, find_store_folder, list_stored_names

_DEPTH = 3
"""Levels of folders below this one that may be recordings: `runs/base/1`. Logs are looked for one level less deep."""
_MOST_FILES, _MOST_FOLDERS, _MOST_LISTED, _MOST_COMPARED = 400, 4000, 8, 5
_LARGEST_RUN_FILE = 1 << 20
_LOG_ENDINGS = {"", ".csv", ".log", ".txt", ".out", ".json", ".jsonl", ".gz", ".zst", ".bz2", ".xz"}
_DEVICE_COLUMNS = ("uuid", "index", "pci.bus_id")
_HEAD, _TAIL = 64 * 1024, 4096
_FRESH = 5.0
"""Seconds without a line, beyond two intervals, after which a recorder without an end counts as killed (pragmatic)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """A recording or a log in a folder.

    Attributes:
        path: what a command takes for it, relative to the folder.
        is_recording: whether `gpureport record` wrote it.
        seconds: how long it is; None where its beginning and end do not say.
        gpus: GPUs seen at its beginning; None where no column tells them apart.
        is_growing: whether it is being recorded.
        is_cut: whether its recorder was killed before the end.
        started: when it was recorded, in microseconds since 1970; 0 where that is not written.
        has_header: whether it is a CSV with a column of stamps, as no monitor such as dmon writes it.
    """

    path: str
    is_recording: bool
    seconds: float | None = None
    gpus: int | None = None
    is_growing: bool = False
    is_cut: bool = False
    started: int = 0
    has_header: bool = False


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
    recording = _read_recording(folder, top)
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
            found = _read_log(path, top)
            if found is not None:
                yield found


def _may_be_log(path: Path) -> bool:
    return path.suffix.lower() in _LOG_ENDINGS and path.is_file()


def _read_recording(folder: Path, top: Path) -> FoundRun | None:
    """Return the recording that a folder is, None when it is none."""
    file = folder / RUN_FILE
    try:
        text = file.read_text(encoding="utf-8") if file.stat().st_size <= _LARGEST_RUN_FILE else ""
    except (OSError, ValueError):
        return None
    run = parse_run_file(text)
    if run is None:
        return None
    log = _read_log(folder / GPU_LOG, top)
    # a recorder that was killed writes no end, its log has one
    logged, gpus = (log.seconds, log.gpus) if log else (None, None)
    seconds = logged if run.ended is None else (run.ended - run.started) / 1e6
    is_growing = run.ended is None and _was_written_lately(folder / HOST_LOG, run.interval)
    return FoundRun(
        path=_name(folder, top),
        is_recording=True,
        seconds=seconds,
        gpus=gpus,
        is_growing=is_growing,
        is_cut=run.ended is None and not is_growing,
        started=run.started,
    )


def _was_written_lately(path: Path, interval: float) -> bool:
    """Return whether a log got a line within the last intervals."""
    try:
        return time.time() - path.stat().st_mtime < _FRESH + 2 * interval
    except OSError:
        return False


def _read_log(path: Path, top: Path) -> FoundRun | None:
    """Return the log of GPUs that a file is by the beginning of its content, None when it is none."""
    from gpureport.importers.decoding.raw_file import RawFile  # noqa: PLC0415 - loads numpy
    from gpureport.importers.protocol.registry import IMPORTERS  # noqa: PLC0415 - only here
    from gpureport.importers.reading.sources import read_head  # noqa: PLC0415 - loads numpy

    try:
        head = read_head(RawFile(path))
        if not head or not any(each.identify(head) for each in IMPORTERS):
            return None
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - _TAIL, 0))
            tail = file.read(_TAIL)
    except (OSError, GpureportError):
        return None
    rows = list(csv.reader(head.decode(errors="replace").splitlines(), skipinitialspace=True))
    names = [name.partition(" [")[0].strip() for name in rows[0]] if rows else []
    gpus = seconds = None
    known = [names.index(name) for name in _DEVICE_COLUMNS if name in names]
    if known:
        # the last row may be cut
        gpus = len({row[known[0]] for row in rows[1:-1] if len(row) == len(names)}) or None
    if "timestamp" in names:
        place = names.index("timestamp")
        ends = csv.reader(reversed(tail.decode(errors="replace").splitlines()), skipinitialspace=True)
        first, last = _first_time(islice(rows, 1, None), place, len(names)), _first_time(ends, place, len(names))
        if first is not None and last is not None and last > first:
            seconds = (last - first).total_seconds()
    return FoundRun(
        path=_name(path, top), is_recording=False, seconds=seconds, gpus=gpus, has_header="timestamp" in names
    )


def _first_time(rows: "Iterator[list[str]]", place: int, width: int) -> datetime | None:
    """Return the stamp of the first whole row."""
    for row in rows:
        if len(row) == width:
            with suppress(ValueError):
                return datetime.fromisoformat(row[place].strip().replace("/", "-"))
    return None


def _name(path: Path, top: Path) -> str:
    return str(path.relative_to(top))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _format_length(seconds: float) -> str:
    minutes, left = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"
