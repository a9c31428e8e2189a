"""The result in one sentence and four figures."""

from collections.abc import Iterator

from gpureport.comparison.steps.step_figures import (
    PER_WORK,
    SHORTEST_REPETITION_SECONDS,
    recorded_seconds,
)
from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.comparison.study.study import Study
from gpureport.recording import Run
from gpureport.report.model.head import Verdict as Result
from gpureport.report.runs import gpu_time
from gpureport.report.sections.comparison import repetition_hint, step_table
from gpureport.report.sections.findings import loss_wording
from gpureport.report.sections.head import excluded_data, job_sentences, low_use_sentences, outcome
from gpureport.report.sections.head.loss_sentence import Findings, describe_loss
from gpureport.report.wording import display, numbered_labels

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
    is_too_short = several and not {comparison.steps[0].label, last.label}.isdisjoint(step.label for step in too_short)
    if several and not is_too_short:
        sentence, outcome_details = outcome.describe_outcome(comparison, study)
    else:
        sentence, outcome_details = outcome.add_quality_warning("", comparison), ()
    lost = describe_loss(last, findings)
    # the figures are of one step of several, and who reads the head alone must know it
    place = f"{display.clean(last.label)}, the last group" if study else "the last step"
    lost = f"In {place}: {lost}" if several else f"{lost[:1].upper()}{lost[1:]}"
    details = [*outcome_details, lost] if sentence else []
    if not sentence:
        sentence = lost
    if is_too_short:
        steps = numbered_labels.list_labels([display.clean(step.label) for step in too_short])
        details.append(f"The steps were not compared: less than 20{display.GAP}s was recorded of {steps}.")
    details.extend(_details(comparison, findings, place))
    return Result(sentence=sentence, details=tuple(details))


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
