"""Guesses what a column of an unknown table holds, from its heading and its cells."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpureport.importers.logs.mapped.loose_quantities import find_written_unit, parse_loose_quantity
from gpureport.importers.protocol.column_map import ISO
from gpureport.importers.values import quantities
from gpureport.importers.values.column_names import (
    HOST_COLUMNS,
    INDEX_COLUMNS,
    LOOSE_GPU_COLUMNS,
    mentions_time,
    recognise_column,
    resembling_metric,
)
from gpureport.importers.values.heading_words import UNIT_WORDS, heading_words, stated_unit_word
from gpureport.importers.values.timestamps import parse_epoch_time, parse_iso_time
from gpureport.metrics import BY_NAME, Scope
from gpureport.units import UNITS

_WRITTEN = (
    *(
        f"{date} {time}"
        for date in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y")
        for time in ("%H:%M:%S", "%H:%M:%S.%f", "%I:%M:%S %p")
    ),
    "%a %b %d %H:%M:%S %Y",
)
"""Times as spreadsheets and `date` write them; without seconds, rows of a minute could not be distinguished."""
_GPU = re.compile(r"(?:gpu|cuda|device|card)[ _:.\-]*(\d{1,3})", re.IGNORECASE | re.ASCII)
_HOST = frozenset({"cpu", "host", "system", "swap"})
_OTHER = frozenset(["nvme", "ssd", "disk", "drive", "nic", "board", "ambient", "inlet", "chassis", "psu"])
"""Devices that are neither a GPU nor what is known of its machine."""
_NOT_OF_HOST = frozenset({"temperature", "clock", "power", "volt", "free", "available", "percent"})
"""Quantities of a machine that a draft leaves out."""
_FOREIGN = {"rpm", "wh", "kwh", "j", "mj", "kj", "joule", "joules", "v", "mv", "volt", "volts", "f", "fahrenheit", "k"}
"""Words that state a unit in which no metric of a table is counted."""
_UNPROVEN = frozenset({"b", "c"})
"""Words too short to say that a column holds nothing else."""
_LIKELY_WATTS = (100.0, 1_500.0)
"""Decimals in this range, from a GPU, are watts: nothing else a script logs lies there with a fraction."""
_MIB, _GIB = 2.0**20, 2.0**30
_SIZES: dict[str, tuple[tuple[str, ...], float, float]] = {
    "gpu_memory_total_bytes": (("B", "MiB", "GiB"), 512 * _MIB, 300 * _GIB),
    "host_memory_used_bytes": (("B", "MiB", "GiB"), 256 * _MIB, 8_192 * _GIB),
    "host_memory_total_bytes": (("B", "MiB", "GiB"), 1 * _GIB, 8_192 * _GIB),
    "By": (("B", "MiB", "GiB"), 1 * _MIB, 300 * _GIB),
    "W": (("W", "mW"), 3.0, 2_500.0),
    "Hz": (("MHz", "GHz", "kHz", "Hz"), 1e8, 2e10),
    "Cel": (("C",), 0.0, 130.0),
}
"""Units that tools count a metric or a base unit in, and how small and large its highest value can be.

