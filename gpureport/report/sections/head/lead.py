"""The lead: below the headline, how sure it is, what is left, and what to do."""

from collections.abc import Iterator, Sequence

from gpureport.analysis import phrases
from gpureport.analysis.certainty import SURE_READINGS
from gpureport.comparison import gains
from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS, WORK_RATE, recorded_seconds
from gpureport.comparison.steps import Step
from gpureport.comparison.verdict import Verdict
from gpureport.findings import Confidence
from gpureport.report.model.head import VerdictCode
from gpureport.report.runs import gpu_time
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.findings.found import Found
from gpureport.report.sections.head import excluded_data, money_sentences
from gpureport.report.sections.head.headlines.run_headline import RunHeadline
from gpureport.report.sections.head.loss_sentence import Findings, describe_loss, is_partly_unseen, name_loss
from gpureport.report.sections.head.recording_doubts import describe_drivers
from gpureport.report.sections.steps.headline import describe_certainty
from gpureport.report.sections.steps.quality import warn_of_falls
from gpureport.report.wording import display
from gpureport.report.wording.reasons import SINGLE_RUN_SCATTER, describe_reason

_SLOWED = frozenset(("thermal_throttle", "hw_throttle"))
REPEAT = "Repeat every step before you rely on it."
_TIMES = 2.0
"""Ratio from which training is as many times as fast, rather than faster by per cent."""
_HIDDEN = 1.1
"""Ratio of both gains from which training alone is worth a sentence."""
_SHORT, _START_UP = 600.0, 0.2
"""Seconds of a run, and share of it without training, from which start-up hides a gain."""


def write_run_lead(headline: RunHeadline, runs: Sequence[ReportRun], findings: Findings) -> Iterator[str]:
    """Yield what a step by itself lost, or what was checked where nothing was found.

    Args:
        headline: the headline.
        runs: the runs of the step.
        findings: what is known of the findings.
    """
    told = headline.told
    analyses = [run.analysis for run in runs]
    rejected = list(excluded_data.rejections([analysis.run for analysis in analyses]))
    yield from rejected[:1]
    yield from filter(None, map(describe_drivers, analyses))
    if findings.too_short or not gpu_time.job_gpu_seconds(analyses):
        return
    lost = (_describe_cost(told) if told is not None else "") or describe_loss(analyses)
    is_one_class = len(gpu_time.lost_seconds_by_class(analyses)) == 1
    if headline.code is VerdictCode.LOST_TIME and is_one_class and not is_partly_unseen(analyses):
        # the headline says all of it
        lost = ""
    if told is None or len(runs) == 1:
        yield from filter(None, (lost,))
    else:
        kind = (told.finding.kind, told.finding.cause)
        count = sum(any((f.kind, f.cause) == kind for f in run.analysis.findings) for run in runs)
        yield f"Found in {count} of {len(runs)} runs; {display.lower_first(lost)}" if lost else ""
    if told is not None and told.finding.confidence is Confidence.LOW:
        yield _describe_low_confidence(told)
    if headline.code is VerdictCode.HEALTHY:
        yield f"Nothing needs doing; {describe_checks(findings)}"
    if headline.code is VerdictCode.SHORT_PAUSES:
        yield phrases.capitalize(describe_checks(findings))


def _describe_low_confidence(told: Found) -> str:
    """Return that a finding is not sure; that the log is coarse only where few samples fall into what it tells of.

    Confidence is low for other reasons too, as a limit of power that was not logged, however long a finding lasts.
    """
    run = told.run
    lengths = [span.seconds for span in told.intervals]
    shown, interval = max(lengths, default=run.seconds), run.run.interval
    if interval is not None and shown < SURE_READINGS * interval:
        return "The log shows this only coarsely, so confidence is low."
    return "Confidence in the headline is low."


def _describe_cost(told: Found) -> str:
    """Return what a slowed clock cost the GPU and the run, if that is known."""
    seconds, share = told.lost, told.share
    if told.finding.kind not in _SLOWED or not seconds or share < gains.NOTABLE_RATIO:
        return ""
    time = display.duration(seconds)
    if told.is_plural or len(told.run.run.gpus) == 1:
        return f"That cost {display.percent(share)} of all GPU time."
    return f"That cost {time} of computing on {told.gpus}, {display.percent(share)} of all GPU time."


