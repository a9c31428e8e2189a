"""The table of steps, each row against the row above, and charts of steps or groups with intervals and every run."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import fsum, isclose, isfinite

from gpureport.comparison.chain import (
    Comparison,
    Mean,
    RunFigure,
    StepSummary,
    average,
    read_run_figures,
    summarize_steps,
)
from gpureport.comparison.changes import compare_setups, list_changes_of_job
from gpureport.comparison.figures import COST_PER_WORK, HOUR, PER_WORK, TRAINING_RATE, WORK_BATCH, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.model.blocks import IntervalChart, IntervalRow, RunDot
from gpureport.report.model.shapes import Cell, Table, build_table
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import Figures, describe_prices
from gpureport.report.wording import differences, display
from gpureport.report.wording.differences import ONCE_SETTLED, build_change
from gpureport.report.wording.reasons import describe_left_out
from gpureport.report.wording.scales import name_work
from gpureport.report.wording.words import say

_MOST, _MOST_CHANGES = 6, 2
"""Figures that a reader takes in at once, and changes of the set-up that there is room for below the name of a step."""
_SAME = 0.005
"""Relative difference up to which two figures print alike."""
_WITHOUT_CHANGE = {COST_PER_WORK: "cost", WORK_RATE: "whole-job throughput"}
"""Figures that move with GPU time, in words."""
_SIZES = (("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9))
_DIGITS = 1e4


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step with at most six figures, each with its change from the row above.

    Cost and whole-job throughput move with GPU time, so their changes are left out. After the first figure stands the
    training metric that counts most.
    """
    figures, steps, trained = Figures(comparison), comparison.steps, quality.choose_metric(comparison)
    metrics = figures.choose_columns(_MOST - (trained is not None))
    columns = [figures.column(each) for each in metrics]
    # the quiet line says the number of runs where every step has the same
    is_uneven = len({len(step.analyses) for step in steps}) > 1
    rows, changes = [], []
    for before, step in zip((None, *steps), steps, strict=False):
        deltas = {each.metric: each for each in comparison.between(before.label, step.label)} if before else {}
        small = [display.plural(len(step.analyses), "run")] if is_uneven else []
        small += _name_changes(before, step) if before else ()
        row = [Cell(text=display.clean(step.label), small="; ".join(small))]
        for metric, (_, show) in zip(metrics, columns, strict=True):
            value, delta = step.value(metric), None if metric in _WITHOUT_CHANGE else deltas.get(metric)
            # the change of what had settled must not stand below a figure of the whole recording
            is_of_this = delta is not None and value is not None and isclose(delta.after or 0.0, value, rel_tol=_SAME)
            change = build_change(delta) if is_of_this else None
            change = change if change and change.arrow else None
            changes += [change] if change else []
            row.append(Cell(text=display.NOT_RECORDED if value is None else show(value), value=value, change=change))
        rows.append(row)
    titles = ["Step", *(title for title, _ in columns)]
    if trained is not None:
        titles.insert(2, f"{quality.name_metric(trained)} at the end")
        for row, cell in zip(rows, quality.list_cells(comparison, trained), strict=True):
            row.insert(2, cell)
    grey = dict.fromkeys(each.verdict for each in changes if each.verdict not in {"", "better", "worse"})
    moved = [words for metric, words in _WITHOUT_CHANGE.items() if metric in metrics]
    explained = say(
        "table.changes",
        changes=bool(changes),
        intervals=any(change.interval for change in changes),
        grey=" or ".join(grey),
        moved=display.raise_first(display.join_words(moved)),
        several=len(moved) > 1,
    )
    return build_table(titles, rows, explained.strip(), describe_prices(steps, metrics))


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


def describe_allowance(comparison: Comparison) -> str:
    """Return for how many comparisons the verdicts on a chain allow; empty where there is one."""
    training = comparison.training_tested if comparison.training_tested > 1 else 0
    return say("table.allowance", n=comparison.tested, training=training) if comparison.tested > 1 else ""


def describe_left_out_runs(comparison: Comparison) -> str:
    short = [run for delta in comparison.deltas for run in delta.left_out]
    # of a run that stopped early the little steady state goes without saying
    runs = {run.run: run for run in sorted(short, key=lambda run: run.stopped)}
    return describe_left_out(list(runs.values()))


# --- charts


def build_charts(comparison: Comparison, study: Study | None) -> tuple[tuple[IntervalChart, ...], Table]:
    """Return the charts of a chain, or of groups beside each other, and the same in a table; none without a figure."""
    found = _list_groups(comparison.steps) if study else _list_chain(Figures(comparison))
    known = [chart for chart in found if any(row.value is not None for row in chart.rows)]
    rows = [
        [each[0].label, *(Cell(text=row.text, small=row.each_run, value=row.value) for row in each)]
        for each in zip(*(chart.rows for chart in known), strict=True)
    ]
    table = build_table(("Step", *(chart.title for chart in known)), rows)
    if study and known and len(study.by) > 1:
        # work where it is known, otherwise utilisation: panels of both would be too many
        known = [*_split_into_panels(known[-1], study)]
    return tuple(known), table


