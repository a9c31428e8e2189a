"""Round ticks of axes."""

import math

from gpureport.report.model.pictures import Tick
from gpureport.report.wording import display

_MOST, _MOST_TIMES = 6, 7
_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
"""Round lengths of time."""

_UNITS = (("days", 86_400, 172_800), ("h", 3600, 7200), ("min", 60, 120), ("s", 1, 0))
"""Name of each unit of time, its length, and the length of the axis from which it is used."""


def place_ticks(end: float, unit: str) -> tuple[Tick, ...]:
    """Return round ticks of an axis that begins at zero; the first one names the unit."""
    if not 0 < end < math.inf:
        return ()
    power = 10.0 ** math.floor(math.log10(end / _MOST))
    step = next(size * power for size in (1, 2, 5, 10) if end / (size * power) <= _MOST)
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    ticks = [step * count for count in range(int(end / step * (1 + 1e-9)) + 1)]
    return tuple(
        Tick(at=at, text=f"{at:,.{decimals}f}" if place else f"0{display.GAP}{unit}") for place, at in enumerate(ticks)
    )


def place_time_ticks(start: float, end: float) -> tuple[Tick, ...]:
    """Return ticks at round times of an axis of seconds: `0 s`, `30 s`, `1 h`."""
    if not start < end < math.inf:
        return ()
    days = _SECONDS[-1] * math.ceil((end - start) / _SECONDS[-1] / _MOST_TIMES)
    step = next((size for size in _SECONDS if (end - start) / size <= _MOST_TIMES), days)
    unit, size = next((name, size) for name, size, least in _UNITS if end >= least)
    first = math.ceil(start / step - 1e-9)
    times = range(first * step, int(end * (1 + 1e-9)) + 1, step)
    return tuple(Tick(at=float(at), text=f"{_format(at / size)}{display.GAP}{unit}") for at in times)


def _format(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
