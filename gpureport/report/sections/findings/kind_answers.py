"""The matrix of what was asked and answered, and the checklist of the practice, in words."""

from collections import Counter
from collections.abc import Sequence

from gpureport.analysis.advice.checklist import ITEMS
from gpureport.answers import Answer, Outcome
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.report_content import AnswerLine, Answers, CheckLine, Checklist
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms

_LETTERS = 60
OUTCOMES = {
    Outcome.FOUND: "found",
    Outcome.SUSPECTED: "suspected",
    Outcome.JUDGED: "clear",
    Outcome.CANNOT_JUDGE: "not assessed",
}
"""Outcomes as people read them; JSON keeps its own words."""


def build_answers(runs: Sequence[ReportRun], cards: Sequence[FindingCard]) -> tuple[Answers, ...]:
    """Return every kind of every run, with the cards of what was found; without runs whose answers are not known."""
    return tuple(
        _matrix(run, [card for card in cards if card.run_index == place])
        for place, run in enumerate(runs)
        if run.analysis.answers
    )


def _matrix(run: ReportRun, cards: Sequence[FindingCard]) -> Answers:
    groups = {answer.group for answer in run.analysis.answers}
    lines = tuple(_line(answer, run, cards, several=len(groups) > 1) for answer in run.analysis.answers)
    counts = Counter(line.outcome for line in lines)
    named = [f"{counts[outcome]} {OUTCOMES[outcome]}" for outcome in Outcome if counts[outcome]]
    return Answers(label=run.label, summary=", ".join(named), lines=lines)


def _line(answer: Answer, run: ReportRun, cards: Sequence[FindingCard], *, several: bool) -> AnswerLine:
    kind = display.clean(answer.kind)
    shown = (card for card in cards if card.kind == kind and set(card.fingerprints) & set(answer.findings))
    return AnswerLine(
        kind=kind,
        title=terms.kind_title(kind),
        group=display.shorten(display.clean(answer.group), _LETTERS) if several else "",
        outcome=answer.outcome.value,
        outcome_text=OUTCOMES[answer.outcome],
        cards=tuple(card.id for card in shown),
        reason=terms.humanize(display.clean_sentence(answer.reason_with(run.device))),
        recording=display.clean(answer.recording),
    )


def checklists(runs: Sequence[ReportRun]) -> tuple[Checklist, ...]:
    """Return the questions of the practice for every run."""
    return tuple(
        Checklist(
            label=run.label,
            lines=tuple(
                CheckLine(
                    item=entry.item,
                    title=ITEMS.get(entry.item, entry.item),
                    state=entry.state.value,
                    reason=terms.humanize(display.clean_sentence(entry.reason)),
                    recording=display.clean(entry.recording),
                )
                for entry in run.analysis.checklist
            ),
        )
        for run in runs
        if run.analysis.checklist
    )
