"""Tables and charts of steps: each row against the row above, and steps as groups with their means."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from math import fsum, isclose, isfinite
from typing import NamedTuple

from gpureport.comparison.chain import (
    Comparison,
    Mean,
    RunFigure,
    StepSummary,
    average,
    read_run_figures,
    summarize_steps,
)
from gpureport.comparison.figures import COST_PER_WORK, HOUR, PER_WORK, TRAINING_RATE, WORK_BATCH, WORK_RATE
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.setup import compare_setups, list_changes_of_job
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow, RunDot
from gpureport.report.model.shapes import Cell, Table
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.steps import quality
from gpureport.report.sections.steps.figures import Figures, build_table, describe_prices, list_analyses
from gpureport.report.wording import differences, display, numbered_labels
from gpureport.report.wording.differences import ONCE_SETTLED, build_change
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.reasons import describe_left_out
from gpureport.report.wording.words import WORDS, say
from gpureport.report.wording.work_scale import name_work

_MOST, _MOST_CHANGES = 6, 2
"""Figures that a reader takes in at once, and changes of the set-up that there is room for below the name of a step."""
_SAME = 0.005
"""Relative difference up to which two figures print alike."""
_WITHOUT_CHANGE = {COST_PER_WORK: "cost", WORK_RATE: "whole-job throughput"}
"""Figures that move with GPU time, in words."""
_NAMED = 4
"""Steps too short to judge that are named."""
_SIZES = (("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9))
_DIGITS = 1e4


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step with at most six figures, each with its change from the row above.

    Cost and whole-job throughput move with GPU time, so their changes are left out.
    """
    figures, steps = Figures(comparison), comparison.steps
    metrics = figures.choose_columns(_MOST - (quality.choose_metric(comparison) is not None))
    columns = [figures.column(each) for each in metrics]
    # the quiet line says the number of runs where every step has the same
    is_uneven = len({len(step.analyses) for step in steps}) > 1
    rows = []
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
            text = display.NOT_RECORDED if value is None else show(value)
            row.append(Cell(text=text, value=value, change=change if change and change.arrow else None))
        rows.append(row)
    notes = _explain_changes([cell for row in rows for cell in row], metrics), describe_prices(steps, metrics)
    table = build_table(("Step", *(title for title, _ in columns)), rows, *notes)
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


def _explain_changes(cells: Sequence[Cell], metrics: Sequence[str]) -> str:
    """Return what the changes in the table are, what grey ones mean in this table, and which figures have none."""
    changes = [cell.change for cell in cells if cell.change]
    grey = dict.fromkeys(each.verdict for each in changes if each.verdict not in {"", "better", "worse"})
    moved = [words for metric, words in _WITHOUT_CHANGE.items() if metric in metrics]
    return say(
        "table.changes",
        changes=bool(changes),
        intervals=any(change.interval for change in changes),
        grey=" or ".join(grey),
        moved=display.raise_first(display.join_words(moved)),
        several=len(moved) > 1,
    ).strip()


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


# --- means of steps, as a table and as charts


def build_summary_table(comparison: Comparison) -> Table:
    """Return one row a step: utilisation, work per GPU-hour and cost with their intervals, as far as they are known."""
    figures, found = Figures(comparison), summarize_steps(comparison.steps)
    busy, costs = [each.utilisation for each in found], [each.cost_per_1000_work for each in found]
    shares = [end for mean in busy if mean for end in (mean.value, *(cut_interval(mean, 1.0) or ()))]
    cost = figures.format(COST_PER_WORK)
    columns: list[tuple[str, list[Mean | None], Callable[[float], str], float | None]] = [
        (f"GPU utilisation{ONCE_SETTLED}", busy, display.percent_formatter(shares), 1.0),
        ("Work per GPU-hour", [each.work_per_gpu_hour for each in found], display.number, None),
        (cost.title, costs, cost.value, None),
    ]
    titles, is_cut = ["Step", "Runs"], False
    cells: list[list[Cell | str]] = [[display.clean(each.label) for each in found], [str(each.runs) for each in found]]
    for title, means, show, most in columns:
        if not most and not any(means):
            continue
        ends = [cut_interval(mean, most) if mean else None for mean in means]
        is_cut |= any(mean and end not in {None, mean.interval} for mean, end in zip(means, ends, strict=True))
        absent = [_explain_missing(each) if most else display.NOT_RECORDED for each in found]
        titles.append(title)
        shown = zip(means, absent, strict=True)
        cells.append([Cell(text=show(mean.value), value=mean.value) if mean else why for mean, why in shown])
        # of single short runs no interval is known
        intervals = [format_interval(end, show) if end else "" for end in ends]
        if any(intervals):
            titles.append("95% interval")
            cells.append([*intervals])
    short = _describe_short_steps(found), spending.price_note(list_analyses(comparison.steps)) if any(costs) else ""
    return build_table(titles, zip(*cells, strict=True), WORDS["table.cut"] if is_cut else "", *short)