def _list_chain(figures: Figures) -> Iterator[IntervalChart]:
    """Yield the figure that the chain is judged by, then how fast training alone went, then utilisation."""
    steps = figures.comparison.steps
    units = {PER_WORK: ("GPU-s", 1.0) if figures.in_seconds else ("GPU-h", HOUR)}
    units[TRAINING_RATE] = f"{name_work(steps[-1].work_unit)}/s", 1.0
    for metric, (unit, size) in units.items() if figures.comparison.primary == PER_WORK else ():
        rows = []
        for step in steps:
            mean = average(step, metric)
            runs = read_run_figures(step, metric) if mean or metric == TRAINING_RATE else []
            rows.append(_build_row(step, mean, [run for run in runs if run.value], size))
        yield IntervalChart(title=f"{figures.format(metric).title}, {unit}", form="dots", share=False, rows=tuple(rows))
    yield _build_use_chart(steps, summarize_steps(steps), "dots")


def _list_groups(steps: Sequence[Step]) -> Iterator[IntervalChart]:
    """Yield utilisation, then work per GPU-hour where it is known, in a unit of at most four digits."""
    found = summarize_steps(steps)
    yield _build_use_chart(steps, found, "bars")
    unit = found[0].work_unit
    if unit is None or any(group.work_unit != unit for group in found):
        return
    means = [group.work_per_gpu_hour for group in found]
    most = max((mean.value for mean in means if mean), default=0.0)
    name, size = next((each for each in _SIZES if most < _DIGITS * each[1]), _SIZES[-1])
    rows = []
    for step, mean in zip(steps, means, strict=True):
        runs = read_run_figures(step, PER_WORK) if mean else []
        amounts = [replace(run, value=WORK_BATCH * HOUR / run.value) for run in runs if run.value]
        rows.append(_build_row(step, mean, amounts, size))
    title = display.raise_first(f"{name} {display.clean(unit)} per GPU-hour".strip())
    yield IntervalChart(title=title, form="bars", share=False, rows=tuple(rows))


def _build_use_chart(steps: Sequence[Step], found: Sequence[StepSummary], form: str) -> IntervalChart:
    """Return utilisation; of a step that is too short for a verdict the mean alone, without an interval."""
    rows = []
    for step, group in zip(steps, found, strict=True):
        runs, mean = read_run_figures(step, UTILISATION), group.utilisation
        counted = [run.value for run in runs if run.counted and run.value is not None]
        absent = "too short to judge" if group.too_short_run else display.NOT_RECORDED
        if mean is None and group.too_short_run is not None and counted:
            mean = Mean(value=fsum(counted) / len(counted), settled=True)
        rows.append(_build_row(step, mean, runs, absent=absent, share=True))
    return IntervalChart(title=f"Mean GPU utilisation{ONCE_SETTLED}", form=form, share=True, rows=tuple(rows))


def _build_row(  # noqa: PLR0913 - a figure of a step, and how it is shown
    step: Step,
    mean: Mean | None,
    runs: Sequence[RunFigure],
    size: float = 1.0,
    *,
    absent: str = display.NOT_RECORDED,
    share: bool = False,
) -> IntervalRow:
    show, unit = (_format_percent, "%") if share else (display.number, "")
    label, each_run, dots = display.clean(step.label), "", []
    for run in runs:
        if run.value is not None:
            name, text = display.clean(run.run), f"{show(run.value / size)}{unit}"
            text = text if run.counted else f"{name} ({text} over {display.duration(run.seconds)})"
            dots.append(RunDot(run=name, value=run.value / size, counted=run.counted, text=text))
    if len(step.runs) > 1:
        label = f"{label} ({len(step.runs)} runs)"
        counted = display.join_words([show(dot.value) for dot in dots if dot.counted])
        left_out = display.join_words([dot.text for dot in dots if not dot.counted])
        each_run = display.join(counted and f"runs {counted}{unit}", left_out and f"left out: {left_out}")
    value, interval, text = None, None, absent
    if mean is not None:
        value = mean.value / size
        if mean.interval and all(map(isfinite, mean.interval)):
            # cut at nothing, and at all that there is of a share
            low, high = mean.interval
            interval = max(low, 0.0) / size, (min(high, 1.0) if share else high) / size
        ends = display.format_interval(interval, show, unit) if interval else ""
        why = f", {absent}" if not interval and absent != display.NOT_RECORDED else ""
        text = f"{show(value)}{unit}{ends and f' ({ends})'}{why}"
    return IntervalRow(label=label, value=value, interval=interval, text=text, runs=tuple(dots), each_run=each_run)


def _format_percent(ratio: float) -> str:
    """Return a share in per cent with a decimal, so that both ends of a narrow interval can be told apart."""
    text = f"{ratio * 100:.1f}"
    return text.removesuffix(".0") if text in {"0.0", "100.0"} else text


def _split_into_panels(chart: IntervalChart, study: Study) -> Iterator[IntervalChart]:
    """Yield a panel for each value of the first setting, its bars by the second, a place left where no run is."""
    rows = dict(zip((group.values for group in study.groups), chart.rows, strict=True))
    ends = [
        end for row in chart.rows for end in (row.value or 0.0, *(row.interval or ()), *(d.value for d in row.runs))
    ]
    first, second = (display.clean(factor.name) for factor in study.by)
    for value in study.values[0]:
        panel = []
        for other in study.values[1]:
            row = rows.get((value, other)) or IntervalRow(label="", value=None, interval=None, text="no run")
            count = f" ({len(row.runs)} runs)" if len(row.runs) > 1 else ""
            panel.append(replace(row, label=f"{second}={name_value(other)}{count}"))
        if any(row.value is not None for row in panel):
            title = f"{chart.title}: {first}={name_value(value)}"
            yield replace(chart, title=title, rows=tuple(panel), end=max(ends))


def name_value(value: str | None) -> str:
    return "not given" if value is None else display.clean(value)
