"""What may be said of the first and the last step, or of the best group: a sentence and its details."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    PER_WORK,
    TRAINING_RATE,
    WORK_RATE,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Verdict
from gpureport.comparison.study.study import Study
from gpureport.report.sections.comparison import figure_formats, quality_rows
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.study.study_headline import describe_study
from gpureport.report.wording import difference_wording, display, numbered_labels
from gpureport.report.wording.difference_wording import describe_verdict
from gpureport.report.wording.relative_changes import format_relative_difference


def describe_outcome(comparison: Comparison, study: Study | None) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on the best group, or else on the first and the last step, and its details."""
    sentence, details = describe_study(study) if study else ("", ())
    if not sentence:
        sentence, details = describe_change(comparison)
        sentence = add_quality_warning(sentence, comparison)
    return sentence, details


def describe_change(comparison: Comparison) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on the first and the last step, and its details; empty where nothing may be said."""
    first, last = comparison.steps[0], comparison.steps[-1]
    judged = comparison.judged(first.label, last.label)
    if judged is None or judged.difference is None:
        return "", ()
    others = [delta for delta in comparison.between(first.label, last.label) if not _says_the_same(delta, judged)]
    in_seconds = figure_formats.uses_seconds(comparison)
    sentence = difference_wording.difference_sentence(
        judged, figure_formats.choose_format(judged.metric, last.work_unit, in_seconds=in_seconds)
    )
    other_verdicts = " ".join(_list_other_verdicts(others, last.work_unit, in_seconds=in_seconds))
    lines = (*_describe_training(comparison), *_describe_other_figures(others, comparison))
    return f"{sentence} {other_verdicts}".rstrip(), lines


def _describe_training(comparison: Comparison) -> Iterator[str]:
    """Yield how training alone changed between first and last step, where that is known."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged_training(first.label, last.label)
    if delta is None or delta.difference is None or not delta.before:
        return
    shown = figure_formats.choose_format(TRAINING_RATE, last.work_unit)
    before, after = shown.format_pair(delta.before, delta.after)
    unit = display.clean(last.work_unit or "work")
    change = format_relative_difference(delta.difference, delta.before)
    moved = f" ({change})" if change else ""
    verdict = describe_verdict(delta)
    yield f"Training alone: from {before} to {after} {unit} a second{moved}: {verdict}."


def add_quality_warning(sentence: str, comparison: Comparison) -> str:
    """Return a sentence on the change with the quality that fell in its first part, which headlines show."""
    warning = quality_rows.warn_of_quality(comparison)
    if not warning:
        return sentence
    if not sentence:
        return f"{warning[:1].upper()}{warning[1:]}."
    first, stop, rest = sentence.partition(". ")
    return f"{first.removesuffix('.')}; {warning}.{' ' if stop else ''}{rest}"


def _says_the_same(other: Delta, judged: Delta) -> bool:
    """Return whether a figure is the one judged, or says the same of the same work; cost where prices are no other."""
    covered = {WORK_RATE, TRAINING_RATE, "gpu_seconds", "energy_joules"} if judged.metric == PER_WORK else set()
    if other.metric == COST_PER_WORK and other.verdict is judged.verdict:
        return judged.metric == PER_WORK
    return other.metric in {judged.metric, *covered}


def _list_other_verdicts(others: Sequence[Delta], unit: str | None, *, in_seconds: bool) -> Iterator[str]:
    """Yield the names of other figures that repetitions show to be worse or better."""
    for verdict in (Verdict.WORSE, Verdict.BETTER):
        judged = [delta.metric for delta in others if delta.verdict is verdict]
        names = [figure_formats.choose_format(metric, unit, in_seconds=in_seconds).noun for metric in judged]
        if names:
            yield f"Besides, {verdict.value}: {display.join_words(names)}."


def _describe_other_figures(others: Sequence[Delta], comparison: Comparison) -> Iterator[str]:
    """Yield how other figures moved, and what each step did."""
    last = comparison.steps[-1]
    confirmed = {Verdict.WORSE, Verdict.BETTER, Verdict.DIFFERS}
    currency, in_seconds = spending.currency(last.analyses), figure_formats.uses_seconds(comparison)
    named = [
        (delta, figure_formats.choose_format(delta.metric, last.work_unit, currency, in_seconds=in_seconds))
        for delta in others
        if (delta.verdict in confirmed and not _repeats_sm_clock(delta, others))
        or (delta.metric == "idle_ratio" and delta.difference is not None)
    ]
    moved = [_describe_move(delta, shown) for delta, shown in named if not _prints_the_same(delta, shown)]
    if moved:
        yield f"Beside it: {'; '.join(moved)}."
    if len(comparison.steps) > 2:  # noqa: PLR2004 - of two steps the sentence says it
        yield from _describe_links(comparison)


def _repeats_sm_clock(delta: Delta, others: Sequence[Delta]) -> bool:
    """Return whether a figure is the graphics clock and moved as the SM clock beside it did."""
    if delta.metric != "gpu_graphics_clock_hertz":
        return False
    clocks = [other for other in others if other.metric == "gpu_sm_clock_hertz" and other.verdict is delta.verdict]
    shown = figure_formats.choose_format(delta.metric, None)
    return any(
        shown.format_pair(each.before, each.after) == shown.format_pair(delta.before, delta.after) for each in clocks
    )


def _prints_the_same(delta: Delta, shown: difference_wording.FigureFormat) -> bool:
    """Return whether a figure differs by less than is printed of it, which the table tells and nobody misses here."""
    before, after = shown.format_pair(delta.before, delta.after)
    return delta.verdict is Verdict.DIFFERS and before == after


def _describe_move(delta: Delta, shown: difference_wording.FigureFormat) -> str:
    before, after = shown.format_pair(delta.before, delta.after)
    moved = f"still {after}" if before == after else f"from {before} to {after}"
    # the tile and the table beside it are of whole recordings
    settled = " once settled" if delta.window == "steady" else ""
    return f"{shown.noun}{settled} {moved} ({describe_verdict(delta)})"


def _describe_links(comparison: Comparison) -> Iterator[str]:
    """Yield the verdict on each step against the one before; on training alone apart where it shows something else."""
    pairs = [(base.label, step.label) for base, step in pairwise(comparison.steps)]
    whole = [comparison.judged(*pair) for pair in pairs]
    training = [comparison.judged_training(*pair) for pair in pairs]
    shown = {Verdict.BETTER, Verdict.WORSE}
    apart = comparison.primary == PER_WORK and any(
        job and rate and job.verdict is not rate.verdict and shown & {job.verdict, rate.verdict}
        for job, rate in zip(whole, training, strict=True)
    )
    yield f"Step by step{', whole job' if apart else ''}: {_join_verdicts(whole)}."
    if apart:
        yield f"Step by step, training alone: {_join_verdicts(training)}."


def _join_verdicts(links: Iterable[Delta | None]) -> str:
    verdicts = [(describe_verdict(link), display.clean(link.step)) for link in links if link]
    return "; ".join(
        _join_steps(verdict, [step for _, step in group]) for verdict, group in groupby(verdicts, itemgetter(0))
    )


def _join_steps(verdict: str, steps: Sequence[str]) -> str:
    """Return steps in a row of one verdict, many of them with the verdict said once."""
    many = len(steps) > 2  # noqa: PLR2004 - two are as short each by itself
    return (
        f"{numbered_labels.list_labels(steps)}, {verdict}"
        if many
        else "; ".join(f"{step}, {verdict}" for step in steps)
    )
