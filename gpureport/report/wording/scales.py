"""Scales that figures of steps and their differences are printed in: units, and how fine."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpureport import number_format
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Units of one kind of figure.

    Attributes:
        units: name and size in base units of each, the largest first; the last also takes what is smaller.
        text: prints a number of them without a sign.
        decimals: how many decimals `text` gives a number.
    """

    units: number_format.Units = (("", 1.0),)
    text: Callable[[float], str] = display.number
    decimals: Callable[[float], int] = number_format.count_decimals

    def unit(self, value: float) -> tuple[str, float]:
        """Return the name and the size of the unit that a value is printed in."""
        return number_format.choose_unit(value, self.units)

    def format(self, value: float) -> str:
        """Return a value with its unit."""
        name, size = self.unit(value)
        return _join(self.text(value / size), name)

    def format_signed(self, value: float, *, bare: bool = False) -> str:
        """Return a value with its sign, and with its unit unless it is wanted `bare`."""
        name, size = self.unit(value)
        return _join(self._sign(value / size), "" if bare else name)

    def _sign(self, number: float) -> str:
        text = self.text(abs(number))
        return number_format.add_sign(f"-{text}" if number < 0 else text)

    def format_change(self, difference: float, values: Iterable[float]) -> str:
        """Return a difference with its sign and at most as many decimals as the values in the same unit."""
        name, size = self.unit(difference)
        number = difference / size
        decimals = max((self.decimals(value / size) for value in values if self.unit(value)[0] == name), default=None)
        if decimals is None or self.decimals(number) <= decimals:
            return self.format_signed(difference)
        rounded = round(number, decimals)
        return _join(
            number_format.add_sign(f"{rounded:,.{decimals}f}") if rounded else f"within ±{10**-decimals:.{decimals}f}",
            name,
        )


def split_common_unit(texts: Sequence[str]) -> tuple[list[str], str]:
    """Return figures without the unit that all of them end with, and that unit; empty where they differ."""
    units = {text.partition(display.GAP)[2] for text in texts if text}
    unit = units.pop() if len(units) == 1 else ""
    return [text.removesuffix(f"{display.GAP}{unit}") if unit else text for text in texts], unit


def _join(number: str, unit: str) -> str:
    return f"{number}{display.GAP}{unit}" if unit else number


NUMBERS = Scale()
GPU_HOURS = Scale(units=(("GPU-h", 3600.0),))
GPU_SECONDS = Scale(units=(("GPU-s", 1.0),))
ENERGY = Scale(units=number_format.ENERGY)
TIMES = Scale(units=(("h", 3600.0), ("min", 60.0), ("s", 1.0)))
POWER = Scale(units=(("W", 1.0),))
MEMORY = Scale(units=(("GiB", 2.0**30), ("MiB", 2.0**20)), text="{:,.1f}".format, decimals=lambda _: 1)
CLOCK = Scale(units=(("MHz", 1e6),), text=number_format.format_integer, decimals=lambda _: 0)
POINTS = Scale(units=(("points", 0.01),), text="{:.1f}".format, decimals=lambda _: 1)
"""Differences of shares: the shares themselves are printed in per cent, with decimals of their own."""