def cut_interval(mean: Mean, most: float | None) -> tuple[float, float] | None:
    """Return the ends of an interval, cut at nothing and at the most that a figure can be, if that is bound."""
    if mean.interval is None or not all(map(isfinite, mean.interval)):
        return None
    low, high = mean.interval
    return max(low, 0.0), high if most is None else min(high, most)


def _explain_missing(group: StepSummary) -> str:
    """Return what stands in the place of a utilisation that is not told."""
    return "too short to judge" if group.too_short_run else display.NOT_RECORDED


def _describe_short_steps(found: Sequence[StepSummary]) -> str:
    """Return why the utilisation of some steps is not told though it was recorded; empty where that is so of none."""
    short = {display.clean(group.label): group.too_short_run for group in found if group.too_short_run}
    if not short:
        return ""
    runs = sorted(short.values(), key=lambda run: run.seconds)
    ends = " to ".join(dict.fromkeys(display.duration(run.seconds) for run in (runs[0], runs[-1])))
    named = display.join_words([f"{label} ({display.duration(run.seconds)})" for label, run in short.items()])
    if len(short) > _NAMED:
        named = f"{numbered_labels.list_labels(list(short))} ({ends})"
    return say("table.too_short", names=named, least=display.duration(runs[0].least))


class _Bar(NamedTuple):
    """One figure of a step: its mean, and that of each run."""

    step: Step
    mean: Mean | None
    runs: Sequence[RunFigure]
    absent: str = display.NOT_RECORDED


def build_charts(comparison: Comparison, study: Study | None) -> tuple[IntervalChart, ...]:
    """Return the charts of a chain, or of groups beside each other; none without a figure to show."""
    found = _list_groups(comparison.steps) if study else _list_chain(Figures(comparison))
    known = [chart for chart in found if any(row.value is not None for row in chart.rows)]
    if not study or not known:
        return tuple(known)
    if len(study.by) > 1:
        # work where it is known, otherwise utilisation: panels of both would be too many
        return tuple(_split_into_panels(known[-1], study))
    # the heading says the name of the param or tag
    prefix = f"{display.clean(study.by[0].name)}="
    return tuple(
        replace(chart, rows=tuple(replace(row, label=row.label.removeprefix(prefix)) for row in chart.rows))
        for chart in known
    )


def describe_marks(found: Sequence[IntervalChart]) -> str:
    """Return what the marks of charts stand for, those that are drawn; empty without charts."""
    rows = [row for chart in found for row in chart.rows if row.value is not None]
    if not rows:
        return ""
    bars = found[0].form == "bars"
    dots = [dot for row in rows if len(row.runs) > 1 or bars for dot in row.runs]
    return say(
        "chart.legend",
        bars=bars,
        several=any(len(row.runs) > 1 for row in rows),
        intervals=any(row.interval for row in rows),
        hollow=not all(row.interval for row in rows),
        dots=bool(dots),
        left_out=display.join_words(list(dict.fromkeys(dot.text for dot in dots if not dot.counted))),
    ).rstrip()


