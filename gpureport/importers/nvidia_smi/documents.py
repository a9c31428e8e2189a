"""Reads the text and XML of `nvidia-smi -q`, and the tables of plain `nvidia-smi`."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any
from xml.etree import ElementTree as ET

from gpureport.importers.account import CUT_LAST_LINE, LOST_WORDS, MALFORMED, NO_READING, TORN, Account
from gpureport.importers.clock import parse_printed_time
from gpureport.importers.columns import LOST, TIME, Column, Record, form, make_column
from gpureport.importers.nvidia_smi import PREFERRED, find_target, parse_query_field, read_cell
from gpureport.metrics import BY_NAME

_NUMBERED = "GPUs are numbered by their minor numbers, because the log shows only some of the attached GPUs."
_KEPT = "Only measurements in nvidia-smi -q are kept. Modes, versions, thresholds and processes are ignored."
_INSTANT = "The log contains no average power, so gpu_power_watts is instantaneous, as on GPUs before Ampere."
_LINK = "pci/(?:pci_)?gpu_link_info"
_REASONS = "clocks_(?:throttle|event)_reason"
_POWER = "(?:gpu_)?power_readings"
_PATHS = {
    r"product_name": "name",
    r"serial(?:_number)?": "serial",
    r"(?:gpu_)?uuid": "uuid",
    r"mig_mode/current(?:_mig)?": "mig.mode.current",
    rf"{_LINK}/pcie_gen(?:eration)?/(max|current)(?:_link_gen)?": r"pcie.link.gen.\1",
    rf"{_LINK}/pcie_gen(?:eration)?/device_current(?:_link_gen)?": "pcie.link.gen.gpucurrent",
    rf"{_LINK}/link_widths?/(max|current)(?:_link_width)?": r"pcie.link.width.\1",
    r"fan_speed": "fan.speed",
    r"performance_state": "pstate",
    r"fb_memory_usage/(total|reserved|used|free)": r"memory.\1",
    r"(?:cc|conf_compute)_protected_memory_usage/used": "protected_memory.used",
    r"utilization/(gpu|memory|encoder|decoder|jpeg|ofa)(?:_util)?": r"utilization.\1",
    r"encoder_stats/(?:session_count|active_sessions)": "encoder.stats.sessionCount",
    r"encoder_stats/average_fps": "encoder.stats.averageFps",
    r"encoder_stats/average_latency": "encoder.stats.averageLatency",
    r"temperature/(gpu|memory)(?:_current)?_temp": r"temperature.\1",
    r"temperature/gpu_(?:temp_tlimit|t_limit_temp)": "temperature.gpu.tlimit",
    rf"{_POWER}/power_draw": "power.draw",
    rf"{_POWER}/average_power_draw": "power.draw.average",
    rf"{_POWER}/instant(?:aneous)?_power_draw": "power.draw.instant",
    rf"{_POWER}/(?:requested_)?power_limit": "power.limit",
    rf"{_POWER}/(?:enforced|current)_power_limit": "enforced.power.limit",
    rf"{_POWER}/(default|min|max)_power_limit": r"power.\1_limit",
    r"clocks/(graphics|sm|video)(?:_clock)?": r"clocks.current.\1",
    r"clocks/mem(?:ory)?(?:_clock)?": "clocks.current.memory",
    r"max_clocks/(graphics|sm)(?:_clock)?": r"clocks.max.\1",
    r"max_clocks/mem(?:ory)?(?:_clock)?": "clocks.max.memory",
    r"voltage/graphics(?:_volt)?": "voltage.graphics",
    r"ecc_errors/volatile/(?:single_bit/total|[sd]ram_correctable)": "ecc.errors.corrected.volatile.total",
    r"ecc_errors/volatile/(?:double_bit/total|[sd]ram_uncorrectable\w*)": "ecc.errors.uncorrected.volatile.total",
    r"remapped_rows/(?:remapped_row_corr|correctable_error)": "remapped_rows.correctable",
    r"remapped_rows/(?:remapped_row_unc|uncorrectable_error)": "remapped_rows.uncorrectable",
    r"remapped_rows/(?:remapped_row_)?pending": "remapped_rows.pending",
    r"remapped_rows/(?:remapped_row_failure|remapping_failure_occurred)": "remapped_rows.failure",
    rf"{_REASONS}s_counters/(?:{_REASONS}s_counters_)?(\w+)": r"clocks_event_reasons_counters.\1",
    rf"{_REASONS}s/(?:\w+/)?(?:{_REASONS}_)?(\w+)": r"clocks_event_reasons.\1",
}
_LEAVES = {
    "idle": "gpu_idle",
    "display_clocks_setting": "display_clock_setting",
    "sw_power_capping": "sw_power_cap",
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
    "hw_power_braking": "hw_power_brake_slowdown",
}
_OWN = {
    "pci/tx_(?:util|throughput)": ("pci.tx", "pcie_transmit_bytes_per_second", "KB/s"),
    "pci/rx_(?:util|throughput)": ("pci.rx", "pcie_receive_bytes_per_second", "KB/s"),
    "bar1_memory_usage/used": ("bar1.used", "gpu_bar1_used_bytes", "MiB"),
}
"""Paths that have no query field, with their name, metric and usual unit."""


@lru_cache(8192)
def _find_column(path: str) -> Column | None:
    for pattern, (source, target, unit) in _OWN.items():
        if re.fullmatch(pattern, path):
            return make_column(target, source, unit)
    found = next((match.expand(name) for form, name in _PATHS.items() if (match := re.fullmatch(form, path))), "")
    section, _, leaf = found.rpartition(".")
    column = parse_query_field(f"{section}.{_LEAVES[leaf]}" if leaf in _LEAVES else found)
    known = column is not None and (find_target(column.source) or column.source == "voltage.graphics")
    return column if known else None


_Section = dict[str, Any]
"""One GPU at one time, with `line`, `text`, `bus_id`, `cells`, `flaw` and `lost`."""
_Document = tuple[dict[str, str], list[_Section]]


def _section(line: int, text: str, **known: str) -> _Section:
    return {"line": line, "text": text, "cells": {}, "flaw": "", "bus_id": "", "lost": ""} | known


def _add_cells(section: _Section, cells: Iterable[tuple[str, str]]) -> None:
    """Add known cells to a section, and mark it as torn if a path has two values."""
    for path, said in cells:
        known = path == "minor_number" or _find_column(path) is not None
        if known and section["cells"].setdefault(path, said) != said:
            section["flaw"] = TORN


def _records(documents: Iterable[_Document], account: Account) -> Iterator[Record]:
    account.snapshot = True
    indices: dict[str, str] = {}
    for head, sections in documents:
        time = parse_printed_time(head.get("timestamp", ""))
        driver = head.get("driver_version") or head.get("kmd_version") or None
        # GPUs are numbered by position if all are listed, otherwise by minor number
        whole = str(len({section["bus_id"] for section in sections})) == str(len(sections)) == head.get("attached_gpus")
        for place, section in enumerate(sections):
            index = str(place) if whole else section["cells"].get("minor_number", "")
            bus_id = section["bus_id"]
            if bus_id not in indices and index.isdecimal() and index not in indices.values():
                indices[bus_id] = index
                account.note(*[] if whole else [_NUMBERED])
            if (record := _record(section, account, _find_column, _KEPT)) is not None:
                named = {"bus_id": bus_id, "index": indices.get(bus_id), "driver": driver}
                yield record | named | {TIME: time and (time[0], False)}


def _record(section: _Section, account: Account, find: Callable[[str], Column | None], note: str) -> Record | None:
    record: Record = {"line": section["line"]}
    absent: dict[tuple[str, str], None] = {}
    parts: dict[str, list[tuple[str, int | None]]] = {}
    measured, averaged, flaw, lost = False, False, section["flaw"], section["lost"]
    for path, text in section["cells"].items():
        if (column := find(path)) is None:
            continue
        value, why = read_cell(find, path, text)
        if why is not None:
            absent[column.source, why] = None
            lost = lost or (why if why in LOST_WORDS else "")
        elif value is None:
            flaw = flaw or f"{MALFORMED} {column.source}"
        measured |= column.target in BY_NAME
        if part := re.fullmatch(r"ecc_errors/volatile/([sd]ram)_\w+", path):
            parts.setdefault(column.target, []).append((part[1], value))
        elif record.get(column.target) is None or (value is not None and column.source in PREFERRED):
            record[column.target] = value
            averaged |= column.source == "power.draw.average" and value is not None
    for target, counts in parts.items():
        # a sum needs a value for each part, and both kinds of memory
        known = [count for _, count in counts if count is not None]
        record[target] = sum(known) if len(known) == len(counts) and len(dict(counts)) > 1 else None
    if flaw := flaw or ("" if measured or lost else NO_READING):
        account.reject(flaw, section["line"], section["text"])
        return None
    record |= {LOST: lost} if lost else {}
    account.absent.update(absent.keys())
    account.averaged |= averaged
    instant = record.get("gpu_power_instant_watts")
    unknown = record.get("gpu_power_watts") is None and ("power.draw.average", "N/A") in absent
    if unknown and instant is not None and not account.averaged:
        record["gpu_power_watts"] = instant
        account.note(_INSTANT)
    account.note(note)
    return record


TEXT = re.compile(r"=+ ?NVSMI LOG ?=+\s*")
_BUS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
_GPU = re.compile(rf"GPU ({_BUS})\s*", re.ASCII)
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_HELD, _LONG, _MOST, _DEEPEST = 8 * 2**20, 512, 1024, 8


@lru_cache(8192)
def _split(text: str) -> tuple[int, str, str | None]:
    """Return a line's indentation, its label in the form used in paths, and its value."""
    label, colon, value = text.partition(":")
    step = re.sub(r"[^a-z0-9]+", "_", label.strip().lower()).strip("_")
    return len(text) - len(text.lstrip(" ")), step, value.strip() if colon else None


