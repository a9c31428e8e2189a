"""Tables of runs with one GPU each, as one table with a row for each run."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpureport.report.model import ClockTable, GpuTable
from gpureport.report.parts import Cell

Labelled = TypeVar("Labelled", GpuTable, ClockTable)


def together(runs: Sequence[Labelled]) -> tuple[Labelled, ...]:
    """Return tables of runs, those of one row as one; as they are unless all have one row and the same columns."""
    columns = {run.table.columns for run in runs}
    if len(runs) == 1 or len(columns) != 1 or any(len(run.table.rows) != 1 for run in runs):
        return tuple(runs)
    gpus = {row.head.text for run in runs for row in run.table.rows}
    rows = tuple(
        replace(row, head=Cell(text=run.label if len(gpus) == 1 else f"{run.label}, {row.head.text}"))
        for run in runs
        for row in run.table.rows
    )
    notes = dict.fromkeys(run.table.note for run in runs if run.table.note)
    table = replace(runs[0].table, columns=("Run", *runs[0].table.columns[1:]), rows=rows, note=" ".join(notes))
    return (replace(runs[0], label=f"all {len(runs)} runs", table=table),)
