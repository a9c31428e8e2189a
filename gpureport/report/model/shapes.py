"""The generic shapes of a section: statements, tables, paragraphs. Every format shows them without new code."""

from dataclasses import dataclass, field

from gpureport.report.model.head import Change

HEADING = "heading"
"""Metadata of a field whose tables or statements every text format shows under this heading."""

EMPTY = "empty"
"""Metadata of such a field: what text formats say where it is empty; without it they leave the heading out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A named statement."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A table cell.

    Attributes:
        text: what it says.
        small: a small line under it.
        value: the value behind it; None when not recorded.
        flagged: whether it stands apart from the others.
        change: how the figure changed from the row above.
    """

    text: str
    small: str = ""
    value: float | None = None
    flagged: bool = False
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A table row: a heading cell and the cells after it."""

    head: Cell
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; `numeric` says of each column after the first whether it holds figures; `note` is all notes in one."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[Row, ...]
    note: str = field(init=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Join the notes."""
        object.__setattr__(self, "note", " ".join(self.notes))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section as every text format shows it.

    Attributes:
        heading: what it is about.
        label: the run or the pair of steps it is about; empty when it is about all.
        table: shown with its notes.
        facts: named statements.
    """

    heading: str
    label: str = ""
    table: Table | None = None
    facts: tuple[Fact, ...] = ()
