"""The result in one sentence and four figures."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from gpureport.comparison.steps.step_figures import (
    COST_PER_WORK,
    PER_WORK,
    SHORTEST_REPETITION_SECONDS,
    TRAINING_RATE,
    WORK_RATE,
    recorded_seconds,
)
from gpureport.comparison.steps.steps import Comparison, Delta, Step, Verdict
from gpureport.comparison.study.study import Study
from gpureport.recording import Run
from gpureport.report.model.report_content import Verdict as Result
from gpureport.report.runs import gpu_time
from gpureport.report.sections.comparison import figure_formats, quality_rows, repetition_hint, step_table
from gpureport.report.sections.findings import loss_wording
from gpureport.report.sections.gpus import spending
from gpureport.report.sections.head import excluded_data, job_sentences, low_use_sentences
from gpureport.report.sections.head.loss_sentence import Findings, describe_loss
from gpureport.report.sections.study.study_headline import describe_study
from gpureport.report.wording import difference_wording, display, numbered_labels
from gpureport.report.wording.difference_wording import describe_verdict

_UNSEEN = 0.05
"""Share of the GPU time without utilisation from which the verdict says so."""

NO_THROUGHPUT = (
    "The work done is not known, and shares alone can mislead: a run that got faster can show a larger idle share. "
    "Give the work done with --work N:UNIT."
)


def build_verdict(comparison: Comparison, findings: Findings, study: Study | None = None) -> Result:
    """Return the sentence about the last step, and about the way there where there are several.

    Args:
        comparison: the steps.
        findings: those of the last step.
        study: the groups, of which the sentence names the best; None where the steps are a chain.
    """
    last = comparison.steps[-1]
    several = len(comparison.steps) > 1
    too_short = [step for step in comparison.steps if recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS]
    apart = several and not {comparison.steps[0].label, last.label}.isdisjoint(step.label for step in too_short)
    if several and not apart:
        sentence, aside = describe_outcome(comparison, study)
    else:
        sentence, aside = add_quality_warning("", comparison), ()
    lost = describe_loss(last, findings)
    # the figures are of one step of several, and who reads the head alone must know it
    place = f"{display.clean(last.label)}, the last group" if study else "the last step"
    lost = f"In {place}: {lost}" if several else f"{lost[:1].upper()}{lost[1:]}"
    details = [*aside, lost] if sentence else []
    if not sentence:
        sentence = lost
    if apart:
        steps = numbered_labels.list_labels([display.clean(step.label) for step in too_short])
        details.append(f"The steps were not compared: less than 20{display.GAP}s was recorded of {steps}.")
    details.extend(_details(comparison, findings, place))
    return Result(sentence=sentence, details=tuple(details))


def describe_outcome(comparison: Comparison, study: Study | None) -> tuple[str, tuple[str, ...]]:
    """Return the best group, or what may be said of first and last step, and what to know beside it."""
    sentence, aside = describe_study(study) if study else ("", ())
    if not sentence:
        sentence, aside = describe_change(comparison)
        sentence = add_quality_warning(sentence, comparison)
    return sentence, aside


def describe_change(comparison: Comparison) -> tuple[str, tuple[str, ...]]:
    """Return what may be said of first and last step, and what to know beside it; empty where nothing may."""
    first, last = comparison.steps[0], comparison.steps[-1]
    judged = comparison.judged(first.label, last.label)
    if judged is None or judged.difference is None:
        return "", ()
    others = [delta for delta in comparison.between(first.label, last.label) if not _same(delta, judged)]
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
    change = display.relative(delta.difference, delta.before)
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


def _same(other: Delta, judged: Delta) -> bool:
    """Return whether a figure is the one judged, or says the same of the same work; cost where prices are no other."""
    said = {WORK_RATE, TRAINING_RATE, "gpu_seconds", "energy_joules"} if judged.metric == PER_WORK else set()
    if other.metric == COST_PER_WORK and other.verdict is judged.verdict:
        return judged.metric == PER_WORK
    return other.metric in {judged.metric, *said}


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
    told = {Verdict.WORSE, Verdict.BETTER, Verdict.DIFFERS}
    currency, in_seconds = spending.currency(last.analyses), figure_formats.uses_seconds(comparison)
    named = [
        (delta, figure_formats.choose_format(delta.metric, last.work_unit, currency, in_seconds=in_seconds))
        for delta in others
        if (delta.verdict in told and not _repeats(delta, others))
        or (delta.metric == "idle_ratio" and delta.difference is not None)
    ]
    moved = [_moved(delta, shown) for delta, shown in named if not _too_little(delta, shown)]
    if moved:
        yield f"Beside it: {'; '.join(moved)}."
    if len(comparison.steps) > 2:  # noqa: PLR2004 - of two steps the sentence says it
        yield from _describe_links(comparison)


def _repeats(delta: Delta, others: Sequence[Delta]) -> bool:
    """Return whether a figure is the graphics clock and moved as the SM clock beside it did."""
    if delta.metric != "gpu_graphics_clock_hertz":
        return False
    clocks = [other for other in others if other.metric == "gpu_sm_clock_hertz" and other.verdict is delta.verdict]
    shown = figure_formats.choose_format(delta.metric, None)
    return any(
        shown.format_pair(each.before, each.after) == shown.format_pair(delta.before, delta.after) for each in clocks
    )


def _too_little(delta: Delta, shown: difference_wording.FigureFormat) -> bool:
    """Return whether a figure differs by less than is printed of it, which the table tells and nobody misses here."""
    before, after = shown.format_pair(delta.before, delta.after)
    return delta.verdict is Verdict.DIFFERS and before == after


def _moved(delta: Delta, shown: difference_wording.FigureFormat) -> str:
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
    told = [(describe_verdict(link), display.clean(link.step)) for link in links if link]
    return "; ".join(_alike(verdict, [step for _, step in group]) for verdict, group in groupby(told, itemgetter(0)))


def _alike(verdict: str, steps: Sequence[str]) -> str:
    """Return steps in a row of one verdict, many of them with the verdict said once."""
    many = len(steps) > 2  # noqa: PLR2004 - two are as short each by itself
    return (
        f"{numbered_labels.list_labels(steps)}, {verdict}"
        if many
        else "; ".join(f"{step}, {verdict}" for step in steps)
    )


def _details(comparison: Comparison, findings: Findings, place: str) -> Iterator[str]:
    final = comparison.steps[-1].analyses
    unseen = gpu_time.unobserved_ratio(final)
    yield from job_sentences.sentences(final)
    if not findings.too_short:
        where = f"in {place}" if len(comparison.steps) > 1 else ""
        yield from filter(None, (low_use_sentences.often_low_sentence(final, where=where),))
    if not findings.too_short and low_use_sentences.is_low(final):
        yield low_use_sentences.levels_sentence(final)
    yield from excluded_data.rejections([analysis.run for step in comparison.steps for analysis in step.analyses])
    if findings.open and not findings.too_short:
        card = findings.open[0]
        yield f"Look first at {card.id}: {card.title}, {card.lost}."
    if not findings.too_short:
        yield from excluded_data.describe_idle_without_finding(final)
    if _UNSEEN < unseen < 1 - loss_wording.NOTHING and not findings.too_short:
        yield f"{display.percent(unseen)} of the GPU time holds no utilisation, so nothing can be said about it."
    yield from single_runs(comparison)
    known = comparison.primary == PER_WORK or all(
        analysis.run.work for step in comparison.steps for analysis in step.analyses
    )
    if not findings.too_short and not known:
        yield NO_THROUGHPUT
    if findings.missing:
        yield (
            f"{display.plural(findings.missing, 'kind')} could not be judged with this data: see what could not be "
            "judged, and what to record."
        )


def caution(comparison: Comparison) -> Iterator[str]:
    """Yield what to mind about the verdicts on a chain of steps."""
    yield from single_runs(comparison)
    yield from filter(None, (step_table.describe_allowance(comparison),))


def _runs(step: Step) -> Iterator[Run]:
    return (analysis.run for analysis in step.analyses)


def single_runs(comparison: Comparison) -> Iterator[str]:
    """Yield what single runs cannot tell of steps."""
    if len(comparison.steps) > 1 and all(len(step.runs) == 1 for step in comparison.steps):
        yield "Each step is a single run: a repeat may give a different result."
        yield from filter(
            None, (repetition_hint.suggest_by_folder([run for step in comparison.steps for run in _runs(step)]),)
        )
