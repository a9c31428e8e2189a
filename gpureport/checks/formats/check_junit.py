"""Checks as JUnit XML: one test case each, a failure if its limit is broken, else an error if not assessed.

Servers follow a case by its class and name, so both are the same every night: a run is named only where several are
held to one rule.
"""

from collections import Counter
from collections.abc import Sequence
from html import escape

from gpureport.checks import check_wording, gate_verdict
from gpureport.checks.policy import PolicyEntry
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_FAILURE, _ERROR, _SKIPPED = "failure", "error", "skipped"
_ELEMENTS = {CheckOutcome.PASSED: "", CheckOutcome.BROKEN: _FAILURE, CheckOutcome.CANNOT_JUDGE: _ERROR}


def render(checks: Sequence[Check], command: str = "check", rules: Sequence[PolicyEntry] = ()) -> str:
    """Return the checks as one suite, without times, so that the same input gives the same bytes.

    Servers refuse a suite without a case, so one says where no rule is set.

    Args:
        checks: the checks.
        command: the command, which the suite is named after.
        rules: what runs are held to; a rule without a check is an error.
    """
    times = Counter(check.limit for check in checks)
    every = [*checks, *(_build_unchecked(entry) for entry in rules if entry.words not in times)]
    cases = [_case(check, repeated=times[check.limit] > 1) for check in every]
    ended = Counter(_ELEMENTS.get(check.outcome, _SKIPPED) for check in every)
    if not cases:
        cases, ended = [_element("gpureport", "rules", '<skipped message="no rule is set"/>')], Counter([_SKIPPED])
    failed, wrong, skipped = (ended[name] for name in (_FAILURE, _ERROR, _SKIPPED))
    counts = f' tests="{len(cases)}" failures="{failed}" errors="{wrong}" skipped="{skipped}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="gpureport"{counts}>',
        f'<testsuite name="{_escape_xml(f"gpureport {command}")}"{counts}>',
        *cases,
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _build_unchecked(entry: PolicyEntry) -> Check:
    return Check(
        limit=entry.words,
        run="",
        outcome=CheckOutcome.CANNOT_JUDGE,
        reason="there is no run to assess",
        reason_code=gate_verdict.NO_DATA,
        origin=entry.origin,
    )


def _case(check: Check, *, repeated: bool) -> str:
    """Return a test case with the element of its outcome; what else is known stands in it line by line."""
    name, run = display.plain(check.limit), display.plain(check.run)
    classname, where = f"gpureport.{run}" if repeated else "gpureport", f"run: {run}" if run else ""
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    element, word = _ELEMENTS.get(check.outcome, _SKIPPED), OUTCOME_WORDS[check.outcome]
    if not element:
        text = "\n".join(filter(None, (said, where)))
        return _element(classname, name, f"<system-out>{_escape_xml(text)}</system-out>" if text else "")
    start = f'<{element} message="{_escape_xml(f"{word}: {check_wording.name_findings(said)}")}"'
    if element == _SKIPPED:
        return _element(classname, name, f"{start}/>")
    stated = f"stated at {display.plain(check.origin)}" if check.origin else ""
    detail = "\n".join(filter(None, (f"{name} ({word})", said, where, stated)))
    kind = check.outcome.value.replace(" ", "_")
    return _element(classname, name, f'{start} type="{_escape_xml(kind)}">{_escape_xml(detail)}</{element}>')


def _element(classname: str, name: str, content: str) -> str:
    start = f'<testcase classname="{_escape_xml(classname)}" name="{_escape_xml(name)}">'
    return "\n".join(filter(None, (start, content, "</testcase>")))


def _escape_xml(text: str) -> str:
    """Return text as XML holds it."""
    return escape(text.replace(GAP, " "))
