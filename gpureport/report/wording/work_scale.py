"""The batch of work and the unit in which figures of several steps have few digits."""

from collections.abc import Iterable
from typing import NamedTuple

from gpureport import number_format
from gpureport.report.wording import display

_BATCHES = ((1e3, "million"), (1.0, "1,000"), (1e-3, ""), (1e6, "billion"))
"""Batches of work in thousands, the one to try first first."""
_TEN_CENTS = 0.1
"""Least cost of a million, which is the usual batch; costs of others, and energies, are at least 1."""
_MOST = 9_999.5
_RATES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
_WATT_HOUR = 3600.0


class WorkScale(NamedTuple):
    """How figures per 1,000 units of work are scaled: they are multiplied by `factor` and are `per`."""

    factor: float
    per: str


class EnergyScale(NamedTuple):
    """How energies per 1,000 units of work are scaled: they are divided by `size`, are in `unit` and are `per`."""

    size: float
    unit: str
    per: str


def choose_work_scale(values: Iterable[float | None], unit: str | None, least: float = _TEN_CENTS) -> WorkScale:
    """Return the batch of work of which every figure lies between 1 and 9,999: a million where that does.

    Args:
        values: figures per 1,000 units of work of all steps.
        unit: what work is counted in.
        least: smallest figure of a million that reads well.
    """
    known = [abs(value) for value in values if value]
    low, high = min(known, default=1.0), max(known, default=1.0)
    factor, batch = next(
        (
            each
            for each in _BATCHES
            if low * each[0] >= (least if each == _BATCHES[0] else 1) and high * each[0] < _MOST
        ),
        _BATCHES[0],
    )
    noun = name_work(unit)
    return WorkScale(factor, f"per {batch} {noun}" if batch else f"per {noun.removesuffix('s')}")


def choose_energy_scale(joules: Iterable[float | None], unit: str | None) -> EnergyScale:
    """Return the batch of work and the unit in which energies per 1,000 units of it have few digits."""
    known = [value for value in joules if value]
    batch = choose_work_scale([value / _WATT_HOUR for value in known], unit, least=1.0)
    name, size = choose_energy_unit([value * batch.factor for value in known])
    return EnergyScale(size / batch.factor, name, batch.per)


def choose_energy_unit(joules: Iterable[float | None]) -> tuple[str, float]:
    """Return the unit of energy in which the least of some amounts is at least one."""
    known = [value for value in joules if value]
    return number_format.choose_unit(min(known, default=_WATT_HOUR), number_format.ENERGY)


def choose_rate_unit(hertz: Iterable[float | None], unit: str | None) -> tuple[float, str]:
    """Return the factor and the unit of rates of work, a second unless the slowest is below one a second."""
    least = min((value for value in hertz if value), default=1.0)
    factor, time = next((each for each in _RATES if least * each[0] >= 1), _RATES[-1])
    return factor, f"{name_work(unit)}/{time}"


def name_work(unit: str | None) -> str:
    """Return what work is counted in."""
    return display.shorten(display.clean(unit or "units of work"), 24)
