"""nvidia-smi's query fields, what each fills, and the headings that people write instead.

The names are nvidia-smi's own (`nvidia-smi --help-query-gpu`, drivers 535 to 610). Older spellings are aliases of the
present ones. A field that is not in the table is kept as text in `extra_<name>`. Of headings that people write only
what cannot mean anything else is taken: `gpu_util%`, `mem_used_MB`, `temp_C`.
"""

import re
from dataclasses import replace
from functools import lru_cache

from gpureport.importers.columns import ATTRIBUTES, MASK, TIME, Column, make_column
from gpureport.importers.headings import GPU_COLUMNS, INDEX, MODEL, heading_words, recognise_column
from gpureport.metrics import BY_NAME

ALIASES = {
    "gpu_name": "name",
    "gpu_serial": "serial",
    "gpu_uuid": "uuid",
    "gpu_bus_id": "pci.bus_id",
    "inforom.image": "inforom.img",
    "inforom.power": "inforom.pwr",
    "retired_pages.sbe": "retired_pages.single_bit_ecc.count",
    "retired_pages.dbe": "retired_pages.double_bit.count",
    "remapped_rows.sbe": "remapped_rows.correctable",
    "remapped_rows.dbe": "remapped_rows.uncorrectable",
    "power.requested_limit": "power.limit",
    "power.current_limit": "enforced.power.limit",
    "module.power.requested_limit": "module.power.limit",
    "module.power.current_limit": "module.enforced.power.limit",
    "clocks.sm": "clocks.current.sm",
    "clocks.mem": "clocks.current.memory",
    "clocks.video": "clocks.current.video",
    "clocks.gr": "clocks.current.graphics",
}
"""Older spellings of fields, and the present ones."""
_COMMON = {"index", "name", "serial"}
"""Fields whose names are those of columns of many a table."""
_PREFIXES = {"clocks_throttle_reasons.": "clocks_event_reasons.", "gpu_operation_mode.": "gom.", "gpu.power.": "power."}
_SUFFIXES = {".gr": ".graphics", ".mem": ".memory"}

_SERIES = {
    "utilization.gpu": "gpu_utilization_ratio",
    "utilization.memory": "gpu_memory_controller_ratio",
    "utilization.encoder": "gpu_encoder_ratio",
    "utilization.decoder": "gpu_decoder_ratio",
    "utilization.jpeg": "gpu_jpeg_ratio",
    "utilization.ofa": "gpu_ofa_ratio",
    "memory.used": "gpu_memory_used_bytes",
    "memory.free": "gpu_memory_free_bytes",
    "memory.total": "gpu_memory_total_bytes",
    "memory.reserved": "gpu_memory_reserved_bytes",
    "protected_memory.used": "gpu_protected_memory_used_bytes",
    "power.draw": "gpu_power_watts",
    "power.draw.average": "gpu_power_watts",
    "power.draw.instant": "gpu_power_instant_watts",
    "enforced.power.limit": "gpu_power_limit_watts",
    "power.limit": "gpu_power_limit_requested_watts",
    "power.default_limit": "gpu_power_limit_default_watts",
    "power.min_limit": "gpu_power_limit_min_watts",
    "power.max_limit": "gpu_power_limit_max_watts",
    "temperature.gpu": "gpu_temperature_celsius",
    "temperature.memory": "gpu_memory_temperature_celsius",
    "temperature.gpu.tlimit": "gpu_temperature_margin_celsius",
    "clocks.current.sm": "gpu_sm_clock_hertz",
    "clocks.current.graphics": "gpu_graphics_clock_hertz",
    "clocks.current.memory": "gpu_memory_clock_hertz",
    "clocks.current.video": "gpu_video_clock_hertz",
    "clocks.max.sm": "gpu_sm_clock_max_hertz",
    "clocks.max.graphics": "gpu_graphics_clock_max_hertz",
    "clocks.max.memory": "gpu_memory_clock_max_hertz",
    "pstate": "gpu_performance_state",
    "fan.speed": "gpu_fan_ratio",
    "pcie.link.gen.gpucurrent": "pcie_link_generation",
    "pcie.link.gen.current": "pcie_link_generation",
    "pcie.link.gen.max": "pcie_link_generation_max",
    "pcie.link.width.current": "pcie_link_width",
    "pcie.link.width.max": "pcie_link_width_max",
    "encoder.stats.sessionCount": "gpu_encoder_sessions",
    "encoder.stats.averageFps": "gpu_encoder_frame_rate_hertz",
    "encoder.stats.averageLatency": "gpu_encoder_latency_seconds",
    "ecc.errors.corrected.volatile.total": "gpu_ecc_corrected_total",
    "ecc.errors.uncorrected.volatile.total": "gpu_ecc_uncorrected_total",
    "remapped_rows.correctable": "gpu_remapped_rows_correctable_total",
    "remapped_rows.uncorrectable": "gpu_remapped_rows_uncorrectable_total",
    "remapped_rows.pending": "gpu_remapped_rows_pending",
    "remapped_rows.failure": "gpu_remapped_rows_failure",
    "retired_pages.single_bit_ecc.count": "gpu_retired_pages_single_bit_total",
    "retired_pages.double_bit.count": "gpu_retired_pages_double_bit_total",
    "retired_pages.pending": "gpu_retired_pages_pending",
    "clocks_event_reasons.active": MASK,
    # nvidia-smi up to 610 has no such field; scripts that add it use NVML's name
    "total_energy_consumption": "gpu_energy_joules_total",
}
PREFERRED = frozenset(metric.recorded_by for metric in BY_NAME.values())
"""Fields that fill a metric's column where a log holds two that could (`power.draw`, `power.draw.average`)."""
ATTRIBUTE_FIELDS = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"} | {
    "driver_version": "driver",
    "mig.mode.current": "mig",
}
_HEADING = re.compile(r"([A-Za-z_][\w.]*)(?: \[([^\]]+)\])?")


