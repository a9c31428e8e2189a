"""Figures of every step with their intervals, as charts show them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from gpureport.comparison.chain.step_means import per_work_mean
from gpureport.comparison.chain.step_summaries import Mean, StepSummary, summarize_steps
from gpureport.comparison.steps.step_figures import PER_WORK
from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.comparison.study.factors import Factor
from gpureport.report.model.comparison_parts import IntervalChart, IntervalRow
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.comparison.step_summary_table import ends, title_of_means, utilisation_absent
from gpureport.report.wording import display
from gpureport.report.wording.difference_wording import ONCE_SETTLED

_UTILISATION = f"Mean GPU utilisation{ONCE_SETTLED}"
_PERCENT = f"{display.GAP}%"


def charts(comparison: Comparison, by: Sequence[Factor]) -> tuple[IntervalChart, ...]:
    """Return the charts of a chain, or of groups beside each other; none without a figure to show.

    Args:
        comparison: the steps.
        by: settings whose values make the groups; none where the steps are a chain.
    """
    found = _groups(comparison.steps) if by else _chain(comparison)
    known = (chart for chart in found if any(row.value is not None for row in chart.rows))
    prefix = f"{display.clean(by[0].name)}=" if len(by) == 1 else ""
    return tuple(replace(chart, rows=tuple(_unprefixed(row, prefix) for row in chart.rows)) for chart in known)


def _unprefixed(row: IntervalRow, prefix: str) -> IntervalRow:
    """Return a row without the name of the param or tag, which the heading says."""
    return replace(row, label=row.label.removeprefix(prefix))


def _chain(comparison: Comparison) -> Iterator[IntervalChart]:
    """Yield the figure that the chain is judged by, then utilisation."""
    steps = comparison.steps
    if comparison.primary == PER_WORK:
        in_seconds = figure_formats.uses_seconds(comparison)
        means = [
            _as_printed(per_work_mean(step), partial(figure_formats.per_work, in_seconds=in_seconds)) for step in steps
        ]
        title = figure_formats.choose_format(PER_WORK, steps[-1].work_unit, in_seconds=in_seconds).title
        title = title_of_means(title, means)
        yield IntervalChart(
            title=title, form="dots", share=False, rows=tuple(_rows(steps, means, display.precise_number))
        )
    rows = tuple(_utilisation_rows(steps, summarize_steps(steps)))
    yield IntervalChart(title=_UTILISATION, form="dots", share=True, rows=rows)


def _groups(steps: Sequence[Step]) -> Iterator[IntervalChart]:
    """Yield utilisation, then work per GPU-hour where it is known."""
    found = summarize_steps(steps)
    rows = tuple(_utilisation_rows(steps, found))
    yield IntervalChart(title=_UTILISATION, form="bars", share=True, rows=rows)
    units = {group.work_unit for group in found}
    if len(units) == 1 and None not in units:
        unit = display.clean(str(units.pop())).capitalize()
        means = [group.work_per_gpu_hour for group in found]
        rows = tuple(_rows(steps, means, display.precise_number))
        yield IntervalChart(title=title_of_means(f"{unit} per GPU-hour", means), form="bars", share=False, rows=rows)


def _percent(ratio: float) -> str:
    """Return a share in per cent with a decimal, so that both ends of a narrow interval can be told apart."""
    return f"{round(ratio * 100, 1):g}"


def _as_printed(mean: Mean | None, value: Callable[[float], float]) -> Mean | None:
    """Return a mean in the unit in which it is printed."""
    if mean is None:
        return None
    interval = mean.interval and (value(mean.interval[0]), value(mean.interval[1]))
    return replace(mean, value=value(mean.value), interval=interval)


def _utilisation_rows(steps: Sequence[Step], found: Sequence[StepSummary]) -> Iterator[IntervalRow]:
    """Yield utilisation, and where it is not told whether it was recorded for too short."""
    rows = _rows(steps, [group.utilisation for group in found], _percent, unit=_PERCENT, most=1.0)
    for group, row in zip(found, rows, strict=True):
        yield replace(row, text=utilisation_absent(group)) if row.value is None else row


def _rows(
    steps: Sequence[Step],
    means: Sequence[Mean | None],
    text: Callable[[float], str],
    unit: str = "",
    most: float | None = None,
) -> Iterator[IntervalRow]:
    for step, mean in zip(steps, means, strict=True):
        runs = len(step.runs)
        label = f"{display.clean(step.label)} ({runs} runs)" if runs > 1 else display.clean(step.label)
        if mean is None:
            yield IntervalRow(label=label, value=None, interval=None, text=display.NOT_RECORDED)
            continue
        interval = ends(mean, most)
        between = f" ({text(interval[0])} to {text(interval[1])}{unit})" if interval else ""
        yield IntervalRow(label=label, value=mean.value, interval=interval, text=f"{text(mean.value)}{unit}{between}")
