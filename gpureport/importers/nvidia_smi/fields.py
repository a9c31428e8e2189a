"""nvidia-smi's query fields, what each fills, and the headings that people write instead.

The names are nvidia-smi's own (`nvidia-smi --help-query-gpu`, drivers 535 to 610); the table of metrics says which
field records a metric. A field that fills nothing is kept as text in `extra_<name>`. Of headings that people write only
what cannot mean anything else is taken: `gpu_util%`, `mem_used_MB`, `temp_C`.
"""

import re
from dataclasses import replace
from functools import lru_cache

from gpureport.importers.columns import ATTRIBUTES, MASK, TIME, Column, make_column
from gpureport.importers.headings import GPU_COLUMNS, INDEX, MODEL, heading_words, recognise_column
from gpureport.metrics import BY_NAME, CLOCK_EVENT_BITS

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
}
"""Older spellings of fields, and the present ones."""
_RENAMED = (
    (r"^clocks_throttle_reasons\.", "clocks_event_reasons."),
    (r"^gpu_operation_mode\.", "gom."),
    (r"^gpu\.power\.", "power."),
    (r"^clocks\.(sm|mem|video|gr)$", r"clocks.current.\1"),
    (r"^(clocks\..*)\.gr$", r"\1.graphics"),
    (r"^(clocks\..*)\.mem$", r"\1.memory"),
)
ATTRIBUTE_FIELDS = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"} | {
    "driver_version": "driver",
    "mig.mode.current": "mig",
}
_COMMON = {"index", "name", "serial"}
"""Fields whose names are those of columns of many a table."""
_TARGETS = (
    {metric.recorded_by: metric.name for metric in BY_NAME.values() if not metric.recorded_by.startswith("DCGM_")}
    | {f"clocks_event_reasons.{reason}": f"clock_event_{reason}" for reason in CLOCK_EVENT_BITS}
    | {
        TIME: TIME,
        "clocks_event_reasons.active": MASK,
        "power.draw.average": "gpu_power_watts",
        "pcie.link.gen.current": "pcie_link_generation",
        # nvidia-smi up to 610 has no such field; scripts that add it use NVML's name
        "total_energy_consumption": "gpu_energy_joules_total",
    }
    | ATTRIBUTE_FIELDS
)
PREFERRED = frozenset(metric.recorded_by for metric in BY_NAME.values())
"""Fields that fill a metric's column where a log holds two that could (`power.draw`, `power.draw.average`)."""
_HEADING = re.compile(r"([A-Za-z_][\w.]*)(?: \[([^\]]+)\])?")


@lru_cache(4096)
def canonicalize(field: str) -> str:
    """Return nvidia-smi's present name of a query field."""
    for pattern, new in _RENAMED:
        field = re.sub(pattern, new, field)
    return ALIASES.get(field, field)


def find_target(field: str) -> str:
    """Return the metric or attribute a canonical field fills, empty for one without a column of its own."""
    return _TARGETS.get(field, "")


@lru_cache(2048)
def parse_query_field(heading: str, decimal: str = ".") -> Column | None:
    """Return how the column under a query field, with its unit in brackets or without, is read; None for no heading."""
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
