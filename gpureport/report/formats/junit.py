"""The report as JUnit XML: one test case a kind that was asked about, for the test pages of CI servers.

A case fails only where a limit is broken, and the cases of a report are kinds, not limits. A case passes only where
all of it was judged and nothing was found. What was found, and what could not be judged in whole, is a skipped case
that says which it is.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gpureport.answers import Outcome
from gpureport.report.model.finding_card import EvidenceLine, FindingCard
from gpureport.report.model.report_content import AnswerLine, Report
from gpureport.report.wording.display import GAP

_SIGNS = {"≥": "at least", "≤": "at most", ">": "above", "<": "below", "=": "exactly"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test case.

    Attributes:
        name: what was asked, the same night after night.
        classname: what it was asked of.
        failure: the gate that is broken and by what; empty where none is.
        error: why a gate cannot be judged; empty where it can.
        skipped: why it neither passed nor failed; empty where it did.
        type: kind of the failure or error, in one word.
        detail: more to read about the failure or error, line by line.
        text: more to read about the case, line by line.
    """

    name: str
    classname: str = "gpureport"
    failure: str = ""
    error: str = ""
    skipped: str = ""
    type: str = ""
    detail: tuple[str, ...] = ()
    text: tuple[str, ...] = ()

    @property
    def element(self) -> str:
        """Name of the element that says what became of the case, the gravest that applies; empty where it passed."""
        return next((name for name in ("failure", "error", "skipped") if getattr(self, name)), "")

    @property
    def message(self) -> str:
        """What that element says."""
        return self.failure or self.error or self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Test cases of one run."""

    name: str
    cases: tuple[Case, ...]


def render(report: Report) -> str:
    """Return every answer of every run as a test case."""
    return render_suites(tuple(_suites(report)))


def render_suites(suites: Sequence[Suite]) -> str:
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
        cases = [_answer_case(line, cards, run.label) for line in lines]
        cases += [
            Case(
                name=card.title,
                classname=_classname(run.label),
                skipped=_describe_found([card]),
                text=_card_lines(card),
            )
            for card in cards
            if card.id not in told
        ]
        yield Suite(name=run.label, cases=tuple(cases))
    if not report.answers:
        name = "what could not be judged"
        cases = [
            Case(name=kind, classname=_classname(name, line.where), skipped=f"{Outcome.CANNOT_JUDGE}: {line.reason}")
            for line in report.judgement.lines
            for kind in line.kinds
        ]
        yield Suite(name=name, cases=tuple(cases))


def _classname(suite: str, group: str = "") -> str:
    # some servers show only the last part of a class name after a full stop
    return ", ".join(filter(None, ("gpureport", suite, group))).replace(".", "\N{ONE DOT LEADER}")


def _answer_case(line: AnswerLine, cards: Sequence[FindingCard], suite: str) -> Case:
    shown = [card for card in cards if card.id in line.cards]
    besides = [line.reason] if shown and line.reason else []
    record = [f"Needs: {line.recording}"] if line.recording else []
    text = (*(part for card in shown for part in _card_lines(card)), *besides, *record)
    return Case(name=line.title, classname=_classname(suite, line.group), skipped=_skip_reason(line, shown), text=text)


def _skip_reason(line: AnswerLine, shown: Sequence[FindingCard]) -> str:
    """Return why a case did not pass: something was found, or a part or all of it could not be judged."""
    if line.outcome in {Outcome.FOUND.value, Outcome.SUSPECTED.value}:
        return _describe_found(shown) or line.outcome
    if line.outcome == Outcome.CANNOT_JUDGE.value:
        return f"{line.outcome}: {line.reason}"
    return f"{line.outcome}, but only a part was judged: {line.reason}" if line.reason else ""


def _describe_found(cards: Sequence[FindingCard]) -> str:
    """Return what was found in one line, with the severity of each."""
    return "; ".join(f"found, {card.severity}: {card.title}, {card.lost}" for card in cards)


def _card_lines(card: FindingCard) -> tuple[str, ...]:
    return (
        f"{card.id} {card.summary}",
        *map(_describe_evidence, card.evidence),
        *(f"Do this: {text}" for text in card.recommendations),
    )


def _describe_evidence(line: EvidenceLine) -> str:
    """Return a measured value, and from where on it counts, in words."""
    if not line.limit:
        return f"{line.quantity}: {line.observed}"
    sign, _, limit = line.limit.partition(" ")
    words = f"{_SIGNS[sign]} {limit}" if sign in _SIGNS else line.limit
    origin, _, reason = line.source.partition(": ")
    return f"{line.quantity}: {line.observed}. It counts if it is {words}: {reason or origin}."


def _counts(cases: Sequence[Case]) -> str:
    became = Counter(case.element for case in cases)
    failed, wrong, skipped = (became[name] for name in ("failure", "error", "skipped"))
    return f' tests="{len(cases)}" failures="{failed}" errors="{wrong}" skipped="{skipped}"'


def _suite(suite: Suite) -> Iterator[str]:
    yield f'<testsuite name="{_escape_xml(suite.name)}"{_counts(suite.cases)}>'
    for case in suite.cases:
        yield f'<testcase classname="{_escape_xml(case.classname)}" name="{_escape_xml(case.name)}">'
        yield from _case(case)
        yield "</testcase>"
    yield "</testsuite>"


def _case(case: Case) -> Iterator[str]:
    if case.element:
        kind = f' type="{_escape_xml(case.type)}"' if case.type else ""
        start = f'<{case.element} message="{_escape_xml(case.message)}"{kind}'
        yield f"{start}>{_escape_xml(chr(10).join(case.detail))}</{case.element}>" if case.detail else f"{start}/>"
    if case.text:
        yield f"<system-out>{_escape_xml(chr(10).join(case.text))}</system-out>"


def _escape_xml(text: str) -> str:
    """Return text as XML holds it."""
    return escape(text.replace(GAP, " "))
