"""What became of rules as text, Markdown, JSON and JUnit XML.

Servers follow a case of JUnit by its class and name, so both are the same every night: a run is named only where
several are held to one rule. The JSON is schema `gpureport.check/1`: it grows, it never renames.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from html import escape

from gpureport.checks import wording
from gpureport.checks.policy import PolicyEntry
from gpureport.checks.verdict import Verdict, build_missing_check, sort_by_gravity
from gpureport.findings import Check, CheckOutcome
from gpureport.report.formats.text import markdown
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

SCHEMA = "gpureport.check/1"

_ROWS = 200
"""Checks that are listed; the rest is counted, so that the summary stays far below the limit of a job."""

_CELL = 300
OUTCOMES = {
    CheckOutcome.BROKEN: "FAILED",
    CheckOutcome.CANNOT_JUDGE: "NOT ASSESSED",
    CheckOutcome.ACKNOWLEDGED: "Acknowledged",
    CheckOutcome.NOT_APPLIED: "Does not apply",
}
"""What each line of text begins with, the gravest first."""

_FAILURE, _ERROR, _SKIPPED = "failure", "error", "skipped"
_ELEMENTS = {CheckOutcome.PASSED: "", CheckOutcome.BROKEN: _FAILURE, CheckOutcome.CANNOT_JUDGE: _ERROR}

_NO_RUN = build_missing_check("", "there is no run to assess")


def render_json(verdict: Verdict) -> str:
    """Return the checks as JSON text; null is what is not known."""
    checks = [
        {key: value.replace(GAP, " ") if isinstance(value, str) else value for key, value in asdict(check).items()}
        for check in verdict.checks
    ]
    document = {
        "schema": SCHEMA,
        "exit_code": verdict.exit_code,
        "line": f"gpureport check {verdict.line}",
        "counts": {outcome.value: verdict.count(outcome) for outcome in CheckOutcome},
        "checks": checks,
    }
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def render_text(checks: Sequence[Check]) -> str:
    """Return the checks as text: a line per rule broken or not assessed, one for those that hold."""
    return "\n".join(display.plain(line) for line in _list_lines(checks)) + "\n"


def _list_lines(checks: Sequence[Check]) -> Iterator[str]:
    if not checks:
        yield f"{OUTCOMES[CheckOutcome.CANNOT_JUDGE]}: no rule is set."
    for outcome, word in OUTCOMES.items():
        for clause in wording.describe_checks(checks, outcome):
            yield f"{word}: {clause}."
    if passed := wording.describe_passed(checks):
        yield f"Passed: {passed}."
    yield from (f"Note: {note}." for note in wording.describe_notes(checks))


def render_markdown(checks: Sequence[Check], heading: str, state: Sequence[str] = ()) -> str:
    """Return the checks as Markdown: how the gate ended, paragraphs on it, and a table, the gravest first."""
    lines = [f"## {_escape(heading)}", ""]
    for line in state:
        lines += [_escape(line), ""]
    if checks:
        lines += ["| Outcome | Run | Rule | Observed | |", "|---|---|---|---|---|"]
    for check in list(sort_by_gravity(checks))[:_ROWS]:
        bold = "**" if check.outcome in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE} else ""
        texts = (check.run, check.limit, check.observed, check.reason)
        cells = [markdown.escape(display.shorten(display.clean(text), _CELL)) for text in texts]
        lines.append(f"| {bold}{OUTCOME_WORDS[check.outcome]}{bold} | {' | '.join(cells)} |")
    if len(checks) > _ROWS:
        lines += ["", f"{len(checks) - _ROWS} more checks are not listed."]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return markdown.escape(display.plain(text))


def render_junit(checks: Sequence[Check], command: str = "check", rules: Sequence[PolicyEntry] = ()) -> str:
    """Return the checks as one JUnit suite, without times, so that the same input gives the same bytes.

    A test case each: a failure if its limit is broken, an error if not assessed. A rule without a check is an error.
    Servers refuse a suite without a case, so one says where no rule is set.
    """
    times = Counter(check.limit for check in checks)
    lacking = [replace(_NO_RUN, limit=each.words, origin=each.origin) for each in rules if each.words not in times]
    every = [*checks, *lacking]
    cases = [_build_case(check, repeated=times[check.limit] > 1) for check in every]
    ended = Counter(_ELEMENTS.get(check.outcome, _SKIPPED) for check in every)
    if not cases:
        cases, ended = (
            [_build_element("gpureport", "rules", '<skipped message="no rule is set"/>')],
            Counter([_SKIPPED]),
        )
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


def _build_case(check: Check, *, repeated: bool) -> str:
    """Return a test case with the element of its outcome; what else is known stands in it line by line."""
    name, run = display.plain(check.limit), display.plain(check.run)
    classname, where = f"gpureport.{run}" if repeated else "gpureport", f"run: {run}" if run else ""
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    element, word = _ELEMENTS.get(check.outcome, _SKIPPED), OUTCOME_WORDS[check.outcome]
    if not element:
        text = "\n".join(filter(None, (said, where)))
        return _build_element(classname, name, f"<system-out>{_escape_xml(text)}</system-out>" if text else "")
    start = f'<{element} message="{_escape_xml(f"{word}: {wording.name_findings(said)}")}"'
    if element == _SKIPPED:
        return _build_element(classname, name, f"{start}/>")
    stated = f"stated at {display.plain(check.origin)}" if check.origin else ""
    detail = "\n".join(filter(None, (f"{name} ({word})", said, where, stated)))
    kind = check.outcome.value.replace(" ", "_")
    return _build_element(classname, name, f'{start} type="{_escape_xml(kind)}">{_escape_xml(detail)}</{element}>')


def _build_element(classname: str, name: str, content: str) -> str:
    start = f'<testcase classname="{_escape_xml(classname)}" name="{_escape_xml(name)}">'
    return "\n".join(filter(None, (start, content, "</testcase>")))


def _escape_xml(text: str) -> str:
    """Return text as XML holds it."""
    return escape(text.replace(GAP, " "))
