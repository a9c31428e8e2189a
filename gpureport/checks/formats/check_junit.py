"""Checks as JUnit XML: one test case each, a failure if its limit is broken, an error if it cannot be judged.

Servers follow a case by its class and name, so both are the same every night: a run is named only where several are
held to one rule.
"""

from collections import Counter
from collections.abc import Sequence

from gpureport.checks import check_wording, gate_verdict
from gpureport.checks.policy import PolicyEntry
from gpureport.findings import Check, CheckOutcome
from gpureport.report.formats.junit import Case, Suite, render_suites
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS


def render(checks: Sequence[Check], command: str = "check", rules: Sequence[PolicyEntry] = ()) -> str:
    """Return the checks as one suite; servers refuse one without a case, so one says where no rule is set.

    Args:
        checks: the checks.
        command: the command, which the suite is named after.
        rules: what runs are held to; a rule without a check is an error, since there is no run.
    """
    times = Counter(check.limit for check in checks)
    unchecked = [_build_unchecked(entry) for entry in rules if entry.words not in times]
    cases = tuple(_case(check, repeated=times[check.limit] > 1) for check in (*checks, *unchecked))
    cases = cases or (Case(name="rules", skipped="no rule is set"),)
    return render_suites([Suite(name=f"gpureport {command}", cases=cases)])


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


def _case(check: Check, *, repeated: bool) -> Case:
    name, run = display.plain(check.limit), display.plain(check.run)
    classname = f"gpureport.{run}" if repeated else "gpureport"
    where = f"run: {run}" if run else ""
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    message = f"{OUTCOME_WORDS[check.outcome]}: {check_wording.name_findings(said)}"
    if check.outcome is CheckOutcome.PASSED:
        return Case(name=name, classname=classname, text=tuple(filter(None, (said, where))))
    if check.outcome not in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}:
        return Case(name=name, classname=classname, skipped=message)
    stated = f"stated at {display.plain(check.origin)}" if check.origin else ""
    broken = check.outcome is CheckOutcome.BROKEN
    return Case(
        name=name,
        classname=classname,
        failure=message if broken else "",
        error="" if broken else message,
        type=check.outcome.value.replace(" ", "_"),
        detail=tuple(filter(None, (f"{name} ({OUTCOME_WORDS[check.outcome]})", said, where, stated))),
    )
