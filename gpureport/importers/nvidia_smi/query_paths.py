"""Where `nvidia-smi -q` writes what a query field holds: the one mapping table of its text and its XML.

A path is the labels of the text, or the elements of the XML, from a GPU's section down, in lower case with `_` for
whatever is no letter or digit. Both often give the same path.
"""

import re
from functools import lru_cache

from gpureport.importers.columns import Column, make_column
from gpureport.importers.nvidia_smi.fields import parse_query_field

_LINK = "pci/(?:pci_)?gpu_link_info"
_REASONS = "clocks_(?:throttle|event)_reason"
_POWER = "(?:gpu_)?power_readings"
_PATHS = tuple(
    (re.compile(path), field)
    for path, field in (
        (r"product_name", "name"),
        (r"serial(?:_number)?", "serial"),
        (r"(?:gpu_)?uuid", "uuid"),
        (r"mig_mode/current(?:_mig)?", "mig.mode.current"),
        (rf"{_LINK}/pcie_gen(?:eration)?/(max|current)(?:_link_gen)?", r"pcie.link.gen.\1"),
        (rf"{_LINK}/pcie_gen(?:eration)?/device_current(?:_link_gen)?", "pcie.link.gen.gpucurrent"),
        (rf"{_LINK}/link_widths?/(max|current)(?:_link_width)?", r"pcie.link.width.\1"),
        (r"fan_speed", "fan.speed"),
        (r"performance_state", "pstate"),
        (r"fb_memory_usage/(total|reserved|used|free)", r"memory.\1"),
        (r"(?:cc|conf_compute)_protected_memory_usage/used", "protected_memory.used"),
        (r"utilization/(gpu|memory|encoder|decoder|jpeg|ofa)(?:_util)?", r"utilization.\1"),
        (r"encoder_stats/(?:session_count|active_sessions)", "encoder.stats.sessionCount"),
        (r"encoder_stats/average_fps", "encoder.stats.averageFps"),
        (r"encoder_stats/average_latency", "encoder.stats.averageLatency"),
        (r"temperature/(gpu|memory)(?:_current)?_temp", r"temperature.\1"),
        (r"temperature/gpu_(?:temp_tlimit|t_limit_temp)", "temperature.gpu.tlimit"),
        (rf"{_POWER}/power_draw", "power.draw"),
        (rf"{_POWER}/average_power_draw", "power.draw.average"),
        (rf"{_POWER}/instant(?:aneous)?_power_draw", "power.draw.instant"),
        (rf"{_POWER}/(?:requested_)?power_limit", "power.limit"),
        (rf"{_POWER}/(?:enforced|current)_power_limit", "enforced.power.limit"),
        (rf"{_POWER}/(default|min|max)_power_limit", r"power.\1_limit"),
        (r"clocks/(graphics|sm|video)(?:_clock)?", r"clocks.current.\1"),
        (r"clocks/mem(?:ory)?(?:_clock)?", "clocks.current.memory"),
        (r"max_clocks/(graphics|sm)(?:_clock)?", r"clocks.max.\1"),
        (r"max_clocks/mem(?:ory)?(?:_clock)?", "clocks.max.memory"),
        (r"voltage/graphics(?:_volt)?", "voltage.graphics"),
        (r"ecc_errors/volatile/single_bit/total", "ecc.errors.corrected.volatile.total"),
        (r"ecc_errors/volatile/double_bit/total", "ecc.errors.uncorrected.volatile.total"),
        (r"remapped_rows/(?:remapped_row_corr|correctable_error)", "remapped_rows.correctable"),
        (r"remapped_rows/(?:remapped_row_unc|uncorrectable_error)", "remapped_rows.uncorrectable"),
        (r"remapped_rows/(?:remapped_row_)?pending", "remapped_rows.pending"),
        (r"remapped_rows/(?:remapped_row_failure|remapping_failure_occurred)", "remapped_rows.failure"),
        (rf"{_REASONS}s_counters/(?:{_REASONS}s_counters_)?(\w+)", r"clocks_event_reasons_counters.\1"),
        (rf"{_REASONS}s/(?:\w+/)?(?:{_REASONS}_)?(\w+)", r"clocks_event_reasons.\1"),
    )
)
"""Paths, and the query field of each."""
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
_RENAMED = {
    "clocks_event_reasons.idle": "clocks_event_reasons.gpu_idle",
    "clocks_event_reasons.display_clocks_setting": "clocks_event_reasons.display_clock_setting",
    **{
        f"clocks_event_reasons_counters.{name}": f"clocks_event_reasons_counters.{field}"
        for name, field in (
            ("sw_power_capping", "sw_power_cap"),
            ("sw_therm_slowdown", "sw_thermal_slowdown"),
            ("hw_therm_slowdown", "hw_thermal_slowdown"),
            ("hw_power_brake", "hw_power_brake_slowdown"),
            ("hw_power_braking", "hw_power_brake_slowdown"),
        )
    },
}
"""Fields under other names."""
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
    found = (match.expand(field) for form, field in _PATHS if (match := form.fullmatch(path)))
    field = PARTS.get(path) or next(found, "")
    return parse_query_field(_RENAMED.get(field, field)) if field else None
