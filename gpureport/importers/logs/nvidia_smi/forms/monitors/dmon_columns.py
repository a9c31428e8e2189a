"""The columns of `nvidia-smi dmon`: what its headings stand for."""

from collections.abc import Sequence
from functools import partial

from gpureport.importers.delimited.layout import STAMP, Layout, make_layout
from gpureport.importers.logs.nvidia_smi.forms.monitors import day_clock
from gpureport.importers.values.cells import Column, Reader, Value, extra_name, number_column
from gpureport.importers.values.numbers import Number
from gpureport.metrics import BY_NAME

CLOCK = "time of day"
"""Target of a column that holds a time without a date."""
DAY = "day"
"""Target of a column that holds a date without a time."""
INSTANCE = frozenset({"mig", "mig_id", "gi", "gi_id", "ci", "ci_id"})
"""Headings of columns that name a part of a GPU."""
_SERIES = {
    "pwr": ("gpu_power_watts", "W"),
    "gtemp": ("gpu_temperature_celsius", "C"),
    "temp": ("gpu_temperature_celsius", "C"),
    "mtemp": ("gpu_memory_temperature_celsius", "C"),
    "sm": ("gpu_utilization_ratio", "%"),
    "mem": ("gpu_memory_controller_ratio", "%"),
    "enc": ("gpu_encoder_ratio", "%"),
    "dec": ("gpu_decoder_ratio", "%"),
    "jpg": ("gpu_jpeg_ratio", "%"),
    "ofa": ("gpu_ofa_ratio", "%"),
    "mclk": ("gpu_memory_clock_hertz", "MHz"),
    "pclk": ("gpu_sm_clock_hertz", "MHz"),
    "pviol": ("gpu_power_violation_ratio", "%"),
    "tviol": ("gpu_thermal_violation", ""),
    "fb": ("gpu_memory_used_bytes", "MB"),
    "bar1": ("gpu_bar1_used_bytes", "MB"),
    "ccpm": ("gpu_protected_memory_used_bytes", "MB"),
    "sbecc": ("gpu_ecc_single_bit_total", ""),
    "dbecc": ("gpu_ecc_double_bit_total", ""),
    "pci": ("pcie_replays_total", ""),
    "rxpci": ("pcie_receive_bytes_per_second", "MB/s"),
    "txpci": ("pcie_transmit_bytes_per_second", "MB/s"),
    "gract": ("gpu_graphics_engine_active_ratio", "%"),
    "smutil": ("gpu_sm_active_ratio", "%"),
    "smocc": ("gpu_sm_occupancy_ratio", "%"),
    "mmaact": ("gpu_tensor_active_ratio", "%"),
    "dram": ("gpu_dram_active_ratio", "%"),
    "pcitx": ("pcie_transmit_bytes_per_second", "MiB/s"),
    "pcirx": ("pcie_receive_bytes_per_second", "MiB/s"),
    "nvltx": ("nvlink_transmit_bytes_per_second", "MiB/s"),
    "nvlrx": ("nvlink_receive_bytes_per_second", "MiB/s"),
}
"""Heading to metric, and the unit it counts in where no line of units says; its MB of memory are MiB.

From `gract` on they are those of `--gpm-metrics` (Hopper and newer), as driver 580.159.04 writes them on an H100.
"""
_GPM = "GPM:"
"""What stands before the unit of a column of `--gpm-metrics`."""
_SETS = {
    "pwr gtemp mtemp": "W C C",
    "sm mem enc dec jpg ofa": "% % % % % %",
    "mclk pclk": "MHz MHz",
    "pviol tviol": "% bool",
    "fb bar1 ccpm": "MB MB MB",
    "sbecc dbecc pci": "errs errs errs",
    "rxpci txpci": "MB/s MB/s",
}
"""Columns of each letter of `-s pucvmet`, in the order in which dmon writes them, and their units; no two are alike."""
DEFAULT = ("gpu", "pwr", "gtemp", "mtemp", "sm", "mem", "enc", "dec", "jpg", "ofa", "mclk", "pclk")
"""Columns of dmon without `-s`, drivers of R550 and newer, which can leave the header out."""
ALL = (*DEFAULT, *("pviol", "tviol", "fb", "bar1", "ccpm", "sbecc", "dbecc", "pci", "rxpci", "txpci"))
"""Columns of `-s pucvmet`."""


def known(heading: str) -> bool:
    """Return whether dmon is known to write a heading."""
    return heading in _SERIES


def measured_in(units: Sequence[str]) -> tuple[str, ...]:
    """Return the headings of `-s` above a line of units, `Idx` left out; none where it is no line of such columns."""
    rest, names = list(units), list[str]()
    for headings, said in _SETS.items():
        if rest[: len(said.split())] == said.split():
            names += headings.split()
            rest = rest[len(said.split()) :]
    return () if rest else tuple(names)


def declared(headings: Sequence[str], units: Sequence[str] = ()) -> Layout:
    """Return the layout of rows under headings.

    Args:
        headings: names of the columns, the `#` left out.
        units: what the line below them says, empty where there is none.
    """
    if len(units) != len(headings):
        units = [""] * len(headings)
    pairs = list(zip(headings, units, strict=True))
    if [name.lower() for name in headings[:2]] == ["date", "time"]:
        # they stand in one cell
        pairs = [(STAMP, ""), *pairs[2:]]
    return make_layout([_column(name, unit) for name, unit in pairs])


def _column(heading: str, unit: str) -> Column:
    name = heading.lower()
    if name in _KEYS:
        target, dtype, read = _KEYS[name]
        return Column(target=target, source=heading, dtype=dtype, read=read)
    if name not in _SERIES:
        return Column(target=extra_name(heading), source=heading, dtype="str", read=str)
    target, usual = _SERIES[name]
    metric = BY_NAME[target]
    if metric.unit == "":
        return Column(target=target, source=heading, dtype=metric.dtype, read=_READERS[metric.dtype])
    unit = unit.removeprefix(_GPM)
    stated = Number(unit=unit, base=metric.unit)
    number = Number(
        # a unit of another dimension is none of this column
        unit=unit if stated.read("0") is not None else usual,
        base=metric.unit,
        whole=metric.dtype == "int64",
        part=metric.unit == "1",
    )
    return number_column(target, heading, metric.dtype, number, unit)


def _index(text: str) -> Value | None:
    return text if text.isascii() and text.isdigit() and len(text) <= 4 else None  # noqa: PLR2004 - 0 to 9999


def _flag(text: str) -> Value | None:
    return {"0": False, "1": True}.get(text)


def _count(text: str, *, digits: int) -> Value | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None


_READERS: dict[str, Reader] = {"bool": _flag, "int64": partial(_count, digits=18)}
_KEYS: dict[str, tuple[str, str, Reader]] = {
    STAMP: (STAMP, "str", str),
    "time": (CLOCK, "int64", day_clock.of_day),
    "date": (DAY, "str", str),
    "gpu": ("index", "str", _index),
}
"""Heading to target, type and reader of the columns that place a row."""
