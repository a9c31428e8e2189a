"""Reads what DCGM records: `dcgmi dmon`, statistics of a job, and CSV files of its fields that scripts write.

`dcgmi dmon` prints a heading with the tags of the fields, a line with their units, and a row per entity. The columns
follow the heading and never the order they were asked for in: DCGM puts them into one of its own, and adds some. There
is no time in it, unless every line was stamped by whatever it went through.
"""

import re
from collections.abc import Container, Iterable, Iterator
from functools import partial
from typing import NamedTuple

from gpureport.importers import tools
from gpureport.importers.account import Account
from gpureport.importers.columns import TIME
from gpureport.importers.headings import INDEX_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.protocol import reject_reasons as reasons
from gpureport.importers.tools import prometheus
from gpureport.importers.tools.dcgm_fields import FIELDS, Reading, build_rows
from gpureport.units import UNITS

# dcgmi dmon

_LINE = re.compile(
    r"(?:\[?(?P<stamp>\d[\d./:T+-]*(?:,\d+)?(?: [\d:.]+(?:,\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\s,]{1,8})?"
    r"(?:(?P<heading>#? *Entity(?:\s.*)?)|(?P<units>I[Dd](?:\s.*)?)|GPU\s+(?P<gpu>\d{1,4})\s+(?P<cells>.*)"
    r"|(?P<other>(?:GPU-I|GPU-CI|Switch|Link|Lnk|vGPU|CPU|Core|CX)\s.*))",
    re.ASCII,
)


def _is_dmon(text: str) -> bool:
    """Return whether a heading of dmon that names a field is among the first lines."""
    found = [match["heading"] or "" for line in tools.first_lines(text) if (match := _LINE.fullmatch(line.strip()))]
    return any(tag in FIELDS for heading in found for tag in heading.split())


