"""The one way to state once what holds for several runs, steps or figures."""

from collections.abc import Hashable, Iterable
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)
Holder = TypeVar("Holder")


def group_holders(pairs: Iterable[tuple[Key, Holder]]) -> dict[Key, list[Holder]]:
    """Return for each fact all that it holds for, in the order in which they come.

    Args:
        pairs: facts as values, each with a run, a step or a figure that it holds for.
    """
    groups: dict[Key, list[Holder]] = {}
    for key, holder in pairs:
        groups.setdefault(key, []).append(holder)
    return groups