def _list_chain(figures: Figures) -> Iterator[IntervalChart]:
    """Yield the figure that the chain is judged by, then how fast training alone went, then utilisation."""
    steps = figures.comparison.steps
    units = {PER_WORK: ("GPU-s", 1.0) if figures.in_seconds else ("GPU-h", HOUR)}
    units[TRAINING_RATE] = f"{name_work(steps[-1].work_unit)}/s", 1.0
    for metric, (unit, size) in units.items() if figures.comparison.primary == PER_WORK else ():
        bars = []
        for step in steps:
            mean = average(step, metric)
            bars.append(_Bar(step, mean, _read_runs(step, metric) if mean or metric == TRAINING_RATE else ()))
        yield _build_chart(f"{figures.format(metric).title}, {unit}", "dots", bars, size)
    yield _build_use_chart(steps, "dots")


def _list_groups(steps: Sequence[Step]) -> Iterator[IntervalChart]:
    """Yield utilisation, then work per GPU-hour where it is known, in a unit of at most four digits."""
    yield _build_use_chart(steps, "bars")
    found = summarize_steps(steps)
    unit = found[0].work_unit
    if unit is None or any(group.work_unit != unit for group in found):
        return
    means = [group.work_per_gpu_hour for group in found]
    most = max((mean.value for mean in means if mean), default=0.0)
    name, size = next((each for each in _SIZES if most < _DIGITS * each[1]), _SIZES[-1])
    bars = []
    for step, mean in zip(steps, means, strict=True):
        runs = _read_runs(step, PER_WORK) if mean else ()
        bars.append(_Bar(step, mean, [replace(run, value=WORK_BATCH * HOUR / (run.value or 1.0)) for run in runs]))
    title = f"{name} {display.clean(unit)} per GPU-hour".strip()
    yield _build_chart(display.raise_first(title), "bars", bars, size)


def _read_runs(step: Step, metric: str) -> list[RunFigure]:
    return [run for run in read_run_figures(step, metric) if run.value]


def _build_use_chart(steps: Sequence[Step], form: str) -> IntervalChart:
    """Return utilisation; of a step that is too short for a verdict the mean alone, without an interval."""
    bars = []
    for step, group in zip(steps, summarize_steps(steps), strict=True):
        runs, mean = read_run_figures(step, UTILISATION), group.utilisation
        counted = [run.value for run in runs if run.counted and run.value is not None]
        if mean is None and group.too_short_run is not None and counted:
            mean = Mean(value=fsum(counted) / len(counted), settled=True)
        bars.append(_Bar(step, mean, runs, _explain_missing(group)))
    return _build_chart(f"Mean GPU utilisation{ONCE_SETTLED}", form, bars, share=True)


def _build_chart(
    title: str, form: str, bars: Sequence[_Bar], size: float = 1.0, *, share: bool = False
) -> IntervalChart:
    rows = tuple(_build_row(bar, size, share=share) for bar in bars)
    return IntervalChart(title=title, form=form, share=share, rows=rows)


def _build_row(bar: _Bar, size: float, *, share: bool) -> IntervalRow:
    """Return what a chart shows of a step, in units of a size."""
    show, unit, most = (_format_percent, "%", 1.0) if share else (display.number, "", None)
    label, dots = display.clean(bar.step.label), []
    for run in bar.runs:
        if run.value is not None:
            name, text = display.clean(run.run), f"{show(run.value / size)}{unit}"
            text = text if run.counted else f"{name} ({text} over {display.duration(run.seconds)})"
            dots.append(RunDot(run=name, value=run.value / size, counted=run.counted, text=text))
    each_run = ""
    if len(bar.step.runs) > 1:
        label = f"{label} ({len(bar.step.runs)} runs)"
        counted = display.join_words([show(dot.value) for dot in dots if dot.counted])
        left_out = display.join_words([dot.text for dot in dots if not dot.counted])
        each_run = "; ".join(filter(None, (counted and f"runs {counted}{unit}", left_out and f"left out: {left_out}")))
    value, interval, text = None, None, bar.absent
    if bar.mean is not None:
        value, cut = bar.mean.value / size, cut_interval(bar.mean, most)
        interval = (cut[0] / size, cut[1] / size) if cut else None
        ends = format_interval(interval, show, unit) if interval else ""
        why = f", {bar.absent}" if not interval and bar.absent != display.NOT_RECORDED else ""
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
    """Return the value of a setting; some runs may not have it."""
    return "not given" if value is None else display.clean(value)
