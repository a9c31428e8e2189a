"""The headline of one run, or of the repetitions of one step."""

from collections.abc import Sequence

from gpureport.analysis.results import Analysis
from gpureport.analysis.signals.short_pauses import NOTABLE
from gpureport.comparison.gains import known_loss
from gpureport.comparison.steps.steps import Step
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head import low_use_sentences
from gpureport.report.sections.head.headlines import finding_headlines
from gpureport.report.sections.head.headlines.finding_facts import FindingFacts
from gpureport.report.sections.head.loss_sentence import Findings, explain_unknown_loss, name_loss
from gpureport.report.wording import display

HEALTHY, OF_GPU_TIME = "Healthy", "of the GPU time was lost"
"""Beginning of the headline of a sound run, and words of that on a loss without a finding."""
PAUSING = "No problems found; short pauses take"
"""Beginning of the headline of a run with many short pauses that nothing explains."""
_LOST = 0.1
"""Share of the GPU time lost above which a run is not called healthy."""


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
    if unseen > known_loss.UNSEEN_RATIO:
        return f"No problems found, but {display.percent(unseen)} of the GPU time holds no utilisation."
    if findings.missing > findings.judged:
        checks = display.plural(findings.judged, "check")
        return f"No problems found in {checks}; {findings.missing} more could not be assessed."
    pauses = gpu_time.short_pauses_ratio(analyses)
    computing = display.lower_first(low_use_sentences.describe_computing(analyses))
    return (
        f"{PAUSING} {display.percent(pauses)} of the time."
        if pauses >= NOTABLE
        else f"{HEALTHY}: {computing}; no problems found."
    )


def _describe_lost_share(analyses: Sequence[Analysis], held: float) -> str:
    """Return how much of the GPU time was lost, and what took most of it."""
    lost = gpu_time.lost_seconds_by_class(analyses)
    name, seconds = next(iter(lost.items()))
    loss = name_loss(name, analyses)
    part = f": {loss} {display.percent(seconds / held)}" if len(lost) > 1 else f", all of it {loss}"
    return f"{display.percent(sum(lost.values()) / held)} {OF_GPU_TIME}{part}."
