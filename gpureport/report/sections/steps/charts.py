"""Figures of every step with their intervals and the figure of each run, as charts show them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import fsum
from typing import NamedTuple

from gpureport.comparison.chain import Comparison, Mean, RunFigure, average, read_run_figures, summarize_steps
from gpureport.comparison.figures import HOUR, PER_WORK, TRAINING_RATE, WORK_BATCH
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow, RunDot
from gpureport.report.sections.steps.figures import Figures
from gpureport.report.sections.steps.tables import cut_interval, explain_missing_utilisation
from gpureport.report.wording import display
from gpureport.report.wording.differences import ONCE_SETTLED
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.words import say
from gpureport.report.wording.work_scale import name_work

_SIZES = (("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9))
_DIGITS = 1e4


class _Bar(NamedTuple):
    """One figure of a step: its mean, and that of each run, in the unit shown."""

    step: Step
    mean: Mean | None
    runs: tuple[RunFigure, ...]
    absent: str = display.NOT_RECORDED


def _convert(bar: _Bar, to_unit: Callable[[float], float]) -> _Bar:
    mean = bar.mean
    if mean is not None:
        ends = mean.interval and (to_unit(mean.interval[0]), to_unit(mean.interval[1]))
        mean = replace(mean, value=to_unit(mean.value), interval=ends)
    runs = tuple(replace(run, value=None if run.value is None else to_unit(run.value)) for run in bar.runs)
    return bar._replace(mean=mean, runs=runs)


def build_charts(comparison: Comparison, study: Study | None) -> tuple[IntervalChart, ...]:
    """Return the charts of a chain, or of groups beside each other; none without a figure to show."""
    found = _list_groups(comparison) if study else _list_chain(comparison)
    known = [chart for chart in found if any(row.value is not None for row in chart.rows)]
    if known and study and len(study.by) > 1:
        # work where it is known, otherwise utilisation: panels of both would be too many
        return tuple(_split_into_panels(known[-1], study))
    # the heading says the name of the param or tag
    prefix = f"{display.clean(study.by[0].name)}=" if study else ""
    rows = ([replace(row, label=row.label.removeprefix(prefix)) for row in chart.rows] for chart in known)
    return tuple(replace(chart, rows=tuple(each)) for chart, each in zip(known, rows, strict=True))


def describe_marks(found: Sequence[IntervalChart]) -> str:
    """Return what the marks of charts stand for, those that are drawn; empty without charts."""
    rows = [row for chart in found for row in chart.rows if row.value is not None]
    if not rows:
        return ""
    bars = found[0].form == "bars"
    dots = [dot for row in rows if len(row.runs) > 1 or bars for dot in row.runs]
    left_out = dict.fromkeys(dot.text for dot in dots if not dot.counted)
    return say(
        "chart.legend",
        bars=bars,
        several=any(len(row.runs) > 1 for row in rows),
        intervals=any(row.interval for row in rows),
        hollow=not all(row.interval for row in rows),
        dots=bool(dots),
        left_out=display.join_words(list(left_out)),
    ).rstrip()


def _list_chain(comparison: Comparison) -> Iterator[IntervalChart]:
    """Yield the figure that the chain is judged by, then how fast training alone went, then utilisation."""
    steps, figures = comparison.steps, Figures(comparison)
    if comparison.primary == PER_WORK:
        unit, size = ("GPU-s", 1.0) if figures.in_seconds else ("GPU-h", HOUR)
        bars = [_read_work(step, average(step, PER_WORK)) for step in steps]
        title = f"{figures.format(PER_WORK).title}, {unit}"
        yield _build_chart(title, "dots", [_convert(bar, lambda seconds: seconds / size) for bar in bars])
        title = f"{figures.format(TRAINING_RATE).title}, {name_work(steps[-1].work_unit)}/s"
        rates = [_Bar(step, average(step, TRAINING_RATE), read_run_figures(step, TRAINING_RATE)) for step in steps]
        yield _build_chart(title, "dots", rates)
    yield _build_use_chart(steps, "dots")


def _list_groups(comparison: Comparison) -> Iterator[IntervalChart]:
    """Yield utilisation, then work per GPU-hour where it is known, in a unit of at most four digits."""
    steps = comparison.steps
    yield _build_use_chart(steps, "bars")
    found = summarize_steps(steps)
    units = {group.work_unit for group in found}
    if len(units) == 1 and None not in units:
        means = [group.work_per_gpu_hour for group in found]
        most = max((mean.value for mean in means if mean), default=0.0)
        name, size = next((each for each in _SIZES if most < _DIGITS * each[1]), _SIZES[-1])
        title = f"{name} {display.clean(str(units.pop()))} per GPU-hour".strip()
        bars = []
        for step, mean in zip(steps, means, strict=True):
            bar = _convert(_read_work(step, mean), lambda seconds: WORK_BATCH * HOUR / seconds)
            bars.append(_convert(bar._replace(mean=mean), lambda work: work / size))
        yield _build_chart(display.raise_first(title), "bars", bars)


def _read_work(step: Step, mean: Mean | None) -> _Bar:
    """Return GPU time per unit of work of each run beside the mean of the step."""
    runs = read_run_figures(step, PER_WORK) if mean else ()
    return _Bar(step, mean, tuple(run for run in runs if run.value))


def _build_use_chart(steps: Sequence[Step], form: str) -> IntervalChart:
    """Return utilisation; of a step that is too short for a verdict the mean alone, without an interval."""
    bars = []
    for step, group in zip(steps, summarize_steps(steps), strict=True):
        runs, mean = read_run_figures(step, UTILISATION), group.utilisation
        counted = [run.value for run in runs if run.counted and run.value is not None]
        if mean is None and group.too_short_run is not None and counted:
            mean = Mean(value=fsum(counted) / len(counted), settled=True)
        bars.append(_Bar(step, mean, runs, explain_missing_utilisation(group)))
    return _build_chart(f"Mean GPU utilisation{ONCE_SETTLED}", form, bars, is_share=True)


def _format_percent(ratio: float) -> str:
    """Return a share in per cent with a decimal, so that both ends of a narrow interval can be told apart."""
    text = f"{ratio * 100:.1f}"
    return text.removesuffix(".0") if text in {"0.0", "100.0"} else text


def _build_chart(title: str, form: str, bars: Iterable[_Bar], *, is_share: bool = False) -> IntervalChart:
    rows = tuple(map(partial(_build_row, is_share=is_share), bars))
    return IntervalChart(title=title, form=form, share=is_share, rows=rows)


def _build_row(bar: _Bar, *, is_share: bool) -> IntervalRow:
    show, unit, most = (_format_percent, "%", 1.0) if is_share else (display.number, "", None)
    label, several = display.clean(bar.step.label), len(bar.step.runs) > 1
    label = f"{label} ({len(bar.step.runs)} runs)" if several else label
    dots = tuple(_list_dots(bar.runs, lambda value: f"{show(value)}{unit}"))
    counted = display.join_words([show(dot.value) for dot in dots if dot.counted])
    left_out = display.join_words([dot.text for dot in dots if not dot.counted])
    each_run = [counted and f"runs {counted}{unit}", left_out and f"left out: {left_out}"] if several else []
    interval, text = None, bar.absent
    if bar.mean is not None:
        interval = cut_interval(bar.mean, most)
        ends = format_interval(interval, show, unit) if interval else ""
        text = f"{show(bar.mean.value)}{unit}{ends and f' ({ends})'}"
        text += f", {bar.absent}" if not interval and bar.absent != display.NOT_RECORDED else ""
    return IntervalRow(
        label=label,
        value=bar.mean and bar.mean.value,
        interval=interval,
        text=text,
        runs=dots,
        each_run="; ".join(filter(None, each_run)),
    )


def _list_dots(runs: Sequence[RunFigure], show: Callable[[float], str]) -> Iterator[RunDot]:
    for run in runs:
        if run.value is not None:
            name, text = display.clean(run.run), show(run.value)
            text = text if run.counted else f"{name} ({text} over {display.duration(run.seconds)})"
            yield RunDot(run=name, value=run.value, counted=run.counted, text=text)


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
