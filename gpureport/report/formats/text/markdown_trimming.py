"""Trims Markdown to a size: leaves out whole parts, the least important first, and names them in a line."""

from collections.abc import Sequence
from dataclasses import dataclass

ALWAYS, FINDINGS, MIDDLE, LAST = range(4)
"""How important a part is: always kept, then findings, then the rest."""


@dataclass(frozen=True, slots=True)
class MarkdownPart:
    """Some lines, their name in the note on what was left out, and how important they are."""

    name: str
    rank: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """Its lines, each ended."""
        return "".join(f"{line}\n" for line in self.lines)


def trim_to_size(parts: Sequence[MarkdownPart], limit: int) -> str:
    """Return the parts in order, as many as fit into a number of bytes; of findings those that come first.

    Args:
        parts: from top to bottom; the last is what a reader looks for at the end.
        limit: bytes as UTF-8.
    """
    shown, missed = parts, _omission_note([])
    while sum(len(part.text.encode()) for part in shown) + len(missed.encode()) > limit:
        worst = max((part for part in shown if part.rank != ALWAYS), key=lambda part: part.rank, default=None)
        if worst is None:
            return _cut_text("".join(part.text for part in shown), missed, limit)
        # of one rank the last goes first
        dropped = next(part for part in reversed(shown) if part.rank == worst.rank)
        shown = [part for part in shown if part is not dropped]
        missed = _omission_note([part for part in parts if not any(part is other for other in shown)])
    return "".join([*(part.text for part in shown[:-1]), missed, shown[-1].text])


def _omission_note(parts: Sequence[MarkdownPart]) -> str:
    """Return the line that names what was left out; empty where nothing was."""
    findings = [part.name for part in parts if part.rank == FINDINGS]
    names = [part.name for part in parts if part.rank != FINDINGS and part.lines]
    if findings:
        names.insert(0, f"findings {findings[0]} to {findings[-1]}" if len(findings) > 1 else f"finding {findings[0]}")
    return (
        f"\n**Cut to fit. Left out: {'; '.join(names)}. The HTML and JSON reports hold all of it.**\n" if names else ""
    )


def _cut_text(text: str, missed: str, limit: int) -> str:
    """Return text cut anywhere, if even what is always kept is too long."""
    return text.encode()[: limit - len(missed.encode())].decode(errors="ignore") + missed
