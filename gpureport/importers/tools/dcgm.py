"""Reads logs from DCGM: `dcgmi dmon`, job statistics, CSV files with DCGM fields, and pages from dcgm-exporter.

Fields are from dcgm_fields.h and dcgm_fields.cpp. If NVIDIA's sources disagree about a unit, the
field is kept as text. `dcgmi dmon` writes no time, and chooses the column order.
"""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import compress, groupby
from operator import itemgetter
from typing import Any

from gpureport.errors import SourceError
from gpureport.importers import tools
from gpureport.importers.account import BEFORE_HEADER, NO_TIME, NOT_OF_FORM, OTHER_ENTITY, WRONG_CELLS, Account, damage
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import MASK, TIME
from gpureport.importers.extraction import Form
from gpureport.importers.headings import INDEX_COLUMNS, absence_word, is_time_heading, parse_number, recognise_column
from gpureport.names import LABEL_TAGS
from gpureport.parsing import MOST, UNITS
from gpureport.redaction import redact_start

_TABLE = {
    "gpu_sm_clock_hertz": "MHz: DEV_SM_CLOCK 100 SMCLK; Hz: DEV_SM_CLOCK_HERTZ 1603",
    "gpu_memory_clock_hertz": "MHz: DEV_MEM_CLOCK 101 MMCLK; Hz: DEV_MEMORY_CLOCK_HERTZ 1604",
    "gpu_video_clock_hertz": "MHz: DEV_VIDEO_CLOCK 102; Hz: DEV_VIDEO_CLOCK_HERTZ 1605",
    "gpu_sm_clock_max_hertz": "MHz: DEV_MAX_SM_CLOCK 113 SMMAX; Hz: DEV_SM_MAX_CLOCK_HERTZ 1608",
    "gpu_memory_clock_max_hertz": "MHz: DEV_MAX_MEM_CLOCK 114 MMMAX; Hz: DEV_MEMORY_MAX_CLOCK_HERTZ 1609",
    "gpu_temperature_celsius": "C: DEV_GPU_TEMP_CELSIUS DEV_GPU_TEMP 150 TMPTR",
    "gpu_memory_temperature_celsius": "C: DEV_MEMORY_TEMP_CELSIUS DEV_MEMORY_TEMP 140 MMTMP",
    "gpu_temperature_margin_celsius": "C: DEV_GPU_TEMP_MARGIN_CELSIUS 153 GTLIMIT",
    "gpu_power_watts": "W: DEV_BOARD_POWER_WATTS DEV_POWER_USAGE 155 POWER",
    "gpu_power_instant_watts": "W: DEV_BOARD_POWER_RAW_WATTS DEV_POWER_USAGE_INSTANT 157 POWINST",
    "gpu_power_limit_requested_watts": "W: DEV_BOARD_POWER_LIMIT_REQUESTED_WATTS DEV_POWER_MGMT_LIMIT 160 PMLMT",
    "gpu_power_limit_min_watts": "W: DEV_BOARD_POWER_LIMIT_MIN_WATTS DEV_POWER_MGMT_LIMIT_MIN 161 PMMIN",
    "gpu_power_limit_max_watts": "W: DEV_BOARD_POWER_LIMIT_MAX_WATTS DEV_POWER_MGMT_LIMIT_MAX 162 PMMAX",
    "gpu_power_limit_default_watts": "W: DEV_BOARD_POWER_LIMIT_DEFAULT_WATTS DEV_POWER_MGMT_LIMIT_DEF 163 PMDEF",
    "gpu_power_limit_watts": "W: DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS DEV_ENFORCED_POWER_LIMIT 164 EPLMT",
    "gpu_energy_joules_total": "mJ: DEV_TOTAL_ENERGY_CONSUMPTION 156 TOTEC; J: DEV_GPU_ENERGY_JOULES_TOTAL 1611",
    "gpu_performance_state": ": DEV_GPU_PSTATE DEV_PSTATE 190 PSTAT",
    "gpu_fan_ratio": "%: DEV_FAN_SPEED 191 FANSP; 1: DEV_FAN_SPEED_RATIO 1612",
    "gpu_utilization_ratio": "%: DEV_GPU_UTIL 203 GPUTL; 1: DEV_GPU_UTIL_RATIO 1613",
    "gpu_memory_controller_ratio": "%: DEV_MEM_COPY_UTIL 204 MCUTL; 1: DEV_MEMORY_UTIL_RATIO 1614",
    "gpu_encoder_ratio": "%: DEV_ENC_UTIL 206; 1: DEV_ENC_UTIL_RATIO 1615",
    "gpu_decoder_ratio": "%: DEV_DEC_UTIL 207; 1: DEV_DEC_UTIL_RATIO 1616",
    "gpu_memory_total_bytes": "MiB: DEV_FB_TOTAL 250 FBTTL; B: DEV_FB_CAPACITY_BYTES 1625",
    "gpu_memory_free_bytes": "MiB: DEV_FB_FREE 251 FBFRE; B: DEV_FB_FREE_BYTES 1626",
    "gpu_memory_used_bytes": "MiB: DEV_FB_USED 252 FBUSD; B: DEV_FB_USED_BYTES 1627",
    "gpu_memory_reserved_bytes": "MiB: DEV_FB_RESERVED 253; B: DEV_FB_RESERVED_BYTES 1628",
    "pcie_link_generation_max": ": DEV_PCIE_MAX_LINK_GEN 235 PCIMG",
    "pcie_link_width_max": ": DEV_PCIE_MAX_LINK_WIDTH 236 PCIMW",
    "pcie_link_generation": ": DEV_PCIE_LINK_GEN 237 PCILG",
    "pcie_link_width": ": DEV_PCIE_LINK_WIDTH 238 PCILW",
    "gpu_xid_code": ": DEV_XID_ERROR DEV_XID_ERRORS 230 XIDER",
    "gpu_ecc_corrected_total": ": DEV_ECC_SBE_VOL_TOTAL 310 ESVTL",
    "gpu_ecc_uncorrected_total": ": DEV_ECC_DBE_VOL_TOTAL 311 EDVTL",
    "gpu_retired_pages_single_bit_total": ": DEV_RETIRED_SBE 390",
    "gpu_retired_pages_double_bit_total": ": DEV_RETIRED_DBE 391",
    "gpu_remapped_rows_uncorrectable_total": ": DEV_UNCORRECTABLE_REMAPPED_ROWS 393",
    "gpu_remapped_rows_correctable_total": ": DEV_CORRECTABLE_REMAPPED_ROWS 394",
    "gpu_graphics_engine_active_ratio": "1: PROF_GR_ENGINE_UTIL_RATIO PROF_GR_ENGINE_ACTIVE 1001 GRACT",
    "gpu_sm_active_ratio": "1: PROF_SM_UTIL_RATIO PROF_SM_ACTIVE 1002 SMACT",
    "gpu_sm_occupancy_ratio": "1: PROF_SM_OCCUPANCY_RATIO PROF_SM_OCCUPANCY 1003 SMOCC",
    "gpu_tensor_active_ratio": "1: PROF_TENSOR_UTIL_RATIO PROF_PIPE_TENSOR_ACTIVE 1004 TENSO",
    "gpu_dram_active_ratio": "1: PROF_DRAM_UTIL_RATIO PROF_DRAM_ACTIVE 1005 DRAMA",
    "pcie_transmit_bytes_per_second": "B/s: PROF_PCIE_TX_BYTES 1009 PCITX",
    "pcie_receive_bytes_per_second": "B/s: PROF_PCIE_RX_BYTES 1010 PCIRX",
    "nvlink_transmit_bytes_per_second": "B/s: PROF_NVLINK_TX_BYTES 1011 NVLTX",
    "nvlink_receive_bytes_per_second": "B/s: PROF_NVLINK_RX_BYTES 1012 NVLRX",
    "clock_event_sw_power_cap_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP_NS 1420",
    "clock_event_sync_boost_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SYNC_BOOST_NS 1421",
    "clock_event_sw_thermal_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS 1422",
    "clock_event_hw_thermal_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS 1423",
    "clock_event_hw_power_brake_slowdown_seconds_total": "ns: DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS 1424",
    MASK: ": DEV_CLOCKS_EVENT_REASONS DEV_CLOCK_THROTTLE_REASONS 112 DVCCTR",
}
"""Units and fields of each metric: symbols without `DCGM_FI_`, numbers, and tags."""
FIELDS: dict[str, tools.Meaning] = {}
for _metric, _text in _TABLE.items():
    for _unit, _, _names in (each.partition(": ") for each in _text.split("; ")):
        for _name in _names.split():
            _symbols = (f"DCGM_FI_{_name}", f"FI_{_name}") if "_" in _name else (_name, f"DCGM_{_name}")
            FIELDS |= dict.fromkeys(_symbols, (_metric, _unit))
