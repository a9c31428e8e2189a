"""Maps the query fields of nvidia-smi (drivers 535 to 610) to metrics, and recognises headers.

`query` reads CSV from `--query-gpu`, `documents` reads `-q` and tables, and `monitors` reads dmon, process lists, and
logs that mix several forms.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from gpureport.importers import headings
from gpureport.importers.account import LOST_WORDS, NOISE, find_message_kind
from gpureport.importers.columns import ATTRIBUTES, MASK, TIME, Column, Layout, absence, make_column, make_layout
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
_RENAMED = {
    r"^clocks_throttle_reasons\.": "clocks_event_reasons.",
    r"^gpu_operation_mode\.": "gom.",
    r"^gpu\.power\.": "power.",
    r"^clocks\.(sm|mem|video|gr)$": r"clocks.current.\1",
    r"^(clocks\..*)\.gr$": r"\1.graphics",
    r"^(clocks\..*)\.mem$": r"\1.memory",
}
ATTRIBUTE_FIELDS = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"} | {
    "driver_version": "driver",
    "mig.mode.current": "mig",
}
_TARGETS = (
    {metric.recorded_by: metric.name for metric in BY_NAME.values() if not metric.recorded_by.startswith("DCGM_")}
    | {f"clocks_event_reasons.{reason}": f"clock_event_{reason}" for reason in CLOCK_EVENT_BITS}
    | {
        TIME: TIME,
        "clocks_event_reasons.active": MASK,
        "power.draw.average": "gpu_power_watts",
        "pcie.link.gen.current": "pcie_link_generation",
        # nvidia-smi up to 610 lacks this field, which scripts add under NVML's name
        "total_energy_consumption": "gpu_energy_joules_total",
    }
    | ATTRIBUTE_FIELDS
)
PREFERRED = frozenset(metric.recorded_by for metric in BY_NAME.values())
"""Fields to prefer if a log has two fields for a metric."""
_MOST = 500
"""Maximum number of fields in a header; nvidia-smi supports 241."""
_HEADING = r"[\w.]++[ _]*+(?:\[[^\]\n]*+\]|[\[(]?[\w%°]*+[\])]?)"
_TITLE = re.compile(rf"^[^\S\n]*+(?=[^\W\d_]){_HEADING}(?: *+[,;\t] *+(?:{_HEADING})?)*+[^\S\n]*+$", re.MULTILINE)
"""Matches every header and few other lines."""
_NAME = re.compile(r"[\w*.:/()+?-]+(?: [\w*.:/()+?-]+)*", re.ASCII)
_ID = re.compile(rf"(?=.*[\d:*-]){_NAME.pattern}", re.ASCII)
"""Match a model and an id as drivers write them; `*` may replace digits."""
_ROW = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?, ")
_OWN = re.compile(
    r"(?:^|,) *(?:\d+(?:\.\d+)? (?:%|MiB|W|MHz)|\[[A-Z][^],]+\]|0x[0-9A-F]{16}|(?:GPU|MIG)-[0-9a-f]{8}-[0-9a-f-]{27}"
    r"|(?:[0-9A-F]{4})?[0-9A-F]{4}:[0-9A-F]{2}:[0-9A-F]{2}\.[0-9A-F]|(?:NVIDIA|Tesla|GeForce|Quadro) [^,]+) *(?=,|$)"
)


def canonicalize(field: str) -> str:
    for pattern, new in _RENAMED.items():
        field = re.sub(pattern, new, field)
    return ALIASES.get(field, field)


def find_target(field: str) -> str:
    return _TARGETS.get(field, "")


@lru_cache(2048)
def parse_query_field(heading: str, decimal: str = ".") -> Column | None:
    match = re.fullmatch(r"([A-Za-z_][\w.]*)(?: \[([^\]]+)\])?", heading.strip())
    if match is None:
        return None
    field = canonicalize(match[1])
    return make_column(find_target(field), field, match[2] or "", decimal, heading=heading.strip())


def arrange(columns: Sequence[Column], delimiter: str, line: str = "") -> Layout:
    """Return a layout; without a timestamp, GPUs must be identified as the driver writes them."""
    if all(each.target != TIME for each in columns):
        columns = [replace(each, read=_READ_NAMES.get(each.target, each.read)) for each in columns]
    return make_layout(columns, PREFERRED, delimiter, line)


def _read_name(text: str, pattern: "re.Pattern[str]") -> str | None:
    return text if pattern.fullmatch(text) else None


_READ_NAMES = {name: partial(_read_name, pattern=_ID) for name in ("uuid", "bus_id")} | {
    "model": partial(_read_name, pattern=_NAME)
}


@lru_cache(100_000)
def read_cell(find: Callable[[str], Column | None], name: str, text: str) -> tuple[Any, str | None]:
    """Return a cell's value, or None and the reason; both are None if the cell is damaged."""
    column, why = find(name), absence(text) or (text if text in LOST_WORDS else None)
    if column is None or why is not None:
        return None, why
    value = column.read(text.removesuffix("x") if column.target.startswith("pcie_link_width") else text)
    return value, text if value is None and re.fullmatch(r"[A-Za-z][A-Za-z/' .-]{1,79}", text) else None


