"""Reads tables whose columns are described by a map, and drafts maps."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import ClassVar, NamedTuple

from gpureport.errors import SettingsError, SourceError
from gpureport.importers import headings, source_text, tools
from gpureport.importers.account import GPU_NOT_NAMED, OTHER_FORMAT, Account
from gpureport.importers.clock import parse_time
from gpureport.importers.extraction import Extraction
from gpureport.importers.protocol import HEAD_BYTES, ReadOptions
from gpureport.metrics import BY_NAME, Metric, Scope
from gpureport.parsing import MOST_GPUS, UNITS
from gpureport.redaction import redact_start
from gpureport.settings import Section, Settings
from gpureport.settings.toml_files import read_toml

ISO = "iso"
EPOCHS = {"epoch_s": "s", "epoch_ms": "ms", "epoch_us": "us", "epoch_ns": "ns"}
CLEAR = {"": "", "W": "W", "Cel": "C", "J": "J"}
"""Base units that a map may omit, with their names in maps."""
_EXAMPLE = 'for example, [columns."GPU0 Power"] with metric = "gpu_power_watts", unit = "W", device = "gpu:0"'


class MappedColumn(NamedTuple):
    heading: str
    metric: str
    unit: str
    gpu: int | None


class Mapping(NamedTuple):
    """The metric columns, and the headings of the time and GPU number (empty if none)."""

    columns: tuple[MappedColumn, ...]
    time: str
    format: str
    zone: str | None
    device: str
    delimiter: str

    def __str__(self) -> str:
        columns = ";".join(f"{each.heading}|{each.metric}|{each.unit}|{each.gpu}" for each in self.columns)
        return f"{self.time}|{self.format}|{self.device}|{self.delimiter};{columns}"

    @property
    def headings(self) -> set[str]:
        return {self.time, self.device, *(each.heading for each in self.columns)} - {""}


def read_column_map(path: Path) -> Mapping:
    file = Settings(file=str(path), content=read_toml(path, "see docs/how-to/read-logs.md").content)
    whole = Section(file=file.file, name="map", values=file.content)
    whole.only({"columns", "delimiter", "device", "time"})
    columns, time, device = map(file.section, ("columns", "time", "device"))
    time.only({"column", "format", "zone"})
    device.only({"column"})
    pattern = time.text("format") or ISO
    if pattern != ISO and pattern not in EPOCHS and "%" not in pattern:
        hint = f"use {', '.join([ISO, *EPOCHS])}, or a pattern such as %m-%d-%Y %H:%M:%S"
        raise time.wrong("format", f"unknown time format {pattern!r}", hint, code="unknown_time_format")
    found = [read_column(columns, heading, by_row=bool(device.text("column"))) for heading in columns.values]
    if len({(each.metric, each.gpu) for each in found}) < max(len(found), 1):
        what = "two columns contain the same metric for one device" if found else "it maps no column"
        raise SettingsError(file.file, what, _EXAMPLE, code="metric_in_two_columns" if found else "nothing_mapped")
    delimiter = "\t" if file.content.get("delimiter") == "\t" else whole.text("delimiter")
    return Mapping(
        tuple(found), time.text("column"), pattern, time.text("zone") or None, device.text("column"), delimiter
    )


def read_column(columns: Section, heading: str, *, by_row: bool) -> MappedColumn:
    column, values = f"column {heading!r}", columns.values[heading]
    if not isinstance(values, dict):
        raise columns.wrong(heading, f"{column} must be a table", _EXAMPLE, code="not_a_table")
    said = Section(file=columns.file, name=f"columns.{heading}", values=values)
    said.only({"device", "metric", "unit"})
    name, stated, device = map(said.text, ("metric", "unit", "device"))
    metric = BY_NAME.get(name)
    if metric is None:
        raise said.wrong(
            "metric", f"no metric {name!r} ({column})", "gpureport explain lists all metrics", code="unknown_metric"
        )
    unit = stated or CLEAR.get(metric.unit, "")
    if unit not in UNITS or UNITS[unit].base != metric.unit:
        hint = f"its units are {', '.join(_list_units(metric.unit)) or 'none'}"
        raise said.wrong("unit", f"no unit {stated!r} for {name} ({column})", hint, code="wrong_unit")
    index = device.removeprefix("gpu:")
    numbered = index != device and index.isascii() and index.isdigit() and int(index) < MOST_GPUS
    of_host = metric.scope is Scope.HOST
    if not of_host and not numbered and (device or not by_row):
        hint = 'write device = "gpu:0", or name the column with GPU numbers in [device]'
        raise said.wrong("device", f"no GPU is given for {column}", hint, code="no_gpu_named")
    return MappedColumn(heading, name, unit, int(index) if numbered and not of_host else None)


_DELIMITERS = (",", ";", "\t", "|")
_MOST_COLUMNS = 200


class Mapped:
    kind: ClassVar[str] = "mapped"
    title: ClassVar[str] = "table with a map"

    def identify(self, head: bytes) -> bool:
        return False

    def extract(self, file: source_text.RawFile, options: ReadOptions) -> Extraction:
        text = source_text.head_text(source_text.head(file.again(), HEAD_BYTES))
        if (told := options.map) is None:
            draft = draft_map(text)
            hint = ("save standard output as map.toml, complete it, and " if draft else "") + "give --map map.toml"
            raise SourceError(str(file.path), "no map describes the columns of this table", hint, draft, code="no_map")
        form = partial(read_mapped, told=told, timed=bool(told.time) and options.interval is None)
        for delimiter in told.delimiter or _DELIMITERS:
            if any(told.headings <= {*tools.split_cells(line, delimiter)} for line in text.splitlines()):
                return Extraction(file, options, partial(form, delimiter=delimiter), name=self.title)
        what = f"no line contains the headings in the map ({', '.join(sorted(told.headings))})"
        hint = f"its first line is {redact_start(text.lstrip().partition(chr(10))[0])!r}"
        raise SourceError(str(file.path), what, hint, code="no_mapped_header")


@tools.form
def read_mapped(  # noqa: PLR0913, PLR0917 - what the map says
    lines: Iterable[str], first: int, account: Account, told: Mapping, delimiter: str, timed: bool
) -> Iterator[tools.Record]:
    """Yield the rows; if each row is about one GPU, keep cells without a metric as text."""
    meanings = {column.heading: (column.metric, column.unit) for column in told.columns}

    def find(cells: list[str]) -> list[str] | None:
        return cells if told.headings <= {*cells} else None

    lost, rows = Counter[MappedColumn](), 0
    for number, header, row in tools.table_rows(lines, first, account, find, delimiter):
        said = {name: _use_point(cell) if delimiter == ";" else cell for name, cell in zip(header, row, strict=True)}
        index = re.fullmatch(r"(?ai)(?:gpu)?[ :_]*(\d{1,4})[ :_]*", said.get(told.device, ""))
        when = _find_time(said[told.time], told.format) if told.time else None
        if (told.device and index is None) or (timed and when is None):
            account.reject(OTHER_FORMAT if index or not told.device else GPU_NOT_NAMED, number, delimiter.join(row))
            continue
        named = int(index[1]) if index else None
        devices: dict[int | None, tools.Record] = {}
        for column in told.columns:
            gpu = None if BY_NAME[column.metric].scope is Scope.HOST else named if column.gpu is None else column.gpu
            cells = [(column.heading, said[column.heading])]
            taken = tools.take_cells(devices.setdefault(gpu, {}), account, cells, meanings)
            lost[column] += column.metric not in taken and (headings.parse_number(said[column.heading]) or 0) > 0
        rows += 1
        rest = [(heading, cell) for heading, cell in said.items() if heading not in told.headings]
        if named in devices and named is not None:
            tools.take_cells(devices[named], account, rest, {})
        elif rest:
            names = ", ".join(heading for heading, _ in rest[:30])
            account.note(f"These columns are not in the map and were not kept: {names}.")
        yield from tools.split_devices(number, when, devices)
    for column in (each for each in told.columns if lost[each] > rows / 2):
        what = f"{lost[column]:,} of {rows:,} values of column {column.heading!r} are impossible in unit {column.unit}"
        raise SourceError("the log", what, "correct the unit in the map", code="wrong_unit")


def _find_time(cell: str, pattern: str) -> tools.Stamp:
    if pattern not in EPOCHS:
        return tools.parse_stamp(cell) if pattern == ISO else tools.parse_with(cell, pattern)
    count = headings.parse_number(cell)
    return None if count is None else parse_time(f"{UNITS[EPOCHS[pattern]].to_base(count):.6f}")


def _use_point(cell: str) -> str:
    whole, comma, decimals = cell.rpartition(",")
    return f"{whole.replace('.', '')}.{decimals}" if comma and "," not in whole and "." not in decimals else cell


_UNKNOWN = Metric("?", "?", "", "", "")
_GPU = re.compile(r"(?:gpu|cuda|device|card)[ _:.\-]*(\d{1,3})", re.IGNORECASE | re.ASCII)


def draft_map(text: str) -> str:
    """Return a draft of a map, or an empty string if no line has headings."""
    for (line, below), delimiter in product(pairwise([*filter(str.strip, text.splitlines()), ""]), _DELIMITERS):
        header, row = (tools.split_cells(each, delimiter) for each in (line, below))
        texts = {cell for cell in header if cell and headings.parse_number(cell) is None}
        times = (cell for name, cell in zip(header, row, strict=False) if headings.is_time_heading(name))
        is_timed = len(row) == len(header) and bool(
            [*filter(tools.parse_stamp, row)] or re.search(r"\d", "".join(times))
        )
        has_data = is_timed and {*map(headings.parse_number, map(_use_point, row))} != {None}
        if 1 < len(header) == len(texts) <= _MOST_COLUMNS and (has_data or any(map(_prove, header))):
            return "\n".join(_draft(header, row)) + "\n"
    return ""


def _draft(header: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    stamped = [name for name, cell in zip(header, row, strict=False) if tools.parse_stamp(cell)]
    time = [*filter(headings.is_time_heading, header), *stamped, "?"][0]
    numbered = next((one for one in header if headings.recognise_column(one, headings.INDEX_COLUMNS)), None)
    yield '# Replace each "?", save this as map.toml, and give --map map.toml.'
    yield f"[time]  # or leave it out and give --interval\ncolumn = {_quote(time)}"
    cell = dict(zip(header, row, strict=False)).get(time, "").partition(".")[0]
    shape = dict(zip((10, 13, 16, 19), EPOCHS, strict=True)).get(len(cell) if cell.isdigit() else 0, ISO)
    yield f'format = "{shape}"  # iso, epoch_s, or %d.%m.%Y %H:%M:%S'
    yield '# zone = "Europe/Berlin"'
    yield from [f"\n[device]\ncolumn = {_quote(numbered)}"] if numbered else []
    for name in (one for one in header if one not in {time, numbered}):
        found, of_gpu = _prove(name), _GPU.search(name)
        metric = BY_NAME[found.target] if found else _UNKNOWN
        yield f"\n[columns.{_quote(name)}]\nmetric = {_quote(metric.name)}"
        if found and found.unit:
            yield f'unit = "{found.unit}"'
        elif metric.unit not in CLEAR:
            yield f'unit = "?"  # such as {", ".join(_list_units(metric.unit) or ("%", "MiB", "W"))}'
        if metric.scope is Scope.GPU and (of_gpu or not numbered):
            yield f'device = "gpu:{int(of_gpu[1]) if of_gpu else 0}"'


def _list_units(base: str) -> list[str]:
    return [name for name, unit in UNITS.items() if name and unit.base == base]


def _prove(heading: str) -> headings.ColumnName | None:
    found = headings.recognise_column(_GPU.sub("gpu", heading, count=1), headings.GPU_COLUMNS)
    found = found or headings.recognise_column(heading, headings.HOST_COLUMNS)
    found = found or headings.recognise_column(f"gpu {heading}", headings.GPU_COLUMNS)
    return found if found and found.target in BY_NAME else None


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
