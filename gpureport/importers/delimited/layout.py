"""The columns of a table in a log, as its header declares them."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from gpureport.importers.values.cells import Column, extra_name

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
        header: the line that declares them, empty when none does.
        absolute: whether time stamps are counts since 1970 or name their offset, so that they are UTC.
    """

    columns: tuple[Column, ...]
    stamp: int | None
    delimiter: str = ","
    header: str = field(default="", compare=False)
    absolute: bool = False

    def holds(self, targets: Collection[str]) -> bool:
        """Return whether a column fills any of the targets."""
        return any(column.target in targets for column in self.columns)

    def replaces(self, other: "Layout | None") -> bool:
        """Return whether a header that declares this layout below another one is believed.

        A word that happens to be a heading, and what is left of a torn header, are not: they name no time where
        rows had one, a single column where there were more, or a column twice.
        """
        if other is None or self == other:
            return True
        names = [column.source for column in self.columns]
        alone = len(names) == 1 < len(other.columns)
        return not alone and len(set(names)) == len(names) and (self.stamp is not None or other.stamp is None)

    def grouped(self) -> "Layout":
        """Return it with dots between the thousands of its numbers."""
        return replace(self, columns=tuple(replace(column, thousands=True) for column in self.columns))

    @property
    def day_first(self) -> bool:
        """Whether dates may begin with the day."""
        return self.delimiter == ";"


def make_layout(
    columns: Sequence[Column], preferred: Collection[str] = (), delimiter: str = ",", header: str = ""
) -> Layout:
    """Return a layout in which one column fills each target; any further one becomes an extra column.

    Args:
        columns: columns in the order of the header.
        preferred: sources that win over others for the same target, else the first one does.
        delimiter: character between cells.
        header: the line that declares them.
    """
    chosen: dict[str, int] = {}
    for place, column in enumerate(columns):
        if column.target not in chosen or (
            column.source in preferred and columns[chosen[column.target]].source not in preferred
        ):
            chosen[column.target] = place
    names = _Names(taken=set(chosen))
    unique = []
    for place, column in enumerate(columns):
        unique.append(column if chosen[column.target] == place else names.aside(column))
    if delimiter == ";":
        unique = [replace(column, decimal=",") for column in unique]
    return Layout(columns=tuple(unique), stamp=chosen.get(STAMP), delimiter=delimiter, header=header)


def split_header(line: str) -> tuple[str, list[str]]:
    """Return the delimiter of a header line, and its cells; one of `,`, `;` and a tabulator.

    A cell after a trailing delimiter has no heading and is named after its position.
    """
    delimiter = next((each for each in (",", ";", "\t") if each in line), ",")
    found = [cell.strip() for cell in line.split(delimiter)]
    return delimiter, found if found[-1] or len(found) == 1 else [*found[:-1], f"column_{len(found)}"]


@dataclass(slots=True)
class _Names:
    """Names of columns, each given once.

    Attributes:
        taken: those that are given.
        numbers: the next number of each name that was wanted again: a line may hold thousands of equal headings.
    """

    taken: set[str]
    numbers: dict[str, Iterator[int]] = field(default_factory=dict)

    def aside(self, column: Column) -> Column:
        """Return a column kept as text under a name that is free, and take the name."""
        base = name = extra_name(column.source)
        numbers = self.numbers.setdefault(base, count(2))
        while name in self.taken:
            name = f"{base}_{next(numbers)}"
        self.taken.add(name)
        return replace(column, target=name, dtype="str", read=str, number=None)
