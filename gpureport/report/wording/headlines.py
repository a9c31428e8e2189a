"""How long a headline may be."""

from collections.abc import Sequence

LONGEST = 16
"""Most words of a headline."""


def count_words(text: str) -> int:
    """Return how many words a sentence has; a number and its unit are two."""
    return len(text.split())


def choose_headline(candidates: Sequence[str]) -> str:
    """Return the first of several headlines, the fullest first, that is short enough; else the last."""
    return next((text for text in candidates if count_words(text) <= LONGEST), candidates[-1])
