"""Which kind of quantity numbers are in a log that writes no units at all."""

from itertools import combinations

import numpy as np

from gpureport.importers.nvidia_smi.guessing.clocks import known_memory_clock
from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.plain import cycles

_DEGREES = (15, 95)
_RANGE, _SLOWLY, _LEAP, _THROUGH = 8, 20, 15, 0.6
"""A temperature spans 8 degrees or more, takes more than 20 rows from end to end, never leaps by 15, and takes most of
the degrees between (pragmatic).
"""
_FULL, _WARM = 90, 20
"""What never changes can be a busy GPU's utilisation from 90 on, and a temperature from 20 on."""
_LINK = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 16.0, 32.0}
"""Generations and widths of a PCIe link."""
_ROWS = 20
"""Fewer rows show no behaviour."""
_JUMP = 30
_TELLING = 5
"""Different values from which on what they have in common is no coincidence."""
_MANY = 10
"""More different values than a memory has clocks."""
_GRID = (0, 7, 8)
"""Clocks are multiples of 15 or 7.5 MHz."""
_CLOCKS = (100, 3500)
_CARDS = (2, 3, 4, 5, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 94, 96, 128, 141, 144, 180, 192, 288)
"""GiB of the memory of cards; the driver reports 0.93 (with ECC) to 1.0 of them."""
_SMALL = 110
_MONOTONE = 1e6
"""Counters of microseconds grow beyond any memory in MiB."""

UNKNOWN, DOUBTFUL, PLAIN = "unknown", "doubtful", "plain"


def kinds(columns: list[Facts]) -> dict[int, str]:
    """Return the unit of each column by position; or PLAIN, UNKNOWN for one that tells nothing, or DOUBTFUL."""
    found = {column.position: _kind(column) for column in columns}
    memory = [column for column in columns if found[column.position] == "MiB"]
    large = [c for c in columns if found[c.position] in {UNKNOWN, DOUBTFUL, "MiB"} and c.most > _SMALL]
    for column in _adding_up(large):
        found[column.position] = "MiB"
    for column in large:
        if memory and found[column.position] == UNKNOWN and _card(column, memory):
            found[column.position] = "MiB"
    return found | _rivalled(columns, found)


def _rivalled(columns: list[Facts], found: dict[int, str]) -> dict[int, str]:
    """Return the columns of which one that never changes could be the better known sister."""
    steady = [c.most for c in columns if c.steady and not c.decimals and found[c.position] == UNKNOWN]
    full = any(_FULL <= most <= 100 for most in steady)  # noqa: PLR2004 - per cent
    warm = any(_WARM <= most <= _DEGREES[1] for most in steady)
    locked = any(_CLOCKS[0] <= most <= _CLOCKS[1] and most % 15 in _GRID for most in steady)
    # only beside a utilisation that is known for one can degrees not be another
    rivals = {"%": full, PLAIN: full or warm or "%" not in found.values(), "MHz": locked}
    hidden = [] if "%" in found.values() else [column for column in columns if _still(column, found)]
    return {column.position: DOUBTFUL for column in hidden} | {
        column.position: DOUBTFUL for column in columns if rivals.get(found[column.position]) and not cycles(column)
    }


def _still(column: Facts, found: dict[int, str]) -> bool:
    """Return whether a column that never changes could be a utilisation."""
    return found[column.position] == UNKNOWN and column.most <= 100 and column.most not in _LINK  # noqa: PLR2004 - per cent


def _kind(column: Facts) -> str:
    if column.decimals:
        return "W"
    if len(column.values) < _ROWS:
        return DOUBTFUL
    if cycles(column):
        return PLAIN
    if column.most <= _SMALL:
        return _small(column)
    return _large(column)


def _small(column: Facts) -> str:
    """Return what numbers up to 110 are: a utilisation that is 0 at times or jumps, or degrees that creep."""
    if column.steady or set(column.present.tolist()) <= _LINK:
        return UNKNOWN
    span = column.most - column.least
    percent = column.most <= 100  # noqa: PLR2004 - per cent
    if column.least == 0:
        return "%" if percent and column.distinct >= _TELLING else DOUBTFUL
    if percent and column.largest_step >= _JUMP:
        return "%"
    slow = np.abs(column.steps).mean() * _SLOWLY <= span and column.largest_step < _LEAP
    through = column.distinct >= _THROUGH * span
    warm = _DEGREES[0] <= column.least and column.most <= _DEGREES[1]
    return PLAIN if warm and span >= _RANGE and slow and through else DOUBTFUL


def _large(column: Facts) -> str:
    values = np.unique(column.present)
    if len(values) >= _TELLING and _CLOCKS[0] <= column.least and column.most <= _CLOCKS[1]:
        on_grid = np.isin(values % 15, _GRID)
        if on_grid.all():
            return "MHz"
    if all(known_memory_clock(value) for value in values.tolist()):
        return "MHz"
    growing = column.most > _MONOTONE and bool((column.steps >= 0).all())
    if column.steady or growing:
        return UNKNOWN
    off_grid = not np.isin(values % 15, _GRID).mean() > 0.5  # noqa: PLR2004 - most of them
    return "MiB" if len(values) >= _MANY and off_grid else DOUBTFUL


def _adding_up(columns: list[Facts]) -> list[Facts]:
    """Return a column that never changes and the two others that make it up, as memory does."""
    moving = [column for column in columns if not column.steady]
    for total in (column for column in columns if column.steady):
        for pair in combinations(moving, 2):
            rest = total.values - pair[0].values - pair[1].values
            rest = rest[~np.isnan(rest)]
            if len(rest) and rest.min() >= -8 and rest.max() <= 1024 and np.ptp(rest) <= 8:  # noqa: PLR2004 - see memory
                return [total, *pair]
    return []


def _card(column: Facts, memory: list[Facts]) -> bool:
    """Return whether a column is as large as the memory of a card, and as what is used of it at least."""
    size = column.most / 1024
    fits = any(0.93 * card <= size <= card for card in _CARDS)
    return column.steady and fits and column.least >= max(other.most for other in memory)
