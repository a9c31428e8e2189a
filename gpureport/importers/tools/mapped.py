"""Reads a table with headings that only its writer knows: a map names the metric that each column holds.

Numbers are read as wrapper scripts write them: `+27.0°C`, `38 °C`, `1,024`, `2117MB`. Where no map is given, one to
start from says what the header proves of its columns.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

from gpureport.errors import CodedProblem, SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import extra_name, parse_time
from gpureport.importers.extraction import Extraction
from gpureport.importers.headings import (
    GPU_COLUMNS,
    HOST_COLUMNS,
    INDEX_COLUMNS,
    ColumnName,
    is_time_heading,
    recognise_column,
)
from gpureport.importers.protocol import column_map
from gpureport.importers.protocol.importer import HEAD_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import GPU_NOT_NAMED, WRONG_CELLS
from gpureport.importers.quantities import parse_number
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head, head_text
from gpureport.importers.tools import (
    Record,
    When,
    form,
    parse_stamp,
    parse_with,
    split_cells,
    split_devices,
    table_rows,
    take_number,
)
from gpureport.metrics import BY_NAME, Scope
from gpureport.parsing import UNITS
from gpureport.redaction import redact_start

_DELIMITERS = (",", ";", "\t", "|")
_LISTED, _MOST_COLUMNS = 30, 200


class Mapped:
    """The importer of tables with a map; it recognises nothing by itself."""

    kind: ClassVar[str] = "mapped"
    title: ClassVar[str] = "table with a map"
    recognised_by: ClassVar[str] = "Only by `--map`, which says what its columns are."
    sample: ClassVar[str] = "mapped/wrapper.csv"

    def identify(self, head: bytes) -> bool:
        """Return False: only a person can say that a table has a map."""
        del head
        return False

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a table.

        Raises:
            SourceError: when no map was given; with a draft of one where the header proves what a column holds.
        """
        text = head_text(head(file.again(), HEAD_BYTES))
        if (told := options.map) is not None:
            delimiter = next((each for each in told.delimiter or _DELIMITERS if _names_columns(text, told, each)), None)
            if delimiter is None:
                top = next((line for line in text.splitlines() if line.strip()), "")
                what = f"no line names the columns of the map ({', '.join(told.headings)})"
                raise SourceError(
                    str(file.path), what, f"its first line is {redact_start(top)!r}", code="no_mapped_header"
                )
            read = partial(read_mapped, told=told, delimiter=delimiter)
            return Extraction(file, options, read, name=self.title, explain=_explain)
        text = draft_map(text)
        hint = ("save standard output as map.toml, complete it, then " if text else "") + "give --map map.toml"
        what = "no map says what its columns are"
        raise SourceError(str(file.path), what, hint, text, code="no_map")


def _names_columns(text: str, told: column_map.Mapping, delimiter: str) -> bool:
    return any({*told.headings} <= {*split_cells(line, delimiter)} for line in text.splitlines())


def _explain(account: Account) -> CodedProblem | None:
    """Return why no row is left of a table whose rows have another number of cells than its header."""
    if {*account.rejected} != {WRONG_CELLS}:
        return None
    what = "its rows have another number of cells than its header"
    return what, "nobody can say which cell is which: mend the header", "wrong_number_of_cells"


@form
def read_mapped(
    lines: Iterable[str], first: int, account: Account, told: column_map.Mapping, delimiter: str
) -> Iterator[Record]:
    """Yield the rows of a table whose columns a map names."""

    def find(cells: list[str]) -> list[str] | None:
        return cells if {*told.headings} <= {*cells} else None

    point = _use_point if delimiter == ";" else str
    for number, header, row in table_rows(lines, first, account, find, delimiter):
        said = {name: point(cell) for name, cell in zip(header, row, strict=True)}
        index = _INDEX.fullmatch(said.get(told.device, ""))
        if told.device and index is None:
            account.reject(GPU_NOT_NAMED, number, delimiter.join(row))
            continue
        when = _find_time(said[told.time], told.format) if told.time else None
        yield from split_devices(number, when, _read(told, said, int(index[1]) if index else None, account))


_INDEX = re.compile(r"(?:gpu)?[ :_]*(\d{1,4})[ :_]*", re.IGNORECASE | re.ASCII)


