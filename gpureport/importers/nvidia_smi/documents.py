"""`nvidia-smi -q` as text and as XML: documents of sections, one a GPU.

A document of `-q` has a section a GPU, each of which is a row. One table of paths says where it writes what a query
field holds: the labels of the text, or the elements of the XML, from a GPU's section down, in lower case with `_` for
whatever is no letter or digit. Both often give the same path.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain
from typing import Any
from xml.etree import ElementTree as ET

from gpureport.importers.account import LOST_WORDS, Account
from gpureport.importers.columns import LOST, TIME, Column, Rows, absence, make_column, rows_from_records
from gpureport.importers.nvidia_smi.fields import PREFERRED, find_target, parse_query_field
from gpureport.importers.printed import parse_printed_time
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.metrics import BY_NAME

_NUMBERED = (
    "GPUs are numbered by their minor numbers, as the log shows only some of those that are attached; nvidia-smi may "
    "number them otherwise."
)
_KEPT = (
    "Of each section of nvidia-smi -q what is measured is kept; modes, versions, thresholds and lists of processes are "
    "not."
)
_INSTANT = (
    "The log holds no average power: gpu_power_watts is the instant reading, which is what nvidia-smi calls power.draw "
    "on GPUs older than Ampere."
)
_MOST, _DEEPEST = 1024, 8
"""Sections of a document that are held, and levels of elements, at most."""
_ERROR = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""
_MINOR = "minor_number"
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
    r"ecc_errors/volatile/single_bit/total|ecc_errors/volatile/[sd]ram_correctable": (
        "ecc.errors.corrected.volatile.total"
    ),
    r"ecc_errors/volatile/double_bit/total|ecc_errors/volatile/[sd]ram_uncorrectable(?:_parity|_sec_?ded)?": (
        "ecc.errors.uncorrected.volatile.total"
    ),
    r"remapped_rows/(?:remapped_row_corr|correctable_error)": "remapped_rows.correctable",
    r"remapped_rows/(?:remapped_row_unc|uncorrectable_error)": "remapped_rows.uncorrectable",
    r"remapped_rows/(?:remapped_row_)?pending": "remapped_rows.pending",
    r"remapped_rows/(?:remapped_row_failure|remapping_failure_occurred)": "remapped_rows.failure",
    rf"{_REASONS}s_counters/(?:{_REASONS}s_counters_)?(\w+)": r"clocks_event_reasons_counters.\1",
    rf"{_REASONS}s/(?:\w+/)?(?:{_REASONS}_)?(\w+)": r"clocks_event_reasons.\1",
}
"""Paths, and the query field of each."""
_PART = re.compile(r"ecc_errors/volatile/([sd]ram)_\w+")
"""Paths whose numbers add up to a field, one of each kind at least."""
_LEAVES = {
    "idle": "gpu_idle",
    "display_clocks_setting": "display_clock_setting",
    "sw_power_capping": "sw_power_cap",
    "sw_therm_slowdown": "sw_thermal_slowdown",
    "hw_therm_slowdown": "hw_thermal_slowdown",
    "hw_power_brake": "hw_power_brake_slowdown",
    "hw_power_braking": "hw_power_brake_slowdown",
}
"""Clock event reasons under other names."""
_OWN = {
    "pci/tx_(?:util|throughput)": ("pci.tx", "pcie_transmit_bytes_per_second", "KB/s"),
    "pci/rx_(?:util|throughput)": ("pci.rx", "pcie_receive_bytes_per_second", "KB/s"),
    "bar1_memory_usage/used": ("bar1.used", "gpu_bar1_used_bytes", "MiB"),
}
"""Paths of what no query field holds: a name for it, its metric, and the unit of a cell that states none."""


@lru_cache(8192)
def _find_column(path: str) -> Column | None:
    """Return how the value at a path is read, None where it is not kept."""
    for form, (source, target, unit) in _OWN.items():
        if re.fullmatch(form, path):
            return make_column(target, source, unit)
    found = next((match.expand(name) for form, name in _PATHS.items() if (match := re.fullmatch(form, path))), "")
    section, _, leaf = found.rpartition(".")
    column = parse_query_field(f"{section}.{_LEAVES[leaf]}" if leaf in _LEAVES else found)
    known = column is not None and (find_target(column.source) or column.source == "voltage.graphics")
    return column if known else None


_Section = dict[str, Any]
"""What a log says of one GPU at one time: `line` and `text` that it begins with, `bus_id`, `cells`, `flaw`, `lost`."""
_Document = tuple[dict[str, str], list[_Section]]
"""What `nvidia-smi -q` writes at one time: its head, and its GPUs."""


def _section(line: int, text: str, cells: Iterable[tuple[str, str]], flaw: str = "", **known: str) -> _Section:
    """Return a section; a text that differs from what its path said before is of another GPU, so that it is torn."""
    found: dict[str, str] = {}
    for path, said in cells:
        if found.setdefault(path, said) != said:
            flaw = reasons.TORN
    return {"line": line, "text": text, "cells": found, "flaw": flaw, "bus_id": "", "lost": ""} | known


def _records(documents: Iterable[_Document], account: Account) -> Iterator[dict[str, Any]]:
    account.snapshot = True
    indices: dict[str, str] = {}
    for head, sections in documents:
        time = parse_printed_time(head.get("timestamp", ""))
        driver = head.get("driver_version") or head.get("kmd_version") or None
        # a GPU that is new has its place for its index, where all are listed, else its minor number
        whole = str(len({section["bus_id"] for section in sections})) == str(len(sections)) == head.get("attached_gpus")
        for place, section in enumerate(sections):
            index = str(place) if whole else section["cells"].get(_MINOR, "")
            bus_id = section["bus_id"]
            if bus_id not in indices and index.isdecimal() and index not in indices.values():
                indices[bus_id] = index
                account.note(*[] if whole else [_NUMBERED])
            if (record := _record(section, account)) is not None:
                named = {"bus_id": bus_id, "index": indices.get(bus_id), "driver": driver}
                yield record | named | {TIME: time and time[0]}


@lru_cache(100_000)
def _read(path: str, text: str) -> tuple[Any, str | None]:
    """Return the value of a cell, or why it has none; neither where it is damaged."""
    column, why = _find_column(path), absence(text) or (text if text in LOST_WORDS else None)
    if column is None or why is not None:
        return None, why
    value = column.read(text.removesuffix("x") if column.target.startswith("pcie_link_width") else text)
    return value, text if value is None and _ERROR.fullmatch(text) else None


def _record(section: _Section, account: Account) -> dict[str, Any] | None:
    """Return the values of a section; None where it has a flaw, which is counted then."""
    record: dict[str, Any] = {"line": section["line"]}
    absent: dict[tuple[str, str], None] = {}
    parts: dict[str, dict[str, int | None]] = {}
    measured, averaged, flaw, lost = False, False, section["flaw"], section["lost"]
    for path, text in section["cells"].items():
        if (column := _find_column(path)) is None:
            continue
        value, why = _read(path, text)
        if why is not None:
            absent[column.source, why] = None
            lost = lost or (why if why in LOST_WORDS else "")
        elif value is None:
            flaw = flaw or f"{reasons.MALFORMED} {column.source}"
        measured |= column.target in BY_NAME
        if _PART.fullmatch(path):
            parts.setdefault(column.target, {})[path] = value
        elif record.get(column.target) is None or (value is not None and column.source in PREFERRED):
            record[column.target] = value
            averaged |= column.source == "power.draw.average" and value is not None
    for target, counts in parts.items():
        # there is no sum where a part has no value, or a kind is missing
        kinds = {path.rpartition("/")[2].partition("_")[0] for path in counts}
        whole = None not in counts.values() and kinds == {"sram", "dram"}
        record[target] = sum(count or 0 for count in counts.values()) if whole else None
    if flaw := flaw or ("" if measured or lost else reasons.NO_READING):
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
    account.note(_KEPT)
    return record


_HEADER = re.compile(r"=+ ?NVSMI LOG ?=+\s*")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*", re.ASCII)
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_PASSAGE = re.compile(r"\n(?= {4}\S)")
"""Four blanks stand before what a section says of its GPU, more before what belongs to that."""


def opens_text(line: str) -> bool:
    """Return whether a line is the heading of a document in text."""
    return line.startswith("=") and _HEADER.fullmatch(line) is not None


def read_query_text(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q`: labels with values behind a colon, below each other by their indentation."""
    yield from rows_from_records(_records(_text_documents(lines, first, account), account))


