"""The result of a report: a headline, the lead below it, and notes for a fold."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpureport.comparison.chain import Comparison
from gpureport.comparison.figures import SHORTEST_REPETITION_SECONDS, recorded_seconds
from gpureport.comparison.steps import Step
from gpureport.comparison.study import Study
from gpureport.findings import Check, CheckOutcome
from gpureport.report.model.head import Action, Verdict, VerdictCode
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head import lead, notes
from gpureport.report.sections.head.headlines import run_headline
from gpureport.report.sections.head.loss_sentence import Findings
from gpureport.report.sections.head.recording_doubts import describe_doubts
from gpureport.report.sections.steps.headline import describe_quality_alone, describe_steps
from gpureport.report.sections.steps.study import describe_study
from gpureport.report.wording import display, numbered_labels

_LEAD = 3
"""Most sentences of a lead."""
_DOUBTS = 2
"""Doubts that stand in it at most; the others are notes."""
_NAMED = 2
"""Broken rules that are named; the table of rules has all."""


def build_verdict(  # noqa: PLR0913 - what a verdict depends on, each by name
    comparison: Comparison,
    inputs: Sequence[ReportRun],
    findings: Findings,
    study: Study | None = None,
    repetitions: str = "",
    *,
    checks: Sequence[Check] = (),
) -> Verdict:
    """Return the result of one run, of steps, or of groups.

    Args:
        comparison: the steps.
        inputs: the runs step by step.
        findings: those of the last step.
        study: the groups, of which the headline names the best; None where the steps are a chain.
        repetitions: how to give runs as repetitions, where they look like it.
        checks: limits a person set, and what became of them; no run that breaks one is healthy.
    """
    last = comparison.steps[-1]
    of_last = inputs[len(inputs) - len(last.runs) :]
    several = len(comparison.steps) > 1
    sentence, code, details = describe_comparison(comparison, study, repetitions) if several else ("", None, ())
    kind = ""
    if not sentence or code is None:
        headline = run_headline.describe_run(last, of_last, findings)
        sentence, code = headline.sentence, headline.code
        kind = headline.told.finding.kind if headline.told else ""
        if several:
            sentence = f"{display.clean(last.label)}: {display.lower_first(sentence)}"
        details = (*details, *filter(None, lead.write_run_lead(headline, of_last, findings)))
    doubts = describe_doubts(comparison)
    details = (*doubts[:_DOUBTS], *details)
    further = tuple(notes.write_notes(comparison, findings, study, (*details, *doubts), repetitions, code=code))
    broken = [check for check in checks if check.outcome is CheckOutcome.BROKEN]
    if broken and code is VerdictCode.HEALTHY:
        # the last detail says that nothing needs doing
        sentence, code, details = (
            f"{_count_failed(broken)}; no check found a cause.",
            VerdictCode.RULES_FAILED,
            details[:-1],
        )
    place = next((place for place in range(len(details), 0, -1) if _count_sentences(details[:place]) <= _LEAD), 1)
    in_lead = min(len(doubts), _DOUBTS, place)
    rest = [text for text in details[place:] if text not in doubts]
    return Verdict(
        sentence=sentence,
        details=(*details[:in_lead], *_name_failed(broken), *details[in_lead:place]),
        notes=(*doubts[in_lead:], *rest, *further),
        doubts=in_lead,
        further_doubts=len(doubts) - in_lead,
        code=code,
        kind=kind,
    )


def _count_failed(broken: Sequence[Check]) -> str:
    return f"{display.plural(len(broken), 'rule')} failed"


def _name_failed(broken: Sequence[Check]) -> Iterator[str]:
    named = [f"{display.clean(check.limit)} ({display.clean_sentence(check.observed)})" for check in broken[:_NAMED]]
    if named:
        yield f"{_count_failed(broken)}: {'; '.join(named)}."


def _count_sentences(texts: Sequence[str]) -> int:
    return sum(text.count(". ") + 1 for text in texts)


def add_next_step(verdict: Verdict, actions: Sequence[Action]) -> Verdict:
    """Return the result with the first thing to do as the last sentence of its lead, where it is not to measure.

    A lead that is long enough leaves it to the list of things to do. Where nothing needs doing, it could be tried.
    """
    if not actions or not (actions[0].finding or actions[0].is_trial) or _count_sentences(verdict.details) >= _LEAD:
        return verdict
    start = "Could be tried" if verdict.code is VerdictCode.HEALTHY else "First"
    return replace(verdict, details=(*verdict.details, f"{start}: {display.lower_first(actions[0].title)}."))


def describe_comparison(
    comparison: Comparison, study: Study | None, repetitions: str
) -> tuple[str, VerdictCode | None, tuple[str, ...]]:
    """Return headline, code and lead on several steps or groups; an empty headline where nothing can be compared."""
    if study is not None:
        sentence, code, details = describe_study(study, comparison)
        if sentence:
            return sentence, code, details
    short = _find_short_steps(comparison)
    if any(step in short for step in (comparison.steps[0], comparison.steps[-1])):
        why = describe_short_steps(comparison)
        fallen = describe_quality_alone(comparison)
        if fallen:
            return fallen, VerdictCode.QUALITY_FELL, (why,)
        return "Too short to compare: record every step for longer.", VerdictCode.STEPS_TOO_SHORT, (why,)
    return *describe_steps(comparison), tuple(lead.write_step_lead(comparison, repetitions))


def describe_short_steps(comparison: Comparison) -> str:
    """Return of which steps too little was recorded to compare them; empty where there are none."""
    labels = [_name_short_step(step) for step in _find_short_steps(comparison)]
    return f"Under 20{display.GAP}s was recorded of {numbered_labels.list_labels(labels)}." if labels else ""


def _name_short_step(step: Step) -> str:
    """Return a step by its label, and how long it is where that would round to long enough."""
    seconds, label = recorded_seconds(step.analyses), display.clean(step.label)
    is_near = round(seconds) >= SHORTEST_REPETITION_SECONDS
    return f"{label} ({display.duration_below(seconds, SHORTEST_REPETITION_SECONDS)})" if is_near else label


def _find_short_steps(comparison: Comparison) -> list[Step]:
    """Return the steps of which too little was recorded to set them against another."""
    return [step for step in comparison.steps if recorded_seconds(step.analyses) < SHORTEST_REPETITION_SECONDS]
