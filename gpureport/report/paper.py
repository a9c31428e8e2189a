"""Pages of paper that text, tables and figures are put on from top to bottom; lengths are in points."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import BinaryIO

import matplotlib as mpl
from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
from matplotlib.figure import Figure
from matplotlib.ft2font import LoadFlags
from matplotlib.lines import Line2D

from gpureport.report import charts, fixed_colours, fonts
from gpureport.report.palette import DARK_TEXT

WIDTH, HEIGHT = 595.276, 841.89
MARGIN = 44.0
INNER = WIDTH - 2 * MARGIN
_TOP, _BOTTOM = HEIGHT - 48.0, 50.0
PDF_SETTINGS: dict[str, int] = {"pdf.fonttype": 42}
"""Settings of matplotlib beside those of the figures: text in the fonts' own form."""

_SOFT, _RULE = "#59636e", "#d3d9e0"
_LEADING = 1.38
_PADDING = 8.0
_WHOLE = 12
"""Most lines of a table row that are kept on one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hand:
    """How text is written: its size, weight and colour."""

    size: float = 8.0
    bold: bool = False
    colour: str = DARK_TEXT

    @property
    def step(self) -> float:
        """Distance of two lines."""
        return self.size * _LEADING


PLAIN, STRONG = Hand(), Hand(bold=True)
QUIET, SMALL = Hand(colour=_SOFT), Hand(size=6.8, colour=_SOFT)


@cache
def _advance(char: str, *, bold: bool) -> float:
    """Return the width of a character in text of one point."""
    font = fonts.opened(fonts.shipped()[1 if bold else 0])
    font.set_size(100, 72)
    drawn = ord(char) if font.get_char_index(ord(char)) else ord(fonts.REPLACEMENT)
    return float(font.load_char(drawn, flags=LoadFlags.NO_HINTING).linearHoriAdvance) / 65536 / 100


def width(text: str, hand: Hand) -> float:
    """Return how wide the widest line is."""
    return hand.size * max(sum(_advance(char, bold=hand.bold) for char in line) for line in text.split("\n"))


def wrapped(text: str, room: float, hand: Hand = PLAIN) -> list[str]:
    """Return text in lines that fit; a word too long for a line is cut."""
    return [line for given in text.split("\n") for line in _filled(given.split(" "), room, hand)]


def _filled(words: Sequence[str], room: float, hand: Hand) -> list[str]:
    lines, line = [], ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if width(longer, hand) <= room:
            line = longer
            continue
        if line:
            lines.append(line)
        *full, line = _cut(word, room, hand)
        lines.extend(full)
    return [*lines, line]


def _cut(word: str, room: float, hand: Hand) -> list[str]:
    pieces, used = [""], 0.0
    for char in word:
        wide = hand.size * _advance(char, bold=hand.bold)
        if used + wide > room and pieces[-1]:
            pieces.append("")
            used = 0.0
        pieces[-1] += char
        used += wide
    return pieces


class Paper:
    """Pages in the making; `at` is how far above the lower edge of the page the next line begins."""

    def __init__(self, drawable: frozenset[int]) -> None:
        """Begin with an empty page; `drawable` are the characters that the fonts hold."""
        self._drawable = drawable
        self._pages: list[Figure] = []
        self._turn(Figure())

    def _turn(self, figure: Figure) -> None:
        """Go on with a new page."""
        figure.set_size_inches(WIDTH / 72, HEIGHT / 72)
        FigureCanvasPdf(figure)
        self._pages.append(figure)
        self.at = _TOP

    def room(self, height: float) -> None:
        """Turn the page when less than this is left on it."""
        if self.at - height < _BOTTOM:
            self._turn(Figure())

    def space(self, height: float) -> None:
        """Leave some room, but not at the head of a page."""
        if self.at < _TOP:
            self.at -= height

    def rule(self) -> None:
        """Draw a line across the page."""
        y = (self.at + 1) / HEIGHT
        line = Line2D([MARGIN / WIDTH, 1 - MARGIN / WIDTH], [y, y], color=_RULE, linewidth=0.5)
        self._pages[-1].add_artist(line)
        self.at -= 2

    def write(self, text: str, hand: Hand = PLAIN, *, indent: float = 0.0) -> None:
        """Write a paragraph."""
        for line in wrapped(fonts.replaced(text, self._drawable), INNER - indent, hand):
            self.room(hand.step)
            self._line(line, MARGIN + indent, hand)
            self.at -= hand.step

    def row(self, cells: Sequence[tuple[str, Hand]], widths: Sequence[float], numeric: Sequence[bool]) -> None:
        """Write texts side by side in columns of these widths, figures to the right, and a line below."""
        columns = [
            wrapped(fonts.replaced(text, self._drawable), room - _PADDING, hand)
            for (text, hand), room in zip(cells, widths, strict=True)
        ]
        self.room(min(max(map(len, columns)), _WHOLE) * PLAIN.step)
        for line in zip_longest(*columns, fillvalue=""):
            self.room(PLAIN.step)
            left = MARGIN
            for text, (_, hand), room, right in zip(line, cells, widths, numeric, strict=True):
                self._line(text, left + room - _PADDING if right else left, hand, right=right)
                left += room
            self.at -= PLAIN.step
        self.rule()

    def _line(self, text: str, x: float, hand: Hand, *, right: bool = False) -> None:
        if text:
            place = (x / WIDTH, (self.at - hand.size) / HEIGHT)
            weight, side = ("bold" if hand.bold else "normal"), ("right" if right else "left")
            self._pages[-1].text(
                *place, text, size=hand.size, weight=weight, color=hand.colour, ha=side, parse_math=False
            )

    def figure(self, drawn: Figure, heading: str) -> None:
        """Put a figure at the head of a page of its own; what follows is written below it."""
        wide, high = drawn.get_figwidth() * 72, drawn.get_figheight() * 72
        scale = min(INNER / wide, 1.0, (_TOP - _BOTTOM - 30) / high)
        self._turn(drawn)
        self.write(heading, Hand(size=9.5, bold=True))
        floor = self.at - high * scale
        for axes in drawn.axes:
            box = axes.get_position()
            size = (box.width * wide * scale / WIDTH, box.height * high * scale / HEIGHT)
            axes.set_position(
                ((MARGIN + box.x0 * wide * scale) / WIDTH, (floor + box.y0 * high * scale) / HEIGHT, *size)
            )
        self.at = floor - 6

    def save(self, stream: BinaryIO, footer: str, metadata: dict[str, object]) -> None:
        """Write all pages as PDF, each with a footer and its number."""
        settings = charts.STYLE | PDF_SETTINGS
        with mpl.rc_context(settings), warnings.catch_warnings(), PdfPages(stream, metadata=metadata) as file:  # type: ignore[arg-type]  # names as literals only
            warnings.filterwarnings("ignore", message="Glyph .* missing from")
            for number, page in enumerate(self._pages, 1):
                page.text(MARGIN / WIDTH, 28 / HEIGHT, footer, size=6.8, color=_SOFT, parse_math=False)
                count = f"Page {number} of {len(self._pages)}"
                page.text(1 - MARGIN / WIDTH, 28 / HEIGHT, count, size=6.8, color=_SOFT, ha="right")
                if page.axes:
                    # what an axis consists of is there only once it was laid out
                    page.draw_without_rendering()
                    fixed_colours.fix(page)
                file.savefig(page)
