"""What is said of one column: its heading, how sure that is, and why."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

Confidence = Literal["high", "medium", "low"]
ORDER: tuple[Confidence, ...] = ("low", "medium", "high")
"""Confidences from the lowest to the highest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What one column is taken for.

    Attributes:
        field: nvidia-smi's name of it, empty when it cannot be named.
        confidence: how sure the name is; low comes with a doubt.
        reason: what speaks for it, in words.
        doubt: what else it could be, in words; empty when nothing that matters.
    """

    field: str
    confidence: Confidence
    reason: str
    doubt: str = ""


Names = dict[int, Said]
"""What is said of columns, by position."""


def sure(field: str, reason: str) -> Said:
    """Return a name that the cells leave no choice about."""
    return Said(field=field, confidence="high", reason=reason)


def likely(field: str, reason: str) -> Said:
    """Return a name that rests on a convention the cells do not contradict."""
    return Said(field=field, confidence="medium", reason=reason)


def doubtful(field: str, reason: str, doubt: str) -> Said:
    """Return the best name of a column that could as well be something else that matters."""
    return Said(field=field, confidence="low", reason=reason, doubt=doubt)


def unnamed(reason: str) -> Said:
    """Return that a column is kept as text."""
    return Said(field="", confidence="high", reason=reason)


def at_most(said: Said, confidence: Confidence) -> Said:
    """Return what is said, not surer than `confidence`."""
    lower = min(said.confidence, confidence, key=ORDER.index)
    return replace(said, confidence=lower if said.field else said.confidence)


def listed(positions: Iterable[int]) -> str:
    """Return the numbers of columns in words, counted from 1: `column 2`, `columns 3, 4 and 7`."""
    first = [str(position + 1) for position in sorted(positions)]
    last = first.pop()
    return f"columns {', '.join(first)} and {last}" if first else f"column {last}"
