"""Runs in `.neptune` folders of the client up to 1.x: recordings that were never uploaded, and what is left of others.

Files are opened for reading only. The client's own reader truncates and removes them.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE
from gpureport.importers.trackers.neptune.exports.attributes import EPOCH, run_name
from gpureport.importers.trackers.neptune.local.operation_log import Operations
from gpureport.importers.trackers.neptune.run_content import RunContent, RunOutline, merge_outlines
from gpureport.json_text import parse_json
from gpureport.limits import FIRST_MICROSECOND
from gpureport.regular_files import check_regular_file, read_regular_file, walk_folder

_LOG = re.compile(r"data-(\d{1,18})\.log", re.ASCII)
_RUN = "run"
_HEAD = 4096


def find_logs(folder: Path) -> dict[int, Path]:
    """Return the logs right in a folder, by the number of their first operation."""
    found = {int(match[1]): path for path in folder.iterdir() if (match := _LOG.fullmatch(path.name))}
    return dict(sorted(found.items()))


def is_operation_log(path: Path) -> bool:
    """Return whether a file is such a log: its name says so, and its first line is an operation."""
    if _LOG.fullmatch(path.name) is None:
        return False
    try:
        check_regular_file(path)
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return True
    return head.lstrip().startswith(b'{"obj"') or not head.strip()


def find_local_runs(source: Path) -> list["LocalRun"]:
    """Return the runs whose logs lie in a folder or below; other things the client keeps, such as models, are none."""
    if source.is_dir():
        folders = [place for place, _, names in walk_folder(source) if any(map(_LOG.fullmatch, names))]
    else:
        folders = [source.parent] if find_logs(source.parent) else []
    root = source if source.is_dir() else source.parent
    found = [_ProcessFolder(folder, root) for folder in sorted(folders)]
    by_id: dict[str, list[_ProcessFolder]] = {}
    for recorded in found:
        if recorded.kind == _RUN:
            by_id.setdefault(recorded.id, []).append(recorded)
    return [LocalRun(id=name, recorded=recorded) for name, recorded in by_id.items()]


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """One run, in a folder for each process that wrote to it."""

    id: str
    recorded: Sequence["_ProcessFolder"]

    @cached_property
    def fault(self) -> SourceError | None:
        """Why it cannot be read; None if it can."""
        try:
            for each in self.recorded:
                each.outline()
        except SourceError as error:
            return error
        return None

    @property
    def key(self) -> str:
        """What identifies it."""
        return f"local {self.id}"

    def outline(self) -> RunOutline:
        """Return what its single values say; only its id where a log cannot be read."""
        if self.fault is not None:
            return RunOutline(id=self.id, name=self.id, status="cannot be read")
        return merge_outlines([each.outline() for each in self.recorded])

    def contents(self) -> list[RunContent]:
        """Read it, a content for each process.

        Raises:
            SourceError: when a log cannot be read.
        """
        return [each.content() for each in self.recorded]


class _ProcessFolder:
    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self._root = root

    @cached_property
    def _about(self) -> dict[str, object]:
        """What the client wrote about the run when it made the folder."""
        try:
            said = parse_json(read_regular_file(self.folder / "metadata.json", root=self._root))
        except (OSError, ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    def _text(self, name: str) -> str:
        value = self._about.get(name)
        return value if isinstance(value, str) else ""

    @property
    def kind(self) -> str:
        """What the folder holds: folders without a description were made when there were only runs."""
        named, parted, _ = self._place.name.partition("__")
        return self._text("containerType").lower() or (named if parted else _RUN)

    @property
    def _place(self) -> Path:
        """The folder that is named after the run; older clients made one for each process below it."""
        return self.folder.parent if self.folder.name.startswith("exec-") else self.folder

    @cached_property
    def id(self) -> str:
        """Id of the run, from its description, else from the name of its folder."""
        parts = self._place.name.split("__")
        return self._text("containerId") or (parts[1] if len(parts) > 1 else parts[0])

    @property
    def mode(self) -> str:
        """Whether it was recorded offline, or while it was uploaded."""
        return self._text("mode") or ("async" if "async" in self.folder.parts else "offline")

    @cached_property
    def _operations(self) -> Operations:
        operations = Operations(self._root)
        for path in find_logs(self.folder).values():
            operations.read(path)
        return operations

    def outline(self) -> RunOutline:
        """Return what its single values say.

        Raises:
            SourceError: when a log cannot be read.
        """
        done = self._operations
        return RunOutline(
            id=self.id,
            name=run_name(done.scalars) or self.id,
            status=self.mode,
            started=self._created if self._created is not None else done.first,
            points={path: len(points) for path, points in done.points.items()},
            scalars=frozenset([*done.scalars, *done.moments]),
        )

    @cached_property
    def _created(self) -> int | None:
        try:
            when = datetime.fromisoformat(self._text("createdAt"))
        except ValueError:
            return None
        return None if when.tzinfo is None else max((when - EPOCH) // timedelta(microseconds=1), FIRST_MICROSECOND)

    def content(self) -> RunContent:
        """Read it.

        Raises:
            SourceError: when a log cannot be read.
        """
        done = self._operations
        torn = done.torn
        return RunContent(
            outline=self.outline(),
            series=done.series(),
            scalars=done.scalars,
            moments=done.moments,
            tags=tuple(sorted(done.tags)),
            highest=done.highest,
            last=done.last,
            client=self._text("neptuneClientVersion"),
            rejected=(Rejected(reason=CUT_LAST_LINE, rows=1, first_line=torn),) if torn else (),
            notes=tuple(self._notes()),
            state=f"{done.newest} {done.bytes}",
            size=done.bytes,
        )

    def _notes(self) -> Iterator[str]:
        done = self._operations
        first, put = next(iter(find_logs(self.folder))), _read_number(self.folder / "last_put_version", self._root)
        if first > 1:
            yield f"the log begins with operation {first}: what was before it was uploaded and deleted"
        if done.copies:
            yield f"{done.copies} operations that forked processes wrote again count once"
        if done.torn:
            yield "the last line of the log is cut, its operation is lost"
        if put is not None and put > done.newest:
            lost = f"{put - done.newest} operations were lost"
            yield f"{lost} when the process was killed: {put} were given, {done.newest} are in the log"


def _read_number(path: Path, root: Path) -> int | None:
    """Return the number in a file, 0 for an empty one; None where there is none."""
    try:
        text = read_regular_file(path, root=root).decode().strip()
        return int(text or "0")
    except (OSError, ValueError):
        return None
