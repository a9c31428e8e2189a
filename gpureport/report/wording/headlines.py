"""How long a headline may be."""

from collections.abc import Sequence

_LONGEST = 16  # most words of a headline; a number and its unit are two


def choose_headline(candidates: Sequence[str]) -> str:
    """Return the first of several headlines, the fullest first, that is short enough; else the last."""
    return next((text for text in candidates if len(text.split()) <= _LONGEST), candidates[-1])