_WHOLE = {name for name, (metric, unit) in FIELDS.items() if unit == "%" and metric != "gpu_fan_ratio"}
_LIMITS = {"MHz": 1e5, "MiB": 2.0**22}
_BLANKS = ((2**63 - 1024, 2**63), (2**47, 2**47 + 16), (2**31 - 16, 2**31))
"""Numbers that DCGM writes for missing values (dcgm_structs.h); as floats, 64-bit ones become 2**63."""
Reading = tuple[int, int, tools.Stamp, tools.Record, Iterable[tuple[str, str]]]
"""Line, page, time, GPU with its node, and fields; the readings of a row may be anywhere on a page."""


def field_form(read: Callable[..., Iterator[Reading]]) -> Form:
    return tools.form(lambda lines, first, account: build_rows(read(lines, first, account), account))


def build_rows(readings: Iterable[Reading], account: Account, *, raw: bool = False) -> Iterator[tools.Record]:
    """Yield a row per GPU and time, page by page; `raw` percentages are whole numbers."""
    hosts: dict[str, bool] = {}
    for _, page in groupby(readings, itemgetter(1)):
        rows: dict[tuple[object, object], tuple[tools.Record, dict[str, str]]] = {}
        for count, (number, _, time, gpu, fields) in enumerate(page):
            tools.refuse_machines(hosts, gpu.get("node"), named="uuid" in gpu)
            key = gpu.get("uuid") or gpu.get("index"), time
            row, cells = rows.setdefault(key, ({"line": number, TIME: time, **gpu}, {}))
            account.continued += row["line"] != number
            for name, cell in fields:
                if cells.setdefault(name, cell) != cell:
                    account.note(f"{name} has several values for one GPU and time; the first is kept.")
            if count > _MOST:
                what = f"it has more than {_MOST:,} readings, one per line, which would not fit in memory"
                raise SourceError("the log", what, "split it by time", code="too_many_readings")
        for row, cells in sorted(rows.values(), key=lambda found: (found[0][TIME] or (0,), found[0]["line"])):
            row.pop("node", None)
            for name, cell in cells.items():
                _take_field(row, account, name, cell, raw=raw)
            yield row