def describe_checks(findings: Findings) -> str:
    """Return how many checks were assessed, and that the data does not allow the others."""
    whole = findings.judged + findings.missing
    if not findings.missing:
        return f"all {whole} checks were assessed."
    return f"{findings.judged} of {whole} checks were assessed; the other {findings.missing} need more data."


def write_step_lead(comparison: Comparison, repetitions: str = "") -> Iterator[str]:
    """Yield how sure the change is, what the last step still loses, the money saved, and what training alone gained.

    Args:
        comparison: the steps.
        repetitions: how to give runs as repetitions, where they look like it.
    """
    if warning := warn_of_falls(comparison):
        yield warning
    money = money_sentences.describe_saving(comparison) or money_sentences.explain_missing_cost(comparison)
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged(first.label, last.label)
    left = describe_largest_loss(last)
    if are_single_runs(comparison) or (delta is not None and delta.verdict is Verdict.UNCONFIRMED):
        repeat = repetitions or _ask_for_repetition(comparison)
        yield from filter(None, (money, repeat, f"{left}." if left else "", describe_training(comparison)))
        return
    if delta is not None and delta.verdict is Verdict.NOT_ENOUGH_DATA and delta.reason is not None:
        yield display.clean_sentence(describe_reason(delta.reason))
    sure = describe_certainty(comparison)
    if sure and left:
        yield f"{sure}; {display.lower_first(left)}."
    elif sure or left:
        yield f"{sure or left}."
    yield from filter(None, (money, describe_training(comparison)))


def _ask_for_repetition(comparison: Comparison) -> str:
    """Return what to repeat; of two steps with one single run, also how a rule decides on it nevertheless."""
    single = [display.clean(step.label) for step in comparison.steps if len(step.runs) == 1]
    if len(single) != 1 or len(comparison.steps) != 2:  # noqa: PLR2004 - a pair
        return REPEAT
    return (
        f"Only one run of “{single[0]}”: repeat it to confirm this. A rule decides all the same: {SINGLE_RUN_SCATTER}."
    )


def are_single_runs(comparison: Comparison) -> bool:
    """Return whether no step was repeated."""
    return len(comparison.steps) > 1 and all(len(step.runs) == 1 for step in comparison.steps)


def describe_largest_loss(step: Step) -> str:
    """Return what a step loses most by, such as `Largest loss now: start-up, 43%`, unless little."""
    held = gpu_time.job_gpu_seconds(step.analyses)
    lost = gpu_time.lost_seconds_by_class(step.analyses)
    if not held or not lost or recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS:
        return ""
    name, seconds = next(iter(lost.items()))
    if seconds / held < gains.NOTABLE_RATIO or gpu_time.unobserved_ratio(step.analyses) > gains.MOST_UNSEEN_RATIO:
        return ""
    return f"Largest loss now: {name_loss(name, step.analyses)}, {display.percent(seconds / held)}"


def describe_training(comparison: Comparison) -> str:
    """Return how much faster training alone got, and that start-up hid it, if so."""
    first, last = comparison.steps[0], comparison.steps[-1]
    delta = comparison.judged_training(first.label, last.label)
    if delta is None or not delta.before or not delta.after or not delta.verdict.is_established:
        return ""
    ratio, rates = delta.after / delta.before, (first.value(WORK_RATE), last.value(WORK_RATE))
    whole = rates[1] / rates[0] if rates[0] and rates[1] else None
    if whole is None or not max(ratio / whole, whole / ratio) > _HIDDEN:
        return ""
    size = display.percent(abs(ratio - 1))
    gain = f"{ratio:.1f} times as fast" if ratio >= _TIMES else f"{size} {'faster' if ratio > 1 else 'slower'}"
    why = "; start-up hides it in runs this short" if ratio > whole and _is_mostly_start_up(last) else ""
    return f"Training alone is {gain}{why}."


def _is_mostly_start_up(step: Step) -> bool:
    """Return whether runs are short and start-up takes a good part of them."""
    held = gpu_time.job_gpu_seconds(step.analyses)
    lost = gpu_time.lost_seconds_by_class(step.analyses)
    longest = max(analysis.seconds for analysis in step.analyses)
    return bool(held) and longest < _SHORT and lost.get("startup", 0.0) / held >= _START_UP
