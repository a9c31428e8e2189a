"""The metrics of the timeline charts in their order, and the units they are shown in."""

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from gpureport.metrics import BY_NAME, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayUnit:
    """How a base unit is read.

    Attributes:
        symbol: of the unit people use.
        factor: how many of these one base unit is.
        grid: resolution of values in logs, in the base unit.
        full: least upper end of the axis, in the unit people use.
        from_zero: whether the axis begins at 0.
    """

    symbol: str
    factor: float
    grid: float
    full: float = 0.0
    from_zero: bool = True


DISPLAY_UNITS = {
    "1": DisplayUnit(symbol="%", factor=100.0, grid=1e-3, full=100.0),
    "W": DisplayUnit(symbol="W", factor=1.0, grid=1e-2),
    "Cel": DisplayUnit(symbol="°C", factor=1.0, grid=0.1, from_zero=False),
    "Hz": DisplayUnit(symbol="MHz", factor=1e-6, grid=1e6, from_zero=False),
    "By": DisplayUnit(symbol="GiB", factor=2.0**-30, grid=2.0**20),
    "By/s": DisplayUnit(symbol="MB/s", factor=1e-6, grid=1e6),
    "": DisplayUnit(symbol="", factor=1.0, grid=1e-2),
}
"""Every base unit of a plotted metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlottedMetric:
    """A metric of the timelines.

    Attributes:
        metric: its column.
        title: what it is called above its chart.
        averaged: whether a value is a mean up to its reading, and so drawn that much earlier.
        instead_of: metric that is shown instead where it was recorded; empty if there is none.
    """

    metric: str
    title: str
    averaged: bool = False
    instead_of: str = ""

    @property
    def scope(self) -> Scope:
        """Whether a GPU or a host has it."""
        return BY_NAME[self.metric].scope

    @property
    def unit(self) -> DisplayUnit:
        """The unit it is read in."""
        return DISPLAY_UNITS[BY_NAME[self.metric].unit]


PLOTTED_METRICS = (
    PlottedMetric(metric="gpu_utilization_ratio", title="GPU utilisation", averaged=True),
    PlottedMetric(metric="cpu_utilization_ratio", title="CPU utilisation", averaged=True),
    PlottedMetric(metric="cpu_busiest_core_ratio", title="Busiest core", averaged=True),
    PlottedMetric(metric="cpu_iowait_ratio", title="CPU waiting for I/O", averaged=True),
    PlottedMetric(metric="gpu_power_watts", title="Power"),
    PlottedMetric(metric="gpu_power_ratio", title="Power, of its limit", instead_of="gpu_power_watts"),
    PlottedMetric(metric="gpu_sm_clock_hertz", title="SM clock"),
    PlottedMetric(metric="gpu_graphics_clock_hertz", title="Graphics clock", instead_of="gpu_sm_clock_hertz"),
    PlottedMetric(metric="gpu_temperature_celsius", title="Temperature"),
    PlottedMetric(metric="gpu_memory_used_bytes", title="Memory used"),
    PlottedMetric(metric="gpu_memory_used_ratio", title="Memory used", instead_of="gpu_memory_used_bytes"),
    PlottedMetric(metric="gpu_memory_controller_ratio", title="Memory controller", averaged=True),
    PlottedMetric(metric="gpu_sm_active_ratio", title="SMs active", averaged=True),
    PlottedMetric(metric="gpu_tensor_active_ratio", title="Tensor cores active", averaged=True),
    PlottedMetric(metric="gpu_dram_active_ratio", title="Memory active", averaged=True),
    PlottedMetric(metric="pcie_receive_bytes_per_second", title="PCIe, received"),
    PlottedMetric(metric="pcie_transmit_bytes_per_second", title="PCIe, sent"),
    PlottedMetric(metric="host_memory_used_bytes", title="Host memory used"),
    PlottedMetric(metric="host_memory_used_ratio", title="Host memory used", instead_of="host_memory_used_bytes"),
)
"""Every metric of the timelines in the order of their charts: what feeds a GPU stands below its utilisation."""


def select_metrics(recorded: Collection[str]) -> Iterator[PlottedMetric]:
    """Yield the metrics to show of those that a run recorded."""
    for plotted in PLOTTED_METRICS:
        if plotted.metric in recorded and plotted.instead_of not in recorded:
            yield plotted


def round_axis_ends(unit: DisplayUnit, low: float, high: float) -> tuple[float, float]:
    """Return round ends of an axis from `low` to `high`, in the unit people use."""
    low, high = (min(low, 0.0) if unit.from_zero else low), max(high, unit.full)
    span = high - low or abs(high) or 1.0
    power = 10.0 ** math.floor(math.log10(span))
    step = power / 5 if span < 2 * power else power / 2 if span < 5 * power else power
    floor, ceiling = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    return floor, ceiling if ceiling > floor else floor + step
