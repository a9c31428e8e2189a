"""Summary of steps: headline, certainty, four tiles, table of steps, and charts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from math import fsum, isclose, isfinite
from operator import ne

from gpureport.comparison import chain
from gpureport.comparison import figures as measured
from gpureport.comparison.across import scaling
from gpureport.comparison.chain import Comparison, Mean, RunFigure, StepSummary
from gpureport.comparison.changes import compare_setups, list_distinct_changes
from gpureport.comparison.evidence import ReasonKind
from gpureport.comparison.quality import compare_quality
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.comparison.verdict import Delta, Verdict
from gpureport.number_format import MINUS
from gpureport.report.model.blocks import IntervalChart, IntervalRow, RunDot
from gpureport.report.model.head import Change, Tile, VerdictCode
from gpureport.report.model.shapes import Cell, Table, build_table
from gpureport.report.runs import gpu_time
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head.loss_sentence import format_training_cost
from gpureport.report.sections.steps import figures as printed
from gpureport.report.sections.steps.figures import GPU_SECONDS, Figures, list_analyses
from gpureport.report.wording import differences, display, scales
from gpureport.report.wording.differences import ONCE_SETTLED, build_change, build_plain_change
from gpureport.report.wording.terms import name_figure, name_one
from gpureport.report.wording.words import choose_headline, say

_WIDEST = 0.1  # Widest interval of a scaling share that is well known.
_MAIN = 0.5  # Share of a change that makes its step the main one.
_TENFOLD = 10.0  # Ratio from which changes are shown as multiples.
_MOST, _MOST_CHANGES = 6, 2  # columns, and set-up changes below a name
_SAME = 0.005  # relative difference below which values print alike
_WITHOUT_CHANGE = {measured.COST_PER_WORK: "cost", measured.WORK_RATE: "whole-job throughput"}
_SIZES = (("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9))
_DIGITS = 1e4


def judge_ends(comparison: Comparison) -> Delta | None:
    return comparison.judged(comparison.steps[0].label, comparison.steps[-1].label)


def is_blocked(comparison: Comparison) -> bool:
    """Return whether the ends differ too much for a verdict."""
    delta = judge_ends(comparison)
    return bool(delta and delta.reason and delta.reason.kind is ReasonKind.NOT_COMPARABLE)


def describe_steps(comparison: Comparison) -> tuple[str, VerdictCode]:
    last, delta = comparison.steps[-1], judge_ends(comparison)
    if delta is None or delta.difference is None or not delta.before:
        return describe_quality_alone(comparison), VerdictCode.QUALITY_FELL
    is_work = delta.metric == measured.PER_WORK
    one = name_one(display.shorten(display.clean(last.work_unit or ""), 24)) or "unit of work"
    noun = f"GPU time per {'training step' if one == 'step' else one}" if is_work else "GPU utilisation"
    ends = comparison.steps[0].label, last.label
    scaled = next((each for each in scaling(comparison.steps) if (each.base, each.step) == ends), None)
    if scaled is not None:
        few, many = scaled.gpus
        change = say("headline.scaling", few=few, many=many, share=display.percent(scaled.efficiency))
    elif is_work:
        change = _describe_size(delta, noun)
    else:
        values = (delta.before, delta.after)
        before, after = (display.or_not_recorded(value, display.percent_formatter(values)) for value in values)
        way = "" if before == after else "rises" if delta.difference > 0 else "falls"
        change = say("headline.use", way=way, before=before, after=after)
    # good scaling does not change GPU time per unit of work
    is_known = scaled is not None and scaled.interval is not None and scaled.interval[1] - scaled.interval[0] <= _WIDEST
    verdict = delta.verdict
    if verdict is Verdict.NO_CLEAR_CHANGE and max(delta.runs) == 1:
        # single runs that differ by more than usual are not alike
        margin = measured.BY_METRIC[delta.metric].margin(delta.before)
        verdict = verdict if abs(delta.difference) <= margin else Verdict.NOT_ENOUGH_DATA
    if verdict is Verdict.NOT_ENOUGH_DATA or (verdict is Verdict.NO_CLEAR_CHANGE and not is_known):
        change = say(f"headline.{verdict.code}", noun=noun)
    if fall := printed.describe_fall(comparison):
        return choose_headline((f"{change}, but {fall}.", f"{change}, but quality fell.")), VerdictCode.QUALITY_FELL
    endings = [""]
    if delta.verdict is Verdict.UNCONFIRMED:
        is_drift = delta.reason is not None and delta.reason.kind is ReasonKind.DRIFT
        endings = [say("headline.unconfirmed", drift=is_drift, several=max(delta.runs) > 1), ""]
    elif delta.verdict.is_established and is_work:
        endings = _list_causes(comparison, delta)
    return choose_headline([f"{change}{ending}." for ending in endings]), VerdictCode[verdict.name]


def describe_quality_alone(comparison: Comparison) -> str:
    fall = printed.describe_fall(comparison)
    return choose_headline((f"{display.raise_first(fall)}.", "Quality fell.")) if fall else ""


def _describe_size(delta: Delta, noun: str) -> str:
    ratio = (delta.after or 0.0) / (delta.before or 1.0)
    if ratio >= _TENFOLD:
        return f"{differences.format_times(ratio)} the {noun}"
    size = differences.format_percent_change(ratio).lstrip(f"{MINUS}+")
    return f"{size} {'less' if ratio < 1 else 'more'} {noun}"


def _list_causes(comparison: Comparison, delta: Delta) -> list[str]:
    steps = comparison.steps
    is_pair = len(steps) == 2  # noqa: PLR2004 - of two steps, only the second can have changed it
    for base, step in pairwise(steps):
        link = comparison.judged(base.label, step.label)
        part = link.difference if link and link.verdict is delta.verdict else None
        if is_pair or (part and delta.difference and part / delta.difference > _MAIN):
            what, names = _describe_step_change(base, step), {"step": display.clean(step.label)}
            named = say("headline.than" if is_pair else "headline.most_in", **names, base=display.clean(base.label))
            return [say("headline.cause", what=what, chain=not is_pair) if what else named, named, ""]
    return [""]


def _describe_step_change(base: Step, step: Step) -> str:
    """Return the change that a label describes: `more loader workers` for `2-more-workers`."""
    words = re.split(r"[-_\s]+", re.sub(r"^[\W_]*(?:\d+[-_.]+)?", "", display.clean(step.label)).strip())
    if len(words) <= 1 or not all(re.fullmatch("[A-Za-z]{2,}", word) for word in words):
        return ""
    spent = [gpu_time.sum_classes(side.analyses) for side in (base, step)]
    before, after = (each.get("waiting_for_input", 0.0) for each in spent)
    if "workers" in words and "loader" not in words and after < before / 2:
        words.insert(words.index("workers"), "loader")
    return " ".join(words)


def describe_certainty(comparison: Comparison) -> str:
    delta = judge_ends(comparison)
    if delta is None or not delta.before or delta.interval is None or delta.verdict is Verdict.UNCONFIRMED:
        return ""
    if delta.reason is not None and delta.reason.kind is ReasonKind.NOT_COMPARABLE:
        return ""
    (first, other), runs = delta.runs, ""
    if max(first, other) > 1:
        is_even = first == other and all(len(step.runs) == first for step in comparison.steps)
        runs = f"{display.plural(first, 'run')} {'per step' if is_even else f'versus {other}'}"
    if delta.metric != measured.PER_WORK:
        ends = " to ".join(dict.fromkeys(f"{100 * end:+.0f}".replace("-", MINUS) for end in delta.interval))
        return say("headline.points", ends=ends, runs=runs)
    low, high = (1 + end / delta.before for end in delta.interval)
    if not 0 < low <= high < _TENFOLD:
        return ""
    if not delta.verdict.is_established and (change := build_change(delta)):
        return say("headline.unsure", size=change.text, verdict=delta.verdict.value, ends=change.interval, runs=runs)
    sizes = sorted((abs(low - 1), abs(high - 1)))
    least, most = (differences.format_percent_change(1 + size).lstrip("+") for size in sizes)
    # omit an interval that prints the same as the figure
    least = least.removesuffix("%") if least != most else ""
    return say("headline.range", least=least, most=most, word="less" if high <= 1 else "more", runs=runs)


def build_step_tiles(comparison: Comparison) -> tuple[Tile, ...]:
    figures, memory, last = Figures(comparison), printed.build_memory_tile(comparison), comparison.steps[-1]
    if figures.ends(measured.PER_WORK)[1] is None:
        # without known work, the work may differ
        spent, change = figures.ends(GPU_SECONDS), build_plain_change(*figures.ends(GPU_SECONDS))
        name, unit, size = figures.unit(GPU_SECONDS) if spent[-1] else (name_figure(GPU_SECONDS), "", 1.0)
        context = "Steps count work in different units" if last.value(measured.PER_WORK) else "The work done may differ"
        time = _set_tile(name, spent, lambda value: display.number(value / size), change, context, unit=unit)
        return _build_use_tile(figures, last), time, _build_tile(figures, printed.ENERGY, "GPUs only"), memory
    factor, rate = scales.choose_rate_unit(figures.ends(measured.WORK_RATE), last.work_unit)
    before, after = figures.ends(measured.TRAINING_RATE)
    context = "Start-up and pauses included"
    if before and after:
        rates = [display.number(each * factor) for each in (before, after)]
        context = f"Training: {' → '.join(rates)}, {differences.format_percent_change(after / before)}"
    throughput = _build_tile(figures, measured.WORK_RATE, context, (rate, 1 / factor))
    if last.value(measured.COST_PER_WORK) is None:
        cost = _build_tile(figures, measured.PER_WORK, "No price given")
    else:
        ends, (label, show) = figures.ends(measured.COST_PER_WORK), figures.column(measured.COST_PER_WORK)
        price = spending.common_price(list_analyses(comparison.steps))
        training = format_training_cost(comparison)
        context = say("tile.price", price=price, training=training, nameless=not figures.currency)
        cost = _set_tile(label, ends, show, _build_change(figures, measured.COST_PER_WORK), context)
    # use energy per run if the work is unknown
    energy = measured.ENERGY_PER_WORK if last.value(measured.ENERGY_PER_WORK) is not None else printed.ENERGY
    return throughput, cost, _build_tile(figures, energy, "GPUs only"), memory


def _set_tile(  # noqa: PLR0913 - the parts of a tile
    label: str,
    ends: tuple[float | None, float | None],
    show: Callable[[float], str],
    change: Change | None,
    context: str,
    *,
    unit: str = "",
) -> Tile:
    before, after = ends
    return Tile(
        label=label,
        before="" if before is None else show(before),
        value=display.NOT_RECORDED if after is None else show(after),
        unit="" if after is None else unit,
        change=change,
        context=context,
    )


def _build_change(figures: Figures, metric: str) -> Change | None:
    return build_change(figures.delta(metric)) or build_plain_change(*figures.ends(metric))


def _build_tile(figures: Figures, metric: str, context: str, scale: tuple[str, float] | None = None) -> Tile:
    ends = figures.ends(metric)
    if metric == printed.ENERGY:
        scale = scales.choose_energy_unit(ends)
    label, unit, size = (name_figure(metric), *scale) if scale else figures.unit(metric)
    change = _build_change(figures, metric)
    return _set_tile(label, ends, lambda value: display.number(value / size), change, context, unit=unit)


def _build_use_tile(figures: Figures, last: Step) -> Tile:
    delta, ends = figures.delta(UTILISATION), figures.ends(UTILISATION)
    if delta is not None and delta.difference is not None:
        # show the values over the same time as the change
        ends = delta.before, delta.after
    context = say(
        "tile.no_work",
        gpuless=not any(each.run.gpus for each in last.analyses),
        settled=delta and delta.window == "steady",
        mixed=last.value(measured.PER_WORK),
    )
    return _set_tile(
        name_figure(UTILISATION),
        ends,
        display.percent_formatter(ends),
        build_change(delta),
        context,
    )


def build_step_table(comparison: Comparison, study: Study | None, *, is_trial: bool = False) -> Table:
    values = {group.label: group.values for group in (study.groups if study else ())}
    figures, steps = Figures(comparison), comparison.steps
    judged = (compare_quality(*pair, comparison.goals) for pair in [(steps[0], steps[-1]), *pairwise(steps)])
    trained = next((change.name for found in judged for change in found if change.leading), None)
    metrics = figures.choose_columns(_MOST - (trained is not None))
    columns = [figures.column(each) for each in metrics]
    is_uneven = len({len(step.analyses) for step in steps}) > 1
    rows, changes = [], []
    # rows that differ in two settings show the effect of neither; those of a trial have their own table
    mixed = {
        step.label
        for before, step in pairwise(steps)
        if is_trial or sum(map(ne, values.get(before.label, ()), values.get(step.label, ()))) > 1
    }
    for before, step in zip((None, *steps), steps, strict=False):
        own = comparison.between(before.label, step.label) if before and step.label not in mixed else ()
        deltas = {each.metric: each for each in own}
        small = [display.plural(len(step.analyses), "run")] if is_uneven else []
        small += _name_changes(before, step) if before else ()
        row = [Cell(text=display.clean(step.label), small="; ".join(small))]
        for metric, (_, show) in zip(metrics, columns, strict=True):
            value = step.value(metric)
            delta = None if metric in _WITHOUT_CHANGE else deltas.get(metric)
            # a change once settled does not apply to the whole recording
            is_of_this = delta is not None and value is not None and isclose(delta.after or 0.0, value, rel_tol=_SAME)
            change = build_change(delta) if is_of_this else None
            change = change if change and change.arrow else None
            changes += [change] if change else []
            row.append(Cell(text=display.NOT_RECORDED if value is None else show(value), value=value, change=change))
        rows.append(row)
    titles = ["Step", *(title for title, _ in columns)]
    if trained is not None:
        titles.insert(2, f"{printed.name_metric(trained)}, mean of the last values")
        for row, cell in zip(rows, printed.list_quality_cells(comparison, trained, mixed), strict=True):
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
    return build_table(titles, rows, explained.strip(), printed.describe_prices(steps, metrics))


def _name_changes(before: Step, step: Step) -> Iterator[str]:
    said = set(re.findall(r"[\w.]+(?:[+-]\d+)?", step.label))
    named = [
        change
        for change in list_distinct_changes(compare_setups(before, step))
        if len(change.values_before) == len(change.values_after) == 1
        and not {differences.name_setting(change), change.after} <= said
    ]
    if named:
        yield differences.list_setup_changes(named, most=_MOST_CHANGES)


def build_charts(comparison: Comparison, study: Study | None) -> tuple[tuple[IntervalChart, ...], Table]:
    found = _list_groups(comparison.steps) if study else _list_chain(Figures(comparison))
    known = [chart for chart in found if any(row.value is not None for row in chart.rows)]
    rows = [
        [each[0].label, *(Cell(text=row.text, small=row.each_run, value=row.value) for row in each)]
        for each in zip(*(chart.rows for chart in known), strict=True)
    ]
    table = build_table(("Step", *(chart.title for chart in known)), rows)
    if study and known and len(study.by) > 1:
        # show panels of only one figure: work if known, otherwise utilisation
        known = [*_split_into_panels(known[-1], study)]
    return tuple(known), table


def _list_chain(figures: Figures) -> Iterator[IntervalChart]:
    steps = figures.comparison.steps
    units = {measured.PER_WORK: ("GPU-s", 1.0) if figures.in_seconds else ("GPU-h", measured.HOUR)}
    units[measured.TRAINING_RATE] = f"{scales.name_work(steps[-1].work_unit)}/s", 1.0
    for metric, (unit, size) in units.items() if figures.comparison.primary == measured.PER_WORK else ():
        rows = []
        for step in steps:
            mean = chain.average(step, metric)
            runs = chain.read_run_figures(step, metric) if mean or metric == measured.TRAINING_RATE else []
            rows.append(_build_row(step, mean, [run for run in runs if run.value], size))
        yield IntervalChart(title=f"{figures.format(metric).title}, {unit}", form="dots", share=False, rows=tuple(rows))
    yield _build_use_chart(steps, [*map(chain.summarize_step, steps)], "dots")


def _list_groups(steps: Sequence[Step]) -> Iterator[IntervalChart]:
    found = [*map(chain.summarize_step, steps)]
    yield _build_use_chart(steps, found, "bars")
    unit = found[0].work_unit
    if unit is None or any(group.work_unit != unit for group in found):
        return
    means = [group.work_per_gpu_hour for group in found]
    most = max((mean.value for mean in means if mean), default=0.0)
    name, size = next((each for each in _SIZES if most < _DIGITS * each[1]), _SIZES[-1])
    rows = []
    for step, mean in zip(steps, means, strict=True):
        runs = chain.read_run_figures(step, measured.PER_WORK) if mean else []
        amounts = [replace(run, value=measured.WORK_BATCH * measured.HOUR / run.value) for run in runs if run.value]
        rows.append(_build_row(step, mean, amounts, size))
    title = display.raise_first(f"{name} {display.clean(unit)} per GPU-hour".strip())
    yield IntervalChart(title=title, form="bars", share=False, rows=tuple(rows))


def _build_use_chart(steps: Sequence[Step], found: Sequence[StepSummary], form: str) -> IntervalChart:
    rows = []
    for step, group in zip(steps, found, strict=True):
        runs, mean = chain.read_run_figures(step, UTILISATION), group.utilisation
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
            # clip at 0, and shares at 1
            low, high = mean.interval
            interval = max(low, 0.0) / size, (min(high, 1.0) if share else high) / size
        ends = display.format_interval(interval, show, unit) if interval else ""
        why = f", {absent}" if not interval and absent != display.NOT_RECORDED else ""
        text = f"{show(value)}{unit}{ends and f' ({ends})'}{why}"
    return IntervalRow(label=label, value=value, interval=interval, text=text, runs=tuple(dots), each_run=each_run)


def _format_percent(ratio: float) -> str:
    text = f"{ratio * 100:.1f}"
    return text.removesuffix(".0") if text in {"0.0", "100.0"} else text


def _split_into_panels(chart: IntervalChart, study: Study) -> Iterator[IntervalChart]:
    """Yield a panel per value of the first setting, with a bar per value of the second."""
    rows = dict(zip((group.values for group in study.groups), chart.rows, strict=True))
    ends = [end for row in chart.rows for end in (row.value or 0.0, *(row.interval or ()))]
    ends += [run.value for row in chart.rows for run in row.runs]
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
