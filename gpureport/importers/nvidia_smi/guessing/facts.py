"""What can be seen of one column without knowing what it is."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gpureport.columns import FloatArray, IntArray
from gpureport.importers.delimited.cells import absent

UNITS = {"%": "%", "MiB": "MiB", "MB": "MiB", "W": "W", "MHz": "MHz"}
"""Units nvidia-smi writes behind the numbers that matter; MB is how it once spelled MiB."""
_NUMBER = re.compile(r"([+-]?\d{1,15}(?:\.\d+)?)(?: ?(%|[A-Za-z][A-Za-z/]*))?")
_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A column of numbers.

    Attributes:
        position: its place, from 0.
        unit: unit its cells state, empty when they state none.
        values: its numbers, NaN where a cell holds none.
        steps: differences between successive numbers of one GPU.
        decimals: whether its numbers are written with decimals.
    """

    position: int
    unit: str
    values: FloatArray
    steps: FloatArray
    decimals: bool

    @property
    def present(self) -> FloatArray:
        """The numbers that are there."""
        return self.values[~np.isnan(self.values)]

    @property
    def least(self) -> float:
        """The smallest number."""
        return float(self.present.min())

    @property
    def most(self) -> float:
        """The largest number."""
        return float(self.present.max())

    @property
    def distinct(self) -> int:
        """How many different numbers there are."""
        return len(np.unique(self.present))

    @property
    def steady(self) -> bool:
        """Whether no GPU's number ever changes."""
        return not self.steps.any() and self.distinct <= _FEW

    @property
    def largest_step(self) -> float:
        """The largest change from one row of a GPU to its next."""
        return float(np.abs(self.steps).max()) if len(self.steps) else 0.0


def held(cells: Sequence[str]) -> list[str]:
    """Return the different texts of a column that say something."""
    return sorted({cell for cell in cells if absent(cell) is None})


def numbers(position: int, cells: Sequence[str], gpus: IntArray) -> Facts | None:
    """Return what a column of numbers in one unit shows, None when it is none.

    Args:
        position: its place, from 0.
        cells: its cells.
        gpus: which GPU each row belongs to, as codes.
    """
    matches = {cell: _NUMBER.fullmatch(cell) for cell in held(cells)}
    units = {match[2] or "" for match in matches.values() if match} - {""}
    if not matches or not all(matches.values()) or len(units) > 1:
        return None
    unit = units.pop() if units else ""
    found = {cell: float(match[1]) for cell, match in matches.items() if match}
    values = np.array([found.get(cell, np.nan) for cell in cells])
    return Facts(
        position=position,
        unit=UNITS.get(unit, unit),
        values=values,
        steps=_steps(values, gpus),
        decimals=any("." in cell for cell in found),
    )


def _steps(values: FloatArray, gpus: IntArray) -> FloatArray:
    there = ~np.isnan(values)
    order = np.argsort(gpus[there], kind="stable")
    same = np.diff(gpus[there][order]) == 0
    steps: FloatArray = np.diff(values[there][order])[same]
    return steps
