"""The batch of work and the unit in which figures of several steps lie between 1 and 9,999."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpureport import number_format
from gpureport.report.wording import display

_BATCHES = ((1e3, "million"), (1.0, "1,000"), (1e-3, ""), (1e6, "billion"))
"""Batches of work in thousands, the one to try first first."""
_LEAST, _LEAST_OF_A_MILLION = 1.0, 0.1
"""Least figure of a batch; of a million, which is the usual one, ten cents read as well."""
_MOST = 9_999.5
_RATES = ((1.0, "s"), (60.0, "min"), (3600.0, "h"))
_LABEL = 24
_WATT_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkScale:
    """How figures per 1,000 units of work are scaled: they are multiplied by `factor` and are `per`."""

    factor: float
    per: str


def choose_work_scale(values: Iterable[float | None], unit: str | None) -> WorkScale:
    """Return the batch of work of which every figure lies between 1 and 9,999: a million from 0.1 on.

    Args:
        values: figures per 1,000 units of work of all steps.
        unit: what work is counted in.
    """
    known = [abs(value) for value in values if value]
    factor, batch = next((each for each in _BATCHES if not known or _fits(known, each)), _BATCHES[0])
    noun = name_work(unit)
    return WorkScale(factor=factor, per=f"per {batch} {noun}" if batch else f"per {noun.removesuffix('s')}")


def _fits(figures: Sequence[float], batch: tuple[float, str]) -> bool:
    """Return whether figures per 1,000 units of work read well per batch."""
    least = _LEAST_OF_A_MILLION if batch == _BATCHES[0] else _LEAST
    return min(figures) * batch[0] >= least and max(figures) * batch[0] < _MOST


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyScale:
    """How energies per 1,000 units of work are scaled: they are divided by `size`, are in `unit` and are `per`."""

    size: float
    unit: str
    per: str


def choose_energy_scale(joules: Iterable[float | None], unit: str | None) -> EnergyScale:
    """Return the batch of work and the unit in which energies are printed, so that they have few digits.

    Args:
        joules: energies per 1,000 units of work of all steps.
        unit: what work is counted in.
    """
    known = [value for value in joules if value]
    batch = choose_work_scale([value / _WATT_HOUR for value in known], unit)
    name, size = choose_energy_unit([value * batch.factor for value in known])
    return EnergyScale(size=size / batch.factor, unit=name, per=batch.per)


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
    return display.shorten(display.clean(unit or "units of work"), _LABEL)
