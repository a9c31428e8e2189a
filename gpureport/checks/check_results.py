"""All checks together: the exit code, how many ended how, and the line that says so."""

from collections.abc import Sequence

from gpureport.findings import Check, CheckOutcome
from gpureport.report.wording import display

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
    words = {0: "passed", BROKEN: "BROKEN", CANNOT_JUDGE: "CANNOT JUDGE"}[exit_code(checks)]
    grave = [check for check in sort_by_gravity(checks) if check.outcome in GRAVE]
    named = [format_check(check) for check in grave[:_LISTED]]
    more = f"; and {len(grave) - _LISTED} more" if len(grave) > _LISTED else ""
    tail = f": {'; '.join(named)}{more}" if named else ""
    text = f"gpureport check {words} ({format_outcome_counts(checks) or 'no limit'}){tail}"
    return display.shorten(display.clean(text), _LONGEST).replace(display.GAP, " ")


def format_check(check: Check) -> str:
    """Return one check as a clause: the run, the limit, and what was observed or why nothing was."""
    run = f"{display.clean(check.run)}: " if check.run else ""
    said = check.reason if check.outcome is CheckOutcome.CANNOT_JUDGE else check.observed
    return f"{run}{check.limit}" + (f" ({display.clean(said)})" if said else "")


def _outcome_word(outcome: CheckOutcome, number: int) -> str:
    return outcome.value.replace("does", "do") if number > 1 else outcome.value
