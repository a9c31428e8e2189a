"""The headline of one run, or of the repetitions of one step."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpureport.analysis.results import Analysis
from gpureport.analysis.signals.load import NOTABLE
from gpureport.comparison import gains
from gpureport.comparison.steps import Step
from gpureport.report.model.head import VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.found import Found
from gpureport.report.sections.head import low_use_sentences
from gpureport.report.sections.head.headlines import finding_headlines
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss, name_loss
from gpureport.report.wording import display

_LOST = 0.1
"""Share of the GPU time lost above which a run is not called healthy."""


@dataclass(frozen=True, slots=True)
class RunHeadline:
    """A headline on a step by itself: what it says, in words and in one word, and the findings that it tells of."""

    sentence: str
    code: VerdictCode
    told: Found | None = None


def describe_run(step: Step, runs: Sequence[ReportRun], findings: Findings) -> RunHeadline:
    """Return the headline of a step by itself."""
    reason = explain_unknown_loss(step, findings)
    if reason is not None and reason.code is not VerdictCode.NO_UTILISATION:
        return RunHeadline(*reason)
    worst = finding_headlines.find_worst(runs)
    if worst is not None:
        return RunHeadline(finding_headlines.describe_finding(worst), VerdictCode.FINDING, worst)
    return RunHeadline(*(reason or _describe_without_finding(step.analyses, findings)))


def _describe_without_finding(analyses: Sequence[Analysis], findings: Findings) -> tuple[str, VerdictCode]:
    """Return the headline of a run in which nothing was found that calls for attention."""
    held = gpu_time.job_gpu_seconds(analyses)
    if not held or (not findings.judged and findings.missing):
        sentence = "Nothing could be assessed with this data."
        if findings.is_mean and held:
            sentence = f"{low_use_sentences.describe_computing(analyses)} in the mean; no check is made of a mean."
        return sentence, VerdictCode.NOTHING_ASSESSED
    if low_use_sentences.is_low_mid_job(analyses):
        computing = low_use_sentences.describe_computing_mid_job(analyses)
        return f"{computing}; the log doesn't show why.", VerdictCode.CAUSE_UNKNOWN
    if sum(gpu_time.lost_seconds_by_class(analyses).values()) / held >= _LOST:
        return _describe_lost_share(analyses, held), VerdictCode.LOST_TIME
    unseen = gpu_time.unobserved_ratio(analyses)
    if unseen > gains.UNSEEN_RATIO:
        sentence = f"No problems found, but {display.percent(unseen)} of the GPU time holds no utilisation."
        return sentence, VerdictCode.PARTLY_OBSERVED
    if findings.missing > findings.judged:
        checks = display.plural(findings.judged, "check")
        sentence = f"No problems found in {checks}; {findings.missing} more could not be assessed."
        return sentence, VerdictCode.FEW_CHECKS
    pauses = gpu_time.short_pauses_ratio(analyses)
    computing = display.lower_first(low_use_sentences.describe_computing(analyses))
    return (
        (f"No problems found; short pauses take {display.percent(pauses)} of the time.", VerdictCode.SHORT_PAUSES)
        if pauses >= NOTABLE
        else (f"Healthy: {computing}; no problems found.", VerdictCode.HEALTHY)
    )


def _describe_lost_share(analyses: Sequence[Analysis], held: float) -> str:
    """Return how much of the GPU time was lost, and what took most of it."""
    lost = gpu_time.lost_seconds_by_class(analyses)
    name, seconds = next(iter(lost.items()))
    loss = name_loss(name, analyses)
    part = f": {loss} {display.percent(seconds / held)}" if len(lost) > 1 else f", all of it {loss}"
    return f"{display.percent(sum(lost.values()) / held)} of the GPU time was lost{part}."
