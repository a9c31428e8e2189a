"""Reads what DCGM records: `dcgmi dmon`, and CSV files of its fields that scripts write.

`dcgmi dmon` prints a heading with the tags of the fields, a line with their units, a row an entity. The columns follow
the heading and never the order they were asked for in: DCGM puts them into one of its own, and adds some. There is no
time in it, unless every line was stamped by whatever it went through.
"""

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from gpureport.errors import SourceError
from gpureport.importers.account import Account
from gpureport.importers.extraction import Extraction
from gpureport.importers.headings import INDEX_COLUMNS, is_time_heading, recognise_column
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, OTHER_ENTITY, WRONG_CELLS
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head as text_head
from gpureport.importers.source_text import head_text
from gpureport.importers.tools import Record, form, parse_stamp, say_when, split_cells, text_lines
from gpureport.importers.tools.dcgm_fields import EITHER, find_field, read_field
from gpureport.importers.tools.prometheus import MOST, is_prometheus_answer, is_snapshot, read_prometheus
from gpureport.limits import LONGEST_LINE
from gpureport.units import UNITS

_LINES = 20


class Dcgm:
    """The importer of what DCGM records."""

    kind: ClassVar[str] = "dcgm"
    title: ClassVar[str] = "DCGM"
    recognised_by: ClassVar[str] = (
        "A heading of `dcgmi dmon`, a CSV of DCGM fields, or an answer of Prometheus with metrics of dcgm-exporter."
    )
    sample: ClassVar[str] = "dcgm/dcgmi-dmon.txt"

    def identify(self, head: bytes) -> bool:
        """Return whether a text is of DCGM: a form that is read, or a snapshot that is refused in words."""
        text = head_text(head)
        return _name_form(text) != "" or is_snapshot(text)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log.

        Raises:
            SourceError: when it is a snapshot without a time, or nothing of DCGM though a person says so.
        """
        text = text_head(file.again(), HEAD_BYTES).decode(errors="replace")
        name = _name_form(text)
        if name:
            # Prometheus answers in one line
            longest = 2 * MOST if name == _PROMETHEUS else LONGEST_LINE
            return Extraction(file, options, _FORMS[name], name=name, longest=longest)
        if is_snapshot(text):
            what = "what dcgm-exporter shows at one moment, without a time"
            hint = "let Prometheus scrape it, and give the answer of /api/v1/query_range"
            raise SourceError(str(file.path), what, hint, code="no_timestamps")
        what = "no header of dcgmi dmon, no table of DCGM's fields and no answer of Prometheus at its beginning"
        hint = "leave out --source-kind, or give a log of DCGM"
        raise SourceError(str(file.path), what, hint, code="not_of_this_kind")


def _name_form(text: str) -> str:
    """Return what a person calls the form of a text, empty where it is none."""
    if is_prometheus_answer(text):
        return _PROMETHEUS
    lines = [line for line in text.splitlines() if line.strip()][:_LINES]
    if any(_is_dmon(line) for line in lines):
        return _DMON
    return _TABLE if _has_table(lines) else ""


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


def _is_dmon(line: str) -> bool:
    """Return whether a line is a heading of dmon that names a field."""
    found = _HEADING.fullmatch(_part(line)[1])
    return found is not None and any(map(find_field, (found[1] or "").split()))


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
_UNTOLD = (
    "DCGM_FI_DEV_GPU_UTIL_RATIO counts in per cent in DCGM before 4.7 and as a ratio since: kept as it is in a table."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Columns of a CSV by what they hold, each by its place; `field` and `value` where each line is one reading.

    `fields` are places with names of fields, where each line is one GPU; `texts` those with attributes of a GPU.
    """

    header: list[str]
    time: int | None
    gpu: int | None
    field: int | None
    value: int | None
    fields: list[tuple[int, str]]
    texts: list[tuple[int, str]]
    node: int | None


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
    named, value, node = place(_FIELDS), place(_VALUES), place(_NODES)
    long = named is not None and value is not None
    if (gpu is None and not texts) or not (long or any(name.isidentifier() and find_field(name) for name in bare)):
        return None
    taken = {time, gpu, node, *(place for place, _ in texts)}
    return _Table(
        header=header,
        time=time,
        gpu=gpu,
        field=named if long else None,
        value=value if long else None,
        fields=[] if long else [(place, name) for place, name in enumerate(header) if place not in taken],
        texts=texts,
        node=node,
    )


def _has_table(lines: Sequence[str]) -> bool:
    """Return whether a line is the header of a table of DCGM's fields; of one reading a line its rows tell."""
    rows = [split_cells(line) if "," in line else [] for line in lines]
    tables = [(place, table) for place, row in enumerate(rows) if (table := _find_table(row)) is not None]
    return any(
        table.field is None
        or any(len(row) == len(table.header) and find_field(row[table.field]) for row in rows[place + 1 :])
        for place, table in tables
    )


@form
def read_table(lines: Iterable[str], first: int, account: Account) -> Iterator[Record]:
    """Yield the rows of a table; of one with a reading a line at its end, in the order of time.

    Raises:
        SourceError: when it is too long to be held in memory, or of several machines.
    """
    table: _Table | None = None
    node, readings = "", 0
    held: dict[tuple[object, ...], Record] = {}
    for number, text, cut in text_lines(lines, first, account):
        row = split_cells(text)
        found = None if text[:1].isdigit() else _find_table(row)
        if found is not None:
            table = found
            account.headers += 1
            continue
        if table is None or cut or len(row) != len(table.header):
            account.reject(BEFORE_HEADER if table is None else CUT_LAST_LINE if cut else WRONG_CELLS, number, text)
            continue
        if table.node is not None and (node := node or row[table.node]) != row[table.node]:
            _refuse_machines(table, node, row[table.node])
        gpu = _describe(table, row)
        if table.field is None or table.value is None:
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
                account.note(_UNTOLD)
        if table.field is None:
            yield record
    yield from sorted(held.values(), key=lambda record: (record["timestamp"] or 0, record["line"]))


def _describe(table: _Table, row: Sequence[str]) -> Record:
    """Return the time of a row, and what it says of its GPU."""
    index = None if table.gpu is None else _GPU_CELL.fullmatch(row[table.gpu])
    said = {name: row[place] for place, name in table.texts if row[place]}
    when = say_when(None if table.time is None else parse_stamp(row[table.time]))
    return when | ({"index": str(int(index[1]))} if index else {}) | said


def _refuse_machines(table: _Table, *nodes: str) -> None:
    if not any(name == "uuid" for _, name in table.texts):
        what = f"GPUs of several machines ({', '.join(nodes)}, ...) in one table"
        hint = "write one file a machine, and read them with --as-one-run"
        raise SourceError(_TABLE, what, hint, code="several_machines")


_DMON, _TABLE, _PROMETHEUS = "dcgmi dmon", "CSV of DCGM fields", "Prometheus query_range"
_FORMS = {_DMON: read_dmon, _TABLE: read_table, _PROMETHEUS: read_prometheus}
