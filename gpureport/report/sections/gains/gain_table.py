"""The table of gains: what each step changed, what that was worth, and whether it had been advised."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.figures import COST_PER_WORK, ENERGY_PER_WORK, PER_WORK, TRAINING_RATE, WORK_RATE
from gpureport.comparison.gains import GainSince, RelativeChange, StepGain, build_gains
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.gain_table import GainCell, GainRow, GainTable
from gpureport.report.model.shapes import Cell, Fact
from gpureport.report.sections.comparison import figure_formats
from gpureport.report.sections.gains import gain_facts, potential_sentence
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display
from gpureport.report.wording.differences import relative_changes
from gpureport.report.wording.differences.comparison_reasons import (
    count_family,
    describe_interval,
    describe_left_out,
    describe_reason,
)
from gpureport.report.wording.display import drop_equal_ends


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A figure of the table.

    Attributes:
        title: of the column.
        metric: the figure of a single step that the first row shows.
        change: reads its change from what a step was worth.
        times: whether the change is a multiple, else per cent.
        absent: what to do where no step has it; empty where nothing need be said.
    """

    title: str
    metric: str
    change: Callable[[GainSince], RelativeChange | None]
    times: bool
    absent: str = ""


_COLUMNS = (
    _Column(title="Whole job", metric=WORK_RATE, change=lambda since: since.whole_job, times=True),
    _Column(
        title="Training alone",
        metric=TRAINING_RATE,
        change=lambda since: since.training,
        times=True,
        absent="Training alone: not every run logged a throughput, and not every GPU log has a steady phase.",
    ),
    _Column(title="GPU time", metric=PER_WORK, change=lambda since: since.gpu_time, times=False),
    _Column(
        title="Cost",
        metric=COST_PER_WORK,
        change=lambda since: since.cost,
        times=False,
        absent="Cost: no price given (--gpu-hour-price).",
    ),
    _Column(
        title="Energy",
        metric=ENERGY_PER_WORK,
        change=lambda since: since.energy,
        times=False,
        absent="Energy: power was not recorded throughout.",
    ),
)
_NO_CURRENCY = "Cost: no currency given (--gpu-hour-price '2.49 EUR')."
_NO_WORK = "Gains are per unit of work, and the work is not known: state it with --work N:UNIT."
_UNCONFIRMED = "Unconfirmed: one run each; repeat the step before you rely on it."


def build_gain_table(comparison: Comparison, pairs: Sequence[StepPair]) -> GainTable:
    """Return the table of gains of a chain, and what the last step could gain at most."""
    gains = build_gains(comparison, pairs)
    columns = [each for each in _COLUMNS if any(_find_change(each, gain) for gain in gains)]
    rows = [_build_first_row(comparison, gains[0].step, columns)]
    rows += [_build_row(gain, columns, several=place > 1) for place, gain in enumerate(gains[1:], start=1)]
    if len(gains) > 2:  # noqa: PLR2004 - of two steps the row above is the first
        rows += [last for last in [_build_last_row(gains, columns)] if last.cells or last.facts]
    return GainTable(
        columns=("Step", *(column.title for column in columns)),
        rows=tuple(rows),
        potential=potential_sentence.describe_potential(comparison),
        notes=tuple(_list_notes(comparison, gains, columns)),
    )


def _find_change(column: _Column, gain: StepGain) -> RelativeChange | None:
    return None if gain.since_before is None else column.change(gain.since_before)


def _build_first_row(comparison: Comparison, step: Step, columns: Sequence[_Column]) -> GainRow:
    units = figure_formats.gather_work_units(comparison)
    return GainRow(
        head=_head(step),
        cells=tuple(_format_figure(step, column.metric, units) for column in columns),
        facts=(),
    )


def _format_figure(step: Step, metric: str, units: figure_formats.WorkUnits) -> GainCell:
    value = step.value(metric)
    if value is None:
        return GainCell(text=display.NOT_RECORDED)
    shown = figure_formats.choose_format(metric, step.work_unit, units=units)
    if metric == COST_PER_WORK:
        # an amount of money has its sign before it
        text = display.money(value / shown.scale.unit(value)[1], spending.currency(step.analyses))
    else:
        text = shown.value(value)
    return GainCell(text=f"{text} {shown.per}" if shown.per else text)


