"""What a column of an unknown table may be: told by its heading, and by the cells below it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from gpureport.importers import quantities
from gpureport.importers.mapped.tolerant import quantity, written_unit
from gpureport.importers.mapping import ISO
from gpureport.importers.moments import epoch, iso
from gpureport.metrics import BY_NAME, Scope

_TIME = re.compile(r"time|date|timestamp|datetime|ts|time_?stamp|epoch|unix_?time", re.IGNORECASE)
_WRITTEN = (
    *(
        f"{date} {time}"
        for date in ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%m-%d-%Y", "%d-%m-%Y")
        for time in ("%H:%M:%S", "%H:%M:%S.%f", "%I:%M:%S %p")
    ),
    "%a %b %d %H:%M:%S %Y",
)
"""Times as spreadsheets and `date` write them; without seconds, rows cannot be told apart."""
_GPU = re.compile(r"(?:gpu|cuda|device|card)[ _:.\-]*(\d{1,3})", re.IGNORECASE | re.ASCII)
_NUMBERED = re.compile(r"(?:gpu|gpu[ _]?(?:id|idx|index)|index|device(?:[ _]id)?|card)", re.IGNORECASE)
_HOST = re.compile(r"cpu|ram|host|system|(?<![a-z])sys|mem_?total|mem_?used|swap", re.IGNORECASE)
_OTHER = re.compile(r"nvme|ssd|disk|drive|nic|board|ambient|inlet|chassis|psu", re.IGNORECASE)
"""Devices that are neither a GPU nor what is known of its machine."""
_SHAPES: tuple[tuple[str, str], ...] = (
    (r"(?:power|pwr).*(?:limit|cap)", "gpu_power_limit_requested_watts"),
    (r"power|pwr|watt|draw", "gpu_power_watts"),
    (r"(?:mem|vram|hbm).*temp|temp.*(?:mem|vram|hbm)", "gpu_memory_temperature_celsius"),
    (r"temp|celsius", "gpu_temperature_celsius"),
    (r"(?:mem|vram).*(?:clock|clk|freq|mhz)|(?:clock|clk).*mem", "gpu_memory_clock_hertz"),
    (r"clock|clk|freq|mhz", "gpu_sm_clock_hertz"),
    (r"(?:mem|vram|fb).*(?:total|size)|(?:total|size).*(?:mem|vram)", "gpu_memory_total_bytes"),
    (r"(?:mem|vram|fb).*free|free.*(?:mem|vram)", "gpu_memory_free_bytes"),
    (r"(?:mem|memory).*(?:util|ctrl|controller|bandwidth|bw)", "gpu_memory_controller_ratio"),
    (r"mem|vram|fb", "gpu_memory_used_bytes"),
    (r"fan", "gpu_fan_ratio"),
    (r"util|usage|load|busy|gpu_?%|gpu_?percent", "gpu_utilization_ratio"),
)
"""What words of a heading stand for, those that say more first."""
_OF_HOST: tuple[tuple[str, str], ...] = (
    (r"temp|freq|clock|power|volt", ""),
    (r"iowait|io_wait", "cpu_iowait_ratio"),
    (r"(?:mem|ram).*total|total.*(?:mem|ram)", "host_memory_total_bytes"),
    (r"(?:mem|ram).*(?:%|percent|free|avail)", ""),
    (r"mem|ram", "host_memory_used_bytes"),
    (r"cpu", "cpu_utilization_ratio"),
)
_HEADING_UNITS = {
    "By": (("gib", "GiB"), ("gb", "GiB"), ("mib", "MiB"), ("mb", "MiB"), ("kib", "KiB"), ("bytes", "B")),
    "W": (("mw", "mW"), ("kw", "kW"), ("w", "W")),
    "Hz": (("ghz", "GHz"), ("mhz", "MHz"), ("khz", "kHz"), ("hz", "Hz")),
    "1": (("%", "%"), ("percent", "%"), ("pct", "%"), ("ratio", "1"), ("frac", "1")),
    "Cel": (("", "C"),),
}
_LIKELY_WATTS = (100.0, 1_500.0)
"""Decimals in this range, from a GPU, are watts: nothing else a script logs lies there with a fraction."""
_MANY_BYTES, _MANY_MIB = 1e7, 300.0
_MANY_HERTZ, _MANY_KHZ = 1e7, 1e4
_MANY_WATTS = 2_000.0
_GPU_SUFFIX = re.compile(r"[ _:.\-](\d{1,2})$", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """What a column may hold.

    Attributes:
        metric: metric; empty when there is none like it.
        unit: unit of its numbers.
        gpu: index of the GPU; None for the machine, or where the heading names none.
        sure: whether heading and cells agree; a guess from the cells alone is not.
    """

    metric: str = ""
    unit: str = ""
    gpu: int | None = None
    sure: bool = False


def time_formats(heading: str, cells: Sequence[str]) -> list[str]:
    """Return the formats that a column of times may have, the likeliest first; none where none is known."""
    if not cells or not _TIME.search(heading):
        return []
    if iso(cells[0]) is not None:
        return [ISO]
    if number := quantities.number(cells[0]):
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
    moment = epoch(number, unit)
    return moment is not None and 10**15 <= moment.micros < 4 * 10**15


def numbers_gpus(heading: str, cells: Sequence[str]) -> bool:
    """Return whether a column holds the number of a GPU."""
    return _NUMBERED.fullmatch(heading.strip()) is not None and all(cell.isdigit() for cell in cells)


def names_gpu(heading: str) -> bool:
    """Return whether a heading names one GPU."""
    return _GPU.search(heading) is not None


def guess(heading: str, cells: Sequence[str], *, others: bool = False) -> Guess:
    """Return what a column may hold.

    Args:
        heading: its heading.
        cells: cells below it.
        others: whether other headings name the GPUs they speak of, so that one that does not speaks of none.
    """
    held = [cell for cell in cells if quantities.absent(cell) is None]
    of_gpu = _GPU.search(heading)
    index = int(of_gpu[1]) if of_gpu else None
    if of_gpu is None and _HOST.search(heading) and not re.search(r"gpu|vram|cuda", heading, re.IGNORECASE):
        return _fitting(_first(_OF_HOST, heading), heading, held, None)
    if of_gpu is None and (others or _OTHER.search(heading)):
        return Guess()
    if of_gpu is None and (suffix := _GPU_SUFFIX.search(heading.strip())):
        index = int(suffix[1])
    bare = heading if of_gpu is None else heading.replace(of_gpu[0], "gpu", 1)
    metric = _first(_SHAPES, bare)
    if metric:
        return _fitting(metric, bare, held, index)
    if of_gpu is not None and _watts(held):
        return Guess(metric="gpu_power_watts", unit="W", gpu=index)
    return Guess(gpu=index)


def _first(shapes: Sequence[tuple[str, str]], heading: str) -> str:
    return next((metric for shape, metric in shapes if re.search(shape, heading, re.IGNORECASE)), "")


def _fitting(metric: str, heading: str, held: Sequence[str], gpu: int | None) -> Guess:
    """Return the guess with its unit, none when no unit makes values of the cells."""
    if not metric or not held:
        return Guess(gpu=gpu)
    unit = _unit(metric, heading, held)
    fits = all(quantity(cell, unit, metric) is not None for cell in held)
    scope = BY_NAME[metric].scope
    return (
        Guess(metric=metric, unit=unit, gpu=gpu if scope is Scope.GPU else None, sure=True) if fits else Guess(gpu=gpu)
    )


def _unit(metric: str, heading: str, held: Sequence[str]) -> str:
    """Return the unit of a column: that of its cells, else of its heading, else told by their size."""
    base = BY_NAME[metric].unit
    stated = [unit for cell in held if (unit := written_unit(cell))]
    if stated:
        return stated[0]
    words = {*_words(heading), *_words(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", heading))}
    for ending, unit in _HEADING_UNITS[base]:
        if ending in words or (ending == "%" and "%" in heading) or not ending:
            return unit
    numbers = [number for cell in held if (number := quantities.number(cell)) is not None]
    most = max(numbers, default=0.0)
    if base == "By":
        return "B" if most > _MANY_BYTES else "MiB" if most > _MANY_MIB else "GiB"
    if base == "Hz":
        return "Hz" if most > _MANY_HERTZ else "kHz" if most > _MANY_KHZ else "MHz"
    if base == "W":
        return "mW" if most > _MANY_WATTS else "W"
    return "1" if most <= 1 and any(not number.is_integer() for number in numbers) else "%"


def _words(heading: str) -> list[str]:
    return [word for word in re.split(r"[^a-z%]+", heading.lower()) if word]


def _watts(held: Sequence[str]) -> bool:
    numbers = [quantities.number(cell) for cell in held]
    whole = [number for number in numbers if number is not None]
    return (
        len(whole) == len(held) > 0
        and all(_LIKELY_WATTS[0] <= number <= _LIKELY_WATTS[1] for number in whole)
        and any(not number.is_integer() for number in whole)
    )