def _take_field(row: tools.Record, account: Account, name: str, cell: str, *, raw: bool) -> None:
    metric, unit = FIELDS.get(name, ("", ""))
    text, _, own = cell.partition(" ")
    number = parse_number(text)
    most = 1.0 if name.endswith("GPU_UTIL_RATIO") else _LIMITS.get(unit, MOST)
    if number is not None and any(low <= number <= high for low, high in _BLANKS):
        account.absent[name, "blank"] += 1
    elif not metric and (word := absence_word(cell)):
        account.absent[name, word] += 1
    elif metric and not own and number and (number > most or (raw and 0 < number < 1 and name in _WHOLE)):
        cause = "either it was renamed, or DCGM is older than 4.7"
        what = f"{name} is not in the unit that its name implies ({cell}): {cause}"
        hint = "rename it: DCGM_FI_DEV_GPU_UTIL is a percentage, and DCGM_FI_DEV_GPU_UTIL_RATIO is a ratio"
        raise SourceError("the log", what, hint, code="unit_of_another_version")
    else:
        # numbers are not parsed twice
        tools.take_cells(row, account, [(name, cell if number is None or own or not metric else number)], FIELDS)


_LINE = re.compile(
    r"(?:\[?(?P<stamp>\d[\d./:T+-]*(?:,\d+)?(?: [\d:.]+(?:,\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\s,]{1,8})?"
    r"(?:(?P<heading>#? *Entity(?:\s.*)?)|(?P<units>I[Dd](?:\s.*)?)|GPU\s+(?P<gpu>\d{1,4})\s+(?P<cells>.*)"
    r"|(?P<other>(?:GPU-I|GPU-CI|Switch|Link|Lnk|vGPU|CPU|Core|CX)\s.*))",
    re.ASCII,
)


_HEADING = re.compile(r"^.*\bEntity\s.*", re.MULTILINE)


