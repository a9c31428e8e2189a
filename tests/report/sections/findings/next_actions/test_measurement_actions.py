"""What to record next: how many more runs, or how much longer ones, by the numbers."""

import re
from collections.abc import Sequence
from dataclasses import replace

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.sections.findings.next_actions.measurement_actions import build_measurement_actions
from tests.comparison.runs import level, sampled, worked


def step(label: str, seconds: Sequence[float]) -> list[SampledRun]:
    """Return runs of a step that took so long for the same work."""
    runs = [worked(f"{label} {number}", each) for number, each in enumerate(seconds)]
    return [replace(each, analysis=replace(each.analysis, run=replace(each.analysis.run, step=label))) for each in runs]


def advice(*runs: SampledRun) -> str:
    """Return what is advised, with plain spaces."""
    (measurement,) = build_measurement_actions([], [], compare(runs), is_hinted=False)
    return measurement.action.text.replace("\N{NO-BREAK SPACE}", " ")


def test_one_run_against_several_asks_for_more_of_the_one_or_longer_ones() -> None:
    """Two of it show what six of the others would."""
    text = advice(*step("main", (59.2, 60.0, 60.8)), *step("next", (60.2,)))
    assert text == (
        "3 runs and 1 this short only show changes above about 8.3%. To show 5%, take 2 runs of next or runs of about "
        "3 min."
    )


def test_repeated_steps_ask_for_more_of_both() -> None:
    """Where each step has a scatter of its own."""
    text = advice(*step("main", (57, 60, 62.0)), *step("next", (58, 60, 61.0)))
    assert text == (
        "Three runs this short only show changes above about 11%. To show 5%, take 9 runs of each step or runs of "
        "about 5 min."
    )


def test_single_runs_among_repeated_ones_are_asked_to_be_longer() -> None:
    """One run a side shows nothing of how far runs differ, so no number of them is named."""
    single = [sampled(name, step=name, util=level(85, 150, seed)) for seed, name in enumerate(("second", "third"))]
    several = [sampled(f"first {seed}", step="first", util=level(85, 600, 5 + seed)) for seed in range(3)]
    assert re.search(r"To show 5%, take runs of about \d+ h \d+ min\.$", advice(*several, *single))


def test_no_larger_size_is_asked_for_where_nothing_states_one() -> None:
    """A comparison has no rule; where neither more runs nor longer ones suffice, it says so."""
    text = advice(*step("main", (6000, 7200, 8400)), *step("next", (6100, 7200, 8300)))
    assert text == (
        "Three runs of this length only show changes above about 50%. More runs show smaller ones, but no reasonable "
        "number shows 5%."
    )
