"""Lines of plain text, wrapped to a width, that can carry a style but nothing else that steers a terminal."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpureport.report.wording import display
from gpureport.report.wording.display import GAP

_STYLES = {
    "heading": "\x1b[1m",
    "problem": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "info": "\x1b[1m",
    "better": "\x1b[32m",
    "worse": "\x1b[31m",
    "soft": "\x1b[2m",
    "": "",
}
_RESET = "\x1b[0m"
_NAME = 16
_WORD = re.compile(r"( *)([^ ]+)")
_ASCII = str.maketrans(
    {"\N{MULTIPLICATION SIGN}": "x", "\N{MINUS SIGN}": "-", "→": "->", "·": "|", "…": "...", "°": " "}
    | {"≥": ">=", "≤": "<=", "±": "+/-"}
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text in one style, and its end in another."""

    text: str = ""
    style: str = ""
    tail: str = ""
    tail_style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """How wide lines may be, and which characters may be used."""

    width: int
    ascii: bool

    def wrapped(self, text: str, indent: int = 0, name: str = "", style: str = "") -> Iterator[Line]:
        """Yield text in lines; a name stands before the first, in a column of its own."""
        column = indent + (max(_NAME, display.terminal_width(name) + 1) if name else 0)
        first = display.pad_to_width(f"{'':{indent}}{name}", column)
        room = max(self.width, column + 20)
        lines = list(_wrap_words(text, room, first, " " * column))
        yield from (Line(line, style) for line in lines or [first.rstrip()])

    def column(self, text: str, width: int) -> str:
        """Return a name in a column of its own, cut in its middle; wide letters take two places."""
        shown = display.shorten_middle(text, width)
        while display.terminal_width(shown) > width:
            shown = display.shorten_middle(shown, len(shown) - 1)
        return display.pad_to_width(shown, width)

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


def _wrap_words(text: str, width: int, first: str, rest: str) -> Iterator[str]:
    """Yield words in lines of at most so many columns; a longer word has a line of its own, so that it can be copied.

    Args:
        text: words with one space or more between them; no-break spaces are parts of words.
        width: columns of a line.
        first: begins the first line.
        rest: begins the others.
    """
    line, empty = first, True
    for gap, word in _WORD.findall(text):
        if not empty and display.terminal_width(line + gap + word) > width:
            yield line
            line, empty = rest, True
        line, empty = line + (word if empty else gap + word), False
    if not empty:
        yield line


def render_lines(lines: Iterable[Line], *, colour: bool, ascii_only: bool = False) -> str:
    """Return lines as text that ends with a line break, without anything that could steer the terminal but styles."""
    return "\n".join(_render_line(line, colour=colour, ascii_only=ascii_only) for line in lines) + "\n"


def _render_line(line: Line, *, colour: bool, ascii_only: bool) -> str:
    """Return a line without anything that could steer the terminal, its own styles aside."""
    parts = [
        (_printable(line.text, ascii_only=ascii_only), line.style),
        (_printable(line.tail, ascii_only=ascii_only).rstrip(), line.tail_style),
    ]
    if not parts[1][0]:
        parts = [(parts[0][0].rstrip(), line.style)]
    return "".join(f"{_STYLES[style]}{text}{_RESET}" if colour and style and text else text for text, style in parts)


def _printable(text: str, *, ascii_only: bool) -> str:
    text = "".join(char for char in text.replace(GAP, " ") if char.isprintable())
    return text.translate(_ASCII).encode("ascii", "replace").decode() if ascii_only else text
