"""Scales of printed figures and differences: units, decimals, and batch of work."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from gpureport import number_format
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Units of a kind of figure, largest first. `decimals` returns how many `text` prints."""

    units: number_format.Units = (("", 1.0),)
    text: Callable[[float], str] = display.number
    decimals: Callable[[float], int] = number_format.count_decimals

    def unit(self, value: float) -> tuple[str, float]:
        return number_format.choose_unit(value, self.units)

    def format(self, value: float) -> str:
        name, size = self.unit(value)
        return _join(self.text(value / size), name)

    def format_signed(self, value: float, *, bare: bool = False) -> str:
        name, size = self.unit(value)
        text = self.text(abs(value / size))
        return _join(number_format.add_sign(f"-{text}" if value < 0 else text), "" if bare else name)

    def format_change(self, difference: float, values: Iterable[float]) -> str:
        """Return a signed difference with no more decimals than the values in the same unit."""
        name, size = self.unit(difference)
        number = difference / size
        decimals = max((self.decimals(value / size) for value in values if self.unit(value)[0] == name), default=None)
        if decimals is None or self.decimals(number) <= decimals:
            return self.format_signed(difference)
        rounded = round(number, decimals)
        text = number_format.add_sign(f"{rounded:,.{decimals}f}")
        return _join(text if rounded else f"within ±{10**-decimals:.{decimals}f}", name)


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
_BATCHES = ((1e3, "million"), (1.0, "1,000"), (1e-3, ""), (1e6, "billion"))
_TEN_CENTS = 0.1  # least cost per million, the usual batch
_MOST = 9_999.5
_RATES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
_WATT_HOUR = 3600.0


class WorkScale(NamedTuple):
    """`factor` converts figures per 1,000 units of work to those for the batch `per`."""

    factor: float
    per: str


def choose_work_scale(values: Iterable[float | None], unit: str | None, least: float = _TEN_CENTS) -> WorkScale:
    """Return the batch of work for which figures, given per 1,000, lie between 1 and 9,999."""
    known = [abs(value) for value in values if value]
    low, high = min(known, default=1.0), max(known, default=1.0)
    fitting = [each for each in _BATCHES if low * each[0] >= (least if each == _BATCHES[0] else 1)]
    factor, batch = next((each for each in fitting if high * each[0] < _MOST), _BATCHES[0])
    noun = name_work(unit)
    return WorkScale(factor, f"per {batch} {noun}" if batch else f"per {noun.removesuffix('s')}")


def choose_energy_scale(joules: Iterable[float | None], unit: str | None) -> tuple[str, Scale]:
    """Return the batch of work, and the scale of joules per 1,000 units of work."""
    known = [value for value in joules if value]
    batch = choose_work_scale([value / _WATT_HOUR for value in known], unit, least=1.0)
    name, size = choose_energy_unit([value * batch.factor for value in known])
    return batch.per, Scale(units=((name, size / batch.factor),))


def choose_energy_unit(joules: Iterable[float | None]) -> tuple[str, float]:
    known = [value for value in joules if value]
    return number_format.choose_unit(min(known, default=_WATT_HOUR), number_format.ENERGY)


def choose_rate_unit(hertz: Iterable[float | None], unit: str | None) -> tuple[float, str]:
    least = min((value for value in hertz if value), default=1.0)
    factor, time = next((each for each in _RATES if least * each[0] >= 1), _RATES[-1])
    return factor, f"{name_work(unit)}/{time}"


def name_work(unit: str | None) -> str:
    return display.shorten(display.clean(unit or "units of work"), 24)
