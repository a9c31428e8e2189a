"""The order in which people expect names with numbers in them: `gpu:2` before `gpu:10`, `step 9` before `step 10`."""

import re

_NUMBER = re.compile(r"([0-9]+)")


def split_numbers(name: str) -> list[tuple[str, int, str]]:
    """Return a name as what numbers in it sort by: their length, then their digits, however many those are."""
    parts = _NUMBER.split(name)
    digits = (number.lstrip("0") if number else None for number in [*parts[1::2], ""])
    return [
        (text, -1 if number is None else len(number), number or "")
        for text, number in zip(parts[::2], digits, strict=True)
    ]
