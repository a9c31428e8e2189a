"""A recording or a log in a folder: how long it is and of how many GPUs, by its beginning and its end."""

import csv
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path

from gpureport.errors import GpureportError
from gpureport.record_folder import COMPRESSED_SUFFIXES, GPU_LOG, HOST_LOG, RUN_FILE, find_log, parse_run_file

_LARGEST_RUN_FILE = 1 << 20
_DEVICE_COLUMNS = ("uuid", "index", "pci.bus_id")
_TAIL = 4096
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


def read_recording(folder: Path, top: Path) -> FoundRun | None:
    """Return the recording that a folder is, None when it is none."""
    file = folder / RUN_FILE
    try:
        text = file.read_text(encoding="utf-8") if file.stat().st_size <= _LARGEST_RUN_FILE else ""
    except (OSError, ValueError):
        return None
    run = parse_run_file(text)
    if run is None:
        return None
    path = find_log(folder, GPU_LOG)
    # a recorder that was killed writes no end, its log has one
    is_unpacked = run.ended is None and path is not None and path.suffix in COMPRESSED_SUFFIXES
    log = read_log(path, top, is_unpacked=is_unpacked) if path else None
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


def read_log(path: Path, top: Path, *, is_unpacked: bool = False) -> FoundRun | None:
    """Return the log of GPUs that a file is by the beginning of its content, None when it is none.

    Args:
        path: the file.
        top: the folder that its name is relative to.
        is_unpacked: whether to unpack a compressed one to its end, as far as a few megabytes reach.
    """
    from gpureport.importers.decoding.raw_file import RawFile  # noqa: PLC0415 - loads numpy
    from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES  # noqa: PLC0415 - loads numpy
    from gpureport.importers.protocol.registry import IMPORTERS  # noqa: PLC0415 - only here
    from gpureport.importers.reading.sources import read_head  # noqa: PLC0415 - loads numpy

    most = SEARCHED_BYTES if is_unpacked else HEAD_BYTES
    try:
        text = read_head(RawFile(path), most)
        head = text[:HEAD_BYTES]
        if not head or not any(each.identify(head) for each in IMPORTERS):
            return None
        tail = text[-_TAIL:] if is_unpacked and len(text) < most else _read_tail(path)
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


def _read_tail(path: Path) -> bytes:
    """Return the last bytes of a file as they are."""
    with path.open("rb") as file:
        file.seek(max(path.stat().st_size - _TAIL, 0))
        return file.read(_TAIL)


def _first_time(rows: Iterator[list[str]], place: int, width: int) -> datetime | None:
    """Return the stamp of the first whole row."""
    for row in rows:
        if len(row) == width:
            with suppress(ValueError):
                return datetime.fromisoformat(row[place].strip().replace("/", "-"))
    return None


def _name(path: Path, top: Path) -> str:
    return str(path.relative_to(top))
