"""Whether the runs of steps were recorded in turn, A B A B, or all runs of one step before those of the next."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from gpureport.comparison.steps.folder_order import share_a_clock
from gpureport.comparison.steps.steps import Step


def find_steps_not_in_turn(steps: Sequence[Step]) -> Iterator[tuple[Step, Step]]:
    """Yield neighbours of which all runs of one were over before the first of the other began, the earlier one first.

    Single runs have no turns to take, and where times do not compare nothing is known.

    Args:
        steps: in the order compared.
    """
    for pair in pairwise(steps):
        runs = [analysis.run for step in pair for analysis in step.analyses]
        if min(len(step.runs) for step in pair) < 2 or not share_a_clock(runs):  # noqa: PLR2004 - a turn takes repetitions
            continue
        earlier, later = sorted(pair, key=_start)
        if max(analysis.run.ended for analysis in earlier.analyses) <= _start(later):
            yield earlier, later


def _start(step: Step) -> int:
    return min(analysis.run.started for analysis in step.analyses)