@lru_cache(4096)
def _step(label: str) -> str:
    """Return a label of the text as a step of a path."""
    return re.sub(r"[^a-z0-9]+", "_", label.strip().lower()).strip("_")


@lru_cache(4096)
def _text_cells(text: str) -> list[tuple[str, str]]:
    """Return what a passage says by its paths; most say what they said the time before."""
    cells: list[tuple[str, str]] = []
    above: list[tuple[int, str]] = [(-1, "")]
    for line in text.split("\n"):
        written = line.lstrip(" ")
        label, colon, value = written.partition(":")
        while above[-1][0] >= len(line) - len(written):
            above.pop()
        path = f"{above[-1][1]}/{_step(label)}".removeprefix("/")
        above.append((len(line) - len(written), path))
        if not _step(label):
            # the same path with two texts is a flaw
            cells += [("", ""), ("", written)]
        elif colon and (path == _MINOR or _find_column(path) is not None):
            cells.append((path, value.strip()))
    return cells


def _text_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    head, sections = dict[str, str](), list[_Section]()
    inside: list[str] | None = None
    """Lines of the section of a GPU, the first of them that names it; None outside of any."""
    begun = 0

    def close() -> None:
        if inside is not None and (gpu := _GPU.fullmatch(inside[0])):
            cells = chain.from_iterable(map(_text_cells, _PASSAGE.split("\n".join(inside))[1:]))
            sections.append(_section(begun, inside[0], cells, bus_id=gpu[1].upper()))

    for number, line in enumerate(lines, first):
        text = line.rstrip()
        if not text:
            continue
        if not line.endswith("\n"):
            account.reject(reasons.CUT_LAST_LINE, number, text)
        elif inside is not None and line[0] == " ":
            account.continued += 1
            inside.append(text)
        else:
            close()
            inside, begun = [text] if _GPU.fullmatch(text) else None, number
            if opens_text(text) or len(sections) >= _MOST:
                yield head, sections
                head, sections = {}, []
            label, colon, value = text.partition(":")
            if opens_text(text):
                account.headers += 1
            elif inside is None and colon and _step(label) in _HEAD:
                account.continued += 1
                head[_step(label)] = value.strip()
            elif inside is None:
                account.stray(number, text.strip())
    close()
    yield head, sections