def _find_time(cell: str, pattern: str) -> When:
    if pattern == column_map.ISO:
        return parse_stamp(cell)
    if pattern not in column_map.EPOCHS:
        return parse_with(cell, pattern)
    count, unit = parse_number(cell), UNITS[column_map.EPOCHS[pattern]]
    return None if count is None else parse_time(f"{unit.to_base(count):.6f}")


def _use_point(cell: str) -> str:
    """Return a cell of a table parted by semicolons with a dot as its decimal sign, as spreadsheets mean its comma.

    Several commas, or one above a dot, part thousands.
    """
    whole, comma, decimals = cell.rpartition(",")
    return f"{whole.replace('.', '')}.{decimals}" if comma and "," not in whole and "." not in decimals else cell


def _read(
    told: column_map.Mapping, said: Mapping[str, str], named: int | None, account: Account
) -> dict[int | None, Record]:
    """Return what a row says of each device; cells of other columns are kept as text where the row is one GPU's."""
    devices: dict[int | None, Record] = {}
    for column in told.columns:
        host = BY_NAME[column.metric].scope is Scope.HOST
        record = devices.setdefault(None if host else named if column.gpu is None else column.gpu, {})
        take_number(record, account, column.heading, said[column.heading], (column.metric, column.unit))
    rest = {heading: cell for heading, cell in said.items() if heading not in told.headings}
    if named is not None and named in devices:
        devices[named] |= {extra_name(heading): cell for heading, cell in rest.items() if cell}
    elif rest:
        account.note(f"Columns the map does not name are not kept: {', '.join(list(rest)[:_LISTED])}.")
    return devices


# a map to start from

_GPU = re.compile(r"(?:gpu|cuda|device|card)[ _:.\-]*(\d{1,3})", re.IGNORECASE | re.ASCII)


def draft_map(text: str) -> str:
    """Return a map for the beginning of a table, empty where no header proves what one of its columns holds."""
    for line in text.splitlines():
        for delimiter in _DELIMITERS:
            cells = split_cells(line, delimiter)
            header = cells[:-1] if len(cells) > 1 and not cells[-1] else cells
            texts = {cell for cell in header if cell and parse_number(cell) is None}
            # headings are several texts, each once
            is_header = 2 <= len(header) == len(texts) <= _MOST_COLUMNS  # noqa: PLR2004 - a table has several
            if is_header and any(_prove(heading)[0] for heading in header):
                return "\n".join(_draft(header)) + "\n"
    return ""


def _prove(heading: str) -> tuple[ColumnName | None, int]:
    """Return what a heading says of its column, and the number of its GPU, 0 where it names none."""
    of_gpu = _GPU.search(heading)
    bare = heading if of_gpu is None else heading.replace(of_gpu[0], "gpu", 1)
    found = recognise_column(bare, GPU_COLUMNS) or recognise_column(heading, HOST_COLUMNS)
    return found if found and found.target in BY_NAME else None, int(of_gpu[1]) if of_gpu else 0


def _draft(header: Sequence[str]) -> Iterator[str]:
    time = next((heading for heading in header if is_time_heading(heading)), None)
    numbered = next((heading for heading in header if recognise_column(heading, INDEX_COLUMNS)), None)
    yield "# Complete this, save it as map.toml, and give --map map.toml. What no line names is not read."
    if time:
        yield f"[time]\ncolumn = {_quote(time)}"
        yield f'format = "{column_map.ISO}"  # or epoch_s, or such as %d.%m.%Y %H:%M:%S'
    else:
        yield "# No heading is one of a time: name it in [time], or give --interval."
    if numbered:
        yield f"\n[device]\ncolumn = {_quote(numbered)}"
    filled = set[tuple[str, int]]()
    for heading in header:
        found, gpu = _prove(heading)
        if heading in {time, numbered} or found is None or (found.target, gpu) in filled:
            continue
        filled.add((found.target, gpu))
        metric = BY_NAME[found.target]
        yield f"\n[columns.{_quote(heading)}]\nmetric = {_quote(found.target)}"
        if found.unit:
            yield f"unit = {_quote(found.unit)}"
        elif metric.unit not in column_map.CLEAR:
            fitting = (name for name, unit in UNITS.items() if name and unit.base == metric.unit)
            yield f'unit = "?"  # one of {", ".join(fitting)}'
        if metric.scope is Scope.GPU and (not numbered or _GPU.search(heading)):
            yield f'device = "gpu:{gpu}"'


def _quote(text: str) -> str:
    """Return a text as TOML writes it, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
