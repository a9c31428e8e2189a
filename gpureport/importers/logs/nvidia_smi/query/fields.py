"""Every nvidia-smi query field to the column it fills: the one mapping table of this source.

The names are nvidia-smi's own (`nvidia-smi --help-query-gpu`, drivers 535 to 610). Older spellings are aliases of
the present ones. A field that is not in the table is kept as text in `extra_<name>`.
"""

import re
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.devices.column_values import CLOCK_EVENTS
from gpureport.importers.devices.gpu_identity import ATTRIBUTES
from gpureport.importers.values.cells import Column, Reader, Value, extra_name, number_column
from gpureport.importers.values.numbers import Number
from gpureport.metrics import BY_NAME

if TYPE_CHECKING:
    from collections.abc import Callable

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
    "clocks_event_reasons.active": CLOCK_EVENTS,
    # nvidia-smi up to 610 has no such field; scripts that add it use NVML's name
    "total_energy_consumption": "gpu_energy_joules_total",
}
_SOURCE_UNITS = {"1": "%", "By": "MiB", "W": "W", "Hz": "MHz", "Cel": "C", "s": "us", "J": "mJ"}
"""Unit nvidia-smi counts a base unit in, where neither header nor cell says."""
_PARTS_OF_ONE = {name for name, metric in BY_NAME.items() if metric.unit == "1" and not metric.may_exceed_one}
PREFERRED = frozenset(metric.recorded_by for metric in BY_NAME.values())
"""Fields that fill a metric's column where a log holds two that could (`power.draw`, `power.draw.average`)."""
METRICS = frozenset({*BY_NAME, CLOCK_EVENTS})
"""Targets that are series of a GPU."""
_HEADING = re.compile(r"([A-Za-z_][\w.]*)(?: \[([^\]]+)\])?")
_FLAGS = {"Active": True, "Not Active": False, "Yes": True, "No": False}


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


def find_target(field: str) -> str | None:
    """Return the series column or attribute a canonical field fills, None for one without a column of its own."""
    if field == STAMP:
        return STAMP
    if field.startswith("clocks_event_reasons_counters."):
        name = f"clock_event_{field.rpartition('.')[2]}_seconds_total"
        return name if name in BY_NAME else None
    if field.startswith("clocks_event_reasons."):
        name = f"clock_event_{field.rpartition('.')[2]}"
        return name if name in BY_NAME else _SERIES.get(field)
    return _SERIES.get(field) or ATTRIBUTES.get(field)


@lru_cache(1024)
def parse_query_field(heading: str) -> Column | None:
    """Return how the column under one heading is read, None when the text is no heading.

    Args:
        heading: a query field, with its unit in brackets or without.
    """
    match = _HEADING.fullmatch(heading.strip())
    return (
        None
        if match is None
        else replace(_make_column(canonicalize(match[1]), match[2] or ""), heading=heading.strip())
    )


def has_own_column(heading: str) -> bool:
    """Return whether a field has a column of its own; much cheaper than `parse_query_field`."""
    match = _HEADING.fullmatch(heading.strip())
    return match is not None and find_target(canonicalize(match[1])) is not None


def _make_column(field: str, unit: str) -> Column:
    name = find_target(field)
    if name is None:
        return Column(target=extra_name(field), source=field, dtype="str", unit=unit, read=_text)
    number = _number(name, unit)
    if number is not None:
        return number_column(name, field, _dtype(name), number, unit)
    return Column(target=name, source=field, dtype=_dtype(name), unit=unit, read=_reader(name))


def is_known_column(column: Column) -> bool:
    """Return whether a column is a known one of nvidia-smi; the time stamp, which any log has, is not."""
    return column.target != STAMP and not column.target.startswith("extra_")


def is_gpu_column(column: Column) -> bool:
    """Return whether only a GPU log has such a column."""
    return is_known_column(column) and column.source not in _COMMON


def is_gpu_layout(layout: Layout) -> bool:
    """Return whether a header names a GPU metric, or a time and a column that only GPU logs have.

    `index` and `name` are columns of any table.
    """
    return layout.holds(METRICS) or (layout.stamp is not None and any(map(is_gpu_column, layout.columns)))


def is_share_without_unit(column: Column) -> bool:
    """Return whether a column holds a share without a unit, which is in per cent as a rule."""
    return column.target in _PARTS_OF_ONE and not column.unit


def _dtype(name: str) -> str:
    if name == CLOCK_EVENTS:
        return "uint64"
    return BY_NAME[name].dtype if name in BY_NAME else "str"


def _number(name: str, unit: str) -> Number | None:
    """Return what the numbers of a column are, None for a column that holds something else."""
    metric = BY_NAME.get(name)
    if metric is None or metric.dtype == "bool" or metric.unit == "":
        return None
    unit = unit or _SOURCE_UNITS[metric.unit] if name != "gpu_encoder_frame_rate_hertz" else "Hz"
    return Number(unit=unit, base=metric.unit, whole=metric.dtype == "int64", part=name in _PARTS_OF_ONE)


def _reader(name: str) -> Reader:
    special: dict[str, Callable[[str], Value | None]] = {
        CLOCK_EVENTS: _mask,
        "gpu_performance_state": _performance_state,
        "index": _index,
        "mig": _switch,
    }
    if name in special:
        return special[name]
    metric = BY_NAME.get(name)
    if metric is None:
        return _text
    if metric.dtype == "bool":
        return _FLAGS.get
    return partial(_count, most=int(np.iinfo(metric.dtype).max))


def _text(text: str) -> Value | None:
    return text


def _count(text: str, *, most: int) -> Value | None:
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return int(text) if plain and int(text) <= most else None


def _index(text: str) -> Value | None:
    return text if text.isascii() and text.isdigit() and len(text) <= 4 else None  # noqa: PLR2004 - 0 to 9999


def _mask(text: str) -> Value | None:
    return int(text, 16) if re.fullmatch(r"0[xX][0-9a-fA-F]{1,16}", text) else None


def _performance_state(text: str) -> Value | None:
    return int(text[1:]) if re.fullmatch(r"P(?:1[0-5]|[0-9])", text) else None


def _switch(text: str) -> Value | None:
    return text if text in {"Enabled", "Disabled"} else None
