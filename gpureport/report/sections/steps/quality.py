"""How well steps trained, as cells, rows and sentences."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpureport.comparison.chain import Comparison
from gpureport.comparison.quality import QualityChange, QualityFigure, compare_quality, measure_step_quality
from gpureport.comparison.verdict import Verdict
from gpureport.report.model.shapes import Cell, Fact
from gpureport.report.sections.steps.figures import Line
from gpureport.report.wording import display
from gpureport.report.wording.display import format_interval
from gpureport.report.wording.reasons import describe_no_work
from gpureport.report.wording.words import say

_WHOLE = 100
"""Work from which it is written without decimals."""


def name_metric(name: str) -> str:
    return display.shorten_middle(display.clean(name), 28)


def name_work(change: QualityChange) -> str:
    """Return at which work both steps are compared, such as ` at 1,341 steps`; empty where that is their end."""
    if change.at_end or change.work is None:
        return ""
    shown = display.integer if change.work >= _WHOLE else display.number
    return f" at {shown(change.work)} {change.work_unit}"


def format_values(values: Sequence[float | None]) -> list[str]:
    """Return values that stand together, with as few decimals as three digits of each take."""
    texts = [display.or_not_recorded(value, display.number) for value in values]
    while (decimal := [text for text in texts if "." in text]) and all(text.endswith("0") for text in decimal):
        texts = [text.removesuffix("0").removesuffix(".") if "." in text else text for text in texts]
    return texts


def format_finals(figures: Sequence[QualityFigure], values: Sequence[float | None]) -> list[str]:
    """Return values that stand together, or that the runs behind them diverged."""
    shown = zip(figures, format_values(values), strict=True)
    return ["not a number" if figure.final is None and figure.diverged else text for figure, text in shown]


def format_pair(change: QualityChange) -> list[str]:
    """Return the values of both steps at equal work, otherwise at the end."""
    return format_finals((change.before, change.after), change.values)


def _format_difference(change: QualityChange) -> tuple[str, str]:
    size = "" if change.difference is None else display.signed(change.difference) if change.difference else "none"
    return size, format_interval(change.interval, display.signed) if change.interval else ""


def choose_metric(comparison: Comparison) -> str | None:
    """Return the metric that a table of steps shows: the first that counts in any link; None without any."""
    pairs = [(comparison.steps[0], comparison.steps[-1]), *pairwise(comparison.steps)]
    changes = (compare_quality(*pair, comparison.goals) for pair in pairs)
    return next((change.name for found in changes for change in found if change.leading), None)


def list_cells(comparison: Comparison, name: str) -> Iterator[Cell]:
    """Yield a metric at the end of each step, with its change from the step before."""
    steps, goals = comparison.steps, comparison.goals
    figures = [measure_step_quality(step, name, goals) for step in steps]
    texts = format_finals(figures, [figure.final for figure in figures])
    for base, step, figure, text in zip((None, *steps), steps, figures, texts, strict=False):
        found = compare_quality(base, step, goals) if base else ()
        change, small = next((each for each in found if each.name == name), None), ""
        if change is not None and change.verdict is not Verdict.NOT_ENOUGH_DATA:
            small = display.join(f"{_format_difference(change)[0]}{name_work(change)}", change.verdict.value, by=", ")
        is_worse = change is not None and change.verdict is Verdict.WORSE
        yield Cell(text=text, small=small, value=figure.final, flagged=is_worse)


def list_lines(changes: Sequence[QualityChange]) -> Iterator[Line]:
    for change in changes:
        size, interval = _format_difference(change)
        before, after = format_pair(change)
        yield Line(
            metric=change.name,
            title=f"{name_metric(change.name)}{name_work(change) or ' at the end'}",
            before=before,
            after=after,
            change=Cell(text=size, small=interval, value=change.difference),
            verdict=Cell(text=change.verdict.value, flagged=change.verdict is Verdict.WORSE),
            why=describe_no_work(change.reason),
        )


def list_facts(changes: Sequence[QualityChange]) -> Iterator[Fact]:
    for change in changes:
        sides = change.before, change.after
        parts = [f"{', then '.join(format_pair(change))}{name_work(change)}"]
        if all(side.best is not None for side in sides):
            whens = ["" if side.best_seconds is None else display.duration(side.best_seconds) for side in sides]
            best = zip(format_values([side.best for side in sides]), whens, strict=True)
            parts.append(f"best {', then '.join(say('quality.best', value=value, when=when) for value, when in best)}")
        if 0 < len(change.failed) < change.after.runs:
            values = display.join_words(format_values(change.failed))
            step, n, runs = display.clean(change.step), len(change.failed), change.after.runs
            parts.append(say("quality.failed", step=step, n=n, runs=runs, values=values))
        for label, side in zip((change.base, change.step), sides, strict=True):
            if side.diverged:
                parts.append(say("quality.diverged", step=display.clean(label), n=side.diverged, runs=side.runs))
        yield Fact(name=name_metric(change.name), text="; ".join(parts))


def _find_falls(comparison: Comparison) -> tuple[str, list[QualityChange]]:
    """Return the metrics that fell from the first step to the last, otherwise those of the first step in which any did.

    The label is that of such a step; it is empty where metrics fell from the first step to the last.
    """
    first, last = comparison.steps[0], comparison.steps[-1]
    for base, step in [(first, last), *pairwise(comparison.steps)]:
        changes = () if base is step else compare_quality(base, step, comparison.goals)
        if fallen := [change for change in changes if change.leading and change.fell]:
            return "" if (base, step) == (first, last) else display.clean(step.label), fallen
    return "", []


def describe_fall(comparison: Comparison) -> str:
    """Return the first quality that fell as a clause for a headline: `val_accuracy fell from 0.79 to 0.61`.

    Empty where none did.
    """
    step, fallen = _find_falls(comparison)
    return f"{_describe_fall(fallen[0], in_full=True)}{step and f' in {step}'}" if fallen else ""


def warn_of_falls(comparison: Comparison) -> str:
    step, fallen = _find_falls(comparison)
    unsure = any(change.verdict is Verdict.UNCONFIRMED for change in fallen[:2])
    if not unsure and len(fallen) < 2:  # noqa: PLR2004 - the headline has the first
        return ""
    falls = display.join_words([_describe_fall(change) for change in fallen[:2]])
    return say("quality.fell", step=step, falls=falls, unsure=unsure)


def _describe_fall(change: QualityChange, *, in_full: bool = False) -> str:
    name, runs = name_metric(change.name), change.after.runs
    if change.difference is None or change.after.diverged > change.before.diverged:
        return say("quality.fall_diverged", name=name, n=change.after.diverged if runs > 1 else 0, runs=runs)
    if change.failed and change.verdict not in {Verdict.WORSE, Verdict.UNCONFIRMED}:
        (value,), n = format_values(change.failed[:1]), len(change.failed)
        return say("quality.fall_failed", name=name, full=in_full, value=value, n=n, runs=runs)
    before, after = format_pair(change)
    way = ("rose" if (change.difference or 0.0) > 0 else "fell") if in_full else ""
    return say("quality.fall", name=name, way=way, before=before, after=after, at=name_work(change))
