"""Names of runs in a sentence, consecutive numbers as a range, and statements that several runs have in common."""

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from gpureport.report.wording import display

Key = TypeVar("Key", bound=Hashable)
Holder = TypeVar("Holder")

_ENDING = re.compile(r"/?\d{1,9}$")
_NUMBERED = re.compile(r"(.+\D)(\d{1,9})", re.DOTALL)
_LONGEST = 48
"""Most characters of a name in a sentence that must not be cut."""


def group_holders(pairs: Iterable[tuple[Key, Holder]]) -> dict[Key, list[Holder]]:
    """Return for each fact the runs, steps or figures that it holds for, all in the order in which they come."""
    groups: dict[Key, list[Holder]] = {}
    for key, holder in pairs:
        groups.setdefault(key, []).append(holder)
    return groups


def clean_name(name: str) -> str:
    """Return a name for a sentence that must not be cut, shortened in its middle where it is endless."""
    return display.shorten_middle(display.clean(name), _LONGEST)


def list_labels(labels: Sequence[str]) -> str:
    """Return names as a list in a sentence, those numbered one after the other as a range: `a/1 to /3 and b`."""
    ranges: list[list[str]] = []
    for label in labels:
        if ranges and _follows(ranges[-1][-1], label):
            ranges[-1].append(label)
        else:
            ranges.append([label])
    texts = [first if not rest else f"{first} to {_ENDING.findall(rest[-1])[-1]}" for first, *rest in ranges]
    return display.join_words(texts)


def _follows(before: str, after: str) -> bool:
    one, other = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    return bool(one and other and one[1] == other[1] and int(other[2]) == int(one[2]) + 1)
