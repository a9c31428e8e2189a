"""Checks as JUnit XML: one test case each, a failure if its limit is broken, an error if it cannot be judged."""

from collections.abc import Sequence

from gpureport.checks import check_wording
from gpureport.findings import Check, CheckOutcome
from gpureport.report.formats.junit import Case, Suite, render_suites
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS


def render(checks: Sequence[Check], command: str = "check") -> str:
    """Return the checks as one suite; servers refuse one without a case, so one says where no rule is set."""
    cases = tuple(map(_case, checks)) or (Case(name="rules", skipped="no rule is set"),)
    return render_suites([Suite(name=f"gpureport {command}", cases=cases)])


def _case(check: Check) -> Case:
    name, run = display.plain(check.limit), display.plain(check.run)
    classname = f"gpureport.{run or 'check'}"
    said = "; ".join(filter(None, (display.plain(check.observed), display.plain(check.reason))))
    message = f"{OUTCOME_WORDS[check.outcome]}: {check_wording.name_findings(said)}"
    if check.outcome is CheckOutcome.PASSED:
        return Case(name=name, classname=classname, text=(said,))
    if check.outcome not in {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}:
        return Case(name=name, classname=classname, skipped=message)
    stated = f"stated at {display.plain(check.origin)}"
    broken = check.outcome is CheckOutcome.BROKEN
    return Case(
        name=name,
        classname=classname,
        failure=message if broken else "",
        error="" if broken else message,
        type=check.outcome.value.replace(" ", "_"),
        detail=tuple(filter(None, (f"{name} ({OUTCOME_WORDS[check.outcome]})", said, stated))),
    )
