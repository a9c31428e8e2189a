"""Figures of every step with their intervals and the figure of each run, as charts show them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import fsum

from gpureport.comparison.chain import (
    Comparison,
    Mean,
    RunFigure,
    StepSummary,
    average,
    read_run_figures,
    summarize_steps,
)
from gpureport.comparison.figures import HOUR, PER_WORK, TRAINING_RATE, WORK_BATCH
from gpureport.comparison.run import UTILISATION
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow, RunDot
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.comparison.step_summary_table import cut_interval, explain_missing_utilisation
from gpureport.report.sections.study.study_charts import split_into_panels
from gpureport.report.wording import display
from gpureport.report.wording.differences.difference_wording import ONCE_SETTLED
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.work_scale import name_work

_SIZES = (("", 1.0), ("thousand", 1e3), ("million", 1e6), ("billion", 1e9))
_DIGITS = 1e4
_UTILISATION = f"Mean GPU utilisation{ONCE_SETTLED}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepFigure:
    """One figure of a step: its mean, and that of each run, in one unit."""

    step: Step
    mean: Mean | None
    runs: tuple[RunFigure, ...]
    absent: str = display.NOT_RECORDED

    def convert(self, value: Callable[[float], float]) -> "_StepFigure":
        """Return the figure in another unit."""
        mean = self.mean
        if mean is not None:
            between = mean.interval and (value(mean.interval[0]), value(mean.interval[1]))
            mean = replace(mean, value=value(mean.value), interval=between)
        runs = tuple(replace(run, value=None if run.value is None else value(run.value)) for run in self.runs)
        return replace(self, mean=mean, runs=runs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Format:
    """How a figure is printed: its number, its unit, and the most that it can be."""

    number: Callable[[float], str]
    unit: str = ""
    most: float | None = None


def _percent(ratio: float) -> str:
    """Return a share in per cent with a decimal, so that both ends of a narrow interval can be told apart."""
    text = f"{ratio * 100:.1f}"
    return text.removesuffix(".0") if text in {"0.0", "100.0"} else text


_NUMBER = _Format(number=display.number)
_SHARE = _Format(number=_percent, unit="%", most=1.0)


def build_step_charts(comparison: Comparison, study: Study | None) -> tuple[IntervalChart, ...]:
    """Return the charts of a chain, or of groups beside each other; none without a figure to show.

    Args:
        comparison: the steps.
        study: the groups; None where the steps are a chain.
    """
    found = list(_groups(comparison.steps) if study else _chain(comparison))
    known = [chart for chart in found if any(row.value is not None for row in chart.rows)]
    if known and study and len(study.by) > 1:
        # work where it is known, else utilisation: panels of both would be too many
        return tuple(split_into_panels(known[-1], study))
    prefix = f"{display.clean(study.by[0].name)}=" if study else ""
    return tuple(replace(chart, rows=tuple(_unprefixed(row, prefix) for row in chart.rows)) for chart in known)


def describe_marks(found: Sequence[IntervalChart]) -> str:
    """Return what the marks of charts stand for, those that are drawn; empty without charts."""
    rows = [row for chart in found for row in chart.rows if row.value is not None]
    if not rows:
        return ""
    bars, several = found[0].form == "bars", any(len(row.runs) > 1 for row in rows)
    mark = "Bar: a group" if bars else "Large dot: a step" if several else "Dot: a step"
    interval = ", its 95% interval as a line across it" if any(row.interval for row in rows) else ""
    hollow = ", hollow where it has no interval" if not all(row.interval for row in rows) else ""
    sentences = [f"{mark}{', a mean over its runs' if several else ''}{interval}{'' if bars else hollow}"]
    dots = [dot for row in rows if len(row.runs) > 1 or bars for dot in row.runs]
    if dots:
        sentences.append(f"Small dot{'s: its runs' if several else ': its run'}{hollow if bars else ''}")
    if left_out := list(dict.fromkeys(dot.text for dot in dots if not dot.counted)):
        sentences.append(f"Cross: a run that the mean leaves out, {display.join_words(left_out)}")
    if not bars:
        sentences.append("Dashed: the first step")
    return f"{'. '.join(sentences)}."


def _unprefixed(row: IntervalRow, prefix: str) -> IntervalRow:
    """Return a row without the name of the param or tag, which the heading says."""
    return replace(row, label=row.label.removeprefix(prefix))


def _chain(comparison: Comparison) -> Iterator[IntervalChart]:
    """Yield the figure that the chain is judged by, then how fast training alone went, then utilisation."""
    steps, unit = comparison.steps, comparison.steps[-1].work_unit
    if comparison.primary == PER_WORK:
        units = figure_formats.gather_work_units(comparison)
        figures = [
            figure.convert(lambda value: figure_formats.convert_gpu_time(value, in_seconds=units.in_seconds))
            for figure in _per_work(steps, [average(step, PER_WORK) for step in steps])
        ]
        title = figure_formats.choose_format(PER_WORK, unit, units=units).title
        yield _chart(f"{title}, {'GPU-s' if units.in_seconds else 'GPU-h'}", figures, _NUMBER, "dots")
        rates = [
            _StepFigure(step=step, mean=average(step, TRAINING_RATE), runs=read_run_figures(step, TRAINING_RATE))
            for step in steps
        ]
        title = figure_formats.choose_format(TRAINING_RATE, unit).title
        yield _chart(f"{title}, {name_work(unit)}/s", rates, _NUMBER, "dots")
    yield _chart(_UTILISATION, _utilisation(steps, summarize_steps(steps)), _SHARE, "dots")


def _groups(steps: Sequence[Step]) -> Iterator[IntervalChart]:
    """Yield utilisation, then work per GPU-hour where it is known."""
    found = summarize_steps(steps)
    yield _chart(_UTILISATION, _utilisation(steps, found), _SHARE, "bars")
    units = {group.work_unit for group in found}
    if len(units) == 1 and None not in units:
        means = [group.work_per_gpu_hour for group in found]
        name, size = _choose_size(max((mean.value for mean in means if mean), default=0.0))
        unit = f"{name} {display.clean(str(units.pop()))}".strip()
        title = f"{unit[:1].upper()}{unit[1:]} per GPU-hour"
        figures = [
            replace(figure.convert(lambda seconds: WORK_BATCH * HOUR / seconds), mean=mean).convert(
                lambda work: work / size
            )
            for figure, mean in zip(_per_work(steps, means), means, strict=True)
        ]
        yield _chart(title, figures, _NUMBER, "bars")


def _choose_size(most: float) -> tuple[str, float]:
    """Return the name and the size of the unit in which the largest figure has at most four digits."""
    return next((size for size in _SIZES if most < _DIGITS * size[1]), _SIZES[-1])


def _per_work(steps: Sequence[Step], means: Sequence[Mean | None]) -> Iterator[_StepFigure]:
    """Yield GPU time per unit of work of each run beside the mean of the step."""
    for step, mean in zip(steps, means, strict=True):
        runs = read_run_figures(step, PER_WORK) if mean else ()
        yield _StepFigure(step=step, mean=mean, runs=tuple(run for run in runs if run.value))


def _utilisation(steps: Sequence[Step], found: Sequence[StepSummary]) -> Iterator[_StepFigure]:
    """Yield utilisation; of a step that is too short for a verdict the mean alone, without an interval."""
    for step, group in zip(steps, found, strict=True):
        runs = read_run_figures(step, UTILISATION)
        mean = group.utilisation
        if mean is None and group.too_short_run is not None:
            counted = [run.value for run in runs if run.counted and run.value is not None]
            mean = Mean(value=fsum(counted) / len(counted), settled=True) if counted else None
        yield _StepFigure(step=step, mean=mean, runs=runs, absent=explain_missing_utilisation(group))


def _chart(
    title: str, figures: Iterator[_StepFigure] | Sequence[_StepFigure], shown: _Format, form: str
) -> IntervalChart:
    share = shown.most is not None
    return IntervalChart(title=title, form=form, share=share, rows=tuple(_row(figure, shown) for figure in figures))


def _row(figure: _StepFigure, shown: _Format) -> IntervalRow:
    count = len(figure.step.runs)
    label = display.clean(figure.step.label)
    label = f"{label} ({count} runs)" if count > 1 else label
    dots = tuple(_dots(figure.runs, shown))
    mean, each_run = figure.mean, _each_run(dots, shown) if count > 1 else ""
    if mean is None:
        return IntervalRow(label=label, value=None, interval=None, text=figure.absent, runs=dots, each_run=each_run)
    interval = cut_interval(mean, shown.most)
    ends = format_interval(interval, shown.number, shown.unit) if interval else ""
    beside = f" ({ends})" if ends else ""
    if not interval and figure.absent != display.NOT_RECORDED:
        beside = f", {figure.absent}"
    text = f"{shown.number(mean.value)}{shown.unit}{beside}"
    return IntervalRow(label=label, value=mean.value, interval=interval, text=text, runs=dots, each_run=each_run)


def _dots(runs: Sequence[RunFigure], shown: _Format) -> Iterator[RunDot]:
    for run in runs:
        if run.value is None:
            continue
        text = f"{shown.number(run.value)}{shown.unit}"
        if not run.counted:
            text = f"{display.clean(run.run)} ({text} over {display.duration(run.seconds)})"
        yield RunDot(run=display.clean(run.run), value=run.value, counted=run.counted, text=text)


def _each_run(dots: Sequence[RunDot], shown: _Format) -> str:
    """Return the figures of runs in words: those that count, then those that are left out, by name."""
    counted = [shown.number(dot.value) for dot in dots if dot.counted]
    left_out = [dot.text for dot in dots if not dot.counted]
    runs = f"runs {display.join_words(counted)}{shown.unit}" if counted else ""
    return "; ".join(filter(None, (runs, f"left out: {display.join_words(left_out)}" if left_out else "")))
