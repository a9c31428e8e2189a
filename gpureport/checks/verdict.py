"""The verdict of a gate: what the checks of a run or night amount to, the same in every format."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.checks import wording
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

FAILED, NOT_ASSESSED, PASSED = 1, 4, 0
"""Exit codes of a gate."""

WORDS = {FAILED: "FAILED", NOT_ASSESSED: "NOT ASSESSED", PASSED: "PASSED"}

HAS_DATA = "the run has data"
"""The rule that every source is held to, whether or not a person sets any: it gives a run that can be assessed."""

NO_DATA = "no_data"
"""Code of a source without a run, where nothing says more."""

_LISTED = 2
_LONGEST = 264
"""Characters of a line for a chat, which the command comes before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How a gate ended. Exit code, pages, JUnit, summary and what is printed all derive from it.

    It rests on checks; without any, nothing was assessed.
    """

    checks: tuple[Check, ...]

    @property
    def exit_code(self) -> int:
        """1 if a rule is broken, else 4 if one could not be assessed or there is none, else 0."""
        outcomes = {check.outcome for check in self.checks}
        if CheckOutcome.BROKEN in outcomes:
            return FAILED
        return NOT_ASSESSED if CheckOutcome.CANNOT_JUDGE in outcomes or not outcomes else PASSED

    @property
    def word(self) -> str:
        """`FAILED`, `NOT ASSESSED` or `PASSED`."""
        return WORDS[self.exit_code]

    @property
    def counts(self) -> str:
        """How many checks have each outcome, the gravest first; empty without checks.

        Those that do not apply are counted only where there is no other.
        """
        counted = {each: self.count(each) for each in CheckOutcome}
        if any(number for each, number in counted.items() if each is not CheckOutcome.NOT_APPLIED):
            del counted[CheckOutcome.NOT_APPLIED]
        words = {
            each: OUTCOME_WORDS[each].replace("does", "do") if counted[each] > 1 else OUTCOME_WORDS[each]
            for each in counted
        }
        return ", ".join(f"{number} {words[each]}" for each, number in counted.items() if number)

    @property
    def line(self) -> str:
        """The verdict in one short line of plain text: the word, and which rules led to it."""
        grave = (CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE)
        named = [clause for outcome in grave for clause in wording.describe_checks(self.checks, outcome)]
        more = f"; and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
        said = f": {'; '.join(named[:_LISTED])}{more}" if named else f" ({self.counts or 'no rule is set'})"
        return display.shorten(display.clean(f"{self.word}{said}"), _LONGEST).replace(display.GAP, " ")

    def count(self, outcome: CheckOutcome) -> int:
        """Return how many checks have an outcome."""
        return len(wording.select_checks(self.checks, outcome))


def build_missing_check(source: str, reason: str, code: str = "") -> Check:
    """Return the check of a source, as named, that gives no run to assess, and why."""
    outcome = CheckOutcome.CANNOT_JUDGE
    return Check(limit=HAS_DATA, run=source, outcome=outcome, reason=reason, reason_code=code or NO_DATA)


def build_unused_baseline_check(baseline: str) -> Check:
    """Return the check that says that no rule uses the named baseline; it changes no verdict."""
    reason = "no rule asks for it; add one, such as --fail-on 'no new warning'"
    limit, outcome = f"comparison with {baseline}", CheckOutcome.NOT_APPLIED
    return Check(limit=limit, run="", outcome=outcome, reason=reason, reason_code="baseline_not_used")


def sort_by_gravity(checks: Sequence[Check]) -> Iterator[Check]:
    """Yield the checks by outcome, the gravest first, otherwise in their order."""
    for outcome in CheckOutcome:
        yield from wording.select_checks(checks, outcome)
