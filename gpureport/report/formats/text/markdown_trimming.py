"""Trims Markdown to a size: leaves out whole parts, the least important first, and names them in a line."""

from collections.abc import Sequence
from dataclasses import dataclass

ALWAYS, GAINS, FINDINGS, MIDDLE, LAST = range(5)
"""How important a part is: always kept, then the table of gains, then findings, then the rest."""


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
    size = sum(len(part.text.encode()) for part in parts)
    # the least important first, and of one rank the last
    order = sorted(range(len(parts)), key=lambda place: (parts[place].rank, place))
    dropped: set[int] = set()
    missed = ""
    while size + len(missed.encode()) > limit:
        place = order.pop()
        if parts[place].rank == ALWAYS:
            return _cut_text("".join(part.text for part in parts if part.rank == ALWAYS), missed, limit)
        dropped.add(place)
        size -= len(parts[place].text.encode())
        missed = _omission_note([parts[each] for each in sorted(dropped)])
    shown = [part.text for place, part in enumerate(parts) if place not in dropped]
    return "".join([*shown[:-1], missed, shown[-1]])


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
