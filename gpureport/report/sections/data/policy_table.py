"""Limits a person set, and what became of each."""

from collections.abc import Sequence
from pathlib import PurePath

from gpureport.findings import Check, CheckOutcome
from gpureport.report.model.shapes import Cell, Row, Table
from gpureport.report.wording import display
from gpureport.report.wording.rule_outcomes import OUTCOME_WORDS

_NOTE = "A rule that is not assessed is neither kept nor broken: the reason stands with it."
_GRAVE = {CheckOutcome.BROKEN, CheckOutcome.CANNOT_JUDGE}


def build_policy_table(checks: Sequence[Check]) -> Table | None:
    """Return the limits in the order stated, None where none is."""
    if not checks:
        return None
    return Table(
        columns=("Rule", "Outcome", "Observed", "Run"),
        numeric=(False, False, False),
        rows=tuple(_row(check) for check in checks),
        notes=(_NOTE,) if any(check.outcome is CheckOutcome.CANNOT_JUDGE for check in checks) else (),
    )


def _row(check: Check) -> Row:
    return Row(
        head=Cell(text=display.clean(check.limit), small=PurePath(display.clean(check.origin)).name),
        cells=(
            Cell(text=OUTCOME_WORDS[check.outcome], flagged=check.outcome in _GRAVE),
            Cell(
                text=display.clean_sentence(check.observed),
                small=display.clean_sentence(check.reason),
                value=check.value,
            ),
            Cell(text=display.clean(check.run)),
        ),
    )
