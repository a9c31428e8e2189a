"""What a baseline can hold: the size that a rule on its figures can have, by the interval of one more run."""

import re
from dataclasses import replace

import numpy as np
import pytest

from gpureport.checks.baseline_precision import list_statements
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.testing import CheckOutcome
from tests.checks.test_baseline_changes import worked
from tests.comparison.runs import level, sampled
from tests.nightly.nights import changed

PLACES = (59.2, 60.0, 60.8)


def statements(runs: list[SampledRun]) -> list[str]:
    """Return what is said of a baseline, with plain spaces."""
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in list_statements(runs)]


def test_the_size_that_a_rule_can_hold_is_said() -> None:
    """Of the GPU time per unit of work where the work is known."""
    runs = [worked(f"old {number}", seconds) for number, seconds in enumerate(PLACES)]
    assert statements(runs) == [
        "3 runs spread by 1.3%: a rule on GPU time per unit of work can hold a size of 8% or more."
    ]


@pytest.mark.parametrize("seconds", [59.0, 60.0, 61.5, 63.0])
def test_a_run_like_the_baseline_keeps_a_rule_of_that_size(seconds: float) -> None:
    """The gate decides by the same interval."""
    runs = [worked(f"old {number}", each) for number, each in enumerate(PLACES)]
    (size,) = re.findall(r"hold a size of (\d+%)", statements(runs)[0])
    (check,) = changed(f"change gpu_seconds_per_1000_work <= {size}", runs, [worked("new", seconds)])
    assert check.outcome is CheckOutcome.PASSED


def test_what_is_said_does_not_go_by_the_order_of_the_runs() -> None:
    """Whichever of them is too short to be compared by itself."""
    runs = [worked(f"run {seconds}", seconds) for seconds in (12.0, 60.0, 60.2, 60.4)]
    assert statements(runs) == statements(runs[::-1])


def test_two_runs_hold_the_size_that_the_gate_passes() -> None:
    """Their scatter tells little, which the size allows for."""
    runs = [worked("old 1", 60.0), worked("old 2", 60.6)]
    (line,) = statements(runs)
    (size,) = re.findall(r"^2 runs spread by 0\.7%: .* can hold a size of (\d+%) or more\.$", line)
    (check,) = changed(f"change gpu_seconds_per_1000_work <= {size}", runs, [worked("new", 60.3)])
    assert check.outcome is CheckOutcome.PASSED


def test_without_the_work_a_rule_on_utilisation_is_named() -> None:
    """And what a rule on time would need."""
    runs = [sampled(f"old {seed}", util=level(85 + seed / 2, 600, seed)) for seed in range(3)]
    (line,) = statements(runs)
    assert re.fullmatch(
        r"3 runs spread by 0\.5 points: a rule on GPU utilisation can hold a size of 3 points or more; for one on "
        r"GPU time per unit of work, give --work N:UNIT\.",
        line,
    )


def test_rules_that_runs_are_too_short_for_are_said() -> None:
    """Speed is known of runs whose start-up leaves too little training to tell how busy it keeps the GPUs."""
    runs = []
    for seconds in (24.0, 24.2, 24.4):
        util = np.concatenate([np.zeros(80), level(95, round(seconds * 10) - 80, 1)])
        whole = worked(f"old {seconds}", seconds)
        run = sampled(whole.analysis.run.name, util=util, every=0.1)
        runs.append(
            replace(run, analysis=replace(run.analysis, run=replace(run.analysis.run, work=whole.analysis.run.work)))
        )
    size, use = statements(runs)
    assert "a rule on GPU time per unit of work can hold" in size
    assert use.startswith("No rule on a change of utilisation or idle share can be assessed against them: ")


def test_one_run_that_stands_apart_is_named_at_once() -> None:
    """It makes the baseline useless."""
    runs = [*(worked(f"run-{number}", 60.0 + number / 10) for number in range(5)), worked("run-6", 180.0)]
    assert statements(runs) == [
        "run-6 is 3 times slower than the others: set the baseline without it.",
        "6 runs spread by 56%: too much for a rule on GPU time per unit of work.",
    ]


def test_one_run_apart_from_two_is_to_be_looked_at() -> None:
    """Two that agree are no proof that the third is wrong."""
    runs = [worked("a", 60.0), worked("b", 60.2), worked("c", 90.0)]
    assert statements(runs)[0] == (
        "c is 50% slower than the others, perhaps by chance: look at that run, and record more."
    )
    assert statements([worked("a", 60.0), worked("b", 63.0), worked("c", 90.0)])[0].startswith("3 runs spread by")


def test_one_run_and_runs_too_short_hold_nothing() -> None:
    """The reason is that of a comparison."""
    assert statements([worked("old", 60.0)]) == [
        "1 run shows no spread: with three or more, a rule can hold a smaller size."
    ]
    (line,) = statements([worked(f"old {number}", 12.0 + number) for number in range(3)])
    assert line.startswith("No rule on a change can be assessed against these runs. Less than 20 s was recorded")
