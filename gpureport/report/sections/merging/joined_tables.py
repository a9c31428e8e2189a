"""Tables of runs with one GPU each, as one table with a row for each run."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from gpureport.report.model.report_content import GpuTable, RunTable
from gpureport.report.model.shapes import Cell
from gpureport.report.wording import display
from gpureport.report.wording.numbered_labels import group_holders

Labelled = TypeVar("Labelled", GpuTable, RunTable)


def join_single_row_tables(runs: Sequence[Labelled]) -> tuple[Labelled, ...]:
    """Return tables of runs, those of one row as one; as they are unless all have one row and the same columns."""
    columns = {run.table.columns for run in runs}
    if len(runs) == 1 or len(columns) != 1 or any(len(run.table.rows) != 1 for run in runs):
        return tuple(runs)
    heads = zip(_names(runs), runs, strict=True)
    rows = tuple(replace(row, head=Cell(text=name)) for name, run in heads for row in run.table.rows)
    named = (_heading(runs[0]), *runs[0].table.columns[1:])
    table = replace(runs[0].table, columns=named, rows=rows, notes=tuple(_notes(runs)))
    return (replace(runs[0], label=f"all {len(runs)} runs", table=table),)


def _heading(run: GpuTable | RunTable) -> str:
    return "Run" if isinstance(run, GpuTable) else f"Run, {run.table.columns[0].lower()}"


def _names(runs: Sequence[GpuTable | RunTable]) -> list[str]:
    """Return what the row of each run is called: the run, and what it is of unless that is one GPU in all."""
    heads = [run.table.rows[0].head.text for run in runs]
    if len(set(heads)) == 1 and isinstance(runs[0], GpuTable):
        return [run.label for run in runs]
    return [f"{run.label}, {head}" for run, head in zip(runs, heads, strict=True)]


def _notes(runs: Sequence[GpuTable | RunTable]) -> Iterator[str]:
    """Yield each note once, those of all runs first; one that not all have with the runs that it is of."""
    if isinstance(runs[0], GpuTable):
        # what no run recorded is under the first table
        yield from runs[0].table.notes
        return
    holders = group_holders((note, run.label) for run in runs for note in run.table.notes)
    yield from (note for note, labels in holders.items() if len(labels) == len(runs))
    yield from (f"{display.join_words(labels)}: {note}" for note, labels in holders.items() if len(labels) < len(runs))
