"""Reads what DCGM records: `dcgmi dmon`, statistics of a job, and CSV files of its fields that scripts write.

`dcgmi dmon` prints a heading with the tags of the fields, a line with their units, a row an entity. The columns follow
the heading and never the order they were asked for in: DCGM puts them into one of its own, and adds some. There is no
time in it, unless every line was stamped by whatever it went through.
"""

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import TIME
from gpureport.importers.headings import INDEX_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.protocol.reject_reasons import (
    BEFORE_HEADER,
    CUT_LAST_LINE,
    NO_TIME,
    NOT_OF_FORM,
    OTHER_ENTITY,
    WRONG_CELLS,
)
from gpureport.importers.tools import (
    FEW,
    Record,
    ToolLog,
    first_rows,
    form,
    parse_stamp,
    parse_with,
    say_when,
    table_rows,
    take_number,
    text_lines,
)
from gpureport.importers.tools.dcgm_fields import EITHER, UNTOLD, find_field, read_field
from gpureport.importers.tools.prometheus import MOST, is_page, is_prometheus_answer, read_pages, read_prometheus
from gpureport.parsing import UNITS

# dcgmi dmon

_LINE = re.compile(
    r"(?:\[?(?P<stamp>\d[\d./:T+-]*(?:,\d+)?(?: [\d:.]+(?:,\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\s,]{1,8})?"
    r"(?P<rest>#? *(?:Entity|[A-Za-z]).*)"
)
_HEADING = re.compile(r"#? *Entity(?:\s+(.*))?")
_UNIT_LINE = re.compile(r"I[Dd](?:\s.*|)")
_ENTITY = re.compile(r"(GPU|GPU-I|GPU-CI|Switch|Link|Lnk|vGPU|CPU|Core|CX)\s+(\S+)\s*(.*)")
_INDEX = re.compile(r"\d{1,4}", re.ASCII)
_INSTANCES = "Rows of MIG instances, switches and links stand for no GPU and are not read."


def _part(line: str) -> tuple[str, str]:
    """Return the stamp before a line of dmon, empty where there is none, and the line."""
    match = _LINE.fullmatch(line.strip())
    return ("", line.strip()) if match is None else (match["stamp"] or "", match["rest"])


def _is_dmon(text: str) -> bool:
    """Return whether a heading of dmon that names a field is among the first lines."""
    lines = [line for line in text.splitlines() if line.strip()][:FEW]
    headings = [match for line in lines if (match := _HEADING.fullmatch(_part(line)[1]))]
    return any(find_field(tag) for match in headings for tag in (match[1] or "").split())


