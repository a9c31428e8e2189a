"""What columns of numbers without a unit are in a log that writes units: temperatures, the index, and others."""

import re

import numpy as np

from gpureport.importers.nvidia_smi.guessing.facts import Facts
from gpureport.importers.nvidia_smi.guessing.said import Names, doubtful, likely, listed, sure, unnamed

_COLD, _HOT = 15, 110
"""Degrees Celsius a GPU in a room can have."""
_LEAP = 20
"""Degrees a temperature changes by within some seconds at most (12 in a second in genuine logs)."""
_NEARLY_ALL = 0.95
_RELATED = 0.5
"""Correlation from which on two columns rise together (pragmatic)."""
_TAKEN = 3
"""Different values from which on a column is a measurement."""
_CYCLES, _GPUS = 4, 32
"""Times an index starts over, and GPUs a machine has at most."""
_LANES = {16.0, 32.0}
"""Widths of a PCIe link that could be degrees."""
_GPU, _MEMORY = "temperature.gpu", "temperature.memory"
_DRIVER = re.compile(r"\d{3}\.\d{2}")


def name(columns: list[Facts]) -> Names:
    """Return what the columns of numbers without a unit are."""
    names: Names = {
        column.position: likely("driver_version", "one number of the form drivers have")
        for column in columns
        if column.decimals and column.steady and _DRIVER.fullmatch(f"{column.most:.2f}")
    }
    index = next((column for column in columns if cycles(column)), None)
    if index is not None:
        names[index.position] = sure("index", "0, 1, 2 and so on, over and over")
    left = [column for column in columns if column.position not in names]
    degrees = [column for column in left if temperature(column)]
    names |= _temperatures(degrees)
    return {c.position: unnamed("numbers without a unit that tell nothing") for c in left} | names


def cycles(column: Facts) -> bool:
    """Return whether a column counts from 0 to its largest number over and over, as the index of GPUs does."""
    values, size = column.present, int(column.most) + 1
    if len(values) < len(column.values) or len(values) < _CYCLES * size or not 1 < size <= _GPUS or values[0] != 0:
        return False
    # a torn row costs a cycle, not the column
    return bool((np.diff(values) % size == 1).mean() >= _NEARLY_ALL)


def temperature(column: Facts) -> bool:
    """Return whether a column can be a temperature: whole degrees that do not leap."""
    if column.decimals or column.least < _COLD or column.most > _HOT or set(column.present.tolist()) <= _LANES:
        return False
    return column.largest_step <= _LEAP


def _temperatures(columns: list[Facts]) -> Names:
    if len(columns) == 1:
        (column,) = columns
        moves = column.distinct >= _TAKEN
        reason = "whole numbers a GPU's degrees can be" + (", changing little by little" if moves else "")
        return {column.position: likely(_GPU, reason)}
    if len(columns) == 2:  # noqa: PLR2004 - of the GPU and of its memory
        first, second = columns
        if _together(first, second):
            reason = "degrees in nvidia-smi's usual order, which rise together"
            return {first.position: likely(_GPU, reason), second.position: likely(_MEMORY, reason)}
    if not columns:
        return {}
    places = listed(column.position for column in columns)
    doubt = f"{places}: which temperature is the GPU's, which its memory's or what is left to a limit"
    fields = [_GPU, *[""] * len(columns)]
    return {c.position: doubtful(f, "degrees", doubt) for c, f in zip(columns, fields, strict=False)}


def _together(first: Facts, second: Facts) -> bool:
    """Return whether two rise together, unlike a margin to a limit, and the first is not always the hotter one."""
    both = ~np.isnan(first.values + second.values)
    a, b = first.values[both], second.values[both]
    if min(first.distinct, second.distinct) < _TAKEN or not (a.std() and b.std()):
        return False
    return bool(np.corrcoef(a, b)[0, 1] >= _RELATED and (b >= a).mean() > 1 - _NEARLY_ALL)
