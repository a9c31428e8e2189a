"""The one table of metrics: every column a recording can hold, with its unit and meaning.

Names carry their base unit as a suffix, as Prometheus names OpenTelemetry metrics. Ratios are 0..1, sizes
bytes, clocks hertz. `covers` says what stretch of time one value speaks of, which the analyses rely on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class MetricKind(StrEnum):
    """How a metric behaves in time, in OpenTelemetry's words."""

    GAUGE = "gauge"
    COUNTER = "counter"
    STATE = "state"


class Scope(StrEnum):
    """What a metric describes."""

    GPU = "gpu"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One column: its name, base unit, storage type and meaning.

    Attributes:
        name: column name in snake_case with the base unit as suffix.
        unit: base unit (UCUM: `1`, `By`, `By/s`, `W`, `J`, `Hz`, `Cel`, `s`), empty for a state.
        dtype: Arrow type the column is stored as.
        kind: gauge, counter or state.
        scope: GPU or host.
        otel: OpenTelemetry name, empty where its conventions have none.
        covers: what stretch of time one value speaks of.
        recorded_by: the nvidia-smi query field, the monitor of nvidia-smi and its column, the DCGM field, or the host
            command that yields it.
        brief: one sentence of meaning.
    """

    name: str
    unit: str
    dtype: str
    kind: MetricKind
    scope: Scope
    otel: str
    covers: str
    recorded_by: str
    brief: str

    @property
    def queried(self) -> bool:
        """Whether `nvidia-smi --query-gpu` has a field for it; what only dmon or pmon shows has a name of two words."""
        return self.scope is Scope.GPU and " " not in self.recorded_by and not self.recorded_by.startswith("DCGM_")


_WINDOW = "the last 1/6 to 1 s before the reading, by GPU model (NVML)"
_MOMENT = "the moment of the reading"
_SINCE = "the time since the previous reading"
_LOADED = "since the driver was loaded"
_SHORT = "the last 20 ms before the reading (NVML)"
_PROFILED = "the time since DCGM's previous reading, over which its counters average"


def _gauge(  # noqa: PLR0913 - a table row has as many cells as the table has columns
    name: str, unit: str, dtype: str, recorded_by: str, brief: str, *, otel: str = "", covers: str = _MOMENT
) -> Metric:
    return Metric(
        name=name,
        unit=unit,
        dtype=dtype,
        kind=MetricKind.GAUGE,
        scope=Scope.GPU,
        otel=otel,
        covers=covers,
        recorded_by=recorded_by,
        brief=brief,
    )


def _counter(name: str, recorded_by: str, brief: str) -> Metric:
    return Metric(
        name=name,
        unit="",
        dtype="int64",
        kind=MetricKind.COUNTER,
        scope=Scope.GPU,
        otel="",
        covers="since counting began, which nvidia-smi does not say",
        recorded_by=recorded_by,
        brief=brief,
    )


def _host(  # noqa: PLR0913 - as above
    name: str, unit: str, dtype: str, recorded_by: str, brief: str, *, otel: str, covers: str
) -> Metric:
    return Metric(
        name=name,
        unit=unit,
        dtype=dtype,
        kind=MetricKind.GAUGE,
        scope=Scope.HOST,
        otel=otel,
        covers=covers,
        recorded_by=recorded_by,
        brief=brief,
    )


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
"""Bits of NVML's clocks event reasons mask (nvml.h, nvmlClocksEventReasons; 0x200 and 0x400 since NVML 615)."""

COUNTED_CLOCK_EVENTS = (
    "sw_power_cap",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
)
"""Clock events for which newer drivers also count the time: 580.159.04 does, 550.163.01 does not."""


def _clock_events() -> Iterator[Metric]:
    for reason, bit in CLOCK_EVENT_BITS.items():
        yield Metric(
            name=f"clock_event_{reason}",
            unit="",
            dtype="bool",
            kind=MetricKind.STATE,
            scope=Scope.GPU,
            otel="",
            covers=_MOMENT,
            recorded_by="clocks_event_reasons.active",
            brief=f"Whether the clock is held by {reason.replace('_', ' ')} (bit {bit:#x}).",
        )
    for reason in COUNTED_CLOCK_EVENTS:
        yield Metric(
            name=f"clock_event_{reason}_seconds_total",
            unit="s",
            dtype="float64",
            kind=MetricKind.COUNTER,
            scope=Scope.GPU,
            otel="",
            covers=_LOADED,
            recorded_by=f"clocks_event_reasons_counters.{reason}",
            brief=f"Time the clock was held by {reason.replace('_', ' ')}, counted by the driver.",
        )


