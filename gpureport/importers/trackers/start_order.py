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
    found: list[tuple[int, list[tuple[str, int, str]], Run]] = []
    known = list(runs)
    for begin, run in sorted(
        ((start(run) or 0, run) for run in known if start(run) is not None), key=lambda each: each[0]
    ):
        first = found[-1][0] if found and begin - found[-1][0] <= _AT_ONCE else begin
        found.append((first, split_numbers(name(run)), run))
    found.sort(key=lambda each: each[:2])
    return [*(run for _, _, run in found), *(run for run in known if start(run) is None)]