@field_form
def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    tags: dict[str, int] = {}
    units: dict[str, str] = {}
    for number, line in tools.text_lines(lines, first, account):
        match = _LINE.fullmatch(line.strip())
        if match and match["heading"]:
            words = re.finditer(r"\S+", match["heading"])
            tags, units = {word[0]: word.start() for word in words if not word[0].endswith(("#", "Entity"))}, {}
            account.headers += 1
        elif match and match["units"]:
            # each unit is below its tag
            for word in re.finditer(r"\S+", match["units"]):
                tag = next((tag for tag, start in reversed(tags.items()) if start <= word.start() + 1), "")
                unit = FIELDS.get(tag, ("", ""))[1]
                if word[0] in UNITS and word[0] != unit and UNITS[word[0]].base == UNITS[unit].base:
                    units[tag] = word[0]
            account.headers += 1
        elif match and match["other"]:
            account.reject(OTHER_ENTITY, number, line)
        elif match and len(cells := match["cells"].split()) == len(tags):
            said = (
                (tag, f"{cell} {units[tag]}" if tag in units else cell) for tag, cell in zip(tags, cells, strict=True)
            )
            yield number, number, tools.parse_stamp(match["stamp"] or ""), {"index": match["gpu"]}, said
        else:
            account.reject(WRONG_CELLS if tags else BEFORE_HEADER, number, line)


_ENERGY = "gpu_energy_joules_total"
_STATS = {
    "Energy Consumed (Joules)": (_ENERGY, "J"),
    "Power Usage (Watts)": ("gpu_power_watts", "W"),
    "Max GPU Memory Used (bytes)": ("gpu_memory_used_bytes", "B"),
    "SM Clock (MHz)": ("gpu_sm_clock_hertz", "MHz"),
    "Memory Clock (MHz)": ("gpu_memory_clock_hertz", "MHz"),
    "SM Utilization (%)": ("gpu_utilization_ratio", "%"),
    "Memory Utilization (%)": ("gpu_memory_controller_ratio", "%"),
}
_SECTION = re.compile(r"\| (?:GPU ID: (\d{1,4})|Summary) *\|", re.ASCII)
_FIGURE = re.compile(r"\| ([^|*]+?) *\*? *\| (?:Avg: )?([^|,]*?)(?:,[^|]*)? *\|")
_MEANS = (
    "The statistics of a job are means over the whole job, except peak memory. They are placed at the start and "
    "end of the job, and do not show what happened in between."
)
_SUMMARY = "A summary does not state the number of GPUs, so it is read as one GPU."


