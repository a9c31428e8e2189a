"""Checks as Markdown for the summary of a job, and as text for a log."""

from collections.abc import Iterator, Sequence

from gpureport.checks import check_wording, gate_verdict
from gpureport.findings import Check, CheckOutcome
from gpureport.report.formats.text.markdown import escape
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_ROWS = 200
"""Checks that are listed; the rest is counted, so that the summary stays far below the limit of a job."""

_CELL = 300
_GRAVE = {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}
_OTHERS = {CheckOutcome.ACKNOWLEDGED: "Acknowledged", CheckOutcome.NOT_APPLIED: "Does not apply"}


def render_markdown(checks: Sequence[Check], heading: str, state: Sequence[str] = ()) -> str:
    """Return the checks as Markdown: a heading, then a table, the gravest first.

    Args:
        checks: the checks.
        heading: how the gate ended, as the line for a chat says it.
        state: what else to say below the heading, each line a paragraph.
    """
    return "\n".join(_lines(checks, heading, state)) + "\n"


def _lines(checks: Sequence[Check], heading: str, state: Sequence[str]) -> Iterator[str]:
    yield f"## {escape(display.plain(heading))}"
    yield ""
    for line in state:
        yield from (escape(display.plain(line)), "")
    if not checks:
        return
    yield from ("| Outcome | Run | Rule | Observed | |", "|---|---|---|---|---|")
    ordered = list(gate_verdict.sort_by_gravity(checks))
    for check in ordered[:_ROWS]:
        bold = "**" if check.outcome in _GRAVE else ""
        cells = (check.run, check.limit, check.observed, check.reason)
        yield f"| {bold}{OUTCOME_WORDS[check.outcome]}{bold} | {' | '.join(map(_cell, cells))} |"
    if len(ordered) > _ROWS:
        yield from ("", f"{len(ordered) - _ROWS} more checks are not listed.")


def _cell(text: str) -> str:
    return escape(display.shorten(display.clean(text), _CELL))


def render_text(checks: Sequence[Check]) -> str:
    """Return the checks as text: a line per rule broken or not assessed, one for those that hold."""
    return "\n".join(display.plain(line) for line in _text_lines(checks)) + "\n"


def _text_lines(checks: Sequence[Check]) -> Iterator[str]:
    if not checks:
        yield f"{check_wording.NOT_ASSESSED}: no rule is set."
    for clause in check_wording.describe_failures(checks):
        yield display.end_sentence(f"{check_wording.FAILED}: {clause}")
    yield from _reasons(checks, CheckOutcome.BROKEN)
    for clause in check_wording.describe_unassessed(checks):
        yield display.end_sentence(f"{check_wording.NOT_ASSESSED}: {clause}")
    for outcome, word in _OTHERS.items():
        for check in checks:
            if check.outcome is outcome:
                said = check.reason or check.observed
                run = f" ({check.run})" if check.run else ""
                yield display.end_sentence(f"{word}: {check.limit}{run}{f': {said}' if said else ''}")
    passed = check_wording.describe_passed(checks)
    if passed:
        yield f"Passed: {passed}."
    yield from _reasons(checks, CheckOutcome.PASSED)


def _reasons(checks: Sequence[Check], outcome: CheckOutcome) -> Iterator[str]:
    """Yield what else to know of checks that ended in one way."""
    several = len({check.run for check in checks if check.run}) > 1
    for check in checks:
        if check.outcome is outcome and check.reason:
            run = f"{check.run}: " if several else ""
            yield f"  {run}{check.limit}: {check_wording.name_findings(check.reason)}"
