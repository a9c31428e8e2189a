"""The steps of an optimization, each row against the row above."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from gpureport.comparison.quality.time_to_target import measure_run_time_to_target
from gpureport.comparison.steps.step_figures import (
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    measures,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Step
from gpureport.comparison.steps.training_rate import mean_training_rate
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison import figure_formats, quality_rows
from gpureport.report.sections.comparison.figure_formats import (
    LABEL,
    choose_formats,
    format_difference,
    join_notes,
    list_pair_reasons,
    note_prices,
    select_formats,
)
from gpureport.report.wording import display
from gpureport.report.wording.comparison_reasons import describe_left_out, list_reasons
from gpureport.report.wording.difference_wording import FigureFormat, describe_verdict, format_interval

if TYPE_CHECKING:
    from gpureport.comparison.steps.verdict_reason import Reason

_STEP = 32
"""Most characters of the name of a step, which two settings may make up."""


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step: what may be said against the row above and the first row, then figures and changes."""
    steps = comparison.steps
    in_seconds = figure_formats.uses_seconds(comparison)
    figures = _align_columns(select_formats(steps, in_seconds=in_seconds), [step.value for step in steps])
    links = [comparison.between(base.label, step.label) for base, step in pairwise(steps)]
    several = len(steps) > 2  # noqa: PLR2004 - of two steps the row above is the first
    title = choose_formats(steps, (comparison.primary,), in_seconds=in_seconds)[comparison.primary]
    reasons: list[tuple[Reason | None, str]] = []
    rows = [_row(steps[0], [Cell(text="first step")] * (1 + several), figures, ())]
    for place, (step, link) in enumerate(zip(steps[1:], links, strict=True), start=1):
        name = display.clean(step.label)
        before, first = (comparison.judged(base.label, step.label) for base in (steps[place - 1], steps[0]))
        verdicts = [_verdict(before), *([_verdict(first, title)] if several else [])]
        reasons += list_pair_reasons(name, before, first, f"{name} since the first")
        rows.append(_row(step, verdicts, figures, link))
    heads = ("Verdict", "Since first") if several else ("Verdict",)
    table = Table(
        columns=("Step", *heads, *(each.title for each in figures.values())),
        numeric=(*(False for _ in heads), *(True for _ in figures)),
        rows=tuple(rows),
        notes=join_notes(
            _note(title.noun, several=several),
            describe_allowance(comparison),
            list_reasons(reasons),
            _left_out_note(comparison),
            note_prices(steps, figures),
        ),
    )
    return quality_rows.add_quality_column(table, comparison, place=len(heads))


def _left_out_note(comparison: Comparison) -> str:
    """Return which runs stopped early or are too short for figures of the steady state; empty where all count."""
    short = [run for delta in comparison.deltas for run in delta.left_out]
    # of a run that stopped early the little steady state goes without saying
    runs = {run.run: run for run in sorted(short, key=lambda run: run.stopped)}
    return display.clean_sentence(describe_left_out(list(runs.values())))


def describe_allowance(comparison: Comparison) -> str:
    """Return for how many comparisons the verdicts on a chain allow; empty where there is one."""
    if comparison.tested <= 1:
        return ""
    training = f" and {comparison.training_tested} of training alone" if comparison.training_tested > 1 else ""
    many = f"{comparison.tested} comparisons{training}"
    return f"Verdicts allow for {many}, so that none is claimed because there are many."


def _align_columns(
    figures: Mapping[str, FigureFormat], columns: Sequence[Callable[[str], float | None]]
) -> Mapping[str, FigureFormat]:
    """Return the figures as they are printed below each other."""
    return {metric: each.for_values([value(metric) for value in columns]) for metric, each in figures.items()}


def _note(title: str, *, several: bool) -> str:
    against = "against the row above, then against the first row" if several else "against the row above"
    return (
        f"The verdict is on {title}, {against}. Figures are for whole recordings, start-up included, but for training "
        f"alone. The small line is the difference from the row above, with its 95% interval. "
        '"settled" means that this difference compares only the settled parts.'
    )


def _verdict(judged: Delta | None, shown: FigureFormat | None = None) -> Cell:
    """Return a verdict, with the difference it is on where that is `shown`."""
    if judged is None:
        return Cell(text="")
    return Cell(text=describe_verdict(judged), small=_small(judged, shown) if shown else "")


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
    in_seconds = figure_formats.uses_seconds(comparison)
    figures = _align_columns(select_formats(comparison.steps, in_seconds=in_seconds), [value for _, value in named])
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


def _row(
    step: Step,
    verdicts: Sequence[Cell],
    figures: Mapping[str, FigureFormat],
    deltas: Sequence[Delta],
) -> Row:
    runs = len(step.analyses)
    changes = {delta.metric: delta for delta in deltas}
    cells = [_cell(step, metric, each, changes.get(metric)) for metric, each in figures.items()]
    head = Cell(text=display.clean(step.label), small=f"{runs} runs" if runs > 1 else "")
    return Row(head=head, cells=(*verdicts, *cells))


def _cell(step: Step, metric: str, shown: FigureFormat, delta: Delta | None) -> Cell:
    """Return a figure of a step and how it changed; beside the training rate stands its own verdict."""
    value = step.value(metric)
    text = shown.format_value(value)
    small = _small(delta, shown, text)
    verdict = f": {describe_verdict(delta)}" if small and delta is not None and metric == TRAINING_RATE else ""
    return Cell(text=text, small=f"{small}{verdict}", value=value)


def _small(delta: Delta | None, shown: FigureFormat, figure: str | None = None) -> str:
    """Return a difference, and that it is one of what had settled where the figure it stands below is not."""
    if delta is None or delta.difference is None:
        return ""
    change = format_difference(shown, delta) if delta.difference else "no change"
    settled = figure not in {None, shown.format_value(delta.after)}
    other = " settled" if delta.difference and delta.window == "steady" and settled else ""
    between = format_interval(delta, shown)
    return f"{change}{other} ({between})" if between else f"{change}{other}"
