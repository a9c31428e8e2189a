"""Quantities that pictures of signals show: where they are recorded, their unit and their limit."""

from dataclasses import dataclass, replace

from gpureport.analysis.series.device_series import DeviceSeries
from gpureport.report.runs.drawn_gpus import find_limits
from gpureport.report.wording import display


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """A quantity: its columns, the best first, and its unit, of which one base unit is `factor`.

    The axis ends at `full`, or as values and limit decide. What is filled is drawn as an area.
    """

    label: str
    metrics: tuple[str, ...]
    unit: str
    factor: float = 1.0
    full: float | None = None
    is_filled: bool = False
    is_of_host: bool = False


def _share(label: str, metric: str) -> Signal:
    is_of_host = not metric.startswith("gpu_")
    return Signal(label=label, metrics=(metric,), unit="%", factor=100, full=100, is_filled=True, is_of_host=is_of_host)


UTILISATION = _share("GPU utilisation", "gpu_utilization_ratio")
CPU = _share("All CPU cores", "cpu_utilization_ratio")
TEMPERATURE = Signal(label="Temperature", metrics=("gpu_temperature_celsius",), unit="°C")
CLOCK = Signal(label="Clock", metrics=("gpu_sm_clock_hertz", "gpu_graphics_clock_hertz"), unit="MHz", factor=1e-6)
POWER = Signal(label="Power", metrics=("gpu_power_watts",), unit="W")
MEMORY = Signal(label="GPU memory", metrics=("gpu_memory_used_bytes",), unit="GiB", factor=2.0**-30, is_filled=True)
_CORE = _share("Busiest core", "cpu_busiest_core_ratio")
_STORAGE = _share("CPU waiting for storage", "cpu_iowait_ratio")
_HOST_MEMORY = _share("Host memory", "host_memory_used_ratio")
_SM_ACTIVE = _share("Multiprocessors active", "gpu_sm_active_ratio")
_RECEIVED = Signal(label="PCIe, received", metrics=("pcie_receive_bytes_per_second",), unit="GB/s", factor=1e-9)
_SENT = Signal(label="PCIe, sent", metrics=("pcie_transmit_bytes_per_second",), unit="GB/s", factor=1e-9)

_SHOWN = {
    "": (UTILISATION, TEMPERATURE, POWER, MEMORY),
    "thermal_throttle": (TEMPERATURE, CLOCK, UTILISATION),
    "hw_throttle": (CLOCK, POWER, UTILISATION),
    "power_cap power_limited": (POWER, CLOCK, UTILISATION),
    "clocks_locked": (CLOCK, UTILISATION, POWER),
    "cpu_bound": (UTILISATION, CPU, _CORE),
    "cpu_bound_single underutilised": (UTILISATION, _CORE, CPU),
    "io_bound": (UTILISATION, _STORAGE, CPU),
    "transfer_bound": (UTILISATION, _RECEIVED, _SENT),
    "workers_headroom": (UTILISATION, _CORE, CPU, _HOST_MEMORY),
    "host_memory_pressure": (UTILISATION, _HOST_MEMORY, CPU),
    "hollow_util": (UTILISATION, POWER, _SM_ACTIVE, TEMPERATURE),
    "mem_headroom mem_pressure mem_prealloc mem_leak zombie_memory": (MEMORY, UTILISATION),
    "oversized_gpu unused_gpu": (UTILISATION, MEMORY, POWER),
    "idle_gap periodic_stall startup_idle tail_idle": (UTILISATION, _CORE, CPU, MEMORY),
    "imbalance": (replace(UTILISATION, is_filled=False), CLOCK, POWER),
    "gpu_lost": (UTILISATION, TEMPERATURE, POWER),
    "rate_falls": (UTILISATION, CLOCK, POWER),
    "slow_gpu": (CLOCK, TEMPERATURE, POWER),
    "unexplained_change": (CLOCK, POWER, TEMPERATURE),
}
"""What the pictures of kinds of findings show, where it is recorded; the first is what they are about."""

_BY_KIND = {kind: signals for kinds, signals in _SHOWN.items() for kind in kinds.split(" ")}
_TIMES = {
    "hot": ("thermal_throttle",),
    "slowed": ("hw_throttle",),
    "waiting": ("cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound"),
    "idle": ("idle_gap", "startup_idle", "tail_idle"),
    "stalled": ("periodic_stall",),
}


def choose_signals(kind: str) -> tuple[Signal, ...]:
    return _BY_KIND.get(kind, _BY_KIND[""])


def find_alarming_signal(kind: str) -> Signal:
    return POWER if kind == "hollow_util" else choose_signals(kind)[0]


def describe_time(kind: str) -> str:
    return next((f"while {state}" for state, kinds in _TIMES.items() if kind in kinds), "meanwhile")


def find_limit(signal: Signal, series: DeviceSeries) -> tuple[float, str] | None:
    limit = next((limit for limit in find_limits(series) if limit.metric in signal.metrics), None)
    return (limit.value * signal.factor, limit.text) if limit else None


def format_value(signal: Signal, value: float) -> str:
    number = f"{value:,.1f}".removesuffix(".0") if signal.unit in {"GiB", "GB/s"} else f"{value:,.0f}"
    return f"{number}{'' if signal.unit == '%' else display.GAP}{signal.unit}"


def format_number(signal: Signal, value: float) -> str:
    return format_value(signal, value).removesuffix(signal.unit).rstrip(display.GAP)
