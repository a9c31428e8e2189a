"""Facts and tables, which every format can print."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gpureport.report.model.head import Change


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A table cell. `small` is a second, smaller line.

    Attributes:
        value: the number, for sorting; None if not recorded.
        flagged: whether the value is an outlier or a failure.
        change: the change from the row above.
    """

    text: str
    small: str = ""
    value: float | None = None
    flagged: bool = False
    change: Change | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    head: Cell
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table. `numeric` says whether each column after the first contains numbers."""

    columns: tuple[str, ...]
    numeric: tuple[bool, ...]
    rows: tuple[Row, ...]
    note: str = field(init=False)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "note", " ".join(self.notes))


def build_table(
    columns: Sequence[str], rows: Iterable[Sequence[Cell | str]], *notes: str, in_words: Sequence[str] = ()
) -> Table:
    """Return a table. Rows start with a heading. The columns `in_words` contain no numbers."""
    cells = ([Cell(text=each) if isinstance(each, str) else each for each in row] for row in rows)
    return Table(
        columns=tuple(columns),
        numeric=tuple(column not in in_words for column in columns[1:]),
        rows=tuple(Row(head=head, cells=tuple(others)) for head, *others in cells),
        notes=tuple(filter(None, notes)),
    )
