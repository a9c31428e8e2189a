"""Runs in local folders of neptune-scale: an sqlite database of operations, each a protobuf message.

The database is never written. What it says of errors is pickled and is not read.
"""

import os
import sqlite3
from functools import cached_property
from pathlib import Path

import numpy as np

from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune.exports.attributes import run_name
from gpureport.importers.trackers.neptune.local.scale_messages import ScaleRunData, read_operations
from gpureport.importers.trackers.neptune.run_content import RunContent, RunOutline
from gpureport.importers.trackers.neptune_hardware.point_series import Series
from gpureport.importers.trackers.read_only_sqlite import is_database, open_read_only
from gpureport.regular_files import UnsafeFileError, check_regular_file, walk_folder

NAME = "run_operations.sqlite3"
_VERSIONS = ("v3", "v4", "v5")
_HINT = "copy the folder again while nothing writes to it, with the file that ends in -wal"


def is_scale_database(path: Path) -> bool:
    """Return whether a file is such a database; one that may not be read is taken for one, so that this is said."""
    return path.name == NAME and (is_database(path) or not os.access(path, os.R_OK))


def find_scale_runs(source: Path) -> list["ScaleRun"]:
    """Return the runs whose databases lie in a folder or below."""
    if source.is_file():
        return [ScaleRun(source, source.parent)] if source.name == NAME else []
    return [ScaleRun(place / NAME, source) for place, _, names in sorted(walk_folder(source)) if NAME in names]


class ScaleRun:
    """One run in a database of its own."""

    def __init__(self, path: Path, root: Path) -> None:
        self._path = path
        self._root = root

    @cached_property
    def _read(self) -> ScaleRunData | SourceError:
        try:
            check_regular_file(self._path, root=self._root)
            with open_read_only(self._path) as connection:
                return read_operations(connection)
        except UnsafeFileError as error:
            return SourceError(str(self._path), str(error.strerror), error.hint, code="not_a_regular_file")
        except (sqlite3.Error, ValueError, TypeError, OverflowError, OSError) as error:
            return SourceError(
                str(self._path), f"not a database of neptune-scale ({error})", _HINT, code="not_a_scale_database"
            )

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read."""
        return self._read if isinstance(self._read, SourceError) else None

    @property
    def id(self) -> str:
        """Id of the run, the folder's name where it cannot be read."""
        return self._path.parent.name if isinstance(self._read, SourceError) else self._read.id

    @property
    def key(self) -> str:
        """Project and id."""
        return f"broken {self.id}" if isinstance(self._read, SourceError) else f"{self._read.project} {self.id}"

    def outline(self) -> RunOutline:
        """Return what its single values say."""
        if isinstance(self._read, SourceError):
            return RunOutline(id=self.id, name=self.id, status="cannot be read")
        done = self._read
        return RunOutline(
            id=done.id,
            name=run_name(done.scalars) or done.experiment or done.id,
            status="local",
            project=done.project,
            started=done.created,
            points={path: len(points) for path, points in done.points.items()},
            scalars=frozenset(done.scalars),
        )

    def contents(self) -> list[RunContent]:
        """Return all of it.

        Raises:
            SourceError: when it is no such database.
        """
        if isinstance(self._read, SourceError):
            raise self._read
        done = self._read
        new = [] if done.version in _VERSIONS else [f"the database is of version {done.version}, newer than is known"]
        return [
            RunContent(
                outline=self.outline(),
                series={path: _series(points) for path, points in done.points.items()},
                scalars=done.scalars,
                last=done.last,
                notes=tuple(new),
                state=f"{done.operations}",
                size=self._path.stat().st_size,
            )
        ]


def _series(points: list[tuple[int, float, int]]) -> Series:
    times, values, steps = zip(*points, strict=True)
    return Series(np.array(times, dtype=np.int64), np.array(values, dtype=np.float64), np.array(steps, dtype=np.int64))
