"""The tables of metrics, which are the columns of a recording, and of GPU models.

A new metric is one line in METRICS: name, unit, dtype, what records it, and its meaning. Names end in their base unit,
like the Prometheus names of OpenTelemetry metrics. Ratios range from 0 to 1, sizes are in bytes, and clocks in hertz.
`covers` is the period to which one value applies; the analyses rely on this.

The table of GPUs supplies facts that a log lacks. Values in a log take precedence. For an unknown model, `find_gpu`
returns None, and the analyses show less.
"""

import re
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import Any


class MetricKind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"
    STATE = "state"


class Scope(StrEnum):
    GPU = "gpu"
    HOST = "host"


MOMENT = "the moment of the reading"


@dataclass(frozen=True, slots=True)
class Metric:
    """A column, with its name, base unit (UCUM, empty for a state), Arrow type, and meaning in one sentence.

    `recorded_by` is a query field of nvidia-smi, an nvidia-smi monitor and its column, a DCGM field, or a host command.
    `otel` is the OpenTelemetry name, if there is one. A ratio that `may_exceed_one` is not a share.
    """

    name: str
    unit: str
    dtype: str
    recorded_by: str
    brief: str
    _: KW_ONLY
    covers: str = MOMENT
    otel: str = ""
    kind: MetricKind = MetricKind.GAUGE
    scope: Scope = Scope.GPU
    may_exceed_one: bool = False


gauge, host = Metric, partial(Metric, scope=Scope.HOST)
counter, state = partial(Metric, kind=MetricKind.COUNTER), partial(Metric, kind=MetricKind.STATE)
_WINDOW = "the last 1/6 to 1 s before the reading, depending on the GPU model (NVML)"
_SINCE = "the time since the previous reading"
_LOADED = "since the driver was loaded"
_SHORT = "the last 20 ms before the reading (NVML)"
_PROFILED = "the time since DCGM's previous reading, over which DCGM averages"
_COUNTED = "since an unknown time"
_LIFE = "the life of the GPU"
_ENGINES = {"encoder": "video encoder", "decoder": "video decoder", "jpeg": "JPEG engine", "ofa": "optical-flow engine"}
CLOCK_EVENT_BITS: dict[str, int] = {
    "gpu_idle": 0x1,
    "applications_clocks_setting": 0x2,
    "sw_power_cap": 0x4,
    "hw_slowdown": 0x8,
    "sync_boost": 0x10,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake_slowdown": 0x80,
    "display_clock_setting": 0x100,
    "board_limit": 0x200,
    "reliability": 0x400,
}
"""Bits in NVML's mask of clock event reasons (nvml.h, nvmlClocksEventReasons; 0x200 and 0x400 since NVML 615)."""
COUNTED_CLOCK_EVENTS = (
    "sw_power_cap",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)
"""Clock events whose duration newer drivers also count. Driver 580.159.04 does; 550.163.01 does not."""

