"""Reasons of verdicts become sentences, each said once with all that it holds for."""

import pytest

from gpureport.comparison.steps.counted_runs import ShortRun
from gpureport.report.wording.differences.comparison_reasons import (
    CHECKS,
    describe_left_out,
    describe_reason,
    list_reasons,
)
from gpureport.report.wording.display import GAP
from gpureport.testing import Reason, ReasonKind

SHORT = Reason(kind=ReasonKind.SHORT_RUN, run="a", amount=499.0, least=600.0)


@pytest.mark.parametrize("kind", [kind for kind in ReasonKind if kind is not ReasonKind.NOT_COMPARABLE])
def test_every_reason_is_a_sentence(kind: ReasonKind) -> None:
    """Also of those that name figures."""
    text = describe_reason(Reason(kind=kind, run="a", amount=50.0, least=60.0))
    assert (text[-1], text.strip(), "{" in text) == (".", text, False)


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "timezone"])
def test_every_check_that_fails_is_a_sentence(check: str) -> None:
    """All but the zone, which keeps nothing from being compared."""
    text = describe_reason(Reason(kind=ReasonKind.NOT_COMPARABLE, check=check))
    assert (text[-1], text.strip()) == (".", text)


def test_a_reason_names_its_run_or_none() -> None:
    """So that several differences share it."""
    slow = "A load that changes slowly can differ as much between recordings this short"
    repeat = "Record 10 min or more, or repeat each step three times."
    assert describe_reason(SHORT) == f"{slow}: a lasts 8 min 19 s. {repeat}"
    assert describe_reason(SHORT.of_any_run) == f"{slow}. {repeat}"
    assert describe_reason(None) == ""


def test_reasons_are_listed_once() -> None:
    """With all they hold back; what nothing holds back is left out."""
    zero, alone = Reason(kind=ReasonKind.ZERO), Reason(kind=ReasonKind.NOT_REPEATED)
    listed = list_reasons([(zero, "power"), (None, "cost"), (alone, "idle share"), (zero, "energy")])
    assert listed == (
        "Power and energy: it is 0 in one of the runs, and a ratio to 0 says nothing. Not confirmed by repetition: "
        "idle share."
    )


def test_runs_that_do_not_count_are_named() -> None:
    """One with what it holds, several together."""
    one, other = (ShortRun(run=name, seconds=seconds, least=30.0) for name, seconds in (("b/3", 12.0), ("b/4", 9.0)))
    assert describe_left_out([]) == ""
    assert describe_left_out([one]).replace(GAP, " ") == "b/3 holds 12 s of steady state and was left out."
    assert (
        describe_left_out([one, other]).replace(GAP, " ")
        == "Left out, for too little steady state: b/3 (12 s) and b/4 (9 s)."
    )
