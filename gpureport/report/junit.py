"""The report as JUnit XML: one test case a kind that was asked about, for the test pages of CI servers.

A case fails only where a gate is broken, and a report has none. A case passes only where all of it was judged and
nothing was found. What was found, and what could not be judged in whole, is a skipped case that says which it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gpureport.findings import Outcome
from gpureport.report.display import GAP
from gpureport.report.model import AnswerLine, Report
from gpureport.report.parts import FindingCard


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test case.

    Attributes:
        name: what was asked, the same night after night.
        group: what it was asked of; empty for all.
        failure: the gate that is broken and by what; empty where none is.
        skipped: why it neither passed nor failed; empty where it did.
        text: more to read about it, line by line.
    """

    name: str
    group: str = ""
    failure: str = ""
    skipped: str = ""
    text: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Test cases of one run."""

    name: str
    cases: tuple[Case, ...]


def render(report: Report) -> str:
    """Return every answer of every run as a test case."""
    return document(tuple(_suites(report)))


def document(suites: Sequence[Suite]) -> str:
    """Return suites as JUnit XML, without times, so that the same input gives the same bytes."""
    cases = [case for suite in suites for case in suite.cases]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="gpureport"{_counts(cases)}>',
        *(line for suite in suites for line in _suite(suite)),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _suites(report: Report) -> Iterator[Suite]:
    """Yield a suite a run; runs without answers have one case a finding and one a kind not judged."""
    answered = {answers.label: answers.lines for answers in report.answers}
    for place, run in enumerate(report.timeline):
        cards = [card for card in report.findings if card.run_index == place]
        lines = answered.get(run.label, ())
        told = {card for line in lines for card in line.cards}
        cases = [_answered(line, cards) for line in lines]
        cases += [
            Case(name=card.title, skipped=_found([card]), text=_told(card)) for card in cards if card.id not in told
        ]
        yield Suite(name=run.label, cases=tuple(cases))
    if not report.answers:
        missing = [(kind, line.where, line.reason) for line in report.judgement.lines for kind in line.kinds]
        cases = [Case(name=kind, group=where, skipped=f"{Outcome.CANNOT_JUDGE}: {why}") for kind, where, why in missing]
        yield Suite(name="what could not be judged", cases=tuple(cases))


def _answered(line: AnswerLine, cards: Sequence[FindingCard]) -> Case:
    shown = [card for card in cards if card.id in line.cards]
    besides = [line.reason] if shown and line.reason else []
    record = [f"Record: {line.recording}"] if line.recording else []
    text = (*(part for card in shown for part in _told(card)), *besides, *record)
    return Case(name=line.title, group=line.group, skipped=_unsettled(line, shown), text=text)


def _unsettled(line: AnswerLine, shown: Sequence[FindingCard]) -> str:
    """Return why a case did not pass: something was found, or a part or all of it could not be judged."""
    if line.outcome in {Outcome.FOUND.value, Outcome.SUSPECTED.value}:
        return _found(shown) or line.outcome
    if line.outcome == Outcome.CANNOT_JUDGE.value:
        return f"{line.outcome}: {line.reason}"
    return f"{line.outcome}, but only a part was judged: {line.reason}" if line.reason else ""


def _found(cards: Sequence[FindingCard]) -> str:
    """Return what was found in one line, with the severity of each."""
    return "; ".join(f"found, {card.severity}: {card.title}, {card.lost}" for card in cards)


def _told(card: FindingCard) -> tuple[str, ...]:
    evidence = (
        f"{line.quantity}: {line.observed}{f' ({line.limit}; {line.source})' if line.limit else ''}"
        for line in card.evidence
    )
    return (f"{card.id} {card.summary}", *evidence, *(f"Do this: {text}" for text in card.recommendations))


def _counts(cases: Sequence[Case]) -> str:
    failed = sum(bool(case.failure) for case in cases)
    skipped = sum(bool(case.skipped and not case.failure) for case in cases)
    return f' tests="{len(cases)}" failures="{failed}" errors="0" skipped="{skipped}"'


def _suite(suite: Suite) -> Iterator[str]:
    yield f'<testsuite name="{_safe(suite.name)}"{_counts(suite.cases)}>'
    for case in suite.cases:
        yield from _case(case, suite.name)
    yield "</testsuite>"


def _case(case: Case, suite: str) -> Iterator[str]:
    # some servers show only the last part of a class name after a full stop
    path = ", ".join(filter(None, ("gpureport", suite, case.group))).replace(".", "\N{ONE DOT LEADER}")
    yield f'<testcase classname="{_safe(path)}" name="{_safe(case.name)}">'
    if case.failure:
        yield f'<failure message="{_safe(case.failure)}"/>'
    elif case.skipped:
        yield f'<skipped message="{_safe(case.skipped)}"/>'
    if case.text:
        yield f"<system-out>{_safe(chr(10).join(case.text))}</system-out>"
    yield "</testcase>"


def _safe(text: str) -> str:
    """Return text as XML holds it."""
    return escape(text.replace(GAP, " "))
