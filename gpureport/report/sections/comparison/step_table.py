"""The steps of an optimization, each row against the row above."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from gpureport.analysis.results import Analysis
from gpureport.comparison.quality.time_to_target import measure_run_time_to_target
from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    ENERGY_PER_WORK,
    PER_WORK,
    SECONDS_TO_TARGET,
    TRAINING_RATE,
    WORK_RATE,
    measures,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Step, WholeRecordingFigure
from gpureport.comparison.steps.training_rate import mean_training_rate
from gpureport.comparison.steps.verdict_reason import Reason
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison import figure_formats, quality_rows
from gpureport.report.sections.comparison.figure_formats import LABEL, SHOWN
from gpureport.report.sections.gpus import spending
from gpureport.report.wording import display
from gpureport.report.wording.comparison_reasons import describe_left_out, list_reasons
from gpureport.report.wording.difference_wording import FigureFormat, describe_verdict, format_interval

_STEP = 32
"""Most characters of the name of a step, which two settings may make up."""

_ASIDE = {WORK_RATE, "gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"}
"""Figures that only the table of one link has room for."""


def build_step_table(comparison: Comparison) -> Table:
    """Return one row a step: what may be said against the row above and the first row, then figures and changes."""
    steps = comparison.steps
    in_seconds = figure_formats.uses_seconds(comparison)
    figures = _align_columns(_figures(steps, in_seconds=in_seconds), [step.value for step in steps])
    links = [comparison.between(base.label, step.label) for base, step in pairwise(steps)]
    several = len(steps) > 2  # noqa: PLR2004 - of two steps the row above is the first
    title = _formats_of(steps, (comparison.primary,), in_seconds=in_seconds)[comparison.primary]
    reasons: list[tuple[Reason | None, str]] = []
    rows = [_row(steps[0], [Cell(text="first step")] * (1 + several), figures, ())]
    for place, (step, link) in enumerate(zip(steps[1:], links, strict=True), start=1):
        name = display.clean(step.label)
        before, first = (comparison.judged(base.label, step.label) for base in (steps[place - 1], steps[0]))
        verdicts = [_verdict(before), *([_verdict(first, title)] if several else [])]
        reasons += _reasons(name, before, first, f"{name} since the first")
        rows.append(_row(step, verdicts, figures, link))
    heads = ("Verdict", "Since first") if several else ("Verdict",)
    table = Table(
        columns=("Step", *heads, *(each.title for each in figures.values())),
        numeric=(*(False for _ in heads), *(True for _ in figures)),
        rows=tuple(rows),
        notes=_notes(
            _note(title.noun, several=several),
            allowance(comparison),
            list_reasons(reasons),
            _left_out_note(comparison),
            _price_note(steps, figures),
        ),
    )
    return quality_rows.add_quality_column(table, comparison, place=len(heads))


def _left_out_note(comparison: Comparison) -> str:
    """Return which runs are too short for figures of the steady state; empty where all count."""
    runs = {run.run: run for delta in comparison.deltas for run in delta.left_out}
    return display.clean_sentence(describe_left_out(list(runs.values())))


def _reasons(
    name: str, before: Delta | None, first: Delta | None, name_since_first: str
) -> Iterator[tuple[Reason | None, str]]:
    """Yield what holds a verdict back, and the one since the first step where that is held back by something else."""
    near, far = (delta.reason and delta.reason.of_any_run if delta else None for delta in (before, first))
    yield near, name
    if far != near:
        yield far, name_since_first


def allowance(comparison: Comparison) -> str:
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


def _price_note(steps: Sequence[Step], figures: Iterable[str]) -> str:
    """Return when the prices held that figures rest on; empty where none is a cost."""
    return spending.price_note(_analyses(steps)) if COST_PER_WORK in figures else ""


def _notes(*notes: str) -> tuple[str, ...]:
    return tuple(filter(None, notes))


def _analyses(steps: Sequence[Step]) -> list[Analysis]:
    return [analysis for step in steps for analysis in step.analyses]


def _note(title: str, *, several: bool) -> str:
    against = "against the row above, then against the first row" if several else "against the row above"
    return (
        f"The verdict is on {title}, {against}. Figures are for whole recordings, start-up included, but for training "
        f"alone. The small line is the difference from the row above, with its 95{display.GAP}% interval. "
        '"settled" means that this difference compares only the settled parts.'
    )


def _verdict(judged: Delta | None, shown: FigureFormat | None = None) -> Cell:
    """Return a verdict, with the difference it is on where that is `shown`."""
    if judged is None:
        return Cell(text="")
    return Cell(text=describe_verdict(judged), small=_small(judged, shown) if shown else "")


def _figures(steps: Sequence[Step], aside: Collection[str] = (), *, in_seconds: bool) -> dict[str, FigureFormat]:
    """Return the figures to show of some steps, by name."""
    known = any(step.work_unit for step in steps)
    left_out = {"energy_joules"} if known else {PER_WORK, ENERGY_PER_WORK, COST_PER_WORK, WORK_RATE}
    if all(step.training_source is None for step in steps):
        left_out.add(TRAINING_RATE)
    if all(run.gpu_hour_price is None for step in steps for run in step.runs):
        left_out.add(COST_PER_WORK)
    if not any(measure.metric == SECONDS_TO_TARGET for step in steps for measure in step.measures):
        left_out.add(SECONDS_TO_TARGET)
    metrics = [name for name in SHOWN if name not in left_out and (name not in _ASIDE or name in aside)]
    return _formats_of(steps, metrics, in_seconds=in_seconds)


def _formats_of(steps: Sequence[Step], metrics: Iterable[str], *, in_seconds: bool) -> dict[str, FigureFormat]:
    units = {step.work_unit for step in steps if step.work_unit}
    unit = next(iter(units)) if len(units) == 1 else None
    currency = spending.currency(_analyses(steps))
    return {metric: figure_formats.choose_format(metric, unit, currency, in_seconds=in_seconds) for metric in metrics}


def overview(comparison: Comparison) -> Table:
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
    figures = _align_columns(_figures(comparison.steps, in_seconds=in_seconds), [value for _, value in named])
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
        notes=_notes(
            note if repeated else "",
            _price_note(comparison.steps, figures),
        ),
    )
    return quality_rows.add_quality_column(table, comparison, place=len(figures), with_runs=True)


def _plain_row(head: str, value: Callable[[str], float | None], figures: Mapping[str, FigureFormat]) -> Row:
    texts = (each.format_value(value(metric)) for metric, each in figures.items())
    return Row(head=Cell(text=head), cells=tuple(Cell(text=text) for text in texts))


def pair_formats_with_deltas(
    base: Step, step: Step, deltas: Sequence[Delta], *, in_seconds: bool = False
) -> list[tuple[FigureFormat, Delta]]:
    """Return the figures of two steps in the order shown; of the clocks those that were recorded.

    Args:
        base: the earlier step.
        step: the later one.
        deltas: their differences.
        in_seconds: whether GPU time per unit of work is printed in seconds.
    """
    found = {delta.metric: delta for delta in deltas}
    aside = {metric for metric in _ASIDE if found[metric].whole.difference is not None or found[metric].interval}
    return [(each, found[metric]) for metric, each in _figures((base, step), aside, in_seconds=in_seconds).items()]


def differences(figures: Sequence[tuple[FigureFormat, Delta]], steps: Sequence[Step] = ()) -> Table:
    """Return one row a figure: before, after, and how far apart, of what had settled where it had.

    Args:
        figures: of two neighbouring steps.
        steps: both of them, to say when the prices of a cost held.
    """
    return Table(
        columns=("", "Before", "After", "Difference", f"95{display.GAP}% interval"),
        numeric=(True,) * 4,
        rows=tuple(_difference(each, delta) for each, delta in figures),
        notes=_notes(
            "Start-up and what had not settled are left out of shares, power and clocks."
            if any(delta.window == "steady" for _, delta in figures)
            else "",
            _price_note(steps, [delta.metric for _, delta in figures]),
        ),
    )


def build_verdict_table(
    figures: Sequence[tuple[FigureFormat, Delta]], first: Sequence[Delta] = (), steps: Sequence[Step] = ()
) -> Table:
    """Return one row a figure: before, after, what changed and what may be said of it.

    Args:
        figures: of two neighbouring steps.
        first: the later of them against the first step; empty where that is the earlier one.
        steps: both neighbours, as `differences` takes them.
    """
    since = {delta.metric: delta for delta in first}
    heads = ("Since first", "Verdict since first") if since else ()
    reasons = [
        reason
        for shown, delta in figures
        for reason in _reasons(shown.noun, delta, since.get(delta.metric), f"{shown.noun} since the first step")
    ]
    return Table(
        columns=("", "Before", "After", "Difference", "Verdict", *heads),
        numeric=(True, True, True, False, *((True, False) if since else ())),
        rows=tuple(_effect(shown, delta, since.get(delta.metric)) for shown, delta in figures),
        notes=_notes(*differences(figures, steps).notes, list_reasons(reasons)),
    )


def _effect(shown: FigureFormat, delta: Delta, since: Delta | None) -> Row:
    values = shown.format_pair(delta.before, delta.after)
    return Row(
        head=Cell(text=shown.for_delta(delta).title),
        cells=(
            *(Cell(text=text) for text in values),
            *_changed(delta, shown),
            *(_changed(since, shown) if since else ()),
        ),
    )


def _changed(delta: Delta, shown: FigureFormat) -> tuple[Cell, Cell]:
    """Return a difference with its interval, and what may be said of it."""
    change = Cell(text=_moved(shown, delta), small=format_interval(delta, shown), value=delta.difference)
    return change, Cell(text=describe_verdict(delta))


def _moved(shown: FigureFormat, plain: Delta | WholeRecordingFigure) -> str:
    """Return a difference in words; empty where there is none to tell."""
    if plain.difference is None:
        return ""
    return shown.format_change(plain.difference, plain.before, plain.after) if plain.difference else "none"


def _difference(shown: FigureFormat, delta: Delta) -> Row:
    texts = [*_both(shown, delta), format_interval(delta, shown)]
    return Row(head=Cell(text=shown.for_delta(delta).title), cells=tuple(Cell(text=text) for text in texts))


def _both(shown: FigureFormat, plain: Delta | WholeRecordingFigure) -> list[str]:
    return [*shown.format_pair(plain.before, plain.after), _moved(shown, plain)]


def build_whole_recording_table(figures: Sequence[tuple[FigureFormat, Delta]]) -> Table | None:
    """Return the figures over whole recordings, start-up and end included; None where nothing else is shown."""
    figures = [(shown, delta) for shown, delta in figures if delta.window != "training"]
    if all(delta.window != "steady" for _, delta in figures):
        return None
    return Table(
        columns=("", "Before", "After", "Difference", "Relative"),
        numeric=(True,) * 4,
        rows=tuple(_whole(shown, delta.whole) for shown, delta in figures),
    )


def _whole(shown: FigureFormat, plain: WholeRecordingFigure) -> Row:
    relative = "" if plain.difference is None else display.relative(plain.difference, plain.before)
    texts = [*_both(shown, plain), relative]
    return Row(head=Cell(text=shown.title), cells=tuple(Cell(text=text) for text in texts))


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
    verdict = f": {delta.verdict.value}" if small and delta is not None and metric == TRAINING_RATE else ""
    return Cell(text=text, small=f"{small}{verdict}", value=value)


def _small(delta: Delta | None, shown: FigureFormat, figure: str | None = None) -> str:
    """Return a difference, and that it is one of what had settled where the figure it stands below is not."""
    if delta is None or delta.difference is None:
        return ""
    change = _moved(shown, delta) if delta.difference else "no change"
    settled = figure not in {None, shown.format_value(delta.after)}
    other = " settled" if delta.difference and delta.window == "steady" and settled else ""
    between = format_interval(delta, shown)
    return f"{change}{other} ({between})" if between else f"{change}{other}"
