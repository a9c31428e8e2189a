"""Lines of plain text, wrapped to a width, that can carry a style but nothing else that steers a terminal."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass

from gpureport.report.display import GAP

_STYLES = {
    "heading": "\x1b[1m",
    "problem": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1m",
    "soft": "\x1b[2m",
    "": "",
}
_RESET = "\x1b[0m"
_NAME = 16
_ASCII = str.maketrans(
    {"\N{MULTIPLICATION SIGN}": "x", "·": "|", "…": "...", "°": " ", "≥": ">=", "≤": "<=", "±": "+/-"}
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text, all of one style."""

    text: str = ""
    style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How wide lines may be, and which characters may be used."""

    width: int
    ascii: bool

    def wrapped(self, text: str, indent: int = 0, name: str = "", style: str = "") -> Iterator[Line]:
        """Yield text in lines; a name stands before the first, in a column of its own."""
        column = indent + (max(_NAME, len(name) + 1) if name else 0)
        first = f"{'':{indent}}{name}".ljust(column)
        room = max(self.width, column + 20)
        lines = textwrap.wrap(
            text,
            room,
            initial_indent=first,
            subsequent_indent=" " * column,
            break_on_hyphens=False,
            break_long_words=False,
        )
        yield from (Line(line, style) for line in lines or [first.rstrip()])

    def copied(self, text: str, indent: int, name: str) -> Iterator[Line]:
        """Yield text with a command in it, to be copied: on a line of its own, however long it is."""
        if "nvidia-smi --" in text:
            yield Line(f"{'':{indent}}{name}")
            yield Line(f"{'':{indent}}{text}")
        else:
            yield from self.wrapped(text, indent, name)

    def heading(self, text: str, label: str = "") -> Iterator[Line]:
        """Yield a heading with a blank line above; a label from outside keeps its case."""
        yield Line()
        yield from self.wrapped(", ".join(filter(None, [text.upper(), label])), style="heading")


def finished(line: Line, *, colour: bool, ascii_only: bool) -> str:
    """Return a line without anything that could steer the terminal, its own style aside."""
    text = "".join(char for char in line.text.replace(GAP, " ") if char.isprintable()).rstrip()
    if ascii_only:
        text = text.translate(_ASCII).encode("ascii", "replace").decode()
    return f"{_STYLES[line.style]}{text}{_RESET}" if colour and line.style and text else text
