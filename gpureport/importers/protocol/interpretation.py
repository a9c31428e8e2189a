"""How a source was understood, kept for a person who wants to check it."""

from dataclasses import dataclass
from enum import StrEnum

from gpureport.importers.values.cells import Value

PLACE_IN_TICK = "place in the tick"
"""What identifies GPUs where no column does."""


class Role(StrEnum):
    """What becomes of a column."""

    TIME = "time"
    IDENTITY = "identity"
    ATTRIBUTE = "attribute"
    SERIES = "series"
    CLOCK_EVENTS = "clock events"
    EXTRA = "extra"


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpretedColumn:
    """A column of a source, and one cell of it as an example.

    Attributes:
        heading: its heading as written, or as it was told.
        source: the name it has where it comes from, in present spelling.
        unit: the unit its heading states, empty when it states none.
        assumed: the unit of a cell that states none; empty for what is no number.
        target: the column of the series or attribute it fills.
        role: what becomes of it.
        translated: whether a person wrote its heading, and `source` is what it was taken for.
        cell: a cell near the beginning of the log; empty where there is none that holds a value.
        value: what the cell became; microseconds for a time; None where there is no cell.
    """

    heading: str
    source: str
    unit: str
    assumed: str
    target: str
    role: Role
    translated: bool = False
    cell: str = ""
    value: Value | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InterpretedBlock:
    """Lines of a source that one form reads.

    Attributes:
        form: what it is called; `text` for lines that no form reads.
        opening: the line that begins the block.
        first_line: number of that line.
        lines: non-empty lines of the block.
        rows: rows read of it, before any is left out for its GPU or its time.
    """

    form: str
    opening: str
    first_line: int
    lines: int = 0
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Interpretation:
    """What identified the columns, the GPUs and the times of a source.

    Attributes:
        columns_by: `header`, `--columns` or `content`.
        columns_notes: notes of the account that say more of it.
        gpus_by: fields that told GPUs apart, or PLACE_IN_TICK; none where there is one GPU only.
        gpus_notes: notes of the account that say more of it.
        order_notes: notes on why stamps run backwards; None when they never do.
        blocks: blocks of a source that holds forms, in its order; none where it is a table from end to end.
    """

    columns_by: tuple[str, ...] = ("header",)
    columns_notes: tuple[str, ...] = ()
    gpus_by: tuple[str, ...] = ()
    gpus_notes: tuple[str, ...] = ()
    order_notes: tuple[str, ...] | None = None
    blocks: tuple[InterpretedBlock, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of the account that are said here."""
        return (*self.columns_notes, *self.gpus_notes, *(self.order_notes or ()))
