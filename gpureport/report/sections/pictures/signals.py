"""Quantities that pictures of signals show: where they are recorded, their unit and their limit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.report.runs.gpu_limits import find_limits
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A quantity.

    Attributes:
        label: what it is called.
        metrics: columns that hold it, the best first.
        unit: its unit.
        factor: how many of this unit one base unit is.
        full: upper end of the axis; None where values and limit decide.
        is_filled: whether it is drawn as an area.
        is_of_host: whether a host has it rather than a GPU.
    """

    label: str
    metrics: tuple[str, ...]
    unit: str
    factor: float = 1.0
    full: float | None = None
    is_filled: bool = False
    is_of_host: bool = False


def _share(label: str, *metrics: str, is_of_host: bool = False) -> Signal:
    return Signal(label=label, metrics=metrics, unit="%", factor=100, full=100, is_filled=True, is_of_host=is_of_host)


UTILISATION = _share("GPU utilisation", "gpu_utilization_ratio")
CORE = _share("Busiest core", "cpu_busiest_core_ratio", is_of_host=True)
CPU = _share("All CPU cores", "cpu_utilization_ratio", is_of_host=True)
STORAGE = _share("CPU waiting for storage", "cpu_iowait_ratio", is_of_host=True)
HOST_MEMORY = _share("Host memory", "host_memory_used_ratio", is_of_host=True)
SM_ACTIVE = _share("Multiprocessors active", "gpu_sm_active_ratio")
TEMPERATURE = Signal(label="Temperature", metrics=("gpu_temperature_celsius",), unit="°C")
CLOCK = Signal(label="Clock", metrics=("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"), unit="MHz", factor=1e-6)
POWER = Signal(label="Power", metrics=("gpu_power_watts",), unit="W")
MEMORY = Signal(label="GPU memory", metrics=("gpu_memory_used_bytes",), unit="GiB", factor=2.0**-30, is_filled=True)
RECEIVED = Signal(label="PCIe, received", metrics=("pcie_receive_bytes_per_second",), unit="GB/s", factor=1e-9)
SENT = Signal(label="PCIe, sent", metrics=("pcie_transmit_bytes_per_second",), unit="GB/s", factor=1e-9)

_WAITING = (UTILISATION, CORE, CPU)
_HEALTHY = (UTILISATION, TEMPERATURE, POWER, MEMORY)
_MEMORY = (MEMORY, UTILISATION)
_IDLE = (UTILISATION, CORE, CPU, MEMORY)

SIGNALS_BY_KIND: Mapping[str, tuple[Signal, ...]] = {
    "thermal_throttle": (TEMPERATURE, CLOCK, UTILISATION),
    "hw_throttle": (CLOCK, POWER, UTILISATION),
    "power_cap": (POWER, CLOCK, UTILISATION),
    "power_limited": (POWER, CLOCK, UTILISATION),
    "clocks_locked": (CLOCK, UTILISATION, POWER),
    "cpu_bound": (UTILISATION, CPU, CORE),
    "cpu_bound_single": _WAITING,
    "io_bound": (UTILISATION, STORAGE, CPU),
    "transfer_bound": (UTILISATION, RECEIVED, SENT),
    "underutilised": _WAITING,
    "workers_headroom": (UTILISATION, CORE, CPU, HOST_MEMORY),
    "host_memory_pressure": (UTILISATION, HOST_MEMORY, CPU),
    "hollow_util": (UTILISATION, POWER, SM_ACTIVE, TEMPERATURE),
    "mem_headroom": _MEMORY,
    "mem_pressure": _MEMORY,
    "mem_prealloc": _MEMORY,
    "mem_leak": _MEMORY,
    "zombie_memory": _MEMORY,
    "oversized_gpu": (UTILISATION, MEMORY, POWER),
    "idle_gap": _IDLE,
    "periodic_stall": _IDLE,
    "startup_idle": _IDLE,
    "tail_idle": _IDLE,
    "unused_gpu": (UTILISATION, MEMORY, POWER),
    "imbalance": (replace(UTILISATION, is_filled=False), CLOCK, POWER),
    "gpu_lost": (UTILISATION, TEMPERATURE, POWER),
    "rate_falls": (UTILISATION, CLOCK, POWER),
    "slow_gpu": (CLOCK, TEMPERATURE, POWER),
    "unexplained_change": (CLOCK, POWER, TEMPERATURE),
}
"""What the pictures of each kind of finding show, where it is recorded; the first is what it is about."""


_TIMES: Mapping[str, str] = {
    "thermal_throttle": "while hot",
    "hw_throttle": "while slowed",
    "cpu_bound": "while waiting",
    "cpu_bound_single": "while waiting",
    "io_bound": "while waiting",
    "transfer_bound": "while waiting",
    "idle_gap": "while idle",
    "startup_idle": "while idle",
    "tail_idle": "while idle",
    "periodic_stall": "while stalled",
}

_ALARMING: Mapping[str, Signal] = {"hollow_util": POWER}
"""Which quantity shows what went wrong, where it is not the first."""


def find_alarming_signal(kind: str) -> Signal:
    """Return the quantity that shows what went wrong in a kind of finding."""
    return _ALARMING.get(kind, choose_signals(kind)[0])


def choose_signals(kind: str | None) -> tuple[Signal, ...]:
    """Return what a picture of a kind of finding shows; None is a run without problems."""
    return SIGNALS_BY_KIND.get(kind or "", _HEALTHY)


def describe_time(kind: str | None) -> str:
    """Return when the shaded stretches of a kind of finding were, as it stands behind a figure."""
    return _TIMES.get(kind or "", "meanwhile")


def find_limit(signal: Signal, series: DeviceSeries) -> tuple[float, str] | None:
    """Return the limit of a quantity in its unit, and in words; None where none is known."""
    limit = next((limit for limit in find_limits(series) if limit.metric in signal.metrics), None)
    return (limit.value * signal.factor, limit.text) if limit else None


def format_value(signal: Signal, value: float) -> str:
    """Return a value in the unit of a quantity."""
    number = f"{value:,.1f}".removesuffix(".0") if signal.unit in {"GiB", "GB/s"} else f"{value:,.0f}"
    return f"{number}{'' if signal.unit == '%' else display.GAP}{signal.unit}"


def format_number(signal: Signal, value: float) -> str:
    """Return a value without its unit."""
    return format_value(signal, value).removesuffix(signal.unit).rstrip(display.GAP)
