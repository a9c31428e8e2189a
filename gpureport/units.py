"""Text or number in a source's unit to a base unit: "8192 MiB" to bytes, "97 %" to 0.97."""

import re
from dataclasses import dataclass

MOST = 2.0**62
"""No quantity that is measured here is as large."""
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*(%|°?C|[A-Za-z]+(?:/s)?)?")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit as written in a source: value in base = value * numerator / denominator."""

    base: str
    numerator: int
    denominator: int = 1

    def to_base(self, value: float) -> float:
        """Return `value` of this unit in the base unit; one rounding at most."""
        return value * self.numerator / self.denominator


UNITS: dict[str, Unit] = {
    "": Unit("", 1),
    "1": Unit("1", 1),
    "%": Unit("1", 1, 100),
    "B": Unit("By", 1),
    "KiB": Unit("By", 2**10),
    "MiB": Unit("By", 2**20),
    "GiB": Unit("By", 2**30),
    "TiB": Unit("By", 2**40),
    # old nvidia-smi headers say MB where the driver counts binary megabytes
    "MB": Unit("By", 2**20),
    "KB/s": Unit("By/s", 1000),
    "MB/s": Unit("By/s", 10**6),
    "MiB/s": Unit("By/s", 2**20),
    "mW": Unit("W", 1, 1000),
    "W": Unit("W", 1),
    "kW": Unit("W", 1000),
    "Hz": Unit("Hz", 1),
    "kHz": Unit("Hz", 1000),
    "MHz": Unit("Hz", 10**6),
    "GHz": Unit("Hz", 10**9),
    "C": Unit("Cel", 1),
    "°C": Unit("Cel", 1),
    "mJ": Unit("J", 1, 1000),
    "J": Unit("J", 1),
    "B/s": Unit("By/s", 1),
    "ns": Unit("s", 1, 10**9),
    "us": Unit("s", 1, 10**6),
    "ms": Unit("s", 1, 1000),
    "s": Unit("s", 1),
    "seconds": Unit("s", 1),
}


def parse_quantity(text: str, unit: str, base: str) -> float | None:
    """Return the quantity in `text` in the base unit, None when it is not one or none that can be.

    Only temperatures fall below 0, and nothing that is measured here is larger than 2**62.

    Args:
        text: a number, with or without a unit of its own, which wins over `unit`.
        unit: unit assumed where the text has none.
        base: base unit wanted; a quantity of another dimension is not one.
    """
    parts = _QUANTITY.fullmatch(text)
    written = UNITS.get(parts[2] or unit) if parts else None
    if parts is None or written is None or written.base != base:
        return None
    value = written.to_base(float(parts[1]))
    return value if abs(value) < MOST and (value >= 0 or base == "Cel") else None