def _text_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    head, sections = dict[str, str](), list[_Section]()
    inside: _Section | None = None
    # the indentation and path of each label above the line
    above: list[tuple[int, str]] = []
    for number, line in enumerate(lines, first):
        text = line.rstrip()
        deep, step, value = _split(text) if len(text) < _LONG else _split.__wrapped__(text)
        if not text:
            continue
        if not line.endswith("\n"):
            account.reject(CUT_LAST_LINE, number, text)
        elif inside is not None and line[0] == " ":
            account.continued += 1
            while above and above[-1][0] >= deep:
                above.pop()
            path = f"{above[-1][1]}/{step}" if above else step
            if not step or len(above) > _DEEPEST:
                inside["flaw"] = TORN
            else:
                above.append((deep, path))
                _add_cells(inside, [(path, value)] if value is not None else ())
        else:
            begins, gpu, inside = TEXT.fullmatch(text) is not None, _GPU.fullmatch(text), None
            if begins or len(sections) >= _MOST:
                yield head, sections
                head, sections = {} if begins else head, []
            account.headers += begins
            if gpu:
                inside, above = _section(number, text, bus_id=gpu[1].upper()), []
                sections.append(inside)
            elif value is not None and step in _HEAD:
                account.continued += 1
                head[step] = value
            elif not begins:
                account.stray(number, text.strip())
    yield head, sections


