"""The result of a report: a headline, the lead below it, and notes for a fold."""

from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.steps.step_figures import SHORTEST_REPETITION_SECONDS, recorded_seconds
from gpureport.comparison.steps.steps import Comparison, Step
from gpureport.comparison.study.study import Study
from gpureport.findings import Check, CheckOutcome
from gpureport.report.model.head import Action, Verdict
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.head import lead, notes
from gpureport.report.sections.head.headlines import run_headline, step_headline
from gpureport.report.sections.head.loss_sentence import Findings
from gpureport.report.sections.head.recording_doubts import describe_doubts
from gpureport.report.sections.study.study_headline import describe_study
from gpureport.report.wording import display, numbered_labels

_LEAD = 3
"""Most sentences of a lead."""
_DOUBTS = 2
"""Doubts that stand in it at most; the others are notes."""
_NAMED = 2
"""Broken rules that are named; the table of rules has all."""


def build_verdict(
    comparison: Comparison,
    inputs: Sequence[ReportRun],
    findings: Findings,
    study: Study | None = None,
    repetitions: str = "",
) -> Verdict:
    """Return the result of one run, of steps, or of groups.

    Args:
        comparison: the steps.
        inputs: the runs step by step.
        findings: those of the last step.
        study: the groups, of which the headline names the best; None where the steps are a chain.
        repetitions: how to give runs as repetitions, where they look like it.
    """
    last = comparison.steps[-1]
    of_last = inputs[len(inputs) - len(last.runs) :]
    several = len(comparison.steps) > 1
    sentence, details = describe_comparison(comparison, study, repetitions) if several else ("", ())
    if not sentence:
        sentence, told = run_headline.describe_run(last, of_last, findings)
        of_run = tuple(filter(None, lead.write_run_lead(sentence, of_last, findings, told)))
        if several:
            sentence = f"{display.clean(last.label)}: {display.lower_first(sentence)}"
        details = (*details, *of_run)
    doubts = describe_doubts(comparison)
    details = (*doubts[:_DOUBTS], *details)
    further = tuple(notes.write_notes(comparison, findings, study, (*details, *doubts), repetitions))
    place = next((place for place in range(len(details), 0, -1) if _count_sentences(details[:place]) <= _LEAD), 1)
    in_lead = min(len(doubts), _DOUBTS, place)
    rest = [text for text in details[place:] if text not in doubts]
    return Verdict(
        sentence=sentence,
        details=details[:place],
        notes=(*doubts[in_lead:], *rest, *further),
        doubts=in_lead,
        further_doubts=len(doubts) - in_lead,
    )


def _count_sentences(texts: Sequence[str]) -> int:
    return sum(text.count(". ") + 1 for text in texts)


def add_next_step(verdict: Verdict, actions: Sequence[Action]) -> Verdict:
    """Return the result with the first thing to do as the last sentence of its lead, where it is not to measure.

    A lead that is long enough leaves it to the list of things to do. Where nothing needs doing, it could be tried.
    """
    if not actions or not (actions[0].finding or actions[0].is_trial) or _count_sentences(verdict.details) >= _LEAD:
        return verdict
    is_optional = any(text.startswith(lead.NOTHING_TO_DO) for text in verdict.details)
    step = f"{'Could be tried' if is_optional else 'First'}: {display.lower_first(actions[0].title)}."
    return replace(verdict, details=(*verdict.details, step))


def add_broken_rules(verdict: Verdict, checks: Sequence[Check]) -> Verdict:
    """Return the result with the rules that a person set and the run broke before all else; no such run is healthy."""
    broken = [check for check in checks if check.outcome is CheckOutcome.BROKEN]
    if not broken:
        return verdict
    failed = f"{display.plural(len(broken), 'rule')} failed"
    named = [f"{display.clean(check.limit)} ({display.clean_sentence(check.observed)})" for check in broken[:_NAMED]]
    is_healthy = verdict.sentence.startswith(run_headline.HEALTHY)
    return replace(
        verdict,
        sentence=f"{failed}; no check found a cause." if is_healthy else verdict.sentence,
        details=(
            *verdict.details[: verdict.doubts],
            f"{failed}: {'; '.join(named)}.",
            *(text for text in verdict.details[verdict.doubts :] if not text.startswith(lead.NOTHING_TO_DO)),
        ),
    )


def describe_comparison(comparison: Comparison, study: Study | None, repetitions: str) -> tuple[str, tuple[str, ...]]:
    """Return the headline on several steps or groups, and its lead; an empty headline where nothing can be compared."""
    if study is not None:
        sentence, details = describe_study(study, comparison)
        if sentence:
            return sentence, details
    short = _find_short_steps(comparison)
    if any(step in short for step in (comparison.steps[0], comparison.steps[-1])):
        why = describe_short_steps(comparison)
        fallen = step_headline.describe_quality_alone(comparison)
        return fallen or "Too short to compare: record every step for longer.", (why,)
    return step_headline.describe_steps(comparison), tuple(lead.write_step_lead(comparison, repetitions))


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
