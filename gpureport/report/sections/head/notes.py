"""What else is worth knowing with a result, in a fold, beyond headline and lead."""

from collections.abc import Iterator, Sequence

from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import PER_WORK
from gpureport.comparison.study import Study
from gpureport.report.model.head import VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.sections.head import (
    excluded_data,
    job_sentences,
    low_use_sentences,
    money_sentences,
    recording_doubts,
)
from gpureport.report.sections.head.loss_sentence import Findings, describe_loss
from gpureport.report.sections.steps import headline, tables
from gpureport.report.wording import display

NO_WORK_GIVEN = "Pass the work done with --work N:UNIT; without it a faster run can look worse."


def write_notes(  # noqa: PLR0913 - what notes depend on, each by name
    comparison: Comparison,
    findings: Findings,
    study: Study | None,
    lead: Sequence[str],
    repetitions: str,
    *,
    code: VerdictCode,
) -> Iterator[str]:
    """Yield the notes of a report.

    Args:
        comparison: the steps.
        findings: what is known of the findings of the last step.
        study: the groups; None where the steps are a chain.
        lead: the sentences above, none of which is said again.
        repetitions: how to give runs as repetitions, where they look like it.
        code: of the headline; the lead below some says how many checks were assessed.
    """
    last = comparison.steps[-1]
    several = len(comparison.steps) > 1
    place = f"{display.clean(last.label)}, the last group" if study else "the last step"
    if several and not study:
        yield from headline.list_other_changes(comparison)
    yield from filter(None, (tables.describe_left_out_runs(comparison), tables.describe_allowance(comparison)))
    if several:
        yield from filter(None, (money_sentences.describe_start_up_cost(comparison),))
        yield from filter(None, (recording_doubts.describe_recording_order(comparison.steps),))
    yield from job_sentences.sentences(last.analyses)
    if not findings.too_short:
        yield from _describe_use(comparison, f"in {place}" if several else "")
    runs = [analysis.run for step in comparison.steps for analysis in step.analyses]
    yield from (line for line in excluded_data.rejections(runs) if line not in lead)
    if repetitions and repetitions not in lead:
        yield repetitions
    known = comparison.primary == PER_WORK or all(run.work for run in runs)
    if not findings.too_short and not known:
        yield NO_WORK_GIVEN
    if findings.missing and code not in {VerdictCode.HEALTHY, VerdictCode.SHORT_PAUSES}:
        yield f"{findings.missing} of {findings.judged + findings.missing} checks not assessed."


def _describe_use(comparison: Comparison, where: str) -> Iterator[str]:
    """Yield how the GPUs of the last step were used, where that is worth a word."""
    final = comparison.steps[-1].analyses
    lost = describe_loss(final)
    if where and lost:
        yield f"{where[:1].upper()}{where[1:]}: {display.lower_first(lost)}"
    yield from filter(None, (low_use_sentences.often_low_sentence(final, where=where),))
    if low_use_sentences.is_low(final):
        yield low_use_sentences.levels_sentence(final)
    yield from excluded_data.describe_idle_without_finding(final)
    unseen = gpu_time.unobserved_ratio(final)
    # a loss within all the time says it already
    is_said = lost and unseen <= gains.MOST_UNSEEN_RATIO
    if gains.UNSEEN_RATIO < unseen < 1 - gains.NEGLIGIBLE_RATIO and not is_said:
        yield f"{display.percent(unseen)} of the GPU time holds no utilisation, so nothing can be said about it."