def _profiled() -> Iterator[Metric]:
    """Yield what DCGM's profiling module reads from hardware counters (DCGM user guide, Profiling Metrics)."""
    ratios = {
        "gpu_graphics_engine_active_ratio": ("GR_ENGINE_ACTIVE", "Share of time any part of the GPU computed or drew."),
        "gpu_sm_active_ratio": ("SM_ACTIVE", "Share of time a multiprocessor had work, over all multiprocessors."),
        "gpu_sm_occupancy_ratio": (
            "SM_OCCUPANCY",
            "Warps resident on the multiprocessors, of those there is room for.",
        ),
        "gpu_tensor_active_ratio": ("PIPE_TENSOR_ACTIVE", "Share of cycles the tensor cores were busy."),
        "gpu_dram_active_ratio": ("DRAM_ACTIVE", "Share of cycles memory sent or received; near 0.8 is all there is."),
    }
    for name, (field, brief) in ratios.items():
        yield _gauge(name, "1", "float32", f"DCGM_FI_PROF_{field}", brief, covers=_PROFILED)
    for way, end, brief in (("receive", "RX", "received"), ("transmit", "TX", "sent")):
        yield _gauge(
            f"nvlink_{way}_bytes_per_second",
            "By/s",
            "float64",
            f"DCGM_FI_PROF_NVLINK_{end}_BYTES",
            f"Bytes a second the GPU {brief} over NVLink, headers of the protocol not included.",
            covers=_PROFILED,
        )


def _repairs() -> Iterator[Metric]:
    """Yield what the driver keeps of memory it took out of use: pages up to Volta, rows from Ampere on."""
    counters = {
        "gpu_remapped_rows_correctable_total": (
            "remapped_rows.correctable",
            "Rows of memory remapped because of errors that could be corrected.",
        ),
        "gpu_remapped_rows_uncorrectable_total": (
            "remapped_rows.uncorrectable",
            "Rows of memory remapped because of errors that could not be corrected.",
        ),
        "gpu_retired_pages_single_bit_total": (
            "retired_pages.single_bit_ecc.count",
            "Pages of memory retired because of several single-bit errors.",
        ),
        "gpu_retired_pages_double_bit_total": (
            "retired_pages.double_bit.count",
            "Pages of memory retired because of a double-bit error.",
        ),
    }
    states = {
        "gpu_remapped_rows_pending": ("remapped_rows.pending", "Whether a row is remapped at the next reset."),
        "gpu_remapped_rows_failure": ("remapped_rows.failure", "Whether remapping a row ever failed."),
        "gpu_retired_pages_pending": ("retired_pages.pending", "Whether a page is retired at the next reboot."),
    }
    for kind, dtype, table in ((MetricKind.COUNTER, "int64", counters), (MetricKind.STATE, "bool", states)):
        for name, (field, brief) in table.items():
            yield Metric(
                name=name,
                unit="",
                dtype=dtype,
                kind=kind,
                scope=Scope.GPU,
                otel="",
                covers="the life of the GPU",
                recorded_by=field,
                brief=brief,
            )