@lru_cache(2048)
def read_heading(heading: str, decimal: str = ".") -> Column | None:
    own, name = parse_query_field(heading, decimal), find_query_field(heading)
    if name is None or (own and not own.target.startswith("extra_")):
        return own
    written = parse_query_field(name, decimal)
    return written and replace(written, heading=heading.strip(), translated=True)


@lru_cache(2048)
def find_query_field(heading: str) -> str | None:
    found = headings.recognise_column(heading, headings.GPU_COLUMNS)
    if found is None:
        return None
    field = {headings.INDEX: "index", headings.MODEL: "name"}.get(found.target) or BY_NAME[found.target].recorded_by
    return f"{field} [{found.unit}]" if found.unit else field


def is_metric(target: str) -> bool:
    return target in BY_NAME or target == MASK


_OF_GPU = {"gpu", "utilization", "sm"}


@lru_cache(1024)
def declare(line: str) -> Layout | None:
    """Return the layout that a header declares, or None for any other line.

    Headings written by people are accepted if the table is clearly about GPUs.
    """
    if not line[:1].isalpha() or not _TITLE.fullmatch(line):
        return None
    delimiter = next((each for each in (",", ";", "\t") if each in line), ",")
    cells = [cell.strip() for cell in line.split(delimiter)]
    cells[-1] = cells[-1] or f"column_{len(cells)}"
    if len(cells) > _MOST or 2 * len(set(cells)) < len(cells):
        return None
    decimal = "," if delimiter == ";" else "."
    own = [each for cell in cells if (each := parse_query_field(cell, decimal)) is not None]
    targets = {each.target for each in own if not each.target.startswith("extra_")}
    columns = [each for cell in cells if (each := read_heading(cell, decimal)) is not None]
    named = [cell for cell in cells if find_query_field(cell) and _OF_GPU.intersection(headings.heading_words(cell))]
    ours = bool(named) or any(map(_is_of_gpu, own))
    # any single word could be a heading
    if len(cells) == 1 or not (ours and any(is_metric(each.target) for each in columns)):
        columns = own if targets - {TIME} or (targets and len(cells) == 1) else []
    if len(columns) < len(cells):
        return None
    time = next((place for place, cell in enumerate(cells) if headings.is_time_heading(cell)), None)
    known = {column.target for column in columns}
    if time is not None and TIME not in known and any(map(is_metric, known)):
        columns[time] = make_column(TIME, TIME, heading=cells[time], translated=True)
    return arrange(columns, delimiter, line)


def _is_of_gpu(column: Column) -> bool:
    return is_metric(column.target) or (
        column.target in ATTRIBUTES and column.source not in {"index", "name", "serial"}
    )


def is_of_gpus(layout: Layout) -> bool:
    """Return whether a header has a metric, or a time and a column unique to GPU logs."""
    return any(is_metric(each.target) or (layout.stamp is not None and _is_of_gpu(each)) for each in layout.columns)


def opens_query(line: str) -> bool:
    layout = declare(line.strip())
    return layout is not None and (len(layout.columns) > 1 or layout.columns[0].stated != "") and is_of_gpus(layout)


def find_headers(text: str) -> Iterator[tuple[int, Layout]]:
    for match in _TITLE.finditer(text):
        header = declare(match[0].strip())
        if header is not None:
            yield match.start(), header


def is_plain(text: str) -> bool:
    header, _, rows = text.partition("\n")
    if not header.startswith("timestamp, ") or _ROW.match(rows) is None or re.search(r"\n[^0-9]", rows):
        return False
    columns = declare(header.strip())
    return columns is not None and "pid" not in header and is_of_gpus(columns)


def is_headerless(lines: Sequence[str]) -> bool:
    """Return whether the first row and at least half of the lines look like nvidia-smi's."""
    rows = [line for each in lines if (line := each.strip()) and not (find_message_kind(line) or NOISE.fullmatch(line))]
    own = [(_ROW.match(line) is not None and "." in line[:21]) or len(_OWN.findall(line)) > 1 for line in rows]
    first = next((place for place, line in enumerate(rows) if "," in line), None)
    return first is not None and own[first] and 2 * sum(own) >= len(rows)
