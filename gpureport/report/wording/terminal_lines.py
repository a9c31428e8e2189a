"""Wrapped lines of text with styles. Other control sequences are removed."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gpureport.report.wording import display

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
_WORD = re.compile(r"( *)([^ ]+)")
_ASCII = str.maketrans(
    {"\N{MULTIPLICATION SIGN}": "x", "\N{MINUS SIGN}": "-", "→": "->", "·": "|", "…": "...", "°": ""}
    | {"≥": ">=", "≤": "<=", "±": "+/-"}
)


@dataclass(frozen=True, slots=True)
class Line:
    text: str = ""
    style: str = ""
    tail: str = ""
    tail_style: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Line width, whether only ASCII is allowed, and whether styles become terminal codes."""

    width: int = 80
    ascii: bool = False
    colour: bool = False

    def wrap(self, text: str, indent: int = 0, name: str = "", style: str = "") -> Iterator[Line]:
        """Wrap text after a name. Words longer than a line stay whole so that they can be copied."""
        line = display.pad_to_width(name, indent)
        begun = False
        for gap, word in _WORD.findall(text):
            if begun and display.terminal_width(line + gap + word) > max(self.width, indent + 20):
                yield Line(line, style)
                line, begun = " " * indent, False
            line, begun = line + (gap if begun else "") + word, True
        if begun or name:
            yield Line(line.rstrip(), style)

    def column(self, text: str, width: int) -> str:
        shown = display.shorten_middle(text, width)
        while display.terminal_width(shown) > width:
            shown = display.shorten_middle(shown, len(shown) - 1)
        return display.pad_to_width(shown, width)

    def render(self, lines: Iterable[Line]) -> str:
        rendered = ""
        for line in lines:
            text, tail = self._printable(line.text), self._printable(line.tail).rstrip()
            for part, style in [(text, line.style), (tail, line.tail_style)] if tail else [(text.rstrip(), line.style)]:
                code = _STYLES[style] if self.colour and part else ""
                rendered += f"{code}{part}{_RESET}" if code else part
            rendered += "\n"
        return rendered

    def _printable(self, text: str) -> str:
        text = "".join(char for char in text.replace(display.GAP, " ") if char.isprintable())
        return text.translate(_ASCII).encode("ascii", "replace").decode() if self.ascii else text


PIPE = Page()  # a pipe, or a file: 80 columns without colour