@tools.form
def read_stats(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    found: list[tuple[int, str | None, dict[str, str]]] = []
    for number, text in tools.text_lines(lines, first, account):
        section = _SECTION.fullmatch(text.strip())
        figure = _FIGURE.fullmatch(text.strip())
        if section:
            found.append((number, section[1], {}))
        elif figure and found:
            found[-1][2].setdefault(figure[1], figure[2])
        elif text.startswith("| "):
            account.reject(NOT_OF_FORM, number, text)
            continue
        account.noise += not (section or figure)
        account.continued += bool(section or figure)
    of_gpus = [section for section in found if section[1] is not None]
    account.note(_MEANS, *([_SUMMARY] if not of_gpus else []))
    for number, gpu, figures in of_gpus or found:
        stamps = [tools.parse_with(figures.get(f"{end} Time", ""), "%a %b %d %H:%M:%S %Y") for end in ("Start", "End")]
        start, end = (stamp[0] if stamp else 0 for stamp in stamps)
        account.continued -= 2 if start and end else 1
        if not start or not end:
            account.reject(NO_TIME, number)
            continue
        known = ((name, figures[name]) for name in _STATS if name in figures)
        means = tools.take_cells({"line": number, "index": gpu or "0"}, account, known, _STATS)
        energy = means.pop(_ENERGY, 0.0) if end > start else 0.0
        # the energy counter is more accurate than a mean of samples
        means |= {"gpu_power_watts": energy * 1e6 / (end - start)} if energy else {}
        for stamp, counted in zip(stamps, (0.0, energy), strict=True):
            yield means | {TIME: stamp} | ({_ENERGY: counted} if energy else {})


_ROLES = {
    "index": "entity entityid",
    "uuid": "uuid gpuuuid",
    "model": "modelname gpuname",
    "node": "hostname host node",
    "field": "field fieldname fieldid metric metricname",
    "value": "value values",
}


def _find_table(header: list[str]) -> tuple[dict[str, int], list[tuple[int, str]]] | None:
    """Return columns' positions by role, and the fields (none if a line is one reading)."""
    roles: dict[str, int] = {}
    for place, heading in enumerate(header):
        bare = re.sub(r"[ _\-.]", "", heading.lower())
        known = "time" if is_time_heading(heading) else recognise_column(heading, INDEX_COLUMNS) and "index"
        if role := next((role for role, names in _ROLES.items() if bare in names.split()), known):
            roles.setdefault(role, place)
    if {"index", "uuid", "model"}.isdisjoint(roles):
        return None
    if {"field", "value"} <= roles.keys():
        return roles, []
    fields = [(place, name) for place, name in enumerate(header) if place not in roles.values()]
    return (roles, fields) if any(name.isidentifier() and name in FIELDS for _, name in fields) else None


def _read_cells(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    for number, (roles, fields), row in tools.table_rows(lines, first, account, _find_table):
        said = {role: row[place] for role, place in roles.items() if row[place]}
        index = re.fullmatch(r"(?ai)(?:gpu|nvidia)?[ :_]*([0-9]{1,4})", said.get("index", ""))
        gpu: tools.Record = {name: said[name] for name in ("uuid", "model", "node") if name in said}
        gpu |= {"index": str(int(index[1]))} if index else {}
        cells = [(name, row[place]) for place, name in fields if name in FIELDS or row[place]]
        cells = cells if fields else [(row[roles["field"]], row[roles["value"]])]
        yield number, number if fields else 0, tools.parse_stamp(said.get("time", "")), gpu, cells


def _is_table(text: str) -> bool:
    lines = tools.first_lines(text)
    wide = any(found and found[1] for found in map(_find_table, map(tools.split_cells, lines)))
    readings = _read_cells((f"{line}\n" for line in lines), 1, Account())
    return wide or any(name in FIELDS for *_, cells in readings for name, _ in cells)


_MOST, _MOST_ANSWERED, _DEPTH = 5_000_000, 2**25, 8
"""Maximum numbers of readings, characters in responses (19 million for a day of 8 GPUs), and nested levels."""
_ANSWER = re.compile(r'[\s\ufeff,\[]*\{.*"metric"', re.DOTALL)
_SAMPLE = re.compile(r"([A-Za-z_]\w*)\{([^}]*)\} (\S+)(?: (\d{13}))?", re.ASCII)
_EXPORTER = re.compile(r"dcgm-?exporter", re.IGNORECASE)
_OF_POD = ("pod", "namespace", "container")
"""Labels that describe the pod of the exporter, unless dcgm-exporter has set them."""
_WHOLE_RUN = 0.95
"""Minimum share of samples that must have a label for it to become a tag of the run."""
_QUERY = "save the response of /api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=...&end=...&step=15"
Labels = Mapping[str, str]
_parse_seconds = lru_cache(2**17)(parse_time)
_parse_labels = lru_cache(4096)(lambda text: dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*+)"', text)))


def _describe(labels: Labels) -> tools.Record:
    index = labels.get("gpu", "")
    said = {
        "uuid": labels.get("UUID") or labels.get("uuid"),
        "index": index if re.fullmatch(r"[0-9]{1,4}", index) else None,
        "model": labels.get("modelName"),
        "bus_id": labels.get("pci_bus_id"),
        "driver": labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION", labels.get("DCGM_FI_DRIVER_VERSION")),
        # after a query `by (gpu, instance)`, only the exporter identifies the machine
        "node": labels.get("Hostname") or labels.get("hostname") or labels.get("instance"),
    }
    return {name: text for name, text in said.items() if text}


@field_form
def read_pages(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    account.snapshot = True
    page, seen = 0, set[tuple[str, str]]()
    when: tools.Stamp = None
    for number, text in tools.text_lines(lines, first, account):
        line = text.strip()
        sample = _SAMPLE.fullmatch(line)
        moment = None if sample else tools.parse_stamp(line.strip("# "))
        name, told, cell, stamp = sample.groups() if sample else ("", "", "", None)
        labels = _parse_labels(told)
        if moment:
            page, seen, when = page + 1, set(), moment
        if name.startswith("DCGM_") and not labels.get("GPU_I_ID"):
            gpu = _describe(labels)
            key = name, str(gpu.get("uuid") or gpu.get("index"))
            if key in seen:
                page, seen, when = page + 1, set(), None
            seen.add(key)
            yield number, page, parse_time(stamp) if stamp else when, gpu, [(name, cell)]
        elif sample or moment or line.startswith("#"):
            account.noise += 1
        else:
            account.reject(NOT_OF_FORM, number, text)


@tools.form
def read_answers(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    held, size = list[str](), 0
    for line in lines:
        size += len(line)
        if size > _MOST_ANSWERED:
            what = f"longer than {_MOST_ANSWERED >> 20} Mi characters, which would not fit in memory"
            raise _refuse(what, "query a shorter range, or use a longer step")
        held.append(line)
    contents = None if any(map(damage, held)) else tools.parse_documents("".join(held))
    series = [*_find_series(contents)]
    of_gpus = [labels.get("__name__", "").startswith("DCGM_") and not labels.get("GPU_I_ID") for labels, _ in series]
    kept = list(compress(series, of_gpus))
    if not kept:
        raise _refuse("not JSON, or cut" if contents is None else "none of its series is a DCGM metric for a whole GPU")
    if len(kept) < len(series):
        account.note("Series that are not DCGM metrics, have no name, or are about MIG instances were ignored.")
    rows = list(build_rows(_read_series(kept, first, account), account, raw=True))
    account.continued += max(sum(not line.isspace() for line in held) - len(rows), 0)
    _take_tags(kept, account)
    yield from rows


def _refuse(what: str, hint: str = _QUERY) -> SourceError:
    return SourceError("the response from Prometheus", what, hint, code="unusable_answer")


def _find_series(content: object, depth: int = 0) -> Iterator[tuple[Labels, list[Any]]]:
    if isinstance(content, list) and depth <= _DEPTH:
        for each in content:
            yield from _find_series(each, depth + 1)
    elif isinstance(content, dict) and depth <= _DEPTH:
        if content.get("status") == "error":
            raise _refuse(f"an error: {redact_start(str(content.get('error')))}", "correct the query")
        labels, samples = content.get("metric"), content.get("values", [content.get("value")])
        if isinstance(labels, dict) and isinstance(samples, list):
            yield {str(name): str(text) for name, text in labels.items()}, samples
        elif labels is None:
            yield from _find_series(content.get("data", content.get("result")), depth + 1)


def _read_series(series: Iterable[tuple[Labels, list[Any]]], first: int, account: Account) -> Iterator[Reading]:
    for labels, samples in series:
        name, gpu = labels["__name__"], _describe(labels)
        for sample in samples:
            match sample:
                case [time, str() | int() | float() as value] if (when := _parse_seconds(f"{time}")) and when[1]:
                    yield first, 0, when, gpu, [(name, f"{value}")]
                case _:
                    account.absent[name, "no sample"] += 1


def _take_tags(series: Collection[tuple[Labels, list[Any]]], account: Account) -> None:
    found = dict[str, Counter[str]]()
    for labels, samples in series:
        of_exporter = any(_EXPORTER.search(labels.get(label, "")) for label in _OF_POD)
        for label, value in labels.items():
            if value and not _EXPORTER.search(value) and not (of_exporter and label in _OF_POD):
                found.setdefault(label, Counter())[value] += len(samples)
    for tag in LABEL_TAGS:
        values = next((found[label] for label in tag.series_labels if label in found), Counter())
        if tag.name == "node" and values:
            account.tags["node"] = ", ".join(sorted(values))
        elif values and max(values.values()) >= _WHOLE_RUN * sum(len(samples) for _, samples in series):
            account.tags[tag.name] = values.most_common(1)[0][0]
        elif values:
            account.note(f"Samples have different values of {tag.name}, or none, so the tag was not set.")


DCGM = tools.ToolLog(
    kind="dcgm",
    title="DCGM",
    forms=(
        ("Prometheus query_range", lambda text: bool(_ANSWER.match(text)) and "DCGM_FI_" in text, read_answers),
        ("dcgmi dmon", lambda text: not FIELDS.keys().isdisjoint(" ".join(_HEADING.findall(text)).split()), read_dmon),
        ("dcgmi stats", lambda text: "  Execution Stats  " in text and bool(_SECTION.search(text)), read_stats),
        (
            "dcgm-exporter",
            lambda text: bool(re.search(r"(?m)^(?:# (?:HELP|TYPE) )?DCGM_\w+(?:\{| )", text)),
            read_pages,
        ),
        ("CSV of DCGM fields", _is_table, field_form(_read_cells)),
    ),
    longest={"Prometheus query_range": 2 * _MOST_ANSWERED},
)