@tools.form
def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield the rows of `dcgmi dmon`."""
    return build_rows(_read_dmon(lines, first, account), account)


def _read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    tags: dict[str, int] = {}
    units: dict[str, str] = {}
    for number, line, cut in tools.text_lines(lines, first, account):
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
        elif match and not cut and len(cells := match["cells"].split()) == len(tags):
            said = (
                (tag, f"{cell} {units[tag]}" if tag in units else cell) for tag, cell in zip(tags, cells, strict=True)
            )
            yield Reading(number, number, {TIME: tools.parse_stamp(match["stamp"] or ""), "index": match["gpu"]}, said)
        else:
            reason = reasons.WRONG_CELLS if tags else reasons.BEFORE_HEADER
            account.reject(reasons.CUT_LAST_LINE if cut else reason, number, line)


# statistics of a job

_ENERGY = "Energy Consumed (Joules)"
_STATS = {
    _ENERGY: ("gpu_energy_joules_total", "J"),
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


def _is_stats(text: str) -> bool:
    return _SECTION.search(text) is not None and "|  Execution Stats  " in text.replace("-", "")


@tools.form
def read_stats(lines: Iterable[str], first: int, account: Account) -> Iterator[tools.Record]:
    """Yield a row at the start and one at the end of each job that `dcgmi stats` describes, for each of its GPUs."""
    found: list[tuple[int, str | None, dict[str, str]]] = []
    for number, text, cut in tools.text_lines(lines, first, account):
        section, figure = _SECTION.fullmatch(text.strip()), _FIGURE.fullmatch(text.strip())
        if section:
            found.append((number, section[1], {}))
        elif figure and found and not cut:
            found[-1][2].setdefault(figure[1], figure[2])
        elif text.startswith("| ") or cut:
            account.reject(reasons.CUT_LAST_LINE if cut else reasons.NOT_OF_FORM, number, text)
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
        means = tools.take_cells({}, account, known, _STATS)
        name = _STATS[_ENERGY][0]
        energy = means.pop(name, 0.0) if end > start else 0.0
        for stamp, counted in zip(stamps, (0.0, energy), strict=True):
            # what the driver counted is surer than a mean of samples
            sure = {name: counted, "gpu_power_watts": energy * 1e6 / (end - start)} if energy else {}
            yield {"line": number, TIME: stamp, "index": gpu or "0", **means, **sure}


# tables of fields

_ENTITIES = {"entity", "entityid"}
"""What DCGM calls a GPU."""
_FIELD_NAMES, _VALUES = {"field", "fieldname", "fieldid", "metric", "metricname"}, {"value", "values"}
_TEXTS = {"uuid": "uuid", "gpuuuid": "uuid", "modelname": "model", "gpuname": "model"}
_NODES = {"hostname", "host", "node"}
_GPU_CELL = re.compile(r"(?:gpu|nvidia)?[ :_]*([0-9]{1,4})", re.IGNORECASE | re.ASCII)


class _Table(NamedTuple):
    """Places of columns in a CSV; `fields` hold each its own, or one the name of a field and `value` what it is."""

    time: int | None
    gpu: int | None
    node: int | None
    texts: list[tuple[int, str]]
    fields: list[tuple[int, str]]
    field: int | None = None
    value: int | None = None


def _find_table(header: list[str]) -> _Table | None:
    """Return the columns of a header, None when it is not one of a table of DCGM's fields.

    A table with one reading a line is only known by its rows; its header has a GPU, a field and a value.
    """
    # a line of no table may repeat a heading a million times
    bare = {heading: re.sub(r"[ _\-.]", "", heading.lower()) for heading in dict.fromkeys(header)}

    def place(names: Container[str]) -> int | None:
        return next((place for place, heading in enumerate(header) if bare[heading] in names), None)

    time = place({bare[heading] for heading in bare if is_time_heading(heading)})
    gpu = place(_ENTITIES | {bare[heading] for heading in bare if recognise_column(heading, INDEX_COLUMNS)})
    texts = [(place, _TEXTS[bare[heading]]) for place, heading in enumerate(header) if bare[heading] in _TEXTS]
    field, value, node = place(_FIELD_NAMES), place(_VALUES), place(_NODES)
    if gpu is None and not texts:
        return None
    if field is not None and value is not None:
        return _Table(time, gpu, node, texts, [], field, value)
    taken = {time, gpu, node, *(place for place, _ in texts)}
    fields = [(place, name) for place, name in enumerate(header) if place not in taken]
    known = any(name.isidentifier() and name in FIELDS for _, name in fields)
    return _Table(time, gpu, node, texts, fields) if known else None


def _is_table(text: str, *, long: bool) -> bool:
    rows = [tools.split_cells(line) for line in tools.first_lines(text)]
    for place, table in ((place, _find_table(row)) for place, row in enumerate(rows)):
        if table and table.field is not None and long:
            return any(len(row) == len(rows[place]) and row[table.field] in FIELDS for row in rows[place + 1 :])
        if table and table.field is None and not long:
            return True
    return False


@tools.form
def read_table(lines: Iterable[str], first: int, account: Account, *, long: bool) -> Iterator[tools.Record]:
    """Yield the rows of a table; of one with a reading a line at its end, in the order of time."""
    return build_rows(_read_table(lines, first, account), account)


def _read_table(lines: Iterable[str], first: int, account: Account) -> Iterator[Reading]:
    hosts: dict[str, bool] = {}
    for number, table, row in tools.table_rows(lines, first, account, _find_table):
        index = None if table.gpu is None else _GPU_CELL.fullmatch(row[table.gpu])
        gpu: tools.Record = {TIME: None if table.time is None else tools.parse_stamp(row[table.time])}
        gpu |= {"index": str(int(index[1]))} if index else {}
        gpu |= {name: row[place] for place, name in table.texts if row[place]}
        tools.refuse_machines(hosts, table.node is not None and row[table.node], named="uuid" in gpu)
        if table.field is None or table.value is None:
            said = [(name, row[place]) for place, name in table.fields if name in FIELDS or row[place]]
            yield Reading(number, number, gpu, said)
        else:
            yield Reading(number, 0, gpu, [(row[table.field], row[table.value])])


DCGM = tools.ToolLog(
    kind="dcgm",
    title="DCGM",
    recognised_by=(
        "A heading of `dcgmi dmon`, what `dcgmi stats` prints of a job, a CSV of DCGM fields, pages of dcgm-exporter, "
        "or an answer of Prometheus with its metrics."
    ),
    sample="dcgm/dcgmi-dmon.txt",
    forms=(
        ("Prometheus query_range", prometheus.is_answer, prometheus.read_answers),
        ("dcgmi dmon", _is_dmon, read_dmon),
        ("dcgmi stats", _is_stats, read_stats),
        ("dcgm-exporter", prometheus.is_page, prometheus.read_pages),
        ("CSV of DCGM fields", partial(_is_table, long=False), partial(read_table, long=False)),
        ("CSV of DCGM fields", partial(_is_table, long=True), partial(read_table, long=True)),
    ),
    longest={"Prometheus query_range": 2 * prometheus.MOST},
)
