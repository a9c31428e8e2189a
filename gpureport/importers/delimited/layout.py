"""The columns of a table in a log, as its header declares them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from gpureport.importers.delimited.cells import Column

STAMP = "timestamp"
"""Target of the column that holds the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Columns, one a cell, in order.

    Attributes:
        columns: how each cell of a row is read.
        stamp: position of the time stamp, None when there is none.
        delimiter: character between cells. With a semicolon the decimal sign is a comma and dates begin with the
            day, as spreadsheets write them where the comma is the decimal sign.
    """

    columns: tuple[Column, ...]
    stamp: int | None
    delimiter: str = ","

    def holds(self, targets: Collection[str]) -> bool:
        """Return whether a column fills any of the targets."""
        return any(column.target in targets for column in self.columns)

    @property
    def day_first(self) -> bool:
        """Whether dates may begin with the day."""
        return self.delimiter == ";"


def layout(columns: Sequence[Column], preferred: Collection[str] = (), delimiter: str = ",") -> Layout:
    """Return a layout in which every target is filled once; what else names one becomes an extra column.

    Args:
        columns: columns in the order of the header.
        preferred: sources that win over others for the same target, else the first one does.
        delimiter: character between cells.
    """
    chosen: dict[str, int] = {}
    for place, column in enumerate(columns):
        if column.target not in chosen or (
            column.source in preferred and columns[chosen[column.target]].source not in preferred
        ):
            chosen[column.target] = place
    taken = set(chosen)
    unique = []
    for place, column in enumerate(columns):
        unique.append(column if chosen[column.target] == place else _extra(column, taken))
    if delimiter == ";":
        unique = [replace(column, decimal=",") for column in unique]
    return Layout(columns=tuple(unique), stamp=chosen.get(STAMP), delimiter=delimiter)


def cells(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, and its cells; one of `,`, `;` and a tabulator."""
    delimiter = next((each for each in (",", ";", "\t") if each in line), ",")
    return delimiter, [cell.strip() for cell in line.split(delimiter)]


def extra_name(source: str) -> str:
    """Return the name of the column that keeps what has no place of its own."""
    return "extra_" + "".join(character if character.isalnum() else "_" for character in source)


def _extra(column: Column, taken: set[str]) -> Column:
    """Return a column kept as text under a name that is free, and take the name."""
    base = extra_name(column.source)
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return replace(column, target=name, dtype="str", read=str, number=None)