_OPENING = re.compile(r"\s*<(?:\?xml\s|!DOCTYPE nvidia_smi_log\b|nvidia_smi_log>)")
_BOUNDS = re.compile(r"(?=<gpu[\s>])|(?<=</gpu>)|(?=<\?xml)")
_HEAD_ELEMENT = re.compile(r"<(timestamp|driver_version|kmd_version|attached_gpus)>([^<]*)</\1>")
_HELD = 8 * 2**20
"""Characters of one GPU's element that are held at most; those of genuine logs have 30,000."""


def opens_xml(line: str) -> bool:
    """Return whether a line begins a document in XML."""
    return _OPENING.match(line) is not None


def read_query_xml(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of `nvidia-smi -q -x`.

    Each element of a GPU is parsed alone, so that one that is damaged costs no other, and no declaration of a document
    ever reaches the parser.
    """
    yield from rows_from_records(_records(_xml_documents(lines, first, account), account))


def _xml_documents(lines: Iterable[str], first: int, account: Account) -> Iterator[_Document]:
    head, sections = dict[str, str](), list[_Section]()
    element: list[str] = []
    begun, size = 0, 0

    def close(flaw: str) -> None:
        if element:
            sections.append(_xml_section("".join(element), begun, flaw))
            element.clear()

    for number, line in enumerate(lines, first):
        for part in _BOUNDS.split(line) if "gpu" in line or "<?xml" in line else [line]:
            text = part.strip()
            if not text:
                continue
            opens_gpu, begins = text.startswith(("<gpu ", "<gpu>")), text.startswith("<?xml")
            if opens_gpu or begins or size > _HELD:
                close(reasons.TORN)
            if begins or len(sections) >= _MOST:
                yield head, sections
                head, sections = {} if begins else head, []
            if opens_gpu:
                # a row each, in lines that rise
                begun, size = max(number, begun + 1), 0
            if element or opens_gpu:
                account.continued += bool(element)
                element.append(part)
                size += len(part)
                close("") if text.endswith("</gpu>") else None
                continue
            head |= {label: said.strip() for label, said in _HEAD_ELEMENT.findall(text)}
            account.headers += begins
            account.continued += text[0] == "<" and not begins
            if text[0] != "<":
                account.stray(number, text)
    close(reasons.CUT_LAST_LINE)
    yield head, sections


def _xml_section(text: str, number: int, flaw: str) -> _Section:
    begins = text[:200].partition("\n")[0].strip()
    try:
        # an element without a document type declares no entities
        gpu = ET.XML("<gpu/>" if flaw else text, ET.XMLParser(encoding="utf-8"))  # noqa: S314
    except ET.ParseError:
        return _section(number, begins, (), reasons.TORN)
    body = (gpu.text or "").strip()
    lost = body if body in LOST_WORDS else ""
    return _section(number, begins, _leaves(gpu, ""), flaw, bus_id=gpu.get("id", "").strip().upper(), lost=lost)


def _leaves(element: ET.Element, above: str) -> Iterator[tuple[str, str]]:
    if not len(element):
        path = above.removesuffix("/")
        if path == _MINOR or _find_column(path) is not None:
            yield path, (element.text or "").strip()
    elif above.count("/") <= _DEEPEST:
        for child in element:
            yield from _leaves(child, f"{above}{child.tag}/")
