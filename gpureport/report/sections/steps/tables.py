"""Tables of steps: each row against the row above, and steps as groups with their means."""

import re
from collections.abc import Callable, Iterator, Sequence
from math import isclose, isfinite

from gpureport.comparison.chain import Comparison, Mean, StepSummary, summarize_steps
from gpureport.comparison.figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.setup import compare_setups, list_changes_of_job
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import ENERGY, GPU_SECONDS, MEMORY, POWER, Figures, list_price_notes
from gpureport.report.wording import differences, display, numbered_labels
from gpureport.report.wording.differences import ONCE_SETTLED, build_change
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.reasons import describe_left_out
from gpureport.report.wording.words import WORDS, say

_MOST, _MOST_CHANGES = 6, 2
"""Figures that a reader takes in at once, and changes of the set-up that there is room for below the name of a step."""
_PER_WORK = (PER_WORK, COST_PER_WORK, ENERGY_PER_WORK, WORK_RATE, TRAINING_RATE, SECONDS_TO_TARGET, MEMORY)
_PER_RUN = (GPU_SECONDS, ENERGY, UTILISATION, POWER, SECONDS_TO_TARGET, MEMORY)
"""Figures in the order shown, per unit of work where that is known."""
_PRIORITY = (
    PER_WORK,
    GPU_SECONDS,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    COST_PER_WORK,
    ENERGY_PER_WORK,
    MEMORY,
    UTILISATION,
    ENERGY,
    WORK_RATE,
    POWER,
)
"""Which figures stay where there is no room for all."""
_SAME = 0.005
"""Relative difference up to which two figures print alike."""
_WITHOUT_CHANGE = {COST_PER_WORK: "cost", WORK_RATE: "whole-job throughput"}
"""Figures that move with GPU time, in words."""
_NAMED = 4
"""Steps too short to judge that are named."""


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step with at most six figures, each with its change from the row above.

    Cost and whole-job throughput move with GPU time, so their changes are left out.
    """
    figures, steps = Figures(comparison), comparison.steps
    order = [each for each in (_PER_WORK if figures.values(PER_WORK) else _PER_RUN) if figures.values(each)]
    room = _MOST - (quality.choose_metric(comparison) is not None)
    metrics = [each for each in order if each in sorted(order, key=_PRIORITY.index)[:room]]
    columns = [figures.column(each) for each in metrics]
    # the quiet line says the number of runs where every step has the same
    is_uneven = len({len(step.analyses) for step in steps}) > 1
    rows = []
    for place, step in enumerate(steps):
        before = steps[place - 1] if place else None
        deltas = {each.metric: each for each in comparison.between(before.label, step.label)} if before else {}
        runs = [display.plural(len(step.analyses), "run")] if is_uneven else []
        cells = []
        for metric, (_, show) in zip(metrics, columns, strict=True):
            value, delta = step.value(metric), None if metric in _WITHOUT_CHANGE else deltas.get(metric)
            # the change of what had settled must not stand below a figure of the whole recording
            is_of_this = delta is not None and value is not None and isclose(delta.after or 0.0, value, rel_tol=_SAME)
            change = build_change(delta) if is_of_this else None
            text = display.NOT_RECORDED if value is None else show(value)
            cells.append(Cell(text=text, value=value, change=change if change and change.arrow else None))
        small = "; ".join((*runs, *(_name_changes(before, step) if before else ())))
        rows.append(Row(head=Cell(text=display.clean(step.label), small=small), cells=tuple(cells)))
    table = Table(
        columns=("Step", *(title for title, _ in columns)),
        numeric=(True,) * len(columns),
        rows=tuple(rows),
        notes=(*_explain_changes(rows, metrics), *list_price_notes(steps, metrics)),
    )
    return quality.add_quality_column(table, comparison)


def _name_changes(before: Step, step: Step) -> Iterator[str]:
    """Yield what changed in the set-up since the step before, in a line, unless its label holds setting and value."""
    said = set(re.findall(r"[\w.]+(?:[+-]\d+)?", step.label))
    named = [
        change
        for change in list_changes_of_job(compare_setups(before, step))
        if len(change.values_before) == len(change.values_after) == 1
        and not {differences.name_setting(change), change.after} <= said
    ]
    if named:
        yield differences.list_setup_changes(named, most=_MOST_CHANGES)


def _explain_changes(rows: Sequence[Row], metrics: Sequence[str]) -> Iterator[str]:
    """Yield what the changes in the table are, what grey ones mean in this table, and which figures have none."""
    changes = [cell.change for row in rows for cell in row.cells if cell.change]
    coloured = {Verdict.BETTER.value, Verdict.WORSE.value}
    grey = dict.fromkeys(each.verdict for each in changes if each.verdict and each.verdict not in coloured)
    moved = [words for metric, words in _WITHOUT_CHANGE.items() if metric in metrics]
    said = say(
        "table.changes",
        changes=bool(changes),
        intervals=any(change.interval for change in changes),
        grey=" or ".join(grey),
        moved=display.raise_first(display.join_words(moved)),
        several=len(moved) > 1,
    ).strip()
    if said:
        yield said


def describe_allowance(comparison: Comparison) -> str:
    """Return for how many comparisons the verdicts on a chain allow; empty where there is one."""
    training = comparison.training_tested if comparison.training_tested > 1 else 0
    return say("table.allowance", n=comparison.tested, training=training) if comparison.tested > 1 else ""


def describe_left_out_runs(comparison: Comparison) -> str:
    """Return which runs stopped early or are too short for figures of the steady state; empty where all count."""
    short = [run for delta in comparison.deltas for run in delta.left_out]
    # of a run that stopped early the little steady state goes without saying
    runs = {run.run: run for run in sorted(short, key=lambda run: run.stopped)}
    return describe_left_out(list(runs.values()))


def build_summary_table(comparison: Comparison) -> Table:
    """Return one row a step: utilisation, work per GPU-hour and cost with their intervals, as far as they are known."""
    steps, figures = comparison.steps, Figures(comparison)
    found, cost = summarize_steps(steps), figures.format(COST_PER_WORK)
    busy = [each.utilisation for each in found]
    shares = [end for mean in busy if mean for end in (mean.value, *(cut_interval(mean, 1.0) or ()))]
    columns: list[tuple[str, list[Mean | None], Callable[[float], str], float | None]] = [
        (f"GPU utilisation{ONCE_SETTLED}", busy, display.percent_formatter(shares), 1.0),
        ("Work per GPU-hour", [each.work_per_gpu_hour for each in found], display.number, None),
        (cost.title, [each.cost_per_1000_work for each in found], cost.value, None),
    ]
    columns = [column for column in columns if column[3] or any(column[1])]
    titles, cells = ["Runs"], [[Cell(text=str(each.runs)) for each in found]]
    for title, means, show, most in columns:
        absent = [explain_missing_utilisation(each) if most else display.NOT_RECORDED for each in found]
        pairs = [_format_mean(mean, show, most, none) for mean, none in zip(means, absent, strict=True)]
        for name, column in zip((title, "95% interval"), zip(*pairs, strict=True), strict=True):
            # of single short runs no interval is known
            if any(cell.text for cell in column):
                titles.append(name)
                cells.append(list(column))
    is_cut = any(
        mean and cut_interval(mean, most) not in {None, mean.interval} for _, all_, _, most in columns for mean in all_
    )
    heads = [Cell(text=display.clean(each.label)) for each in found]
    has_costs = any(each.cost_per_1000_work for each in found)
    notes = (
        WORDS["table.cut"] if is_cut else "",
        describe_short_steps(found),
        spending.price_note(figures.analyses) if has_costs else "",
    )
    return Table(
        columns=("Step", *titles),
        numeric=(True,) * len(titles),
        rows=tuple(Row(head=head, cells=row) for head, row in zip(heads, zip(*cells, strict=True), strict=True)),
        notes=tuple(filter(None, notes)),
    )


def _format_mean(mean: Mean | None, show: Callable[[float], str], most: float | None, absent: str) -> tuple[Cell, Cell]:
    if mean is None:
        return Cell(text=absent), Cell(text="")
    interval = cut_interval(mean, most)
    return Cell(text=show(mean.value), value=mean.value), Cell(text=format_interval(interval, show) if interval else "")


def cut_interval(mean: Mean, most: float | None) -> tuple[float, float] | None:
    """Return the ends of an interval, cut at nothing and at the most that a figure can be, if that is bound."""
    if mean.interval is None or not all(map(isfinite, mean.interval)):
        return None
    low, high = mean.interval
    return max(low, 0.0), high if most is None else min(high, most)


def explain_missing_utilisation(group: StepSummary) -> str:
    """Return what stands in the place of a utilisation that is not told."""
    return "too short to judge" if group.too_short_run else display.NOT_RECORDED


def describe_short_steps(found: Sequence[StepSummary]) -> str:
    """Return why the utilisation of some steps is not told though it was recorded; empty where that is so of none."""
    short = {display.clean(group.label): group.too_short_run for group in found if group.too_short_run}
    if not short:
        return ""
    lengths = {label: display.duration(run.seconds) for label, run in short.items()}
    seconds = sorted(run.seconds for run in short.values())
    ends = " to ".join(dict.fromkeys((display.duration(seconds[0]), display.duration(seconds[-1]))))
    named = display.join_words([f"{label} ({length})" for label, length in lengths.items()])
    if len(short) > _NAMED:
        named = f"{numbered_labels.list_labels(list(short))} ({ends})"
    least = display.duration(next(iter(short.values())).least)
    return say("table.too_short", names=named, least=least)
