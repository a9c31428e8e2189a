"""Tables of runs with one GPU each, as one table with a row for each run."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from gpureport.report.model.report_content import ClockTable, GpuTable
from gpureport.report.model.shapes import Cell
from gpureport.report.wording import display

_SENTENCES = re.compile(r"(?<=\.) ")

Labelled = TypeVar("Labelled", GpuTable, ClockTable)


def together(runs: Sequence[Labelled]) -> tuple[Labelled, ...]:
    """Return tables of runs, those of one row as one; as they are unless all have one row and the same columns."""
    columns = {run.table.columns for run in runs}
    if len(runs) == 1 or len(columns) != 1 or any(len(run.table.rows) != 1 for run in runs):
        return tuple(runs)
    heads = zip(_names(runs), runs, strict=True)
    rows = tuple(replace(row, head=Cell(text=name)) for name, run in heads for row in run.table.rows)
    named = (_heading(runs[0]), *runs[0].table.columns[1:])
    table = replace(runs[0].table, columns=named, rows=rows, note=_note(runs))
    return (replace(runs[0], label=f"all {len(runs)} runs", table=table),)


def _heading(run: GpuTable | ClockTable) -> str:
    return "Run" if isinstance(run, GpuTable) else f"Run, {run.table.columns[0].lower()}"


def _names(runs: Sequence[GpuTable | ClockTable]) -> list[str]:
    """Return what the row of each run is called: the run, and what it is of unless that is one GPU in all."""
    heads = [run.table.rows[0].head.text for run in runs]
    if len(set(heads)) == 1 and isinstance(runs[0], GpuTable):
        return [run.label for run in runs]
    return [f"{run.label}, {head}" for run, head in zip(runs, heads, strict=True)]


def _note(runs: Sequence[GpuTable | ClockTable]) -> str:
    """Return what the notes of runs say, each sentence once; one that not all say with the runs that it is of."""
    said: dict[str, list[str]] = {}
    for run in runs:
        for sentence in dict.fromkeys(filter(None, _SENTENCES.split(run.table.note))):
            said.setdefault(sentence, []).append(run.label)
    ordered = sorted(said, key=lambda sentence: len(said[sentence]) < len(runs))
    return " ".join(
        sentence if len(said[sentence]) == len(runs) else f"{display.join_words(said[sentence])}: {sentence}"
        for sentence in ordered
    )
