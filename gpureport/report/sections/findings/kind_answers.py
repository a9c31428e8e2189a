"""The matrix of what was asked and answered, and the checklist of the practice, in words."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpureport.analysis.advice.checklist import ITEMS
from gpureport.findings import Answer, Outcome, Practice
from gpureport.report.model.finding_card import FindingCard
from gpureport.report.model.report_content import AnswerLine, Answers, CheckLine, Checklist
from gpureport.report.runs.drawn_gpus import FEW_GPUS
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.wording import display, terms

_LETTERS = 60
_NAMED_GROUPS = 3
OUTCOMES = {
    Outcome.FOUND: "found",
    Outcome.SUSPECTED: "suspected",
    Outcome.JUDGED: "clear",
    Outcome.CANNOT_JUDGE: "not assessed",
}
"""Outcomes as people read them; JSON keeps its own words."""
STATES = {
    Practice.DONE: "done",
    Practice.WORTH_TRYING: "worth trying",
    Practice.CANNOT_JUDGE: OUTCOMES[Outcome.CANNOT_JUDGE],
}
"""Answers to the questions of the practice, likewise."""


def build_answers(runs: Sequence[ReportRun], cards: Sequence[FindingCard]) -> tuple[Answers, ...]:
    """Return every kind of every run, with the cards of what was found; without runs whose answers are not known."""
    return tuple(
        _matrix(run, [card for card in cards if card.run_index == place])
        for place, run in enumerate(runs)
        if run.analysis.answers
    )


def _matrix(run: ReportRun, cards: Sequence[FindingCard]) -> Answers:
    groups = {answer.group for answer in run.analysis.answers}
    lines = [_line(answer, run, cards, several=len(groups) > 1) for answer in run.analysis.answers]
    counts = Counter(line.outcome for line in lines)
    named = [f"{counts[outcome]} {OUTCOMES[outcome]}" for outcome in Outcome if counts[outcome]]
    shown = lines if len(run.run.gpus) <= FEW_GPUS else _merge_groups(lines, len(groups))
    # each model is asked every question
    each = f", {len(groups)} groups of GPUs asked one by one" if len(groups) > 1 else ""
    return Answers(label=run.label, summary=f"{', '.join(named)}{each}", lines=tuple(shown))


def _merge_groups(lines: Sequence[AnswerLine], groups: int) -> list[AnswerLine]:
    """Return lines that say the same of many groups as one, kind by kind."""
    gathered: dict[AnswerLine, list[str]] = {}
    for line in sorted(lines, key=_place_kinds(lines)):
        gathered.setdefault(replace(line, group=""), []).append(line.group)
    return [replace(line, group=_name_groups(names, groups)) for line, names in gathered.items()]


def _place_kinds(lines: Sequence[AnswerLine]) -> Callable[[AnswerLine], int]:
    """Return the place of the kind of a line among the kinds, in the order in which they come first."""
    places = {kind: place for place, kind in enumerate(dict.fromkeys(line.kind for line in lines))}
    return lambda line: places[line.kind]


def _name_groups(names: Sequence[str], groups: int) -> str:
    """Return the names of few groups, and of many how many they are; empty where they are all."""
    if len(names) == groups:
        return ""
    return "; ".join(names) if len(names) <= _NAMED_GROUPS else f"{len(names)} of {groups} groups of GPUs"


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
        reason_code=answer.reason_code,
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
                    reason_code=entry.reason_code,
                    recording=display.clean(entry.recording),
                    state_text=STATES[entry.state],
                )
                for entry in run.analysis.checklist
            ),
        )
        for run in runs
        if run.analysis.checklist
    )
