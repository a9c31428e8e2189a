"""Where `nvidia-smi -q` writes what a query field holds: the one mapping table of its text and its XML.

A path is the labels of the text, or the elements of the XML, from a GPU's section down, in lower case with `_` for
whatever is no letter or digit. Both often give the same path.
"""

from functools import lru_cache

from gpureport.importers.columns import Column, make_column
from gpureport.importers.nvidia_smi.fields import parse_query_field

_REASONS, _REASON = "clocks_event_reasons/", "clocks_event_reason_"
_COUNTERS, _COUNTER = "clocks_event_reasons_counters/", "clocks_event_reasons_counters_"
_POWER = {
    "power_draw": "power.draw",
    "average_power_draw": "power.draw.average",
    "instant_power_draw": "power.draw.instant",
    "instantaneous_power_draw": "power.draw.instant",
    "power_limit": "power.limit",
    "requested_power_limit": "power.limit",
    "enforced_power_limit": "enforced.power.limit",
    "current_power_limit": "enforced.power.limit",
    "default_power_limit": "power.default_limit",
    "min_power_limit": "power.min_limit",
    "max_power_limit": "power.max_limit",
}
_CLOCKS = {"graphics": "graphics", "sm": "sm", "mem": "memory", "memory": "memory", "video": "video"}
_FIELDS = {
    "product_name": "name",
    "serial": "serial",
    "serial_number": "serial",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "mig_mode/current_mig": "mig.mode.current",
    "mig_mode/current": "mig.mode.current",
    "pci/pci_gpu_link_info/pcie_gen/max_link_gen": "pcie.link.gen.max",
    "pci/pci_gpu_link_info/pcie_gen/current_link_gen": "pcie.link.gen.current",
    "pci/pci_gpu_link_info/pcie_gen/device_current_link_gen": "pcie.link.gen.gpucurrent",
    "pci/pci_gpu_link_info/link_widths/max_link_width": "pcie.link.width.max",
    "pci/pci_gpu_link_info/link_widths/current_link_width": "pcie.link.width.current",
    "pci/gpu_link_info/pcie_generation/max": "pcie.link.gen.max",
    "pci/gpu_link_info/pcie_generation/current": "pcie.link.gen.current",
    "pci/gpu_link_info/pcie_generation/device_current": "pcie.link.gen.gpucurrent",
    "pci/gpu_link_info/link_width/max": "pcie.link.width.max",
    "pci/gpu_link_info/link_width/current": "pcie.link.width.current",
    "fan_speed": "fan.speed",
    "performance_state": "pstate",
    "fb_memory_usage/total": "memory.total",
    "fb_memory_usage/reserved": "memory.reserved",
    "fb_memory_usage/used": "memory.used",
    "fb_memory_usage/free": "memory.free",
    **{f"utilization/{part}_util": f"utilization.{part}" for part in ("gpu", "memory", "encoder", "decoder")},
    **{f"utilization/{part}_util": f"utilization.{part}" for part in ("jpeg", "ofa")},
    **{f"utilization/{part}": f"utilization.{part}" for part in ("gpu", "memory", "encoder", "decoder", "jpeg", "ofa")},
    "encoder_stats/session_count": "encoder.stats.sessionCount",
    "encoder_stats/active_sessions": "encoder.stats.sessionCount",
    "encoder_stats/average_fps": "encoder.stats.averageFps",
    "encoder_stats/average_latency": "encoder.stats.averageLatency",
    "temperature/gpu_temp": "temperature.gpu",
    "temperature/gpu_current_temp": "temperature.gpu",
    "temperature/gpu_temp_tlimit": "temperature.gpu.tlimit",
    "temperature/gpu_t_limit_temp": "temperature.gpu.tlimit",
    "temperature/memory_temp": "temperature.memory",
    "temperature/memory_current_temp": "temperature.memory",
    **{
        f"{section}/{leaf}": field
        for section in ("power_readings", "gpu_power_readings")
        for leaf, field in _POWER.items()
    },
    **{f"clocks/{leaf}{end}": f"clocks.current.{name}" for leaf, name in _CLOCKS.items() for end in ("", "_clock")},
    **{
        f"max_clocks/{leaf}{end}": f"clocks.max.{name}"
        for leaf, name in _CLOCKS.items()
        for end in ("", "_clock")
        if name != "video"
    },
    "cc_protected_memory_usage/used": "protected_memory.used",
    "conf_compute_protected_memory_usage/used": "protected_memory.used",
    "voltage/graphics": "voltage.graphics",
    "voltage/graphics_volt": "voltage.graphics",
    "ecc_errors/volatile/single_bit/total": "ecc.errors.corrected.volatile.total",
    "ecc_errors/volatile/double_bit/total": "ecc.errors.uncorrected.volatile.total",
    **{
        f"remapped_rows/{leaf}": f"remapped_rows.{name}"
        for name, leaves in (
            ("correctable", ("remapped_row_corr", "correctable_error")),
            ("uncorrectable", ("remapped_row_unc", "uncorrectable_error")),
            ("pending", ("remapped_row_pending", "pending")),
            ("failure", ("remapped_row_failure", "remapping_failure_occurred")),
        )
        for leaf in leaves
    },
}
PARTS = {
    **{f"ecc_errors/volatile/{part}_correctable": "ecc.errors.corrected.volatile.total" for part in ("sram", "dram")},
    **{
        f"ecc_errors/volatile/{part}": "ecc.errors.uncorrected.volatile.total"
        for part in (
            *("dram_uncorrectable", "sram_uncorrectable", "sram_uncorrectable_parity"),
            *("sram_uncorrectable_secded", "sram_uncorrectable_sec_ded"),
        )
    },
}
"""Paths whose numbers add up to a field."""
PART_KINDS = {"sram", "dram"}
"""What these numbers are of; all kinds add up to the field."""
_REASON_NAMES = {"idle": "gpu_idle", "display_clocks_setting": "display_clock_setting"}
_COUNTER_NAMES = {
    "sw_power_capping": "sw_power_cap",
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
    "hw_power_braking": "hw_power_brake_slowdown",
}
_OWN = {
    **dict.fromkeys(("pci/tx_util", "pci/tx_throughput"), ("pci.tx", "pcie_transmit_bytes_per_second", "KB/s")),
    **dict.fromkeys(("pci/rx_util", "pci/rx_throughput"), ("pci.rx", "pcie_receive_bytes_per_second", "KB/s")),
    "bar1_memory_usage/used": ("bar1.used", "gpu_bar1_used_bytes", "MiB"),
}
"""Paths of what no query field holds: a name for it, its metric, and the unit of a cell that states none."""


@lru_cache(8192)
def find_column(path: str) -> Column | None:
    """Return how the value at a path is read, None where it is not kept."""
    if path in _OWN:
        source, target, unit = _OWN[path]
        return make_column(target, source, unit)
    path = path.replace("clocks_throttle_reason", "clocks_event_reason")
    leaf = path.rpartition("/")[2]
    if path.startswith(_COUNTERS):
        name = leaf.removeprefix(_COUNTER)
        return parse_query_field(f"clocks_event_reasons_counters.{_COUNTER_NAMES.get(name, name)}")
    if path.startswith(_REASONS):
        # a reason the table of metrics has no column for is kept under its own name
        name = leaf.removeprefix(_REASON)
        return parse_query_field(f"clocks_event_reasons.{_REASON_NAMES.get(name, name)}")
    field = _FIELDS.get(path) or PARTS.get(path)
    return parse_query_field(field) if field else None