Pragmatic: a GPU that is idle holds a few MiB and draws some watts, the largest holds 288 GB and draws 1.4 kW.
"""
_MOST_PERCENT = 200.0
"""Fans alone turn faster than the whole."""
_GPU_SUFFIX = re.compile(r"[ _:.\-](\d{1,2})$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnGuess:
    """What a column may hold.

    Attributes:
        metric: metric; empty when there is none like it.
        unit: unit of its numbers; empty where neither heading nor cells prove one.
        units: units that come into question then.
        gpu: index of the GPU; None for the machine, or where the heading names none.
        sure: whether heading and cells agree; a guess from the cells alone is not.
    """

    metric: str = ""
    unit: str = ""
    units: tuple[str, ...] = ()
    gpu: int | None = None
    sure: bool = False


def time_formats(heading: str, cells: Sequence[str]) -> list[str]:
    """Return the possible formats of a column of times, the likeliest first."""
    if not cells or not mentions_time(heading):
        return []
    if parse_iso_time(cells[0]) is not None:
        return [ISO]
    if number := quantities.parse_number(cells[0]):
        return [f"epoch_{unit}" for unit in ("s", "ms", "us", "ns") if _is_now(number, unit)][:1]
    return [pattern for pattern in _WRITTEN if all(_is_written(cell, pattern) for cell in cells)]


def _is_written(cell: str, pattern: str) -> bool:
    try:
        datetime.strptime(cell, pattern)  # noqa: DTZ007 - only whether it can be read
    except ValueError:
        return False
    return True


def _is_now(number: float, unit: str) -> bool:
    """Return whether a count since 1970 lies between 2001 and 2096."""
    moment = parse_epoch_time(number, unit)
    return moment is not None and 10**15 <= moment.micros < 4 * 10**15


def numbers_gpus(heading: str, cells: Sequence[str]) -> bool:
    """Return whether a column holds the number of a GPU."""
    return recognise_column(heading, INDEX_COLUMNS) is not None and all(cell.isdigit() for cell in cells)


def names_gpu(heading: str) -> bool:
    """Return whether a heading names one GPU."""
    return _GPU.search(heading) is not None


def guess_column(heading: str, cells: Sequence[str], *, others: bool = False) -> ColumnGuess:
    """Return what a column may hold.

    Args:
        heading: its heading.
        cells: cells below it.
        others: whether other headings name their GPU, so that a heading without one is of no GPU.
    """
    held = [cell for cell in cells if quantities.absence_word(cell) is None]
    of_gpu = _GPU.search(heading)
    index = int(of_gpu[1]) if of_gpu else None
    bare = heading if of_gpu is None else heading.replace(of_gpu[0], "gpu", 1)
    words = frozenset(heading_words(bare))
    if of_gpu is None and _is_of_host(words):
        return _fitting("" if words & _NOT_OF_HOST else resembling_metric(words, HOST_COLUMNS), words, held, None)
    if of_gpu is None and (others or words & _OTHER):
        return ColumnGuess()
    if of_gpu is None and (suffix := _GPU_SUFFIX.search(heading.strip())):
        index = int(suffix[1])
    metric = resembling_metric(words | {"gpu"}, LOOSE_GPU_COLUMNS)
    if metric:
        return _fitting(metric, words, held, index)
    if of_gpu is not None and _watts(held):
        return ColumnGuess(metric="gpu_power_watts", unit="W", gpu=index)
    return ColumnGuess(gpu=index)


def _is_of_host(words: frozenset[str]) -> bool:
    """Return whether a heading that numbers no GPU is one of a machine."""
    return "gpu" not in words and bool(words & _HOST or ("memory" in words and words & {"total", "used"}))


def _fitting(metric: str, words: frozenset[str], held: Sequence[str], gpu: int | None) -> ColumnGuess:
    """Return the guess with its unit; empty where heading or cells state a unit of another quantity."""
    if not metric or not held:
        return ColumnGuess(gpu=gpu)
    base = BY_NAME[metric].unit
    stated = _stated_unit(base, words, held)
    units = _units_by_size(metric, base, held) if stated is None else stated
    trial = next(iter(units), None)
    if trial is None or any(parse_loose_quantity(cell, trial, metric) is None for cell in held):
        return ColumnGuess(gpu=gpu)
    return ColumnGuess(
        metric=metric,
        unit=trial if len(units) == 1 else "",
        units=units,
        gpu=gpu if BY_NAME[metric].scope is Scope.GPU else None,
        sure=True,
    )


def _stated_unit(base: str, words: frozenset[str], held: Sequence[str]) -> tuple[str, ...] | None:
    """Return the unit that cells or heading state; empty where it does not fit, None where none is stated."""
    stated = next((unit for cell in held if (unit := find_written_unit(cell))), "")
    if stated:
        return (stated,) if UNITS[stated].base == base else ()
    if own := stated_unit_word(words, base):
        return (UNIT_WORDS[own],)
    return () if words & (UNIT_WORDS.keys() - _UNPROVEN | _FOREIGN) else None


def _units_by_size(metric: str, base: str, held: Sequence[str]) -> tuple[str, ...]:
    """Return the units in which the numbers are plausible; all units where none is."""
    most = max((number for cell in held if (number := quantities.parse_number(cell)) is not None), default=0.0)
    if base == "1":
        return ("%",) if 1 < most <= _MOST_PERCENT else ("%", "1")
    units, low, high = _SIZES.get(metric) or _SIZES[base]
    left = tuple(unit for unit in units if low <= UNITS[unit].to_base(most) <= high)
    return left or (units if len(units) > 1 else ())


def _watts(held: Sequence[str]) -> bool:
    numbers = [quantities.parse_number(cell) for cell in held]
    whole = [number for number in numbers if number is not None]
    return (
        len(whole) == len(held) > 0
        and all(_LIKELY_WATTS[0] <= number <= _LIKELY_WATTS[1] for number in whole)
        and any(not number.is_integer() for number in whole)
    )
