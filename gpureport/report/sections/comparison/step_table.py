"""The steps of an optimization, each row against the row above."""

import re
from collections.abc import Iterator, Mapping, Sequence
from math import isclose

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.setup import compare_setups, list_changes_of_job
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison import quality_rows
from gpureport.report.sections.comparison.figure_formats import join_notes, note_prices
from gpureport.report.sections.comparison.step_columns import StepColumn, build_step_columns
from gpureport.report.wording import display
from gpureport.report.wording.differences import setup_wording
from gpureport.report.wording.differences.changes import build_change
from gpureport.report.wording.differences.comparison_reasons import describe_left_out

_MOST = 6
"""Figures that a reader takes in at once."""

_PRIORITY = (
    PER_WORK,
    "gpu_seconds",
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    COST_PER_WORK,
    ENERGY_PER_WORK,
    "gpu_memory_used_bytes",
    "gpu_utilization_ratio",
    "energy_joules",
    WORK_RATE,
    "gpu_power_watts",
)
"""Which figures stay where there is no room for all."""

_MOST_CHANGES = 2
"""Changes of the set-up that there is room for below the name of a step."""

_SAME = 0.005
"""Relative difference up to which two figures print alike."""

_WITHOUT_CHANGE = {COST_PER_WORK: "cost", WORK_RATE: "whole-job throughput"}
"""Figures that move with GPU time, in words."""

_COLOURED = {Verdict.BETTER.value, Verdict.WORSE.value}
"""Verdicts on a change that has a colour."""


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step with at most six figures, each with its change from the row above.

    Cost and whole-job throughput move with GPU time, so their changes are left out.
    """
    columns = _choose_columns(comparison)
    rows = []
    # the quiet line says the number of runs where every step has the same
    is_uneven = len({len(step.analyses) for step in comparison.steps}) > 1
    for place, step in enumerate(comparison.steps):
        before = comparison.steps[place - 1] if place else None
        deltas = {delta.metric: delta for delta in comparison.between(before.label, step.label)} if before else {}
        runs = [display.plural(len(step.analyses), "run")] if is_uneven else []
        head = Cell(text=display.clean(step.label), small="; ".join((*runs, *_name_changes(before, step))))
        rows.append(Row(head=head, cells=tuple(_cell(step, column, deltas) for column in columns)))
    table = Table(
        columns=("Step", *(column.title for column in columns)),
        numeric=(True,) * len(columns),
        rows=tuple(rows),
        notes=join_notes(
            _explain_changes(rows, columns), note_prices(comparison.steps, {each.metric for each in columns})
        ),
    )
    return quality_rows.add_quality_column(table, comparison, place=1)


def _name_changes(before: Step | None, step: Step) -> Iterator[str]:
    """Yield what changed in the set-up since the step before, in a line, unless its label holds setting and value."""
    changes = () if before is None else list_changes_of_job(compare_setups(before, step))
    named = [
        change
        for change in changes
        if len(change.values_before) == len(change.values_after) == 1
        and not {setup_wording.name_setting(change), change.after} <= set(re.findall(r"[\w.]+(?:[+-]\d+)?", step.label))
    ]
    if named:
        yield setup_wording.list_setup_changes(named, most=_MOST_CHANGES)


def _explain_changes(rows: Sequence[Row], columns: Sequence[StepColumn]) -> str:
    """Return what the changes in the table are, what grey ones mean in this table, and which figures have none."""
    changes = [cell.change for row in rows for cell in row.cells if cell.change]
    interval = " with its 95% interval" if any(change.interval for change in changes) else ""
    grey = dict.fromkeys(each.verdict for each in changes if each.verdict and each.verdict not in _COLOURED)
    meaning = f"; grey: {' or '.join(grey)}" if grey else ""
    moved = [words for metric, words in _WITHOUT_CHANGE.items() if metric in {column.metric for column in columns}]
    verb = "move" if len(moved) > 1 else "moves"
    moves = f" {display.raise_first(display.join_words(moved))} {verb} with GPU time." if moved else ""
    return f"Change from the row above{interval}{meaning}.{moves}" if changes else moves.strip()


def _cell(step: Step, column: StepColumn, deltas: Mapping[str, Delta]) -> Cell:
    value = step.value(column.metric)
    delta = None if column.metric in _WITHOUT_CHANGE else deltas.get(column.metric)
    # the change of what had settled must not stand below a figure of the whole recording
    is_of_this = delta is not None and value is not None and isclose(delta.after or 0.0, value, rel_tol=_SAME)
    change = build_change(delta) if is_of_this else None
    return Cell(
        text=display.NOT_RECORDED if value is None else column.format(value),
        value=value,
        change=change if change and change.arrow else None,
    )


def _choose_columns(comparison: Comparison) -> list[StepColumn]:
    """Return the columns that there is room for, in the order shown."""
    room = _MOST - (quality_rows.choose_quality_metric(comparison) is not None)
    found = {column.metric: column for column in build_step_columns(comparison)}
    chosen = sorted(found, key=_PRIORITY.index)[:room]
    return [column for metric, column in found.items() if metric in chosen]


def describe_allowance(comparison: Comparison) -> str:
    """Return for how many comparisons the verdicts on a chain allow; empty where there is one."""
    if comparison.tested <= 1:
        return ""
    training = (
        f" of the whole job and {comparison.training_tested} of training" if comparison.training_tested > 1 else ""
    )
    return f"Verdicts are adjusted for {comparison.tested} comparisons{training} (Holm)."


def describe_left_out_runs(comparison: Comparison) -> str:
    """Return which runs stopped early or are too short for figures of the steady state; empty where all count."""
    short = [run for delta in comparison.deltas for run in delta.left_out]
    # of a run that stopped early the little steady state goes without saying
    runs = {run.run: run for run in sorted(short, key=lambda run: run.stopped)}
    return display.clean_sentence(describe_left_out(list(runs.values())))