def _build_row(gain: StepGain, columns: Sequence[_Column], *, several: bool) -> GainRow:
    since = [_describe_since_first(gain, columns)] if several else []
    return GainRow(
        head=_head(gain.step),
        cells=tuple(_format_change(_find_change(column, gain), column) for column in columns),
        facts=(*(fact for fact in since if fact), *gain_facts.list_gain_facts(gain)),
    )


def _describe_since_first(gain: StepGain, columns: Sequence[_Column]) -> Fact | None:
    """Return how many times as fast a step is as the first one, with the verdicts; None where that is not known."""
    changes = [
        f"{display.lower_first(column.title)} {relative_changes.format_times(change.ratio)} as fast, "
        f"{change.verdict.short}"
        for column in columns
        if column.times and gain.since_first and (change := column.change(gain.since_first))
    ]
    return Fact(name="Since first", text="; ".join(changes)) if changes else None


def _build_last_row(gains: Sequence[StepGain], columns: Sequence[_Column]) -> GainRow:
    """Return what all steps together were worth."""
    last = gains[-1]
    since = last.since_first
    return GainRow(
        head=Cell(
            text="All steps together",
            small=f"{display.clean(gains[0].step.label)} to {display.clean(last.step.label)}",
        ),
        cells=tuple(_format_change(None if since is None else column.change(since), column) for column in columns),
        facts=tuple(gain_facts.list_overall_facts(gains)),
    )


def _head(step: Step) -> Cell:
    small = display.plural(len(step.runs), "run") if len(step.runs) > 1 else ""
    return Cell(text=display.clean(step.label), small=small)


def _format_change(change: RelativeChange | None, column: _Column) -> GainCell:
    if change is None:
        return GainCell(text="not known")
    text, interval = format_change(change, times=column.times)
    comparisons = count_family(change.reason)
    return GainCell(
        text=text,
        interval=describe_interval(interval, comparisons),
        verdict=change.verdict.short,
        comparisons=comparisons,
        established=change.verdict.is_established,
    )


def format_change(change: RelativeChange, *, times: bool) -> tuple[str, str]:
    """Return a change and its interval in words; the latter empty where there is none."""
    if times:
        text, ends = relative_changes.format_times(change.ratio), relative_changes.format_times_range
    else:
        text, ends = relative_changes.format_percent_change(change.ratio), relative_changes.format_percent_range
    return text, drop_equal_ends(ends(change.interval)) if change.interval else ""


def _list_notes(comparison: Comparison, gains: Sequence[StepGain], columns: Sequence[_Column]) -> Iterator[str]:
    if not columns:
        yield _NO_WORK
        return
    metrics = {column.metric for column in columns}
    yield (
        "Each row is against the row above. Whole job (first to last sample) and training alone: how many times as "
        "fast. Below each change stands its 95% interval."
    )
    if TRAINING_RATE in metrics:
        yield figure_formats.describe_training_source(comparison.steps)
    stopped = {run.run: run for delta in comparison.deltas for run in delta.left_out if run.stopped}
    if stopped:
        yield display.clean_sentence(describe_left_out(list(stopped.values())))
    yield from (column.absent for column in _COLUMNS if column.absent and column.metric not in metrics)
    if COST_PER_WORK in metrics and not spending.currency(
        [analysis for step in comparison.steps for analysis in step.analyses]
    ):
        yield _NO_CURRENCY
    verdicts = {change.verdict for gain in gains for column in columns if (change := _find_change(column, gain))}
    if Verdict.UNCONFIRMED in verdicts:
        yield _UNCONFIRMED
    reasons = [change.reason for gain in gains for column in columns if (change := _find_change(column, gain))]
    yield from [describe_reason(reason) for reason in reasons if count_family(reason)][:1]
