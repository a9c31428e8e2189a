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
    """

    columns: tuple[Column, ...]
    stamp: int | None

    def holds(self, targets: Collection[str]) -> bool:
        """Return whether a column fills any of the targets."""
        return any(column.target in targets for column in self.columns)


def layout(columns: Sequence[Column], preferred: Collection[str] = ()) -> Layout:
    """Return a layout in which every target is filled once; what else names one becomes an extra column.

    Args:
        columns: columns in the order of the header.
        preferred: sources that win over others for the same target, else the first one does.
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
    return Layout(columns=tuple(unique), stamp=chosen.get(STAMP))


def extra_name(source: str) -> str:
    """Return the name of the column that keeps what has no place of its own."""
    return "extra_" + "".join(character if character.isalnum() else "_" for character in source)


def _extra(column: Column, taken: set[str]) -> Column:
    """Return a column kept as text under a name that is free, and take the name."""
    base = extra_name(column.source)
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    name = next(name for name in names if name not in taken)
    taken.add(name)
    return replace(column, target=name, dtype="str", read=str)
