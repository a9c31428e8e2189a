"""How sure a headline of steps is."""

from dataclasses import replace

import numpy as np

from gpureport.report.sections.head.headlines.step_headline import describe_certainty
from gpureport.testing import Comparison, Work
from tests.comparison.runs import compared, sampled


def steps_that_hardly_scatter(before: int, after: int, repetitions: tuple[int, ...] = (3, 3)) -> Comparison:
    """Return two steps that last so many seconds and do nearly the same work; a third lasts as the second does."""
    lengths = (before, after, after)
    runs = [
        sampled(
            f"{step}-{number}",
            step=step,
            util=np.full(count, 90.0),
            work=Work(amount=1000 + number / 10, unit="steps"),
        )
        for step, count, runs_of_step in zip(("first", "second", "third"), lengths, repetitions, strict=False)
        for number in range(runs_of_step)
    ]
    return compared(*runs)


def test_an_interval_whose_ends_read_alike_is_left_out() -> None:
    """It says no more than the figure does."""
    assert describe_certainty(steps_that_hardly_scatter(900, 300)) == "67% less (3 runs a step)"


def test_so_is_that_of_no_clear_change() -> None:
    """Of runs so long that no difference is left to print."""
    found = steps_that_hardly_scatter(900, 900)
    narrow = tuple(replace(delta, interval=(-1e-9, 1e-9)) for delta in found.deltas)
    assert describe_certainty(replace(found, deltas=narrow)) == "0%, no clear change (3 runs a step)"


def test_runs_of_steps_that_differ_in_them_are_counted_apart() -> None:
    """Three and three stand for the ends of the chain, where the step between them is one run."""
    uneven, between = ((3, 2), "3 runs against 2"), ((3, 1, 3), "3 runs against 3")
    for repetitions, words in (uneven, between):
        assert describe_certainty(steps_that_hardly_scatter(900, 300, repetitions)) == f"67% less ({words})"
