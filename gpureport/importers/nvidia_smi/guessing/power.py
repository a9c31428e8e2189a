"""Which column of watts is the power drawn, which a limit."""

import numpy as np

from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.said import Names, Said, doubtful, likely, listed, unnamed

_DRAW, _LIMIT = "power.draw", "power.limit"
_SMOOTHER = 0.95
"""Share of the other's changes that an average over a second has at most (0.2 to 0.93 in genuine logs)."""
_ALIKE = 0.95
"""Share of the rows in which two names of one measurement agree."""
_NEAR = 0.9
"""A limit is not far below the highest power drawn under it."""


def name(columns: list[Facts]) -> Names:
    """Return what the columns of watts are."""
    measured = [column for column in columns if not column.steady]
    steady = [column for column in columns if column.steady]
    if not measured:
        return _steady(columns)
    names = _limits(steady, max(column.most for column in measured))
    different = [c for place, c in enumerate(measured) if not any(_same(c, other) for other in measured[:place])]
    names |= {c.position: unnamed("the same watts as a column before") for c in measured if c not in different}
    if len(different) == 1:
        return names | {different[0].position: likely(_DRAW, "the only watts that change")}
    return names | _several(different)


def _several(columns: list[Facts]) -> Names:
    """Return which of several measurements is the average over a second, which the power of the moment."""
    first, second = columns[:2]
    rough = float(np.abs(second.steps).mean())
    if len(columns) == 2 and np.abs(first.steps).mean() <= _SMOOTHER * rough:  # noqa: PLR2004 - average and instant
        return {
            first.position: likely(_DRAW, "the first watts, and the smoother ones"),
            second.position: likely("power.draw.instant", "watts that change more than those before"),
        }
    places = listed(column.position for column in columns)
    doubt = f"{places}: which power is {_DRAW}, which of the moment or of another part"
    fields = [_DRAW, *[""] * len(columns)]
    return {c.position: doubtful(f, "watts that change", doubt) for c, f in zip(columns, fields, strict=False)}


def _same(column: Facts, other: Facts) -> bool:
    return bool((column.values == other.values).mean() >= _ALIKE)


def _limits(columns: list[Facts], highest: float) -> Names:
    """Return the limit, where all columns that never change agree on one."""
    near = [column for column in columns if column.least >= _NEAR * highest and not (column.present % 1).any()]
    alike = bool(near) and near == columns and len({column.most for column in columns}) == 1
    names: Names = {column.position: unnamed("watts that never change") for column in columns}
    if alike:
        names[columns[0].position] = likely(_LIMIT, "round watts that never change, not below the power drawn")
    return names


def _steady(columns: list[Facts]) -> Names:
    names: Names = {column.position: unnamed("watts that never change") for column in columns[1:]}
    doubt = f"{listed([columns[0].position])}: power drawn or a limit; it never changes"
    few: Said = likely(_DRAW, "the only watts")
    told = len(columns) == 1 and columns[0].unit and not len(columns[0].steps)
    return names | {columns[0].position: few if told else doubtful(_DRAW, "watts that never change", doubt)}
