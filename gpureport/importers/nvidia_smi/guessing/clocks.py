"""Which column of MHz is the clock of the multiprocessors, which of the memory."""

import numpy as np

from gpureport import gpus
from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.said import Names, doubtful, likely, listed, unnamed

_SM, _GRAPHICS, _MEMORY, _VIDEO = (f"clocks.current.{part}" for part in ("sm", "graphics", "memory", "video"))
_STEP = 15
"""The multiprocessors' clock moves in steps of 15 MHz or half of that, the memory has some clocks far apart."""


def name(columns: list[Facts]) -> Names:
    """Return what the columns of MHz are."""
    pair = _pair(columns)
    moving = [column for column in columns if _moves(column) and column not in pair]
    fixed = [column for column in columns if not _moves(column) and column not in pair]
    # two clocks that move are told apart where one of them is written twice
    if (pair and not _moves(pair[0])) or len(moving) > 1 or not (pair or moving):
        return _undecided(columns, "they do not move as clocks of the two do")
    main = pair or moving
    reason = "a clock that moves in small steps"
    names: Names = {main[-1].position: likely(_SM, reason)}
    if pair:
        names[pair[0].position] = likely(_GRAPHICS, f"{reason}, the same as that of the multiprocessors")
        names |= {column.position: likely(_VIDEO, f"another {reason[2:]}") for column in moving}
    return names | _memory(fixed, main[-1], columns)


def _moves(column: Facts) -> bool:
    values = np.unique(column.present)
    return len(values) > 1 and bool(np.diff(values).min() <= _STEP)


def _pair(columns: list[Facts]) -> list[Facts]:
    """Return the first two columns that are alike throughout: graphics and multiprocessors have one clock."""
    for place, first in enumerate(columns):
        for second in columns[place + 1 :]:
            if np.array_equal(first.values, second.values, equal_nan=True):
                return [first, second]
    return []


def _memory(fixed: list[Facts], main: Facts, columns: list[Facts]) -> Names:
    """Return the memory clock among the columns of few values, unless it could be the highest clock allowed."""
    if len(fixed) > 1:
        return _undecided(columns, "several take some values far apart")
    if not fixed:
        return {}
    (column,) = fixed
    if column.steady and column.most >= main.most and not known_memory_clock(column.most):
        return {column.position: unnamed("a clock that never changes: of the memory, or the highest allowed")}
    return {column.position: likely(_MEMORY, "a clock that takes some values far apart, as the memory's")}


def known_memory_clock(megahertz: float) -> bool:
    """Return whether a model of the GPU table has this memory clock."""
    cells = [gpu.memory_clock_max_hertz for gpu in gpus.table()]
    return any(cell is not None and cell.value == megahertz * 1e6 for cell in cells)


def _undecided(columns: list[Facts], why: str) -> Names:
    places = listed(column.position for column in columns)
    doubt = f"{places}: which clock is of the multiprocessors, which of the memory; {why}"
    order = sorted(columns, key=lambda column: -column.distinct)
    fields = [_SM, _MEMORY, *[""] * len(columns)]
    return {c.position: doubtful(f, "clocks", doubt) for c, f in zip(order, fields, strict=False)}
