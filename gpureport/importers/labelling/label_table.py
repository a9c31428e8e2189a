"""Finds the row of a table that belongs to a run: by its name, by the number of its job, or by machine and time.

What fits several rows equally well is never guessed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path, PurePath

from gpureport.importers.labelling.label_rows import LabelRow, read_label_rows
from gpureport.importers.labelling.node_lists import shorten_node
from gpureport.importers.labelling.run_traces import RunTraces, find_traces
from gpureport.recording import Run


class Doubt(Enum):
    """Why a run has no row."""

    NO_ROW = "no row fits"
    SEVERAL = "several rows fit equally well"
    TIMES = "its times cannot be compared with those of the table"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatch:
    """The row of a run, or why it has none.

    Attributes:
        row: the row; None without one.
        doubt: why it has none; None with one.
        rows: the rows that fit equally well, where there are several.
        tags: what the run is labelled with.
    """

    row: LabelRow | None = None
    doubt: Doubt | None = None
    rows: tuple[LabelRow, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Index:
    """Rows by what they can be found by."""

    runs: dict[str, list[LabelRow]]
    jobs: dict[str, list[LabelRow]]
    nodes: dict[str, list[LabelRow]]


class LabelTable:
    """A table, and which of its rows belong to the runs that were looked up in it.

    Attributes:
        path: the file.
        rows: its rows.
        unread: lines that have another number of cells than its heading.
        matches: what was found for each run, by the run's id, with its name.
    """

    def __init__(self, path: Path) -> None:
        """Read the table.

        Raises:
            SettingsError: when it cannot be read, or has no column that tells whose a row is.
        """
        self.path = path
        self.rows, self.unread = read_label_rows(path)
        self.matches: dict[str, tuple[str, LabelMatch]] = {}
        self._index = _index_rows(self.rows)

    def find_tags(self, run: Run) -> tuple[tuple[str, str], ...]:
        """Return what the table labels a run with; nothing where no row is its own."""
        match = self.match(run)
        self.matches[run.id] = run.name, match
        return match.tags

    def match(self, run: Run) -> LabelMatch:
        """Return the row of a run, or why it has none."""
        traces = find_traces(run)
        named = [row for name in traces.names for row in self._index.runs.get(name, ())]
        if named:
            return _choose(named, traces)
        for job in traces.jobs:
            if job in self._index.jobs:
                return _choose(self._index.jobs[job], traces)
        if any(job.replace("_", "").isdigit() for job in traces.jobs):
            # another job on the same machine is not this one
            return LabelMatch(doubt=Doubt.NO_ROW)
        numbered = [
            row
            for number in traces.list_numbers(self._index.jobs)
            for row in self._index.jobs[number]
            if not _contradicts(row, traces)
        ]
        return _choose(numbered, traces) if numbered else self._match_by_node(traces)

    def _match_by_node(self, traces: RunTraces) -> LabelMatch:
        """Return the one job that ran on a machine of the run at its time."""
        found = _drop_repeated(row for node in traces.nodes for row in self._index.nodes.get(node, ()))
        dated = [row for row in found if row.start is not None]
        if dated and all(traces.span_beside(row) is None for row in dated):
            return LabelMatch(doubt=Doubt.TIMES)
        return _choose([row for row in dated if _fits_time(row, traces)], traces)


def _index_rows(rows: Sequence[LabelRow]) -> _Index:
    index = _Index({}, {}, {})
    for row in rows:
        if row.run:
            index.runs.setdefault(str(PurePath(row.run)), []).append(row)
        for job in row.jobs:
            index.jobs.setdefault(job, []).append(row)
        for node in row.nodes:
            index.nodes.setdefault(shorten_node(node), []).append(row)
    return index


def _choose(rows: Iterable[LabelRow], traces: RunTraces) -> LabelMatch:
    """Return the one row, after time and machine had their say where there are several."""
    left = _drop_repeated(rows)
    for fits in (_fits_time, _fits_node):
        if len(left) > 1:
            left = [row for row in left if fits(row, traces)] or left
    if not left:
        return LabelMatch(doubt=Doubt.NO_ROW)
    if any(row.tags != left[0].tags for row in left):
        return LabelMatch(doubt=Doubt.SEVERAL, rows=tuple(left))
    return LabelMatch(row=left[0], tags=_name_own_nodes(left[0], traces))


def _drop_repeated(rows: Iterable[LabelRow]) -> list[LabelRow]:
    return sorted({row.line: row for row in rows}.values(), key=lambda row: row.line)


def _name_own_nodes(row: LabelRow, traces: RunTraces) -> tuple[tuple[str, str], ...]:
    """Return the tags of a row; of the machines of a job only those that the run is of, where it names some."""
    own = [node for node in row.nodes if shorten_node(node) in traces.nodes]
    return tuple((name, ", ".join(own) if name == "node" and own else value) for name, value in row.tags)


def _contradicts(row: LabelRow, traces: RunTraces) -> bool:
    """Return whether a number in a name is not known to be this job's: by the time of the run, and its machine."""
    elsewhere = bool(traces.nodes) and bool(row.nodes) and not _fits_node(row, traces)
    return elsewhere or not _fits_time(row, traces)


def _fits_time(row: LabelRow, traces: RunTraces) -> bool:
    """Return whether the middle of a run lies within a job; False where their times cannot be compared."""
    span = traces.span_beside(row)
    if span is None or row.start is None:
        return False
    middle = (span[0] + span[1]) // 2
    return row.start.micros <= middle and (row.end is None or middle <= row.end.micros)


def _fits_node(row: LabelRow, traces: RunTraces) -> bool:
    return any(shorten_node(node) in traces.nodes for node in row.nodes)
