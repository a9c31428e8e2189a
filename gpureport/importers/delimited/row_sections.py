"""What a piece of a log turns into: sections of rows, and all other lines."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.values.cells import Decoded


class LineKind(StrEnum):
    """What a line that is no row can be."""

    HEADER = "header"
    NOISE = "noise"
    EVENT = "event"
    REJECTED = "rejected"
    TORN_OFF = "torn off"
    """The torn part before a row on the same line, which counts as the row's."""


class Dialect(Protocol):
    """What an importer knows about the lines of its logs."""

    def header(self, line: str) -> Layout | None:
        """Return the layout a header line declares, None when it is not a header."""
        ...

    def classify(self, line: str) -> LineKind:
        """Return what a line is that is neither a row nor a header."""
        ...


@dataclass(frozen=True, slots=True)
class NonDataLine:
    """A line that is no row.

    Attributes:
        number: its line.
        kind: what it is.
        reason: why it is no row.
        text: what it says.
        cells: number of its cells when that number is the fault, else 0.
    """

    number: int
    kind: LineKind
    reason: str
    text: str
    cells: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows of one layout.

    Attributes:
        layout: their columns.
        numbers: line of each row in the log, from 1.
        times: stamps as written, in microseconds.
        columns: the other columns, by position.
    """

    layout: Layout
    numbers: IntArray
    times: IntArray
    columns: dict[int, Decoded]

    def select(self, rows: BoolArray | slice) -> "Section":
        """Return some of the rows."""
        return Section(
            layout=self.layout,
            numbers=self.numbers[rows],
            times=self.times[rows],
            columns={position: column.select(rows) for position, column in self.columns.items()},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedPiece:
    """What a piece held.

    Attributes:
        layout: layout in force at its end.
        sections: its rows.
        other_lines: its other non-empty lines.
        lines: number of its non-empty lines; a damaged line that is taken apart counts once a part.
        cut: whether the log ends inside its last line.
        unnamed_cells: what stands before the time stamps of rows without a heading, by number of rows.
    """

    layout: Layout | None
    sections: tuple[Section, ...]
    other_lines: tuple[NonDataLine, ...]
    lines: int
    cut: bool = False
    unnamed_cells: Mapping[str, int] = field(default_factory=dict)
