"""How often a best group is claimed: where all groups are alike, where two are, and where one is ahead."""

from collections.abc import Sequence
from math import exp, fsum, log

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.comparison.statistics.difference_estimate import estimate_between_runs
from gpureport.comparison.steps.compared_figures import BY_METRIC
from gpureport.comparison.steps.step_figures import TRAINING_RATE
from gpureport.comparison.steps.steps import WholeRecordingFigure
from gpureport.comparison.study.best_group import judge_against_others
from gpureport.comparison.verdicts.figure_evidence import Evidence
from gpureport.comparison.verdicts.work_evidence import convert_to_amounts
from gpureport.testing import Verdict

FIGURE = BY_METRIC[TRAINING_RATE]
TRIALS = 1500


def compare(other: FloatArray, best: FloatArray) -> Evidence:
    """Return the evidence on two groups, by the rates of their runs."""
    sides = tuple(tuple(float(rate) for rate in side) for side in (other, best))
    before, after = (exp(fsum(map(log, side)) / len(side)) for side in sides)
    contrast = estimate_between_runs([log(rate) for rate in sides[0]], [log(rate) for rate in sides[1]])
    assert contrast is not None
    return Evidence(
        figure=FIGURE,
        before=before,
        after=after,
        steady=False,
        contrast=convert_to_amounts(contrast, before),
        reason=None,
        whole=WholeRecordingFigure(before=before, after=after),
        figures=(sides[0], sides[1]),
    )


def claim_rate(levels: Sequence[float], *, seed: int, runs: int = 3, scatter: float = 0.03) -> float:
    """Return how often the best of groups at some levels of the logarithm is called so, against all others."""
    rng = np.random.default_rng(seed)
    claims = 0
    for _ in range(TRIALS):
        groups = [np.exp(rng.normal(level, scatter, runs)) for level in levels]
        best = max(range(len(groups)), key=lambda place: float(np.log(groups[place]).mean()))
        evidence = {str(at): compare(group, groups[best]) for at, group in enumerate(groups) if at != best}
        claims += set(judge_against_others(evidence, {}).values()) == {Verdict.BETTER}
    return claims / TRIALS


@pytest.mark.slow
@pytest.mark.parametrize("levels", [(0.0,) * 2, (0.0,) * 3, (0.0,) * 6, (0.0, 0.0, -1.0), (0.0, 0.0, -1.0, -1.0, -1.0)])
def test_groups_that_are_alike_have_no_best(levels: Sequence[float]) -> None:
    """In one study of twenty at most, also where all others are far behind."""
    assert claim_rate(levels, seed=len(levels)) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 6])
def test_a_best_that_is_far_ahead_is_found(count: int) -> None:
    """Thirty per cent, ten times the scatter between runs."""
    assert claim_rate((0.3, *(0.0,) * (count - 1)), seed=count) > 0.97
