"""Reads what DCGM records: `dcgmi dmon`, job statistics, CSV files of its fields, and pages of dcgm-exporter.

Columns of `dcgmi dmon` follow the heading, not the order asked for; it has no time, unless another program stamped it.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import compress
from typing import Any

from gpureport.errors import SourceError
from gpureport.importers import account as reasons
from gpureport.importers import tools
from gpureport.importers.account import Account, damage
from gpureport.importers.clock import parse_time
from gpureport.importers.columns import TIME
from gpureport.importers.headings import INDEX_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.tools.dcgm_fields import FIELDS, Reading, build_rows, field_form
from gpureport.names import LABEL_TAGS
from gpureport.parsing import UNITS
from gpureport.redaction import redact_start

_LINE = re.compile(
    r"(?:\[?(?P<stamp>\d[\d./:T+-]*(?:,\d+)?(?: [\d:.]+(?:,\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\s,]{1,8})?"
    r"(?:(?P<heading>#? *Entity(?:\s.*)?)|(?P<units>I[Dd](?:\s.*)?)|GPU\s+(?P<gpu>\d{1,4})\s+(?P<cells>.*)"
    r"|(?P<other>(?:GPU-I|GPU-CI|Switch|Link|Lnk|vGPU|CPU|Core|CX)\s.*))",
    re.ASCII,
)


def _is_dmon(text: str) -> bool:
    found = [match["heading"] or "" for line in tools.first_lines(text) if (match := _LINE.fullmatch(line.strip()))]
    return any(tag in FIELDS for heading in found for tag in heading.split())


@field_form
def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    tags: dict[str, int] = {}
    units: dict[str, str] = {}
    for number, line in tools.text_lines(lines, first, account):
        match = _LINE.fullmatch(line.strip())
        if match and match["heading"]:
            words = [(word[0], word.start()) for word in re.finditer(r"\S+", match["heading"])]
            tags, units = {tag: start for tag, start in words if tag not in {"#", "Entity", "#Entity"}}, {}
            account.headers += 1
        elif match and match["units"]:
            # a unit stands under its tag
            for word in re.finditer(r"\S+", match["units"]):
                tag = next((tag for tag, start in reversed(tags.items()) if start <= word.start() + 1), "")
                unit = FIELDS.get(tag, ("", ""))[1]
                if word[0] in UNITS and word[0] != unit and UNITS[word[0]].base == UNITS[unit].base:
                    units[tag] = word[0]
            account.headers += 1
        elif match and match["other"]:
            account.reject(reasons.OTHER_ENTITY, number, line)
        elif match and len(cells := match["cells"].split()) == len(tags):
            said = (
                (tag, f"{cell} {units[tag]}" if tag in units else cell) for tag, cell in zip(tags, cells, strict=True)
            )
            yield number, number, tools.parse_stamp(match["stamp"] or ""), {"index": match["gpu"]}, said
        else:
            account.reject(reasons.WRONG_CELLS if tags else reasons.BEFORE_HEADER, number, line)


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
    "The statistics of a job are means over all of it, and the most memory: they stand at its start and at its end, "
    "and what happened between is not in them."
)
_SUMMARY = "A summary does not say of how many GPUs it is: it is taken for one."


@tools.form
def read_stats(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    found: list[tuple[int, str | None, dict[str, str]]] = []
    for number, text in tools.text_lines(lines, first, account):
        section, figure = _SECTION.fullmatch(text.strip()), _FIGURE.fullmatch(text.strip())
        if section:
            found.append((number, section[1], {}))
        elif figure and found:
            found[-1][2].setdefault(figure[1], figure[2])
        elif text.startswith("| "):
            account.reject(reasons.NOT_OF_FORM, number, text)
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
            # the job still runs
            account.reject(reasons.NO_TIME, number)
            continue
        known = ((name, figures[name]) for name in _STATS if name in figures)
        means = tools.take_cells({"line": number, "index": gpu or "0"}, account, known, _STATS)
        energy = means.pop(_ENERGY, 0.0) if end > start else 0.0
        # what the driver counted is surer than a mean of samples
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
_BY_HEADING = {heading: role for role, names in _ROLES.items() for heading in names.split()}
_GPU_CELL = re.compile(r"(?:gpu|nvidia)?[ :_]*([0-9]{1,4})", re.IGNORECASE | re.ASCII)
_Table = tuple[dict[str, int], list[tuple[int, str]]]
"""Places of columns by role, and place and name of fields, none where a line is one reading."""


def _find_role(heading: str) -> str:
    bare = re.sub(r"[ _\-.]", "", heading.lower())
    known = "time" if is_time_heading(heading) else recognise_column(heading, INDEX_COLUMNS) and "index"
    return _BY_HEADING.get(bare) or known or ""


def _find_table(header: list[str]) -> _Table | None:
    roles: dict[str, int] = {}
    for place, heading in enumerate(header):
        roles.setdefault(_find_role(heading), place)
    if {"index", "uuid", "model"}.isdisjoint(roles):
        return None
    if {"field", "value"} <= roles.keys():
        return roles, []
    fields = [(place, name) for place, name in enumerate(header) if roles.get(_find_role(name) or " ") != place]
    return (roles, fields) if any(name.isidentifier() and name in FIELDS for _, name in fields) else None


def _is_table(text: str) -> bool:
    rows = [tools.split_cells(line) for line in tools.first_lines(text)]
    tables = [(place, table) for place, row in enumerate(rows) if (table := _find_table(row)) is not None]
    return any(
        fields or any(len(row) == len(rows[place]) and row[roles["field"]] in FIELDS for row in rows[place + 1 :])
        for place, (roles, fields) in tables
    )


@field_form
def read_table(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    hosts: dict[str, bool] = {}
    for number, (roles, fields), row in tools.table_rows(lines, first, account, _find_table):
        said = {role: row[place] for role, place in roles.items()}
        index = _GPU_CELL.fullmatch(said.get("index", ""))
        gpu = {name: said[name] for name in ("uuid", "model") if said.get(name)}
        gpu |= {"index": str(int(index[1]))} if index else {}
        tools.refuse_machines(hosts, said.get("node"), named="uuid" in gpu)
        cells = [(name, row[place]) for place, name in fields if name in FIELDS or row[place]]
        cells = cells if fields else [(said["field"], said["value"])]
        yield number, number if fields else 0, tools.parse_stamp(said.get("time", "")), gpu, cells


_MOST_ANSWERED = 2**25
"""Characters of all answers, held in memory: a day of 8 GPUs and 20 metrics at 15 s has 19 million."""
_DEPTH = 8
_ANSWER = re.compile(r'[\s\ufeff,\[]*\{.*"metric"', re.DOTALL)
_EXPOSITION = re.compile(r"^(?:# (?:HELP|TYPE) )?DCGM_\w+(?:\{| )", re.MULTILINE)
_SAMPLE = re.compile(r"([A-Za-z_]\w*)\{([^}]*)\} (\S+)(?: (\d{13}))?", re.ASCII)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*+)"')
_EXPORTER = re.compile(r"dcgm-?exporter", re.IGNORECASE)
_OF_POD = ("pod", "namespace", "container")
"""Labels that the scrape sets to the exporter itself where dcgm-exporter sets none."""
_WHOLE_RUN = 0.95
"""Share of the samples that a label must hold for (pragmatic)."""
_QUERY = "save what /api/v1/query_range?query=DCGM_FI_DEV_GPU_UTIL&start=...&end=...&step=15 answers"
Labels = Mapping[str, str]
_parse_seconds = lru_cache(2**17)(parse_time)
_parse_labels = lru_cache(4096)(lambda text: dict(_LABEL.findall(text)))


def _describe(labels: Labels, hosts: dict[str, bool]) -> tools.Record:
    index = labels.get("gpu", "")
    said = {
        "uuid": labels.get("UUID") or labels.get("uuid"),
        "index": index if re.fullmatch(r"[0-9]{1,4}", index) else None,
        "model": labels.get("modelName"),
        "bus_id": labels.get("pci_bus_id"),
        "driver": labels.get("DCGM_FI_SYSTEM_DRIVER_VERSION", labels.get("DCGM_FI_DRIVER_VERSION")),
    }
    # in a query by (gpu, instance) only the exporter shows the machine
    host = labels.get("Hostname") or labels.get("hostname") or (not said["uuid"] and labels.get("instance"))
    tools.refuse_machines(hosts, host, named=bool(said["uuid"]))
    return {name: text for name, text in said.items() if text}


@field_form
def read_pages(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    account.snapshot = True
    page, seen, hosts = 0, set[tuple[str, str]](), dict[str, bool]()
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
            gpu = _describe(labels, hosts)
            key = name, str(gpu.get("uuid") or gpu.get("index"))
            if key in seen:
                page, seen, when = page + 1, set(), None
            seen.add(key)
            yield number, page, parse_time(stamp) if stamp else when, gpu, [(name, cell)]
        elif sample or moment or line.startswith("#"):
            account.noise += 1
        else:
            account.reject(reasons.NOT_OF_FORM, number, text)


@tools.form
def read_answers(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    held, size = list[str](), 0
    for line in lines:
        size += len(line)
        if size > _MOST_ANSWERED:
            what = f"longer than {_MOST_ANSWERED >> 20} Mi characters, which is held in memory as a whole"
            raise _refuse(what, "query a shorter range, or with a longer step")
        held.append(line)
    contents = None if any(map(damage, held)) else tools.parse_documents("".join(held))
    series = [one for content in contents or () for one in _find_series(content)]
    of_gpus = [one[0].get("__name__", "").startswith("DCGM_") and not one[0].get("GPU_I_ID") for one in series]
    kept = list(compress(series, of_gpus))
    if not kept:
        raise _refuse("not JSON, or cut" if contents is None else "no series of it is a metric of DCGM of a whole GPU")
    if len(kept) < len(series):
        account.note("Series that are no metric of DCGM, without a name, or of MIG instances are not read.")
    rows = list(build_rows(_read_series(kept, first, account), account, raw=True))
    account.continued += max(sum(not line.isspace() for line in held) - len(rows), 0)
    _take_tags(kept, account)
    yield from rows


def _refuse(what: str, hint: str = _QUERY) -> SourceError:
    return SourceError("the answer of Prometheus", what, hint, code="unusable_answer")


def _find_series(content: object, depth: int = 0) -> Iterator[tuple[Labels, list[Any]]]:
    if isinstance(content, list) and depth <= _DEPTH:
        for each in content:
            yield from _find_series(each, depth + 1)
    elif isinstance(content, dict) and depth <= _DEPTH:
        labels, samples = content.get("metric"), content.get("values", [content.get("value")])
        if content.get("status") == "error":
            raise _refuse(f"an error: {redact_start(str(content.get('error')))}", "mend the query")
        if labels is None:
            yield from _find_series(content.get("data", content.get("result")), depth + 1)
        elif isinstance(labels, dict) and isinstance(samples, list):
            yield {str(name): str(text) for name, text in labels.items()}, samples


def _read_series(series: Iterable[tuple[Labels, list[Any]]], first: int, account: Account) -> Iterator[Reading]:
    hosts: dict[str, bool] = {}
    for labels, samples in series:
        name, gpu = labels["__name__"], _describe(labels, hosts)
        for sample in samples:
            whole = isinstance(sample, list) and len(sample) == 2 and isinstance(sample[1], str | int | float)  # noqa: PLR2004 - time and value
            when = _parse_seconds(f"{sample[0]}") if whole else None
            if when is None or not when[1]:
                account.absent[name, "no sample"] += 1
            else:
                yield first, 0, when, gpu, [(name, str(sample[1]))]


def _take_tags(series: Iterable[tuple[Labels, list[Any]]], account: Account) -> None:
    whole, found = 0, dict[str, Counter[str]]()
    for labels, samples in series:
        whole += len(samples)
        of_exporter = any(_EXPORTER.search(labels.get(label, "")) for label in _OF_POD)
        for label, value in labels.items():
            if value and not _EXPORTER.search(value) and not (of_exporter and label in _OF_POD):
                found.setdefault(label, Counter())[value] += len(samples)
    for tag in LABEL_TAGS:
        values = next((found[label] for label in tag.series_labels if label in found), Counter())
        if tag.name == "node" and values:
            account.tags["node"] = ", ".join(sorted(values))
        elif values and max(values.values()) >= _WHOLE_RUN * whole:
            account.tags[tag.name] = values.most_common(1)[0][0]
        elif values:
            account.note(f"The samples name {len(values)} {tag.name}s or none, so the run has no tag {tag.name}.")


DCGM = tools.ToolLog(
    kind="dcgm",
    title="DCGM",
    forms=(
        ("Prometheus query_range", lambda text: bool(_ANSWER.match(text)) and "DCGM_FI_" in text, read_answers),
        ("dcgmi dmon", _is_dmon, read_dmon),
        ("dcgmi stats", lambda text: "  Execution Stats  " in text and bool(_SECTION.search(text)), read_stats),
        ("dcgm-exporter", lambda text: bool(_EXPOSITION.search(text)), read_pages),
        ("CSV of DCGM fields", _is_table, read_table),
    ),
    longest={"Prometheus query_range": 2 * _MOST_ANSWERED},
)
