"""Runs of a tracker in the order in which they started, so that a chain of steps goes forward."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from gpureport.name_order import split_numbers

_AT_ONCE = 5_000_000
"""Microseconds within which starts are one: no run ends that soon, so their order says nothing (pragmatic)."""

Run = TypeVar("Run")


def sort_by_start(runs: Iterable[Run], start: Callable[[Run], int | None], name: Callable[[Run], str]) -> list[Run]:
    """Return runs by start; those that started at once by name, numbers as numbers; last those without a start.

    Args:
        runs: the runs.
        start: returns when a run started, in microseconds; None where that is not known.
        name: returns what a person calls a run.
    """
    dated: list[tuple[int, Run]] = []
    undated: list[Run] = []
    for run in runs:
        begin = start(run)
        if begin is None:
            undated.append(run)
        else:
            dated.append((begin, run))
    found: list[Run] = []
    together: list[tuple[int, Run]] = []
    for begin, run in sorted(dated, key=lambda each: each[0]):
        if together and begin - together[0][0] > _AT_ONCE:
            found += _sort_by_name(together, name)
            together = []
        together.append((begin, run))
    return [*found, *_sort_by_name(together, name), *undated]


def _sort_by_name(together: Iterable[tuple[int, Run]], name: Callable[[Run], str]) -> list[Run]:
    """Return runs by name, those of one name by start."""
    return [run for _, run in sorted(together, key=lambda each: split_numbers(name(each[1])))]
