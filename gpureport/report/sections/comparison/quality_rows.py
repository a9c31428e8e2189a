"""How well steps trained, as cells and rows of the tables that compare them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gpureport.comparison.chain import Comparison, StepPair
from gpureport.comparison.quality import (
    QualityChange,
    QualityFigure,
    compare_quality,
    measure_step_quality,
)
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.shapes import Cell, Fact, Row, Table
from gpureport.report.wording import display
from gpureport.report.wording.differences.comparison_reasons import describe_no_work
from gpureport.report.wording.display import shorten_middle

_NAME = 28
"""Most characters of the name of a metric."""
_WHOLE = 100
"""Work from which it is written without decimals."""
_NOTE = (
    "A metric at the end is the mean of the last tenth of its values, and of at least two or three of them; runs that "
    "did not do as much work are compared at the last work common to all."
)
_DIVERGED = "not a number"


def shown_name(name: str) -> str:
    """Return the name of a metric as it is printed."""
    return shorten_middle(display.clean(name), _NAME)


def format_values(values: Sequence[float | None]) -> list[str]:
    """Return values that stand together, with as few decimals as three digits of each take."""
    texts = [display.or_not_recorded(value, display.number) for value in values]
    while (decimal := [text for text in texts if "." in text]) and all(text.endswith("0") for text in decimal):
        texts = [text.removesuffix("0").removesuffix(".") if "." in text else text for text in texts]
    return texts


def format_pair(change: QualityChange) -> tuple[str, str]:
    """Return the values of both steps at equal work, else at the end."""
    before, after = format_values(change.values)
    return (_or_diverged(change.before, before), _or_diverged(change.after, after))


def _or_diverged(figure: QualityFigure, text: str) -> str:
    return _DIVERGED if figure.final is None and figure.diverged else text


def format_difference(change: QualityChange) -> str:
    """Return how far final values are apart, with a sign; empty where one is missing."""
    return "" if change.difference is None else display.signed(change.difference) if change.difference else "none"


def format_interval(change: QualityChange) -> str:
    """Return both ends of the interval of a difference; empty without one."""
    if change.interval is None:
        return ""
    low, high = map(display.signed, change.interval)
    return "" if low == high else f"{low} to {high}"


def choose_quality_metric(comparison: Comparison) -> str | None:
    """Return the metric that a table of steps shows: the first that counts in any link; None without any."""
    first, last = comparison.steps[0], comparison.steps[-1]
    pairs = [(first, last), *pairwise(comparison.steps)]
    changes = (compare_quality(*pair, comparison.goals) for pair in pairs)
    return next((change.name for found in changes for change in found if change.leading), None)


def add_quality_column(table: Table, comparison: Comparison, *, place: int) -> Table:
    """Return a table of steps with the metric that counts most at the end of each; as it is where none was recorded.

    Args:
        table: one row a step.
        comparison: the steps.
        place: of the column, behind that of the steps.
    """
    name = choose_quality_metric(comparison)
    if name is None:
        return table
    figures = [measure_step_quality(step, name, comparison.goals) for step in comparison.steps]
    changes = [_find_change(comparison, number, name) for number in range(len(comparison.steps))]
    texts = format_values([figure.final for figure in figures])
    cells = [
        Cell(
            text=_or_diverged(figure, text),
            small=_describe_change(change),
            value=figure.final,
            flagged=change is not None and change.verdict is Verdict.WORSE,
        )
        for figure, text, change in zip(figures, texts, changes, strict=True)
    ]
    title = f"{shown_name(name)} at the end"
    return replace(
        table,
        columns=(*table.columns[: place + 1], title, *table.columns[place + 1 :]),
        numeric=(*table.numeric[:place], True, *table.numeric[place:]),
        rows=tuple(
            replace(row, cells=(*row.cells[:place], cell, *row.cells[place:]))
            for row, cell in zip(table.rows, cells, strict=True)
        ),
    )


def _find_change(comparison: Comparison, number: int, name: str) -> QualityChange | None:
    """Return the change of a metric since the step before; None of the first."""
    if number == 0:
        return None
    base, step = comparison.steps[number - 1 : number + 1]
    return next((each for each in compare_quality(base, step, comparison.goals) if each.name == name), None)


def _describe_change(change: QualityChange | None) -> str:
    if change is None or change.verdict is Verdict.NOT_ENOUGH_DATA:
        return ""
    difference = f"{format_difference(change)}{name_work(change)}"
    return ", ".join(filter(None, (difference, change.verdict.value)))


def add_difference_rows(table: Table, changes: Sequence[QualityChange]) -> Table:
    """Return the table of differences with a row for each metric."""
    rows = [
        _row(change, (*format_pair(change), format_difference(change), format_interval(change))) for change in changes
    ]
    return _extended(table, rows)


def add_verdict_rows(table: Table, changes: Sequence[QualityChange], since_first: Sequence[QualityChange]) -> Table:
    """Return the table of verdicts with a row for each metric.

    Args:
        table: of the figures of two steps.
        changes: from one of them to the other.
        since_first: of the later one since the first step; empty where that is the earlier one.
    """
    since = {change.name: change for change in since_first}
    several = len(table.columns) > 5  # noqa: PLR2004 - without the columns since the first step
    rows = []
    for change in changes:
        first = [*_verdict_cells(since.get(change.name))] if several else []
        values = (Cell(text=text) for text in format_pair(change))
        rows.append(Row(head=Cell(text=_head(change)), cells=(*values, *_verdict_cells(change), *first)))
    return _extended(table, rows)


def _verdict_cells(change: QualityChange | None) -> tuple[Cell, Cell]:
    if change is None:
        return Cell(text=""), Cell(text="")
    moved = Cell(text=format_difference(change), small=format_interval(change), value=change.difference)
    return moved, Cell(text=change.verdict.value, flagged=change.verdict is Verdict.WORSE)


def _head(change: QualityChange) -> str:
    return f"{shown_name(change.name)}{name_work(change) or ' at the end'}"


def name_work(change: QualityChange) -> str:
    """Return at which work both steps are compared, such as ` at 1,341 steps`; empty where that is their end."""
    if change.at_end or change.work is None:
        return ""
    shown = display.integer if change.work >= _WHOLE else display.number
    return f" at {shown(change.work)} {change.work_unit}"


def _row(change: QualityChange, texts: Iterable[str]) -> Row:
    return Row(head=Cell(text=_head(change)), cells=tuple(Cell(text=text) for text in texts))


def _extended(table: Table, rows: Sequence[Row]) -> Table:
    return replace(table, rows=(*table.rows, *rows), notes=(*table.notes, _NOTE)) if rows else table


def build_verdict_facts(changes: Sequence[QualityChange]) -> Iterator[Fact]:
    """Yield the verdict on each metric."""
    for change in changes:
        verdict = f"{change.verdict.value.capitalize()}."
        yield Fact(name=_head(change), text=" ".join(filter(None, (verdict, describe_no_work(change.reason)))))


def build_quality_facts(link: StepPair) -> Iterator[Fact]:
    """Yield each metric at the end and at best, in both steps."""
    for change in link.quality:
        before, after = format_pair(change)
        parts = [
            f"{before}, then {after}{name_work(change)}",
            _describe_best(change),
            _describe_failed(change),
            *_describe_diverged(change),
        ]
        yield Fact(name=shown_name(change.name), text="; ".join(filter(None, parts)))


def _describe_best(change: QualityChange) -> str:
    sides = change.before, change.after
    if any(side.best is None for side in sides):
        return ""
    values = format_values([side.best for side in sides])
    whens = ("" if side.best_seconds is None else f" after {display.duration(side.best_seconds)}" for side in sides)
    return "best " + ", then ".join(f"{value}{when}" for value, when in zip(values, whens, strict=True))


def _describe_failed(change: QualityChange) -> str:
    """Return the runs of the later step that went wrong, where not all did; empty without any."""
    if not 0 < len(change.failed) < change.after.runs:
        return ""
    values = display.join_words(format_values(change.failed))
    return f"{display.clean(change.step)}: {len(change.failed)} of {change.after.runs} runs ended at {values}"


def _describe_diverged(change: QualityChange) -> Iterator[str]:
    for label, side in ((change.base, change.before), (change.step, change.after)):
        if side.diverged:
            runs = f"{side.diverged} of {display.plural(side.runs, 'run')}"
            yield f"{display.clean(label)}: {runs} diverged, with a last value that is not a number"


def warn_of_quality(comparison: Comparison) -> str:
    """Return which quality fell from the first step to the last, else in any step; empty where none did.

    The words are a clause that begins in lower case and ends without a full stop.
    """
    step, fallen = _find_falls(comparison)
    where = f" in {display.clean(step)}" if step else ""
    return f"quality fell{where}: {_list_falls(fallen)}" if fallen else ""


def describe_quality_fall(comparison: Comparison) -> str:
    """Return the first quality that fell as a clause for a headline: `val_accuracy fell from 0.79 to 0.61`.

    Empty where none did.
    """
    step, fallen = _find_falls(comparison)
    if not fallen:
        return ""
    change, where = fallen[0], f" in {display.clean(step)}" if step else ""
    text = _describe_fall(change)
    name = shown_name(change.name)
    if text.startswith(f"{name} from "):
        verb = "rose" if (change.difference or 0.0) > 0 else "fell"
        text = f"{name} {verb} {text.removeprefix(f'{name} ')}"
    elif text.startswith(f"{name} to "):
        text = f"{name} ended at {text.removeprefix(f'{name} to ')}"
    return f"{text}{where}"


def has_several_falls(comparison: Comparison) -> bool:
    """Return whether more than one quality fell."""
    return len(_find_falls(comparison)[1]) > 1


def is_fall_unconfirmed(comparison: Comparison) -> bool:
    """Return whether a repetition has yet to confirm that quality fell."""
    _, fallen = _find_falls(comparison)
    return any(change.verdict is Verdict.UNCONFIRMED for change in fallen[:2])


def _find_falls(comparison: Comparison) -> tuple[str, list[QualityChange]]:
    """Return the metrics that fell from the first step to the last, else those of the first step in which any did.

    The label is that of such a step; it is empty where metrics fell from the first step to the last.
    """
    first, last = comparison.steps[0], comparison.steps[-1]
    if first is last:
        return "", []
    fallen = _fallen(compare_quality(first, last, comparison.goals))
    if fallen or len(comparison.steps) == 2:  # noqa: PLR2004 - of two steps that is all
        return "", fallen
    for base, step in pairwise(comparison.steps):
        if fallen := _fallen(compare_quality(base, step, comparison.goals)):
            return step.label, fallen
    return "", []


def _fallen(changes: Sequence[QualityChange]) -> list[QualityChange]:
    return [change for change in changes if change.leading and change.fell]


def _list_falls(changes: Sequence[QualityChange]) -> str:
    """Return at most two falls, and that a repetition has yet to confirm them where that is so."""
    texts = [_describe_fall(change) for change in changes[:2]]
    unsure = any(change.verdict is Verdict.UNCONFIRMED for change in changes[:2])
    return f"{display.join_words(texts)}{' (unconfirmed: one run each)' if unsure else ''}"


def _describe_fall(change: QualityChange) -> str:
    name = shown_name(change.name)
    if change.difference is None or change.after.diverged > change.before.diverged:
        runs = f" in {change.after.diverged} of {change.after.runs} runs" if change.after.runs > 1 else ""
        return f"{name} diverged{runs}"
    if change.failed and change.verdict not in {Verdict.WORSE, Verdict.UNCONFIRMED}:
        return f"{name} to {format_values([change.failed[0]])[0]} in {len(change.failed)} of {change.after.runs} runs"
    before, after = format_pair(change)
    return f"{name} from {before} to {after}{name_work(change)}"
