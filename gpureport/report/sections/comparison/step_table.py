"""The steps of an optimization, each row against the row above."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import isclose

from gpureport.comparison.quality.time_to_target import measure_run_time_to_target
from gpureport.comparison.setup.setup_changes import compare_setups, list_changes_of_job
from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
    measures,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.steps.training_rate import mean_training_rate
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison import figure_formats, quality_rows
from gpureport.report.sections.comparison.figure_formats import LABEL, join_notes, note_prices, select_formats
from gpureport.report.sections.comparison.step_columns import StepColumn, build_step_columns
from gpureport.report.wording import display
from gpureport.report.wording.differences import setup_wording
from gpureport.report.wording.differences.changes import build_change
from gpureport.report.wording.differences.comparison_reasons import describe_left_out
from gpureport.report.wording.differences.difference_wording import FigureFormat

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

_STEP = 32
"""Most characters of the name of a step, which two settings may make up."""


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


def _align_columns(
    figures: Mapping[str, FigureFormat], columns: Sequence[Callable[[str], float | None]]
) -> Mapping[str, FigureFormat]:
    """Return the figures as they are printed below each other."""
    return {metric: each.for_values([value(metric) for value in columns]) for metric, each in figures.items()}


def build_overview(comparison: Comparison) -> Table:
    """Return one row a step with its figures, and under a step of several runs one row a run."""
    named: list[tuple[str, Callable[[str], float | None]]] = []
    for step in comparison.steps:
        runs = len(step.analyses)
        label = display.shorten_middle(display.clean(step.label), _STEP)
        named.append((f"{label} ({runs} runs)" if runs > 1 else label, step.value))
        for run in step.runs if runs > 1 else ():
            values = {measure.metric: measure.value for measure in measures([run.analysis], [run.gpu_hour_price])}
            values[TRAINING_RATE] = mean_training_rate([run], step.training_source)
            values[SECONDS_TO_TARGET] = measure_run_time_to_target(run, comparison.goals).seconds
            name = display.shorten_middle(display.clean(run.analysis.run.name), LABEL)
            named.append((f"- {name}", values.get))
    units = figure_formats.gather_work_units(comparison)
    figures = _align_columns(select_formats(comparison.steps, units=units), [value for _, value in named])
    repeated = len(named) > len(comparison.steps)
    per_work = "figures per unit of work are the geometric mean of the runs, " if PER_WORK in figures else ""
    note = (
        f"Of several runs, GPU-hours and energy are a mean, peak memory is the highest, {per_work}the rest is over all "
        "of them."
    )
    table = Table(
        columns=("Step", *(each.title for each in figures.values())),
        numeric=(True,) * len(figures),
        rows=tuple(_plain_row(head, value, figures) for head, value in named),
        notes=join_notes(
            note if repeated else "",
            note_prices(comparison.steps, figures),
        ),
    )
    return quality_rows.add_quality_column(table, comparison, place=len(figures), with_runs=True)


def _plain_row(head: str, value: Callable[[str], float | None], figures: Mapping[str, FigureFormat]) -> Row:
    texts = (each.format_value(value(metric)) for metric, each in figures.items())
    return Row(head=Cell(text=head), cells=tuple(Cell(text=text) for text in texts))
