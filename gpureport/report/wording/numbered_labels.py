"""Names of runs in a sentence; consecutive numbers as a range."""

import re
from collections.abc import Iterator, Sequence

from gpureport.report.wording import display

_ENDING = re.compile(r"/?\d{1,9}$")
_NUMBERED = re.compile(r"(.+\D)(\d{1,9})", re.DOTALL)

_LONGEST = 48
"""Most characters of a name in a sentence that must not be cut."""


def clean_name(name: str) -> str:
    """Return a name for a sentence that must not be cut, shortened in its middle where it is endless."""
    return display.shorten_middle(display.clean(name), _LONGEST)


def list_labels(labels: Sequence[str]) -> str:
    """Return names as a list in a sentence: `a/1 to /3 and b`."""
    return display.join_words(list(_label_ranges(labels)))


def _label_ranges(labels: Sequence[str]) -> Iterator[str]:
    """Yield labels, those that are numbered one after the other as `name/1 to /3`."""
    rest = list(labels)
    while rest:
        count = _consecutive(rest)
        first, last = rest[0], rest[count - 1]
        yield first if count == 1 else f"{first} to {_ending(last)}"
        rest = rest[count:]


def _consecutive(labels: Sequence[str]) -> int:
    """Return how many labels at the beginning differ by a number that goes up by one."""
    count = 1
    while count < len(labels) and _follows(labels[count - 1], labels[count]):
        count += 1
    return count


def _follows(before: str, after: str) -> bool:
    one, other = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(after)
    return bool(one and other and one[1] == other[1] and int(other[2]) == int(one[2]) + 1)


def _ending(label: str) -> str:
    """Return the number of a label, with the stroke before it."""
    return str(_ENDING.findall(label)[-1])
