"""Runs set against a baseline: the table, and what its notes say of rules."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.training.training_goals import NO_GOALS
from gpureport.report.sections.comparison.earlier_comparison import compare_with_earlier
from gpureport.testing import Work
from tests.comparison.runs import level, sampled


def runs(label: str, amounts: Sequence[float]) -> list[SampledRun]:
    """Return runs of five minutes that did so much work."""
    made = (sampled(f"{label} {place}", util=level(90, 300, place)) for place in range(len(amounts)))
    return [
        replace(
            run, analysis=replace(run.analysis, run=replace(run.analysis.run, work=Work(amount=amount, unit="images")))
        )
        for run, amount in zip(made, amounts, strict=True)
    ]


@pytest.mark.parametrize("sides", [((1000,), (1990, 2000, 2010)), ((990, 1000, 1010), (2000,))], ids=["old", "new"])
def test_how_a_rule_decides_on_a_single_run_holds_for_either_side(sides: tuple[Sequence[float], ...]) -> None:
    """The baseline may be the single run: then it is taken to scatter as the checked ones do."""
    earlier, later = runs("old", sides[0]), runs("new", sides[1])
    (note,) = [
        note
        for note in compare_with_earlier("Baseline", earlier, later, NO_GOALS, is_baseline=True).notes
        if "rule" in note
    ]
    assert note == (
        "A rule on a change decides on what is unconfirmed here: a single run is taken to vary as much as those "
        "it is compared with. It fails where the whole interval lies beyond its size."
    )