@form
def read_dmon(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of `dcgmi dmon`."""
    tags: dict[str, int] = {}
    units: dict[str, str] = {}
    for number, line, cut in text_lines(lines, first, account):
        stamp, text = _part(line)
        if _HEADING.fullmatch(text):
            found = [(match[0], match.start()) for match in re.finditer(r"\S+", text)]
            tags, units = {tag: start for tag, start in found if tag not in {"#", "Entity", "#Entity"}}, {}
            account.headers += 1
        elif _UNIT_LINE.fullmatch(text):
            units = _find_units(text, tags)
            account.headers += 1
        elif (row := _ENTITY.fullmatch(text)) and row[1] != "GPU":
            account.note(_INSTANCES)
            account.reject(OTHER_ENTITY, number, line)
        elif row and not cut and len(cells := row[3].split()) == len(tags) and _INDEX.fullmatch(row[2]):
            record: Record = {"line": number, **say_when(parse_stamp(stamp)), "index": row[2]}
            for tag, cell in zip(tags, cells, strict=True):
                read_field(tag, cell, record, account, units.get(tag))
            yield record
        else:
            account.reject(CUT_LAST_LINE if cut and row else WRONG_CELLS if tags else BEFORE_HEADER, number, line)


def _find_units(text: str, tags: dict[str, int]) -> dict[str, str]:
    """Return the units in the line below a heading, each by the tag that it stands under."""
    units = {}
    for match in list(re.finditer(r"\S+", text))[1:]:
        before = [tag for tag, start in tags.items() if start <= match.start() + 1]
        known = find_field(before[-1]) if before else None
        if known and match[0] in UNITS and known[1] in UNITS and UNITS[match[0]].base == UNITS[known[1]].base:
            units[before[-1]] = match[0]
    return units


# statistics of a job

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


def _is_stats(text: str) -> bool:
    return _SECTION.search(text) is not None and "|  Execution Stats  " in text.replace("-", "")


@form
def read_stats(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield a row at the start and one at the end of each job that `dcgmi stats` describes, for each of its GPUs."""
    found: list[tuple[int, str | None, dict[str, str]]] = []
    for number, text, cut in text_lines(lines, first, account):
        if section := _SECTION.fullmatch(text.strip()):
            found.append((number, section[1], {}))
        elif found and not cut and (figure := _FIGURE.fullmatch(text.strip())):
            found[-1][2].setdefault(figure[1], figure[2])
        elif text.startswith("| ") or cut:
            account.reject(CUT_LAST_LINE if cut else NOT_OF_FORM, number, text)
            continue
        else:
            account.noise += 1
            continue
        account.continued += 1
    if any(gpu is not None for _, gpu, _ in found):
        found = [section for section in found if section[1] is not None]
    elif found:
        account.note(_SUMMARY)
    for number, gpu, figures in found:
        rows = _build_rows(figures, account)
        if not rows:
            account.reject(NO_TIME, number)
        account.continued -= len(rows) or 1
        yield from ({"line": number, "index": gpu or "0", **row} for row in rows)


def _build_rows(figures: Mapping[str, str], account: Account) -> list[Record]:
    """Return what holds at the start and at the end of a job; nothing of one that still runs and has no end."""
    stamps = [parse_with(figures.get(f"{end} Time", ""), "%a %b %d %H:%M:%S %Y") for end in ("Start", "End")]
    times = [when[0] for when in stamps if when]
    if len(times) < len(stamps):
        return []
    account.note(_MEANS)
    means: Record = {}
    for name in filter(figures.__contains__, _STATS):
        take_number(means, account, name, figures[name], _STATS[name])
    energy, seconds = means.pop(_ENERGY, 0.0), (times[1] - times[0]) / 1e6
    if not energy or seconds <= 0:
        return [say_when(when) | means for when in stamps]
    # what the driver counted is surer than a mean of samples
    means["gpu_power_watts"] = energy / seconds
    return [say_when(when) | means | {_ENERGY: counted} for when, counted in zip(stamps, (0.0, energy), strict=True)]


# tables of fields

_ENTITIES = {"entity", "entityid"}
"""What DCGM calls a GPU."""
_FIELDS = {"field", "fieldname", "fieldid", "metric", "metricname"}
_VALUES = {"value", "values"}
_TEXTS = {"uuid": "uuid", "gpuuuid": "uuid", "modelname": "model", "gpuname": "model"}
_NODES = {"hostname", "host", "node"}
_GPU_CELL = re.compile(r"(?:gpu|nvidia)?[ :_]*([0-9]{1,4})", re.IGNORECASE | re.ASCII)
_MOST_READINGS = 5_000_000
"""Readings at most of a table with one per line, kept in memory until those of a moment are complete."""


class _Table(NamedTuple):
    """Columns of a CSV by their places; `field` and `value` where each line is one reading, else -1 and `fields`."""

    time: int | None
    gpu: int | None
    field: int
    value: int
    fields: list[tuple[int, str]]
    texts: list[tuple[int, str]]
    node: int | None

    @property
    def has_uuid(self) -> bool:
        return any(name == "uuid" for _, name in self.texts)


def _find_table(header: list[str]) -> _Table | None:
    """Return the columns of a header, None when it is none of a table of DCGM's fields.

    A table with one reading a line is only known by its rows; its header has a GPU, a field and a value.
    """
    # a line of no table may repeat a heading a million times
    bare = {heading: re.sub(r"[ _\-.]", "", heading.lower()) for heading in dict.fromkeys(header)}
    plain = [bare[heading] for heading in header]

    def place(names: Container[str]) -> int | None:
        return next((place for place, name in enumerate(plain) if name in names), None)

    time = place({bare[heading] for heading in bare if is_time_heading(heading)})
    gpu = place(_ENTITIES | {bare[heading] for heading in bare if recognise_column(heading, INDEX_COLUMNS)})
    texts = [(place, _TEXTS[name]) for place, name in enumerate(plain) if name in _TEXTS]
    field, value, node = place(_FIELDS), place(_VALUES), place(_NODES)
    if gpu is None and not texts:
        return None
    if field is not None and value is not None:
        return _Table(time, gpu, field, value, [], texts, node)
    if not any(name.isidentifier() and find_field(name) for name in bare):
        return None
    taken = {time, gpu, node, *(place for place, _ in texts)}
    fields = [(place, name) for place, name in enumerate(header) if place not in taken]
    return _Table(time, gpu, -1, -1, fields, texts, node)


def _is_table(text: str) -> bool:
    """Return whether a line is the header of a table of DCGM's fields; of one reading a line its rows tell."""
    rows = first_rows(text)
    tables = [(place, table) for place, row in enumerate(rows) if (table := _find_table(row)) is not None]
    return any(
        table.field < 0
        or any(len(row) == len(rows[place]) and find_field(row[table.field]) for row in rows[place + 1 :])
        for place, table in tables
    )


@form
def read_table(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of a table; of one with a reading a line at its end, in the order of time.

    Raises:
        SourceError: when it is too long to be held in memory, or of several machines.
    """
    node, readings = "", 0
    held: dict[tuple[object, ...], Record] = {}
    for number, table, row in table_rows(lines, first, account, _find_table):
        if table.node is not None and (node := node or row[table.node]) != row[table.node] and not table.has_uuid:
            what = f"GPUs of several machines ({node}, {row[table.node]}, ...) in one table"
            hint = "write one file a machine, and read them with --as-one-run"
            raise SourceError(_TABLE, what, hint, code="several_machines")
        gpu = _describe(table, row)
        if table.field < 0:
            record = {"line": number, **gpu}
            cells = [(name, row[place]) for place, name in table.fields if find_field(name) or row[place]]
        else:
            # the others of its GPU and moment may come later
            record = held.setdefault(tuple(gpu.items()), {"line": number, **gpu})
            account.continued += record["line"] != number
            cells, readings = [(row[table.field], row[table.value])], readings + 1
        if readings > _MOST_READINGS:
            what = f"more than {_MOST_READINGS:,} readings one a line, which are held in memory"
            raise SourceError(_TABLE, what, "split it by time, or write one GPU a line", code="too_many_readings")
        for name, cell in cells:
            read_field(name, cell, record, account)
            if name == EITHER:
                account.note(UNTOLD)
        if table.field < 0:
            yield record
    yield from sorted(held.values(), key=lambda record: (record[TIME] or 0, record["line"]))


def _describe(table: _Table, row: Sequence[str]) -> Record:
    """Return the time of a row, and what it says of its GPU."""
    index = None if table.gpu is None else _GPU_CELL.fullmatch(row[table.gpu])
    said = {name: row[place] for place, name in table.texts if row[place]}
    when = say_when(None if table.time is None else parse_stamp(row[table.time]))
    return when | ({"index": str(int(index[1]))} if index else {}) | said


_TABLE, _PROMETHEUS = "CSV of DCGM fields", "Prometheus query_range"


DCGM = ToolLog(
    kind="dcgm",
    title="DCGM",
    recognised_by=(
        "A heading of `dcgmi dmon`, what `dcgmi stats` prints of a job, a CSV of DCGM fields, pages of dcgm-exporter, "
        "or an answer of Prometheus with its metrics."
    ),
    sample="dcgm/dcgmi-dmon.txt",
    forms=(
        (_PROMETHEUS, is_prometheus_answer, read_prometheus),
        ("dcgmi dmon", _is_dmon, read_dmon),
        ("dcgmi stats", _is_stats, read_stats),
        ("dcgm-exporter", is_page, read_pages),
        (_TABLE, _is_table, read_table),
    ),
    longest={_PROMETHEUS: 2 * MOST},
)
