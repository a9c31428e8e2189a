"""Checks as JUnit XML: one test case each, a failure if its limit is broken, else an error if not assessed.

Servers follow a case by its class and name, so both are the same every night: a run is named only where several are
held to one rule.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from gpureport.checks import check_wording, gate_verdict
from gpureport.checks.policy import PolicyEntry
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display
from gpureport.report.wording.display import GAP
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
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
        """The element for the gravest outcome of the case; empty where it passed."""
        return next((name for name in ("failure", "error", "skipped") if getattr(self, name)), "")

    @property
    def message(self) -> str:
        """What that element says."""
        return self.failure or self.error or self.skipped


def render(checks: Sequence[Check], command: str = "check", rules: Sequence[PolicyEntry] = ()) -> str:
    """Return the checks as one suite, without times, so that the same input gives the same bytes.

    Servers refuse a suite without a case, so one says where no rule is set.

    Args:
        checks: the checks.
        command: the command, which the suite is named after.
        rules: what runs are held to; a rule without a check is an error.
    """
    times = Counter(check.limit for check in checks)
    unchecked = [_build_unchecked(entry) for entry in rules if entry.words not in times]
    cases = tuple(_case(check, repeated=times[check.limit] > 1) for check in (*checks, *unchecked))
    cases = cases or (_Case(name="rules", skipped="no rule is set"),)
    name = f"gpureport {command}"
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name="gpureport"{_counts(cases)}>',
        f'<testsuite name="{_escape_xml(name)}"{_counts(cases)}>',
        *(line for case in cases for line in _element(case)),
        "</testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _build_unchecked(entry: PolicyEntry) -> Check:
    reason = "there is no run to assess"
    return Check(
        limit=entry.words,
        run="",
        outcome=CheckOutcome.CANNOT_JUDGE,
        reason=reason,
        reason_code=gate_verdict.NO_DATA,
        origin=entry.origin,
    )


def _case(check: Check, *, repeated: bool) -> _Case:
    name, run = display.plain(check.limit), display.plain(check.run)
    classname = f"gpureport.{run}" if repeated else "gpureport"
    where = f"run: {run}" if run else ""
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    message = f"{OUTCOME_WORDS[check.outcome]}: {check_wording.name_findings(said)}"
    if check.outcome is CheckOutcome.PASSED:
        return _Case(name=name, classname=classname, text=tuple(filter(None, (said, where))))
    if check.outcome not in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}:
        return _Case(name=name, classname=classname, skipped=message)
    stated = f"stated at {display.plain(check.origin)}" if check.origin else ""
    broken = check.outcome is CheckOutcome.BROKEN
    return _Case(
        name=name,
        classname=classname,
        failure=message if broken else "",
        error="" if broken else message,
        type=check.outcome.value.replace(" ", "_"),
        detail=tuple(filter(None, (f"{name} ({OUTCOME_WORDS[check.outcome]})", said, where, stated))),
    )


def _counts(cases: Sequence[_Case]) -> str:
    became = Counter(case.element for case in cases)
    failed, wrong, skipped = (became[name] for name in ("failure", "error", "skipped"))
    return f' tests="{len(cases)}" failures="{failed}" errors="{wrong}" skipped="{skipped}"'


def _element(case: _Case) -> Iterator[str]:
    yield f'<testcase classname="{_escape_xml(case.classname)}" name="{_escape_xml(case.name)}">'
    if case.element:
        kind = f' type="{_escape_xml(case.type)}"' if case.type else ""
        start = f'<{case.element} message="{_escape_xml(case.message)}"{kind}'
        yield f"{start}>{_escape_xml(chr(10).join(case.detail))}</{case.element}>" if case.detail else f"{start}/>"
    if case.text:
        yield f"<system-out>{_escape_xml(chr(10).join(case.text))}</system-out>"
    yield "</testcase>"


def _escape_xml(text: str) -> str:
    """Return text as XML holds it."""
    return escape(text.replace(GAP, " "))
