"""Where the rows of each run lie in the files of an export, found without reading their values."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from pyarrow import parquet

from gpureport.errors import SourceError
from gpureport.importers.trackers.neptune.exports import export_files
from gpureport.importers.trackers.neptune.exports.export_files import Part
from gpureport.importers.trackers.neptune.exports.export_rows import KINDS, NO_SCALARS, SERIES, Key, encode_texts


@dataclass(slots=True)
class RowGroup:
    """A row group of a file that holds something of a run.

    Attributes:
        number: which one it is.
        alone: whether all its rows are of this run.
        numbers: whether it holds points.
        scalars: whether it holds single values.
        series: path of the only series in it; None if it holds more.
    """

    number: int
    alone: bool
    numbers: bool
    scalars: bool
    series: str | None = None


@dataclass(slots=True)
class RunRows:
    """Where rows of a run lie.

    Attributes:
        groups: row groups, by file.
        points: points of each series of numbers.
        faults: errors that keep parts of the run from being read.
    """

    groups: dict[Path, list[RowGroup]] = field(default_factory=lambda: defaultdict(list))
    points: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    faults: list[SourceError] = field(default_factory=list)


def survey_parts(parts: Iterable[Part], rows: dict[Key, RunRows], faults: list[SourceError]) -> dict[Key, None]:
    """Add to `rows` where the rows of each run lie, and to `faults` what is damaged; return the runs found."""
    keys: dict[Key, None] = {}
    for part in parts:
        try:
            file = export_files.open_export(part.path)
            for number in range(file.num_row_groups):
                keys |= dict.fromkeys(_survey_row_group(file, number, part.path, rows))
        except SourceError as error:
            faults.append(error)
        except export_files.DAMAGE as error:
            faults.append(export_files.damaged_error(part.path, error))
    return keys


def _survey_row_group(file: parquet.ParquetFile, number: int, path: Path, rows: dict[Key, RunRows]) -> Iterator[Key]:
    # not by the statistics of its columns: where they contradict the schema, asking for them ends the process
    table = export_files.read_rows(file, number, KINDS)
    if not len(table):
        return
    coded = [encode_texts(table, name) for name in KINDS]
    if all(len(texts) == 1 for texts, _ in coded):
        project, run, name, kind = (texts[0] for texts, _ in coded)
        found = rows[project, run]
        points = kind == SERIES
        group = RowGroup(
            number, alone=True, numbers=points, scalars=kind not in NO_SCALARS, series=name if points else None
        )
        found.groups[path].append(group)
        if points:
            found.points[name] += len(table)
        yield project, run
        return
    (projects, project_of), (ids, run_of), (paths, place), (kinds, kind_of) = coded
    both = project_of * len(ids) + run_of
    present = np.flatnonzero(np.bincount(both)).tolist()
    for code in present:
        own = slice(None) if len(present) == 1 else both == code
        found = rows[projects[code // len(ids)], ids[code % len(ids)]]
        held = {kinds[each] for each in np.flatnonzero(np.bincount(kind_of[own])).tolist()}
        found.groups[path].append(
            RowGroup(number, alone=len(present) == 1, numbers=SERIES in held, scalars=bool(held - NO_SCALARS))
        )
        if SERIES in held:
            counted = np.bincount(place[own][kind_of[own] == kinds.index(SERIES)], minlength=len(paths))
            for name, count in zip(paths, counted.tolist(), strict=True):
                found.points[name] += count
        yield projects[code // len(ids)], ids[code % len(ids)]