read_query_text = form(lambda lines, first, account: _records(_text_documents(lines, first, account), account))


XML = re.compile(r"\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>)")
_BOUNDS = re.compile(r"(?=<gpu[\s>])|(?<=</gpu>)|(?=<\?xml)")
_HEAD_ELEMENT = re.compile(r"<(timestamp|driver_version|kmd_version|attached_gpus)>([^<]*)</\1>")


def _xml_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    """Yield the documents; each GPU is parsed separately, so damage affects only one."""
    head, sections = dict[str, str](), list[_Section]()
    element, begun = "", 0
    for number, line in enumerate(lines, first):
        for part in _BOUNDS.split(line) if "gpu" in line or "<?xml" in line else [line]:
            text = part.strip()
            if not text:
                continue
            opens_gpu = text.startswith(("<gpu ", "<gpu>"))
            begins = text.startswith("<?xml")
            if element and (opens_gpu or begins):
                sections.append(_xml_section(element, begun, TORN))
                element = ""
            if begins or len(sections) >= _MOST:
                yield head, sections
                head, sections = {} if begins else head, []
            if element or opens_gpu:
                account.continued += bool(element)
                begun = begun if element else number
                # an element that is too long is cut off, and rejected as torn
                element += part if len(element) <= _HELD else ""
                if text.endswith("</gpu>"):
                    sections.append(_xml_section(element, begun, ""))
                    element = ""
                continue
            head |= {label: said.strip() for label, said in _HEAD_ELEMENT.findall(text)}
            account.headers += begins
            account.continued += text[0] == "<" and not begins
            if text[0] != "<":
                account.stray(number, text)
    yield head, [*sections, *([_xml_section(element, begun, CUT_LAST_LINE)] if element else [])]


def _xml_section(text: str, number: int, flaw: str) -> _Section:
    section = _section(number, text[:200].partition("\n")[0].strip(), flaw=flaw)
    try:
        gpu = ET.XML("<gpu/>" if flaw else text, ET.XMLParser(encoding="utf-8"))  # noqa: S314 - without a document type, no entities
    except ET.ParseError:
        return section | {"flaw": TORN}
    body = (gpu.text or "").strip()
    section |= {"lost": body if body in LOST_WORDS else "", "bus_id": gpu.get("id", "").strip().upper()}
    _add_cells(section, _leaves(gpu, ""))
    return section


def _leaves(element: ET.Element, above: str) -> Iterator[tuple[str, str]]:
    if not len(element):
        yield above.removesuffix("/"), (element.text or "").strip()
    elif above.count("/") < _DEEPEST:
        for child in element:
            yield from _leaves(child, f"{above}{child.tag}/")


read_query_xml = form(lambda lines, first, account: _records(_xml_documents(lines, first, account), account))


