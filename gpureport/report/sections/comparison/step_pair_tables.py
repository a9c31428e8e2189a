"""The figures of two neighbouring steps: before, after, the difference, and what may be said of it."""

from collections.abc import Sequence

from gpureport.comparison.evidence import WholeRecordingFigure
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Delta
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.sections.comparison.figure_formats import (
    PAIR_FIGURES,
    WorkUnits,
    format_difference,
    join_notes,
    list_pair_reasons,
    note_prices,
    select_formats,
)
from gpureport.report.wording.differences.comparison_reasons import list_reasons
from gpureport.report.wording.differences.difference_wording import FigureFormat, describe_verdict, format_interval
from gpureport.report.wording.differences.relative_changes import format_relative_difference


def pair_formats_with_deltas(
    base: Step, step: Step, deltas: Sequence[Delta], *, units: WorkUnits
) -> list[tuple[FigureFormat, Delta]]:
    """Return the figures of two steps in the order shown; of the clocks those that were recorded.

    Args:
        base: the earlier step.
        step: the later one.
        deltas: their differences.
        units: those of the report.
    """
    found = {delta.metric: delta for delta in deltas}
    recorded = {
        metric for metric in PAIR_FIGURES if found[metric].whole.difference is not None or found[metric].interval
    }
    return [(each, found[metric]) for metric, each in select_formats((base, step), recorded, units=units).items()]


def build_difference_table(figures: Sequence[tuple[FigureFormat, Delta]], steps: Sequence[Step] = ()) -> Table:
    """Return one row a figure: before, after, and how far apart, of what had settled where it had.

    Args:
        figures: of two neighbouring steps.
        steps: both of them, to say when the prices of a cost held.
    """
    return Table(
        columns=("", "Before", "After", "Difference", "95% interval"),
        numeric=(True,) * 4,
        rows=tuple(_difference(each, delta) for each, delta in figures),
        notes=join_notes(
            "Start-up and what had not settled are left out of shares, power and clocks."
            if any(delta.window == "steady" for _, delta in figures)
            else "",
            note_prices(steps, [delta.metric for _, delta in figures]),
        ),
    )


def build_verdict_table(
    figures: Sequence[tuple[FigureFormat, Delta]], first: Sequence[Delta] = (), steps: Sequence[Step] = ()
) -> Table:
    """Return one row a figure: before, after, what changed and what may be said of it.

    Args:
        figures: of two neighbouring steps.
        first: the later of them against the first step; empty where that is the earlier one.
        steps: both neighbours, as `build_difference_table` takes them.
    """
    since = {delta.metric: delta for delta in first}
    heads = ("Since first", "Verdict since first") if since else ()
    reasons = [
        reason
        for shown, delta in figures
        for reason in list_pair_reasons(
            shown.noun, delta, since.get(delta.metric), f"{shown.noun} since the first step"
        )
    ]
    return Table(
        columns=("", "Before", "After", "Difference", "Verdict", *heads),
        numeric=(True, True, True, False, *((True, False) if since else ())),
        rows=tuple(_effect(shown, delta, since.get(delta.metric)) for shown, delta in figures),
        notes=join_notes(*build_difference_table(figures, steps).notes, list_reasons(reasons)),
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
    change = Cell(text=format_difference(shown, delta), small=format_interval(delta, shown), value=delta.difference)
    return change, Cell(text=describe_verdict(delta))


def _difference(shown: FigureFormat, delta: Delta) -> Row:
    texts = [*_both(shown, delta), format_interval(delta, shown)]
    return Row(head=Cell(text=shown.for_delta(delta).title), cells=tuple(Cell(text=text) for text in texts))


def _both(shown: FigureFormat, plain: Delta | WholeRecordingFigure) -> list[str]:
    return [*shown.format_pair(plain.before, plain.after), format_difference(shown, plain)]


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
    relative = "" if plain.difference is None else format_relative_difference(plain.difference, plain.before)
    texts = [*_both(shown, plain), relative]
    return Row(head=Cell(text=shown.title), cells=tuple(Cell(text=text) for text in texts))
