"""Lists of machines as Slurm prints them: `gpu[01-04,07],login1`."""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, product
from math import prod

_PART = re.compile(r"(?:[^\s,;\[\]]|\[[^\[\]]*\])+")
_BRACKETS = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")
_MOST = 100_000
"""Machines of a list at most; the largest clusters have a tenth of them."""
_ADDRESS = re.compile(r"[\d.]+")


@lru_cache(1024)
def expand_node_list(text: str) -> tuple[str, ...]:
    """Return the machines of a list, in its order; zeros that lead a number stay. Too long a list stays as it is."""
    parts: list[str] = _PART.findall(text)
    nodes = tuple(islice((node for part in parts for node in _expand_part(part)), _MOST + 1))
    return nodes if len(nodes) <= _MOST else tuple(parts)


def shorten_node(name: str) -> str:
    """Return a machine's name in lower case without its domain, as one tool writes it and another does not."""
    return name.lower() if _ADDRESS.fullmatch(name) else name.lower().partition(".")[0]


def _expand_part(part: str) -> Iterator[str]:
    # what the pattern splits by stands at the odd places
    pieces = _BRACKETS.split(part)
    choices = [[piece] if place % 2 == 0 else list(_list_numbers(piece)) for place, piece in enumerate(pieces)]
    if prod(map(len, choices)) > _MOST:
        yield part
    else:
        yield from map("".join, product(*choices))


def _list_numbers(text: str) -> Iterator[str]:
    """Yield the numbers of a bracket, one more than `_MOST` at most."""
    return islice((number for item in text.split(",") for number in _expand_range(item.strip())), _MOST + 1)


def _expand_range(item: str) -> Iterator[str]:
    ends = _RANGE.fullmatch(item)
    if ends is None or int(ends[2]) - int(ends[1]) > _MOST:
        yield item
    else:
        yield from (str(number).zfill(len(ends[1])) for number in range(int(ends[1]), int(ends[2]) + 1))