METRICS: tuple[Metric, ...] = (
    _gauge(
        "gpu_utilization_ratio",
        "1",
        "float32",
        "utilization.gpu",
        "Share of the window in which at least one kernel ran; not how much of the GPU it used.",
        otel="hw.gpu.utilization",
        covers=_WINDOW,
    ),
    _gauge(
        "gpu_memory_controller_ratio",
        "1",
        "float32",
        "utilization.memory",
        "Share of the window in which memory was read or written; not how full it is.",
        covers=_WINDOW,
    ),
    _gauge("gpu_encoder_ratio", "1", "float32", "utilization.encoder", "Share of time the video encoder worked."),
    _gauge("gpu_decoder_ratio", "1", "float32", "utilization.decoder", "Share of time the video decoder worked."),
    _gauge("gpu_jpeg_ratio", "1", "float32", "utilization.jpeg", "Share of time the JPEG engine worked."),
    _gauge("gpu_ofa_ratio", "1", "float32", "utilization.ofa", "Share of time the optical-flow engine worked."),
    _gauge(
        "gpu_memory_used_bytes",
        "By",
        "int64",
        "memory.used",
        "Memory held by contexts and allocators; a high-water mark with caching allocators.",
        otel="hw.gpu.memory.usage",
    ),
    _gauge(
        "gpu_memory_used_ratio",
        "1",
        "float32",
        "memory.used,memory.total",
        "Share of the memory installed that is held, where a recorder gives no more than that.",
        otel="hw.gpu.memory.utilization",
    ),
    _gauge("gpu_memory_free_bytes", "By", "int64", "memory.free", "Memory that can still be allocated."),
    _gauge(
        "gpu_memory_total_bytes",
        "By",
        "int64",
        "memory.total",
        "Memory installed.",
        otel="hw.gpu.memory.limit",
    ),
    _gauge(
        "gpu_memory_reserved_bytes",
        "By",
        "int64",
        "memory.reserved",
        "Memory the driver keeps for itself; never available to a job.",
    ),
    _gauge(
        "gpu_power_watts",
        "W",
        "float32",
        "power.draw",
        "Board power; Device.power_window says over which window the driver averages it.",
        otel="hw.power",
        covers="1 s on Ampere and newer except GA100, else the moment of the reading",
    ),
    _gauge(
        "gpu_power_ratio",
        "1",
        "float32",
        "power.draw,enforced.power.limit",
        "Board power as a share of the limit in force; may exceed 1.",
    ),
    _gauge("gpu_power_instant_watts", "W", "float32", "power.draw.instant", "Board power without averaging."),
    _gauge("gpu_power_limit_watts", "W", "float32", "enforced.power.limit", "Power limit in force."),
    _gauge("gpu_power_limit_requested_watts", "W", "float32", "power.limit", "Power limit asked for by software."),
    _gauge("gpu_power_limit_default_watts", "W", "float32", "power.default_limit", "Power limit the board ships with."),
    _gauge("gpu_power_limit_min_watts", "W", "float32", "power.min_limit", "Lowest power limit that can be set."),
    _gauge("gpu_power_limit_max_watts", "W", "float32", "power.max_limit", "Highest power limit that can be set."),
    _gauge("gpu_temperature_celsius", "Cel", "float32", "temperature.gpu", "Core temperature.", otel="hw.temperature"),
    _gauge("gpu_memory_temperature_celsius", "Cel", "float32", "temperature.memory", "Memory temperature."),
    _gauge(
        "gpu_temperature_margin_celsius",
        "Cel",
        "float32",
        "temperature.gpu.tlimit",
        "Degrees left until the GPU slows down; falls as it heats.",
    ),
    _gauge("gpu_sm_clock_hertz", "Hz", "float64", "clocks.current.sm", "Clock of the streaming multiprocessors."),
    _gauge("gpu_graphics_clock_hertz", "Hz", "float64", "clocks.current.graphics", "Graphics clock."),
    _gauge("gpu_memory_clock_hertz", "Hz", "float64", "clocks.current.memory", "Memory clock."),
    _gauge("gpu_video_clock_hertz", "Hz", "float64", "clocks.current.video", "Video engine clock."),
    _gauge("gpu_sm_clock_max_hertz", "Hz", "float64", "clocks.max.sm", "Highest clock of the multiprocessors."),
    _gauge("gpu_graphics_clock_max_hertz", "Hz", "float64", "clocks.max.graphics", "Highest graphics clock."),
    _gauge("gpu_memory_clock_max_hertz", "Hz", "float64", "clocks.max.memory", "Highest memory clock."),
    _gauge("gpu_performance_state", "", "int8", "pstate", "Performance state, 0 (P0, fastest) to 15."),
    _gauge("gpu_fan_ratio", "1", "float32", "fan.speed", "Fan speed asked for, of its maximum; may exceed 1."),
    _gauge("pcie_link_generation", "", "int8", "pcie.link.gen.gpucurrent", "PCIe generation in use; falls when idle."),
    _gauge("pcie_link_generation_max", "", "int8", "pcie.link.gen.max", "PCIe generation card and slot allow."),
    _gauge("pcie_link_width", "", "int16", "pcie.link.width.current", "PCIe lanes in use."),
    _gauge("pcie_link_width_max", "", "int16", "pcie.link.width.max", "PCIe lanes card and slot allow."),
    _gauge(
        "pcie_receive_bytes_per_second",
        "By/s",
        "float32",
        "dmon rxpci",
        "Data the GPU received over PCIe; dmon counts whole MB a second, taken as 1,000,000 bytes.",
        covers=_SHORT,
    ),
    _gauge(
        "pcie_transmit_bytes_per_second",
        "By/s",
        "float32",
        "dmon txpci",
        "Data the GPU sent over PCIe; dmon counts whole MB a second, taken as 1,000,000 bytes.",
        covers=_SHORT,
    ),
    _gauge(
        "gpu_power_violation_ratio",
        "1",
        "float32",
        "dmon pviol",
        "Share of time in which the power limit held the clock down.",
        covers=_SINCE,
    ),
    Metric(
        name="gpu_thermal_violation",
        unit="",
        dtype="bool",
        kind=MetricKind.STATE,
        scope=Scope.GPU,
        otel="",
        covers=_SINCE,
        recorded_by="dmon tviol",
        brief="Whether the temperature held the clock down.",
    ),
    _gauge("gpu_bar1_used_bytes", "By", "int64", "dmon bar1", "Memory mapped for direct access over PCIe (BAR1)."),
    _gauge(
        "gpu_protected_memory_used_bytes",
        "By",
        "int64",
        "protected_memory.used",
        "Memory in use under confidential compute.",
    ),
    _gauge("gpu_processes", "", "int32", "pmon pid", "Processes that a list of processes names on the GPU."),
    _gauge(
        "gpu_process_memory_bytes",
        "By",
        "int64",
        "pmon fb",
        "Memory the listed processes hold, added up; the GPU has more in use than that.",
    ),
    _gauge("gpu_encoder_sessions", "", "int32", "encoder.stats.sessionCount", "Open encoder sessions."),
    _gauge("gpu_encoder_frame_rate_hertz", "Hz", "float32", "encoder.stats.averageFps", "Frames encoded a second."),
    _gauge("gpu_encoder_latency_seconds", "s", "float64", "encoder.stats.averageLatency", "Mean encode latency."),
    Metric(
        name="gpu_ecc_corrected_total",
        unit="",
        dtype="int64",
        kind=MetricKind.COUNTER,
        scope=Scope.GPU,
        otel="hw.errors",
        covers=_LOADED,
        recorded_by="ecc.errors.corrected.volatile.total",
        brief="Memory errors corrected since the driver was loaded.",
    ),
    Metric(
        name="gpu_ecc_uncorrected_total",
        unit="",
        dtype="int64",
        kind=MetricKind.COUNTER,
        scope=Scope.GPU,
        otel="hw.errors",
        covers=_LOADED,
        recorded_by="ecc.errors.uncorrected.volatile.total",
        brief="Memory errors that could not be corrected since the driver was loaded.",
    ),
    _counter(
        "gpu_ecc_single_bit_total",
        "dmon sbecc",
        "Single-bit memory errors, as dmon counts them over all parts of the GPU.",
    ),
    _counter(
        "gpu_ecc_double_bit_total",
        "dmon dbecc",
        "Double-bit memory errors, as dmon counts them over all parts of the GPU.",
    ),
    _counter("pcie_replays_total", "dmon pci", "Packets that were sent over PCIe once more because of an error."),
    *_repairs(),
    *_profiled(),
    Metric(
        name="gpu_energy_joules_total",
        unit="J",
        dtype="float64",
        kind=MetricKind.COUNTER,
        scope=Scope.GPU,
        otel="hw.energy",
        covers=_LOADED,
        recorded_by="DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        brief="Energy the GPU took since the driver was loaded, counted by the driver.",
    ),
    Metric(
        name="gpu_xid_code",
        unit="",
        dtype="int32",
        kind=MetricKind.STATE,
        scope=Scope.GPU,
        otel="",
        covers=_LOADED,
        recorded_by="DCGM_FI_DEV_XID_ERRORS",
        brief="Number of the last Xid error the driver reported; 0 before the first.",
    ),
    *_clock_events(),
    Metric(
        name="clock_event_unknown_bits",
        unit="",
        dtype="uint64",
        kind=MetricKind.STATE,
        scope=Scope.GPU,
        otel="",
        covers=_MOMENT,
        recorded_by="clocks_event_reasons.active",
        brief="Bits of the clock event mask that have no name yet, kept as they were.",
    ),
    _host(
        "cpu_utilization_ratio",
        "1",
        "float32",
        "psutil.cpu_percent()",
        "Share of all logical cores that was busy.",
        otel="system.cpu.utilization",
        covers=_SINCE,
    ),
    _host(
        "cpu_busiest_core_ratio",
        "1",
        "float32",
        "max(psutil.cpu_percent(percpu=True))",
        "Busy share of the busiest logical core.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "cpu_iowait_ratio",
        "1",
        "float32",
        "psutil.cpu_times_percent().iowait",
        "Share of all logical cores that waited for input or output.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "host_memory_used_bytes",
        "By",
        "int64",
        "psutil.virtual_memory()",
        "Host memory in use, page cache excluded.",
        otel="system.memory.usage",
        covers=_MOMENT,
    ),
    _host(
        "host_memory_total_bytes",
        "By",
        "int64",
        "psutil.virtual_memory().total",
        "Host memory installed.",
        otel="system.memory.limit",
        covers=_MOMENT,
    ),
    _host(
        "host_memory_used_ratio",
        "1",
        "float32",
        "psutil.virtual_memory().percent",
        "Share of host memory in use, page cache excluded.",
        otel="system.memory.utilization",
        covers=_MOMENT,
    ),
    _host(
        "host_load_average",
        "",
        "float32",
        "psutil.getloadavg()[0]",
        "Tasks that ran, waited for a core or for a disk: the kernel's mean over about a minute.",
        otel="system.cpu.load_average.1m",
        covers="about the last minute, the latest seconds most",
    ),
    _host(
        "host_disk_read_bytes_per_second",
        "By/s",
        "float64",
        "sar -b",
        "Bytes read from all disks in a second.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "host_disk_write_bytes_per_second",
        "By/s",
        "float64",
        "sar -b",
        "Bytes written to all disks in a second.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "cpu_power_watts",
        "W",
        "float32",
        "AMDuProfCLI timechart --event power",
        "Power of the processors, all sockets together.",
        otel="hw.power",
        covers=_SINCE,
    ),
    _host(
        "process_cpu_cores",
        "",
        "float32",
        "pidstat -u -p PID 1",
        "Cores the watched process kept busy, 1 for a whole core; of several processes, that of the busiest.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "process_memory_used_bytes",
        "By",
        "int64",
        "pidstat -r -p PID 1",
        "Resident memory of the watched process; of several processes, that of the largest.",
        otel="process.memory.usage",
        covers=_MOMENT,
    ),
    _host(
        "host_disk_used_bytes",
        "By",
        "int64",
        "psutil.disk_usage('/').used",
        "Space in use on the root file system; how full it is, not how much is read or written.",
        otel="system.filesystem.usage",
        covers=_MOMENT,
    ),
    _host(
        "host_disk_free_bytes",
        "By",
        "int64",
        "psutil.disk_usage('/').free",
        "Space left on the root file system.",
        otel="",
        covers=_MOMENT,
    ),
    _host(
        "host_disk_used_ratio",
        "1",
        "float32",
        "psutil.disk_usage('/').percent",
        "Share of the root file system that is in use.",
        otel="system.filesystem.utilization",
        covers=_MOMENT,
    ),
    _host(
        "host_network_receive_bytes_per_second",
        "By/s",
        "float64",
        "psutil.net_io_counters().bytes_recv",
        "Bytes received a second over all interfaces, the loopback included.",
        otel="",
        covers=_SINCE,
    ),
    _host(
        "host_network_transmit_bytes_per_second",
        "By/s",
        "float64",
        "psutil.net_io_counters().bytes_sent",
        "Bytes sent a second over all interfaces, the loopback included.",
        otel="",
        covers=_SINCE,
    ),
)

BY_NAME: dict[str, Metric] = {metric.name: metric for metric in METRICS}
