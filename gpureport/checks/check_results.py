"""All checks together: the exit code, how many ended how, and the line that says so."""

from collections.abc import Iterator, Sequence

from gpureport.checks import check_wording
from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

BROKEN, CANNOT_JUDGE = 1, 4
"""Exit codes of a gate."""

GRAVE = frozenset({CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE})
"""Outcomes that a person must look at."""

_LISTED = 2
_LONGEST = 280


def exit_code(checks: Sequence[Check]) -> int:
    """Return the exit code: 1 if a limit is broken, else 4 if one cannot be judged or there is no limit, else 0."""
    outcomes = {check.outcome for check in checks}
    if CheckOutcome.BROKEN in outcomes:
        return BROKEN
    return CANNOT_JUDGE if CheckOutcome.CANNOT_JUDGE in outcomes or not checks else 0


def count_outcome(checks: Sequence[Check], outcome: CheckOutcome) -> int:
    """Return how many checks have an outcome."""
    return sum(check.outcome is outcome for check in checks)


def sort_by_gravity(checks: Sequence[Check]) -> list[Check]:
    """Return the checks by outcome, the gravest first, otherwise in their order."""
    order = list(CheckOutcome)
    return sorted(checks, key=lambda check: order.index(check.outcome))


def format_outcome_counts(checks: Sequence[Check]) -> str:
    """Return how many checks have each outcome, the gravest first; empty without checks."""
    counted = [(outcome, count_outcome(checks, outcome)) for outcome in CheckOutcome]
    return ", ".join(f"{number} {_outcome_word(outcome, number)}" for outcome, number in counted if number)


def format_result_line(checks: Sequence[Check]) -> str:
    """Return the result in one line of plain text, short enough for a chat."""
    word = {0: check_wording.PASSED, BROKEN: check_wording.FAILED, CANNOT_JUDGE: check_wording.NOT_ASSESSED}
    named = list(list_grave(checks))
    more = f"; and {len(named) - _LISTED} more" if len(named) > _LISTED else ""
    said = (
        f": {'; '.join(named[:_LISTED])}{more}" if named else f" ({format_outcome_counts(checks) or 'no rule is set'})"
    )
    text = f"gpureport check {word[exit_code(checks)]}{said}"
    return display.shorten(display.clean(text), _LONGEST).replace(display.GAP, " ")


def list_grave(checks: Sequence[Check]) -> Iterator[str]:
    """Yield a clause for each rule that is broken, then for each that could not be assessed."""
    yield from check_wording.describe_failures(checks)
    yield from check_wording.describe_unassessed(checks)


def _outcome_word(outcome: CheckOutcome, number: int) -> str:
    word = OUTCOME_WORDS[outcome]
    return word.replace("does", "do") if number > 1 else word