TABLE = re.compile(
    r"\s*(?:\| NVIDIA-SMI \d|(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d \d{4}\s*$)", re.ASCII
)
"""Matches the first line of a table, or the date above it."""
_BANNER = re.compile(r"\| NVIDIA-SMI .*?(?:Driver|KMD) Version: *(\d[\w.]*)|\| NVIDIA-SMI \d")
_BEGINS = re.compile(r"\| {,3}\d+ [^|]*(?:\|[^|]*){2}\|", re.ASCII)
_GOES_ON = re.compile(r"\|(?![-=])(?:[^|]*\|){3}")
"""Match the first line about a GPU (with its index), and its other lines."""
_MOST_LINES, _ABOVE, _LONGEST = 3, 4, 1_000
_SOUND = re.compile(r"[+|][-=].*|\|(?:[^|]*\|){1}|\|(?:[^|]*\|){4}|\D*")
"""Matches lines that are not about a GPU: borders, headings, processes and MIG instances."""
_LACKS = "Tables lack clock event reasons, and whole watts hide throttling; use --query-gpu. Process lists are ignored."
_ZONES = "Times above the tables specify a time zone, but are read as written, without conversion."
_WORDS = r"N/A|ERR!|On|Off"
_GPU_LINES = re.compile(
    rf"\| *(\d+) +(\S.*?) +(?:{_WORDS}|WDDM|TCC|MCDM) *"
    # the cells of a lost GPU may be wider than their columns
    rf"\| *({_BUS}|N/A|ERR!)(?: +|(?=ERR!))(?:{_WORDS}) *\| *(\S+) *\|\n"
    r"\| *(\S+) +(\S+) +(\S+) +(N/A|[^\s/]+) */ *(\S+) *"
    rf"\| *(?:(N/A|Not Supported|{'|'.join(sorted(LOST_WORDS))})|(N/A|[^\s/]+) */ *(\S+)) *"
    r"\| *(\S+) +\S[^|]*\|(?:\n\| +\| +\| *(\S*) *\|)?",
    re.ASCII,
)
_FIELDS = (
    *("index", "name", "pci.bus_id", "ecc.errors.uncorrected.volatile.total", "fan.speed", "temperature.gpu", "pstate"),
    *("power.draw", "enforced.power.limit", "", "memory.used", "memory.total", "utilization.gpu", "mig.mode.current"),
)
"""Field of each group; the unnamed group is text in place of both memory sizes."""
_MEASURED = ("utilization.gpu", "temperature.gpu", "power.draw")
"""A GPU is lost if all of these fields contain errors."""


def _parts(lines: Iterable[str], first: int) -> Iterator[tuple[int, str]]:
    begun, gpu = 0, list[str]()
    for number, line in enumerate(lines, first):
        # NUL bytes in a damaged log must not join lines
        for text in map(str.strip, line.split("\0")):
            begins = _BEGINS.fullmatch(text) is not None
            if gpu and not begins and len(gpu) < _MOST_LINES and _GOES_ON.fullmatch(text):
                gpu.append(text)
                continue
            if gpu:
                yield begun, "\n".join(gpu)
            begun, gpu = number, [text] if begins else []
            if text and not begins:
                yield number, text
    if gpu:
        yield begun, "\n".join(gpu)


@form
def read_drawn_tables(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    account.snapshot = True
    above = time = driver = None
    told, last = 0, -1
    for number, text in _parts(lines, first):
        account.continued += text.count("\n")
        if (match := _GPU_LINES.fullmatch(text)) is not None:
            cells = dict(zip(_FIELDS, match.groups(), strict=True))
            cells |= dict.fromkeys(("memory.used", "memory.total"), match[10]) if match[10] else {}
            cells |= {"name": "[shortened]"} if match[2].endswith("...") else {}
            cells = {name: cell for name, cell in cells.items() if name and cell is not None}
            erred = match[10] not in LOST_WORDS and all(cells[name] == "ERR!" for name in _MEASURED)
            section = _section(number, text, lost="ERR!" if erred else "") | {"cells": cells}
            if (record := _record(section, account, parse_query_field, _LACKS)) is not None:
                # an index that falls shows that the beginning of a table is missing
                time = None if int(record["index"]) <= last else time
                last = int(record["index"])
                account.note(*[_ZONES] if time and time[1] else [])
                yield record | {TIME: time and (time[0], False), "driver": driver}
        elif (banner := _BANNER.match(text)) is not None:
            time, above, driver, last = above, None, banner[1], -1
            account.headers += 1
        elif text[0] not in "|+":
            stated = parse_printed_time(text[:_LONGEST]) if text.count(",") <= 1 else None
            told = 0 if stated else told + 1
            above = stated or (above if told < _ABOVE else None)
            account.continued += stated is not None
            if stated is None:
                account.stray(number, text[:_LONGEST])
        elif _SOUND.fullmatch(text):
            account.continued += 1
        else:
            account.reject(TORN, number, text)
