"""The metrics of the timelines in the order of their charts, and how their values are read."""

import math
from collections.abc import Collection
from typing import Any, NamedTuple

from gpureport.metrics import BY_NAME
from gpureport.report.samples.packing import CodeScale

UTILISATION = "gpu_utilization_ratio"


class DisplayUnit(NamedTuple):
    """The unit people use: how many of it one base unit is, the resolution of logs in base units, least upper end."""

    symbol: str
    factor: float
    grid: float
    full: float = 0.0
    from_zero: bool = True


_UNITS = {
    "1": DisplayUnit("%", 100.0, 1e-3, full=100.0),
    "W": DisplayUnit("W", 1.0, 1e-2),
    "Cel": DisplayUnit("°C", 1.0, 0.1, from_zero=False),
    "Hz": DisplayUnit("MHz", 1e-6, 1e6, from_zero=False),
    "By": DisplayUnit("GiB", 2.0**-30, 2.0**20),
    "By/s": DisplayUnit("MB/s", 1e-6, 1e6),
}


class PlottedMetric(NamedTuple):
    """A metric of the timelines; it is left out where the one that it stands `instead_of` was recorded.

    A value that is `averaged` is a mean up to its reading, and so drawn that much earlier.
    """

    metric: str
    title: str
    averaged: bool = False
    instead_of: str = ""

    @property
    def unit(self) -> DisplayUnit:
        """The unit it is read in."""
        return _UNITS[BY_NAME[self.metric].unit]


# what feeds a GPU stands below its utilisation
_METRICS = (
    PlottedMetric(UTILISATION, "GPU utilisation", averaged=True),
    PlottedMetric("cpu_utilization_ratio", "CPU utilisation", averaged=True),
    PlottedMetric("cpu_busiest_core_ratio", "Busiest core", averaged=True),
    PlottedMetric("cpu_iowait_ratio", "CPU waiting for I/O", averaged=True),
    PlottedMetric("gpu_power_watts", "Power"),
    PlottedMetric("gpu_power_ratio", "Power, of its limit", instead_of="gpu_power_watts"),
    PlottedMetric("gpu_sm_clock_hertz", "SM clock"),
    PlottedMetric("gpu_graphics_clock_hertz", "Graphics clock", instead_of="gpu_sm_clock_hertz"),
    PlottedMetric("gpu_temperature_celsius", "Temperature"),
    PlottedMetric("gpu_memory_used_bytes", "Memory used"),
    PlottedMetric("gpu_memory_used_ratio", "Memory used", instead_of="gpu_memory_used_bytes"),
    PlottedMetric("gpu_memory_controller_ratio", "Memory controller", averaged=True),
    PlottedMetric("gpu_sm_active_ratio", "SMs active", averaged=True),
    PlottedMetric("gpu_tensor_active_ratio", "Tensor cores active", averaged=True),
    PlottedMetric("gpu_dram_active_ratio", "Memory active", averaged=True),
    PlottedMetric("pcie_receive_bytes_per_second", "PCIe, received"),
    PlottedMetric("pcie_transmit_bytes_per_second", "PCIe, sent"),
    PlottedMetric("host_memory_used_bytes", "Host memory used"),
    PlottedMetric("host_memory_used_ratio", "Host memory used", instead_of="host_memory_used_bytes"),
)


def select_metrics(recorded: Collection[str]) -> list[PlottedMetric]:
    """Return the metrics to show of those that a run recorded."""
    return [each for each in _METRICS if each.metric in recorded and each.instead_of not in recorded]


def describe_metric(metric: PlottedMetric, scale: CodeScale, highest: float) -> dict[str, Any]:
    """Return what the index says of a metric: name, unit, how codes become values, and the ends of its axis."""
    unit = metric.unit
    offset, step = scale.offset * unit.factor, scale.step * unit.factor
    low, high = _round_axis_ends(unit, offset, highest * unit.factor)
    return {
        "title": metric.title,
        "unit": unit.symbol,
        "label": f"{metric.title}, {unit.symbol}",
        "offset": float(f"{offset:.9g}"),
        "step": float(f"{step:.9g}"),
        "exact": not scale.error,
        "digits": _count_digits(offset, step, is_exact=not scale.error),
        "averaged": metric.averaged,
        "strip": metric.metric == UTILISATION,
        "low": float(f"{low:.6g}"),
        "high": float(f"{high:.6g}"),
    }


def _round_axis_ends(unit: DisplayUnit, low: float, high: float) -> tuple[float, float]:
    low, high = (min(low, 0.0) if unit.from_zero else low), max(high, unit.full)
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = power / 5 if span < 2 * power else power / 2 if span < 5 * power else power
    floor, ceiling = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return floor, ceiling if ceiling > floor else floor + step


def _count_digits(offset: float, step: float, *, is_exact: bool) -> int:
    """Return the decimals that show a value: all it has where it is exact, else those that steps can tell apart."""
    for digits, size in enumerate((1, 10)):
        # nearly whole, and half a digit
        is_whole = all(abs(each * size % 1 - 0.5) > 0.499 for each in (offset, step))  # noqa: PLR2004 - as above
        if is_whole if is_exact else step * size >= 0.5:  # noqa: PLR2004 - as above
            return digits
    return 2