# fmt: off
METRICS: tuple[Metric, ...] = (
    gauge("gpu_utilization_ratio", "1", "float32", "utilization.gpu", "Share of the window in which at least one kernel ran, however little of the GPU it used.", covers=_WINDOW, otel="hw.gpu.utilization"),
    gauge("gpu_memory_controller_ratio", "1", "float32", "utilization.memory", "Share of the window in which memory was read or written, however full it was.", covers=_WINDOW),
    *(gauge(f"gpu_{name}_ratio", "1", "float32", f"utilization.{name}", f"Utilisation of the {what}.") for name, what in _ENGINES.items()),
    gauge("gpu_memory_used_bytes", "By", "int64", "memory.used", "Memory held by contexts and allocators; with caching allocators, it is a high-water mark.", otel="hw.gpu.memory.usage"),
    gauge("gpu_memory_used_ratio", "1", "float32", "memory.used,memory.total", "Share of the installed memory that is in use, if only this share is logged.", otel="hw.gpu.memory.utilization"),
    gauge("gpu_memory_free_bytes", "By", "int64", "memory.free", "Memory that can still be allocated."),
    gauge("gpu_memory_total_bytes", "By", "int64", "memory.total", "Installed memory.", otel="hw.gpu.memory.limit"),
    gauge("gpu_memory_reserved_bytes", "By", "int64", "memory.reserved", "Memory that the driver keeps for itself and never gives to a job."),
    gauge("gpu_power_watts", "W", "float32", "power.draw", "Board power, averaged over the window in Device.power_window.", covers="1 s on Ampere and newer except GA100, otherwise the moment of the reading", otel="hw.power"),
    gauge("gpu_power_ratio", "1", "float32", "power.draw,enforced.power.limit", "Board power as a share of the limit in force, which it may exceed.", may_exceed_one=True),
    gauge("gpu_power_instant_watts", "W", "float32", "power.draw.instant", "Board power without averaging."),
    gauge("gpu_power_limit_watts", "W", "float32", "enforced.power.limit", "Power limit in force."),
    gauge("gpu_power_limit_requested_watts", "W", "float32", "power.limit", "Power limit requested by software."),
    gauge("gpu_power_limit_default_watts", "W", "float32", "power.default_limit", "Power limit that the board ships with."),
    gauge("gpu_power_limit_min_watts", "W", "float32", "power.min_limit", "Lowest power limit that can be set."),
    gauge("gpu_power_limit_max_watts", "W", "float32", "power.max_limit", "Highest power limit that can be set."),
    gauge("gpu_temperature_celsius", "Cel", "float32", "temperature.gpu", "Core temperature.", otel="hw.temperature"),
    gauge("gpu_memory_temperature_celsius", "Cel", "float32", "temperature.memory", "Memory temperature."),
    gauge("gpu_temperature_margin_celsius", "Cel", "float32", "temperature.gpu.tlimit", "How far the temperature can rise before the GPU slows down."),
    gauge("gpu_sm_clock_hertz", "Hz", "float64", "clocks.current.sm", "Clock of the streaming multiprocessors."),
    gauge("gpu_graphics_clock_hertz", "Hz", "float64", "clocks.current.graphics", "Graphics clock."),
    gauge("gpu_memory_clock_hertz", "Hz", "float64", "clocks.current.memory", "Memory clock."),
    gauge("gpu_video_clock_hertz", "Hz", "float64", "clocks.current.video", "Video engine clock."),
    gauge("gpu_sm_clock_max_hertz", "Hz", "float64", "clocks.max.sm", "Highest clock of the multiprocessors."),
    gauge("gpu_graphics_clock_max_hertz", "Hz", "float64", "clocks.max.graphics", "Highest graphics clock."),
    gauge("gpu_memory_clock_max_hertz", "Hz", "float64", "clocks.max.memory", "Highest memory clock."),
    gauge("gpu_performance_state", "", "int8", "pstate", "Performance state, from 0 (P0, the fastest) to 15."),
    gauge("gpu_fan_ratio", "1", "float32", "fan.speed", "Requested fan speed as a share of the maximum, which it may exceed.", may_exceed_one=True),
    gauge("pcie_link_generation", "", "int8", "pcie.link.gen.gpucurrent", "PCIe generation in use, which falls when the GPU is idle."),
    gauge("pcie_link_generation_max", "", "int8", "pcie.link.gen.max", "Highest PCIe generation that both card and slot support."),
    gauge("pcie_link_width", "", "int16", "pcie.link.width.current", "PCIe lanes in use."),
    gauge("pcie_link_width_max", "", "int16", "pcie.link.width.max", "Number of PCIe lanes that both card and slot support."),
    gauge("pcie_receive_bytes_per_second", "By/s", "float32", "dmon rxpci", "Data received over PCIe; dmon reports whole MB per second, taken as 1,000,000 bytes.", covers=_SHORT),
    gauge("pcie_transmit_bytes_per_second", "By/s", "float32", "dmon txpci", "Data sent over PCIe; dmon reports whole MB per second, taken as 1,000,000 bytes.", covers=_SHORT),
    gauge("gpu_power_violation_ratio", "1", "float32", "dmon pviol", "Share of time in which the power limit lowered the clock.", covers=_SINCE),
    state("gpu_thermal_violation", "", "bool", "dmon tviol", "Whether the temperature lowered the clock.", covers=_SINCE),
    gauge("gpu_bar1_used_bytes", "By", "int64", "dmon bar1", "Memory mapped for direct access over PCIe (BAR1)."),
    gauge("gpu_protected_memory_used_bytes", "By", "int64", "protected_memory.used", "Memory in use under confidential compute."),
    gauge("gpu_processes", "", "int32", "pmon pid", "Number of GPU processes in the process list."),
    gauge("gpu_process_memory_bytes", "By", "int64", "pmon fb", "Total memory of the listed processes, which is less than all memory in use."),
    gauge("gpu_encoder_sessions", "", "int32", "encoder.stats.sessionCount", "Open encoder sessions."),
    gauge("gpu_encoder_frame_rate_hertz", "Hz", "float32", "encoder.stats.averageFps", "Frames encoded per second."),
    gauge("gpu_encoder_latency_seconds", "s", "float64", "encoder.stats.averageLatency", "Mean encode latency."),
    counter("gpu_ecc_corrected_total", "", "int64", "ecc.errors.corrected.volatile.total", "Memory errors corrected since the driver was loaded.", covers=_LOADED, otel="hw.errors"),
    counter("gpu_ecc_uncorrected_total", "", "int64", "ecc.errors.uncorrected.volatile.total", "Uncorrectable memory errors since the driver was loaded.", covers=_LOADED, otel="hw.errors"),
    counter("gpu_ecc_single_bit_total", "", "int64", "dmon sbecc", "Single-bit memory errors, counted by dmon over all parts of the GPU.", covers=_COUNTED),
    counter("gpu_ecc_double_bit_total", "", "int64", "dmon dbecc", "Double-bit memory errors, counted by dmon over all parts of the GPU.", covers=_COUNTED),
    counter("pcie_replays_total", "", "int64", "dmon pci", "PCIe packets that were sent again because of an error.", covers=_COUNTED),
    counter("gpu_remapped_rows_correctable_total", "", "int64", "remapped_rows.correctable", "Rows of memory remapped because of correctable errors.", covers=_LIFE),
    counter("gpu_remapped_rows_uncorrectable_total", "", "int64", "remapped_rows.uncorrectable", "Rows of memory remapped because of uncorrectable errors.", covers=_LIFE),
    counter("gpu_retired_pages_single_bit_total", "", "int64", "retired_pages.single_bit_ecc.count", "Memory pages retired because of repeated single-bit errors.", covers=_LIFE),
    counter("gpu_retired_pages_double_bit_total", "", "int64", "retired_pages.double_bit.count", "Memory pages retired because of a double-bit error.", covers=_LIFE),
    state("gpu_remapped_rows_pending", "", "bool", "remapped_rows.pending", "Whether a row will be remapped at the next reset.", covers=_LIFE),
    state("gpu_remapped_rows_failure", "", "bool", "remapped_rows.failure", "Whether remapping a row ever failed.", covers=_LIFE),
    state("gpu_retired_pages_pending", "", "bool", "retired_pages.pending", "Whether a page will be retired at the next reboot.", covers=_LIFE),
    gauge("gpu_graphics_engine_active_ratio", "1", "float32", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "Share of time in which any part of the GPU computed or rendered.", covers=_PROFILED),
    gauge("gpu_sm_active_ratio", "1", "float32", "DCGM_FI_PROF_SM_ACTIVE", "Share of time in which a multiprocessor had work, averaged over all of them.", covers=_PROFILED),
    gauge("gpu_sm_occupancy_ratio", "1", "float32", "DCGM_FI_PROF_SM_OCCUPANCY", "Warps resident on the multiprocessors as a share of their capacity.", covers=_PROFILED),
    gauge("gpu_tensor_active_ratio", "1", "float32", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "Share of cycles in which the tensor cores were busy.", covers=_PROFILED),
    gauge("gpu_dram_active_ratio", "1", "float32", "DCGM_FI_PROF_DRAM_ACTIVE", "Share of cycles in which memory sent or received data; the practical maximum is near 0.8.", covers=_PROFILED),
    gauge("nvlink_receive_bytes_per_second", "By/s", "float64", "DCGM_FI_PROF_NVLINK_RX_BYTES", "Bytes received over NVLink per second, without protocol headers.", covers=_PROFILED),
    gauge("nvlink_transmit_bytes_per_second", "By/s", "float64", "DCGM_FI_PROF_NVLINK_TX_BYTES", "Bytes sent over NVLink per second, without protocol headers.", covers=_PROFILED),
    counter("gpu_energy_joules_total", "J", "float64", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Energy used since the driver was loaded, counted by the driver.", covers=_LOADED, otel="hw.energy"),
    state("gpu_xid_code", "", "int32", "DCGM_FI_DEV_XID_ERRORS", "Number of the last Xid error reported by the driver, or 0 before the first.", covers=_LOADED),
    *(state(f"clock_event_{name}", "", "bool", "clocks_event_reasons.active", f"Whether the clock is limited by {name.replace('_', ' ')} (bit {bit:#x}).") for name, bit in CLOCK_EVENT_BITS.items()),
    *(counter(f"clock_event_{name}_seconds_total", "s", "float64", f"clocks_event_reasons_counters.{name}", f"Time for which the clock was limited by {name.replace('_', ' ')}, counted by the driver.", covers=_LOADED) for name in COUNTED_CLOCK_EVENTS),
    state("clock_event_unknown_bits", "", "uint64", "clocks_event_reasons.active", "Bits in the clock event mask that have no name yet."),
    host("cpu_utilization_ratio", "1", "float32", "psutil.cpu_percent()", "Utilisation of all logical cores.", covers=_SINCE, otel="system.cpu.utilization"),
    host("cpu_busiest_core_ratio", "1", "float32", "max(psutil.cpu_percent(percpu=True))", "Utilisation of the busiest logical core.", covers=_SINCE),
    host("cpu_logical_cores", "", "int32", "psutil.cpu_count()", "Logical cores of the machine, as reported by the recorder; a container may have fewer.", covers=MOMENT, otel="system.cpu.logical.count"),
    host("cpu_iowait_ratio", "1", "float32", "psutil.cpu_times_percent().iowait", "Share of the logical cores' time spent waiting for input or output.", covers=_SINCE),
    host("host_memory_used_bytes", "By", "int64", "psutil.virtual_memory()", "Host memory in use, excluding the page cache.", covers=MOMENT, otel="system.memory.usage"),
    host("host_memory_total_bytes", "By", "int64", "psutil.virtual_memory().total", "Installed host memory.", covers=MOMENT, otel="system.memory.limit"),
    host("host_memory_used_ratio", "1", "float32", "psutil.virtual_memory().percent", "Share of host memory in use, excluding the page cache.", covers=MOMENT, otel="system.memory.utilization"),
    host("host_load_average", "", "float32", "psutil.getloadavg()[0]", "Tasks running or waiting for a core or a disk, averaged by the kernel over about a minute.", covers="about the last minute, with more weight on recent seconds", otel="system.cpu.load_average.1m"),
    host("host_disk_read_bytes_per_second", "By/s", "float64", "sar -b", "Bytes read from all disks per second.", covers=_SINCE),
    host("host_disk_write_bytes_per_second", "By/s", "float64", "sar -b", "Bytes written to all disks per second.", covers=_SINCE),
    host("cpu_power_watts", "W", "float32", "AMDuProfCLI timechart --event power", "Total power of the processors in all sockets.", covers=_SINCE, otel="hw.power"),
    host("process_cpu_cores", "", "float32", "pidstat -u -p PID 1", "Number of cores kept busy by the watched process, or by the busiest of several.", covers=_SINCE),
    host("job_cpu_cores", "", "float32", "gpureport record", "Number of cores kept busy by all of the job's processes.", covers=_SINCE),
    host("process_memory_used_bytes", "By", "int64", "pidstat -r -p PID 1", "Resident memory of the watched process, or of the largest of several.", covers=MOMENT, otel="process.memory.usage"),
    host("host_disk_used_bytes", "By", "int64", "psutil.disk_usage('/').used", "Space in use on the root file system, not traffic.", covers=MOMENT, otel="system.filesystem.usage"),
    host("host_disk_free_bytes", "By", "int64", "psutil.disk_usage('/').free", "Space left on the root file system.", covers=MOMENT),
    host("host_disk_used_ratio", "1", "float32", "psutil.disk_usage('/').percent", "Share of the root file system that is in use.", covers=MOMENT, otel="system.filesystem.utilization"),
    host("host_network_receive_bytes_per_second", "By/s", "float64", "psutil.net_io_counters().bytes_recv", "Bytes received per second over all interfaces, including loopback.", covers=_SINCE),
    host("host_network_transmit_bytes_per_second", "By/s", "float64", "psutil.net_io_counters().bytes_sent", "Bytes sent per second over all interfaces, including loopback.", covers=_SINCE),
)
# fmt: on

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
_TABLE = Path(__file__).with_name("gpus.toml")
_GA100 = (8, 0)
"""The only Ampere chip that, like older chips, lacks averaged power readings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One value in the table, in a base unit, with its source in words."""

    value: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """The known facts about one model, in base units; facts without a source are None.

    A name matches if it contains every word in one set of `names` and none in `excluded`. `clock_events_masked` is 1 if
    NVIDIA's diagnostics ignore the model's clock events.
    """

    model: str
    names: tuple[frozenset[str], ...]
    excluded: frozenset[str] = frozenset()
    compute_capability: tuple[int, int]
    power_limit_default_watts: Cell | None = None
    memory_total_bytes: Cell | None = None
    memory_reserved_bytes: Cell | None = None
    sm_clock_max_hertz: Cell | None = None
    temperature_max_operating_celsius: Cell | None = None
    utilisation_window_seconds: Cell | None = None
    power_idle_watts: Cell | None = None
    memory_bandwidth_bytes_per_second: Cell | None = None
    tensor_operations_per_second: Cell | None = None
    clock_events_masked: Cell | None = None

    @property
    def power_window(self) -> str:
        """`1 s` on Ampere and newer except GA100, otherwise `instant` (NVML)."""
        return "1 s" if self.compute_capability > _GA100 else "instant"


def _row(entry: dict[str, Any], sources: dict[str, str]) -> Gpu:
    names, excluded = entry.pop("names", [entry["model"].lower().split()]), entry.pop("not", ())
    major, minor = entry.pop("compute_capability")[0].split(".")
    return Gpu(
        model=entry.pop("model"),
        names=tuple(map(frozenset, names)),
        excluded=frozenset(excluded),
        compute_capability=(int(major), int(minor)),
        **{key: Cell(value=float(value), source=sources[source]) for key, (value, source) in entry.items()},
    )


@cache
def load_gpus() -> tuple[Gpu, ...]:
    import tomllib

    content = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    families = ({"model": name} | entry for name, entry in content["families"].items())
    return tuple(_row(entry, content["sources"]) for entry in (*content["gpu"], *families))


@cache
def find_gpu(name: str | None) -> Gpu | None:
    """Return the first model that matches a name from a log, in any spelling, or None."""
    words = frozenset(re.findall(r"[a-z0-9]+", (name or "").lower()))
    fits = (gpu for gpu in load_gpus() if not words & gpu.excluded and any(each <= words for each in gpu.names))
    return next(fits, None) if words else None
