"""The headline of one run, or of the repetitions of one step."""

from collections.abc import Sequence

from gpureport.analysis.results import Analysis
from gpureport.comparison.steps.steps import Step
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head import low_use_sentences
from gpureport.report.sections.head.headlines import finding_headlines
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss, name_loss
from gpureport.report.wording import display

HEALTHY, OF_GPU_TIME, PAUSES = "Healthy", "of the GPU time was lost", "No problems found; short pauses take"
"""Beginning of the headline of a sound run, words of that on a loss without a finding, and beginning of that on pauses
that nothing explains."""
_UNSEEN, _LOST = 0.05, 0.1
"""Shares of the GPU time without utilisation, and of that lost, above which a run is not called healthy."""


def describe_run(step: Step, runs: Sequence[ReportRun], findings: Findings) -> tuple[str, FindingFacts | None]:
    """Return the headline of a step by itself, and the findings that it tells of; None where it tells of none."""
    reason = explain_unknown_loss(step, findings)
    is_unseen = reason and not findings.too_short and any(analysis.run.gpus for analysis in step.analyses)
    if reason and not is_unseen:
        return reason, None
    worst = finding_headlines.find_worst(runs)
    if worst is not None:
        return finding_headlines.describe_finding(worst), worst
    return reason or _describe_without_finding(step.analyses, findings), None


def _describe_without_finding(analyses: Sequence[Analysis], findings: Findings) -> str:
    """Return the headline of a run in which nothing was found that calls for attention."""
    held = gpu_time.job_gpu_seconds(analyses)
    if not held or (not findings.judged and findings.missing):
        return "Nothing could be assessed with this data."
    if low_use_sentences.is_low_mid_job(analyses):
        return f"{low_use_sentences.describe_computing_mid_job(analyses)}; the log doesn't show why."
    if sum(gpu_time.lost_seconds_by_class(analyses).values()) / held >= _LOST:
        return _describe_lost_share(analyses, held)
    unseen = gpu_time.unobserved_ratio(analyses)
    if unseen > _UNSEEN:
        return f"No problems found, but {display.percent(unseen)} of the GPU time holds no utilisation."
    if findings.missing > findings.judged:
        checks = display.plural(findings.judged, "check")
        return f"No problems found in {checks}; {findings.missing} more could not be assessed."
    return _describe_sound_run(analyses)


def _describe_sound_run(analyses: Sequence[Analysis]) -> str:
    """Return that nothing was found: a run is healthy unless pauses that nothing explains take a good part of it."""
    pauses = gpu_time.notable_short_pauses(analyses)
    if pauses is not None:
        return f"{PAUSES} {display.percent(pauses)} of the time."
    return f"{HEALTHY}: {display.lower_first(low_use_sentences.describe_computing(analyses))}; no problems found."


def _describe_lost_share(analyses: Sequence[Analysis], held: float) -> str:
    """Return how much of the GPU time was lost, and what took most of it."""
    lost = gpu_time.lost_seconds_by_class(analyses)
    name, seconds = next(iter(lost.items()))
    loss = name_loss(name, analyses)
    part = f": {loss} {display.percent(seconds / held)}" if len(lost) > 1 else f", all of it {loss}"
    return f"{display.percent(sum(lost.values()) / held)} {OF_GPU_TIME}{part}."