@lru_cache(4096)
def canonicalize(field: str) -> str:
    """Return nvidia-smi's present name of a query field."""
    for old, new in _PREFIXES.items():
        if field.startswith(old):
            field = new + field.removeprefix(old)
    if field in ALIASES:
        return ALIASES[field]
    for old, new in _SUFFIXES.items():
        if field.startswith("clocks.") and field.endswith(old):
            return field.removesuffix(old) + new
    return field


@lru_cache(4096)
def find_target(field: str) -> str:
    """Return the metric or attribute a canonical field fills, empty for one without a column of its own."""
    if field == TIME:
        return TIME
    if field.startswith("clocks_event_reasons_counters."):
        name = f"clock_event_{field.rpartition('.')[2]}_seconds_total"
        return name if name in BY_NAME else ""
    if field.startswith("clocks_event_reasons."):
        name = f"clock_event_{field.rpartition('.')[2]}"
        return name if name in BY_NAME else _SERIES.get(field, "")
    return _SERIES.get(field) or ATTRIBUTE_FIELDS.get(field, "")


@lru_cache(2048)
def parse_query_field(heading: str, decimal: str = ".") -> Column | None:
    """Return how the column under one heading is read, None when the text is no heading.

    Args:
        heading: a query field, with its unit in brackets or without.
        decimal: character before the decimals of a number.
    """
    match = _HEADING.fullmatch(heading.strip())
    if match is None:
        return None
    field = canonicalize(match[1])
    return make_column(find_target(field), field, match[2] or "", decimal, heading=heading.strip())


@lru_cache(2048)
def read_heading(heading: str, decimal: str = ".") -> Column | None:
    """Return how the column under a heading is read, hand-written or not; None when the text is no heading."""
    own, name = parse_query_field(heading, decimal), find_query_field(heading)
    written = None if name is None or is_known(own) else parse_query_field(name, decimal)
    return own if written is None else replace(written, heading=heading.strip(), translated=True)


@lru_cache(2048)
def find_query_field(heading: str) -> str | None:
    """Return a hand-written heading as nvidia-smi would have it, None when it is none that is known."""
    found = recognise_column(heading, GPU_COLUMNS)
    if found is None:
        return None
    field = {INDEX: "index", MODEL: "name"}.get(found.target) or BY_NAME[found.target].recorded_by
    return f"{field} [{found.unit}]" if found.unit else field


def is_gpu_heading(heading: str) -> bool:
    """Return whether a hand-written heading names a GPU or its load, not just any power or temperature."""
    named = find_query_field(heading) is not None
    return named and not {"gpu", "utilization", "sm"}.isdisjoint(heading_words(heading))


def is_known(column: Column | None) -> bool:
    """Return whether a column is a known one, the time among them."""
    return column is not None and not column.target.startswith("extra_")


def is_metric(column: Column) -> bool:
    """Return whether a column is a series of a GPU."""
    return column.target in BY_NAME or column.target == MASK


def is_of_gpu(column: Column) -> bool:
    """Return whether only a log of GPUs has such a column."""
    return is_metric(column) or (column.target in ATTRIBUTES and column.source not in _COMMON)
