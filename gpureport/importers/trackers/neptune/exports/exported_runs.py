"""Runs in an export of neptune-exporter: rows of `project_id`, `run_id`, `attribute_path` and a value."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from gpureport.data_quality import Rejected
from gpureport.errors import SourceError
from gpureport.importers.protocol.reject_reasons import NO_TIME
from gpureport.importers.trackers.neptune.exports import export_files
from gpureport.importers.trackers.neptune.exports.attributes import Attributes, read_attributes
from gpureport.importers.trackers.neptune.exports.export_rows import (
    IDENTITY,
    NUMBERS,
    PATHS,
    Key,
    PointCollector,
    iterate_single_values,
)
from gpureport.importers.trackers.neptune.exports.export_survey import RowGroup, RunRows, survey_parts
from gpureport.importers.trackers.neptune.run_content import RunContent, RunOutline

if TYPE_CHECKING:
    import pyarrow as pa

_NAMED = 5
"""Most runs that a message names."""


def find_exported_runs(source: Path) -> list["ExportedRun | BrokenRun"]:
    """Return the runs of an export, those that cannot be read with the reason."""
    named: dict[str, list[export_files.Part]] = defaultdict(list)
    rows: dict[Key, RunRows] = defaultdict(RunRows)
    broken = []
    for part in export_files.list_parts(source):
        if (unsafe := export_files.find_unsafe(part.path, source)) is not None:
            broken.append(BrokenRun(id=Path(part.run).name or part.path.name, fault=unsafe))
        elif export_files.is_export_file(part.path):
            named[part.run or str(part.path)].append(part)
    for stem, parts in named.items():
        faults = [fault for fault in [export_files.missing_part_error(parts)] if fault is not None]
        keys = survey_parts([part for part in parts if part.written], rows, faults)
        for key in keys:
            rows[key].faults += faults
        if faults and not keys:
            broken.append(BrokenRun(id=Path(stem).name or stem, fault=faults[0]))
    _refuse_copies(rows)
    whole = [ExportedRun(project=key[0], id=key[1], rows=found) for key, found in rows.items()]
    return [*sorted(whole, key=lambda run: run.key), *broken]


def _refuse_copies(rows: Mapping[Key, RunRows]) -> None:
    """Add a fault to the runs that lie in several folders: one for all that lie in the same, which names them."""
    copies: dict[tuple[str, ...], list[Key]] = defaultdict(list)
    for key in sorted(rows):
        found = sorted({str(path.parent) for path in rows[key].groups})
        if len(found) > 1:
            copies[tuple(found)].append(key)
    for folders, keys in copies.items():
        names = [run for _, run in keys[:_NAMED]] + ([f"{len(keys) - _NAMED} more"] if len(keys) > _NAMED else [])
        what = f"it holds runs that are in {', '.join(folders[:-1])} as well: {', '.join(names)}"
        fault = SourceError(folders[-1], what, "give one of the folders", code="run_in_two_folders")
        for key in keys:
            rows[key].faults.append(fault)


@dataclass(frozen=True, kw_only=True)
class BrokenRun:
    """A run whose files cannot be read at all."""

    id: str
    fault: SourceError

    @property
    def key(self) -> str:
        """What identifies it."""
        return f"broken {self.id}"

    def outline(self) -> RunOutline:
        """Return an outline that says it cannot be read."""
        return RunOutline(id=self.id, name=self.id, status="cannot be read")

    def contents(self) -> list[RunContent]:
        """Raise the error that keeps it from being read."""
        raise self.fault


@dataclass(frozen=True, kw_only=True)
class ExportedRun:
    """A run of an export; `rows` says where it lies."""

    project: str
    id: str
    rows: RunRows

    @property
    def key(self) -> str:
        """Project and id."""
        return f"{self.project} {self.id}"

    @property
    def fault(self) -> SourceError | None:
        """Why it cannot be read whole; None if it can."""
        if not self.rows.faults:
            try:
                _ = self._attributes
            except SourceError as error:
                self.rows.faults.append(error)
            except (OverflowError, ValueError) as error:
                # a time that Python has no date for
                self.rows.faults.append(export_files.damaged_error(next(iter(self.rows.groups)), error))
        return next(iter(self.rows.faults), None)

    def outline(self) -> RunOutline:
        """Return what its single values say."""
        said = self._attributes
        return RunOutline(
            id=self.id,
            name=said.name or self.id,
            status=said.status,
            project=self.project,
            started=said.moments.get("sys/creation_time"),
            points=self.rows.points,
            scalars=frozenset(said.paths),
            trashed=said.scalars.get("sys/trashed") is True,
        )

    @cached_property
    def _attributes(self) -> Attributes:
        return read_attributes(
            row
            for table, group in self._tables(None)
            for row in iterate_single_values(table)
            if group.alone or (row["project_id"], row["run_id"]) == self._key
        )

    @property
    def _key(self) -> Key:
        return self.project, self.id

    def _tables(self, names: list[str] | None) -> Iterator[tuple["pa.Table", RowGroup]]:
        """Yield the row groups that hold points, or single values when no columns are named.

        Where another run has rows in one, the columns that tell them apart come too.
        """
        for path, groups in self.rows.groups.items():
            file = export_files.open_export(path)
            whole = [name for name in file.schema_arrow.names if name not in {"histogram_value", "file_value"}]
            for each in groups:
                if each.scalars if names is None else each.numbers:
                    wanted = whole if names is None else _columns_to_read(each, names)
                    try:
                        yield export_files.read_rows(file, each.number, wanted), each
                    except export_files.DAMAGE as error:
                        raise export_files.damaged_error(path, error) from error

    def contents(self) -> list[RunContent]:
        """Read its series.

        Raises:
            SourceError: when a part is missing, damaged, or lacks columns.
        """
        if self.fault is not None:
            raise self.fault
        points = PointCollector()
        for table, group in self._tables(NUMBERS):
            if group.series is None:
                points.add(table, None if group.alone else self._key)
            else:
                points.add_to(group.series, table)
        said, files = self._attributes, list(self.rows.groups)
        whole = RunContent(
            outline=self.outline(),
            series=points.series(),
            scalars=said.scalars,
            moments=said.moments,
            tags=said.tags,
            maybe_local=True,
            rejected=(Rejected(reason=NO_TIME, rows=points.timeless, first_line=None),) if points.timeless else (),
            state=" ".join(f"{path.name}:{path.stat().st_size}" for path in files),
            size=sum(path.stat().st_size for path in files),
        )
        return [whole]


def _columns_to_read(group: RowGroup, names: list[str]) -> list[str]:
    """Return the columns to read of a row group, without those that are known to hold one value."""
    if group.series is not None:
        return [name for name in names if name not in PATHS]
    return names if group.alone else [*IDENTITY, *names]
