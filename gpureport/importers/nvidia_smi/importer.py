"""Recognises what nvidia-smi writes, and reads a log block by block: CSV of `--query-gpu`, and the forms beside it."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import itemgetter
from typing import ClassVar

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.account import Account, is_driver_message
from gpureport.importers.columns import Rows
from gpureport.importers.extraction import Extraction, Form
from gpureport.importers.note_text import format_columns_option, format_count
from gpureport.importers.nvidia_smi import documents, monitors, tables
from gpureport.importers.nvidia_smi.fields import (
    PREFERRED,
    declare,
    find_headers,
    is_headerless,
    is_of_gpus,
    is_plain,
    opens_query,
    read_heading,
    strict_names,
)
from gpureport.importers.nvidia_smi.query import NAME, Opening, read_query
from gpureport.importers.protocol.importer import SEARCHED_BYTES, ReadOptions
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER
from gpureport.importers.source_file import RawFile
from gpureport.importers.source_text import head, head_text
from gpureport.importers.tables import Layout, make_layout
from gpureport.metrics import BY_NAME

_LOOKED_AT = 2**20
"""How much of a log is looked at; more of it where what a job printed stands above."""
_LINES = 2_000
"""Lines around the first header whose content is looked at."""
_SLASHED = re.compile(r"(\d{1,2})/\d{1,2}/\d{4} ")
_LAST_MONTH = 12
_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""A line with a command and its prompt, or a line across the page: what stood above ends there."""
_LONGEST = 16_384
"""A line longer than this opens no block: a query of all fields has a header of 6,000 characters."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|MiB)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers: a row of something, not prose."""
_ABOVE = 12
"""Lines above a table in which its time is looked for."""
_Block = tuple[int, Form | None, str]
"""How many blocks came before, its form, and the header of a CSV that goes on in it below a table."""
FORMS: tuple[tuple[Callable[[str], bool], Form, str], ...] = (
    (tables.opens_table, tables.read_drawn_tables, "plain nvidia-smi"),
    (documents.opens_xml, documents.read_query_xml, "nvidia-smi -q -x"),
    (documents.opens_text, documents.read_query_text, "nvidia-smi -q"),
    (monitors.opens_dmon, monitors.read_dmon, "nvidia-smi dmon"),
    (monitors.opens_pmon, monitors.read_pmon, "nvidia-smi pmon"),
    (monitors.opens_apps, monitors.read_compute_apps, "nvidia-smi --query-compute-apps"),
    (opens_query, read_query, NAME),
)
"""What tells a line that opens a block, what reads the block, and what a person calls it; the first has it."""
_INSIDE: dict[Form | None, tuple[str, ...]] = {
    tables.read_drawn_tables: ("|", "+"),
    documents.read_query_xml: (" ", "\t", "<"),
    documents.read_query_text: (" ",),
}
"""What lines of a block begin with that open no other one."""


class NvidiaSmi:
    """The importer of what nvidia-smi writes."""

    kind: ClassVar[str] = "nvidia_smi"
    title: ClassVar[str] = "nvidia-smi"
    recognised_by: ClassVar[str] = (
        "A header of `--query-gpu` fields, or a line that another form of nvidia-smi begins with: dmon, "
        "pmon, `-q`, a table."
    )
    sample: ClassVar[str] = "healthy/nvidia-smi.csv"

    def identify(self, head: bytes) -> bool:
        """Return whether a line among the first is a header that names a GPU metric, or a time and what only GPUs have.

        A line that begins another form tells as well, and without a header, rows that only nvidia-smi writes.
        """
        text = head_text(head)
        if is_plain(text):
            return True
        declared = [layout for _, layout in find_headers(text)]
        if any(map(is_of_gpus, declared)) or _begins_other_form(text[: text.rfind("\n") + 1] or text):
            return True
        return not declared and is_headerless(_split(text))

    def drop_unused_options(self, file: RawFile, options: ReadOptions) -> ReadOptions:
        """Return the options without `columns` where a header names them, and `interval` where rows have time stamps.

        Raises:
            SettingsError: when a name is no query field.
        """
        if options.columns is None and options.interval is None:
            return options
        text = _read_beginning(file)
        if options.columns is None and _begins_other_form(text):
            return options
        try:
            found = read_opening(str(file.path), text, options.columns)
        except SourceError:
            # what is wrong with it is said when it is read
            return options
        columns = options.columns if found.by_option else None
        return replace(options, columns=columns, interval=None if found.stamped else options.interval)

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        """Begin to read a log; one that holds a table from end to end is read as such."""
        text = _read_beginning(file)
        if options.columns is None and _begins_other_form(text):
            return Extraction(file, options, read_blocks)
        opening = read_opening(str(file.path), text, options.columns)
        opening = opening._replace(dated=options.interval is None)
        return Extraction(
            file, options, partial(read_query, opening=opening, per_tick=options.gpus_per_tick), name=NAME
        )


def _read_beginning(file: RawFile) -> str:
    for length in (_LOOKED_AT, SEARCHED_BYTES):
        data = head(file.again(), length)
        text = (data[: data.rfind(b"\n") + 1] or data).decode(errors="replace")
        if len(data) < length or next(find_headers(text), None) is not None or _begins_other_form(text):
            break
    return text


def _begins_other_form(text: str) -> bool:
    """Return whether a block of another form than a CSV of queries begins; XML is written by others as well."""
    if is_plain(text):
        return False
    forms = {form for (_, form, _), *_ in _cut(text.split("\n"), 1)} - {read_query, None}
    return bool(forms) and (forms != {documents.read_query_xml} or "nvidia_smi_log" in text)


def _split(text: str) -> list[str]:
    return [line for each in text.split("\n") if (line := each.strip())]


def read_opening(where: str, text: str, names: Sequence[str] | None) -> Opening:
    """Return how the lines of a log are read, by its beginning and the query fields that a person named, if any.

    Raises:
        SettingsError: when a name is no query field.
        SourceError: when there is no header, and nobody named the columns.
    """
    place, header = next(find_headers(text), (len(text), None))
    before, after = _split(text[:place])[-_LINES:], _split(text[place:])[1:_LINES]
    unclear = frozenset() if header is None else _find_fractions(header, after)
    notes = [
        f"{heading} has no unit and no value above 1, so it could be fractions or per cent. It is kept as text. "
        f"{heading} [1] or {heading} [%] in its place is read."
        for heading in sorted(unclear)
    ]
    dates = [match for line in before + after if ";" in line for match in _SLASHED.finditer(line)]
    if dates and all(int(match[1]) <= _LAST_MONTH for match in dates):
        notes += [f"Dates such as {dates[0][0].strip()} are read as day/month/year; the log does not tell."]
    headed = Opening(partial(declare, texts=unclear), None, tuple(notes), bool(header and header.stamp is not None))
    if names is None:
        if header is None and is_headerless(before):
            width = Counter(len(cells) for line in before if len(cells := line.split(",")) > 1).most_common(1)[0][0]
            hint = format_columns_option([f"column_{place + 1}" for place in range(width)])
            raise SourceError(where, "rows of nvidia-smi --query-gpu without their header", hint, code="no_header")
        return headed._replace(where=where)
    above = [line for line in before if header is None or line.count(header.delimiter) + 1 == len(names)]
    delimiter = header.delimiter if header else next((each for each in ",;\t" if above and each in above[0]), ",")
    columns = [read_heading(name, "," if delimiter == ";" else ".") for name in names]
    if None in columns:
        hint = "name them as in --query-gpu, one for each cell"
        raise SettingsError("--columns", f"no query field {names[columns.index(None)]!r}", hint, code="unknown_column")
    named = make_layout(strict_names([each for each in columns if each]), PREFERRED, delimiter)
    width = Counter(line.count(delimiter) + 1 for line in after or [""]).most_common(1)[0][0]
    replaced = header is not None and len(header.columns) != width == len(names)
    if header is not None and not replaced and not above:
        return headed._replace(where=where, notes=(*notes, "The log has a header: --columns was not used."))
    if header is not None and replaced:
        which = f"{format_count(len(header.columns), 'column')} and its rows hold {format_count(width, 'cell')}"
        notes += [f"The header names {which}: --columns was used instead."]

    def declared(line: str) -> Layout | None:
        found = declare(line, unclear)
        return named if replaced and found is not None and len(found.columns) != len(names) else found

    stamped = named.stamp is not None if header is None or replaced else headed.stamped
    return Opening(declared, named, tuple(notes), stamped, by_option=True, where=where)


def _find_fractions(header: Layout, lines: Sequence[str]) -> frozenset[str]:
    """Return the headings of shares that name no unit and hold decimals, none of them above 1."""
    rows = [cells for line in lines if len(cells := line.split(header.delimiter)) == len(header.columns)]
    found = set[str]()
    for place, column in enumerate(header.columns):
        metric = BY_NAME.get(column.target)
        if metric is not None and metric.unit == "1" and not metric.may_exceed_one and not column.stated:
            cells = [row[place].strip().replace(",", ".") for row in rows]
            numbers = [cell for cell in cells if re.fullmatch(r"\d+(?:\.\d+)?", cell)]
            if any("." in cell for cell in numbers) and all(float(cell) <= 1 for cell in numbers):
                found.add(column.heading)
    return frozenset(found)


@lru_cache(4096)
def _opener(line: str) -> Form | None:
    """Return the form of which a line begins a block, None when it begins none."""
    return next((form for opens, form, _ in FORMS if opens(line)), None) if len(line) < _LONGEST else None


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a log block by block."""
    names = {form: name for _, form, name in FORMS}
    for (_, form, header), parts in groupby(_cut(lines, first), key=itemgetter(0)):
        begin = next(parts)
        read = partial(read_query, opening=Opening(layout=declare(header))) if header else form or _unread
        name = names[form] if form else "text"
        account.forms.setdefault(name, 0)
        for rows in read((line for *_, line in chain([begin], parts)), begin[1], account):
            account.forms[name] += len(rows)
            yield rows


def _cut(lines: Iterable[str], first: int) -> Iterator[tuple[_Block, int, str]]:
    """Yield the lines of a log, each with its block and number; a table takes lines above it."""
    block: _Block = (0, None, "")
    held: deque[tuple[int, str]] = deque()
    header, interrupted, was_row = "", False, False
    for number, line in enumerate(lines, first):
        text = line.rstrip("\r\n")
        row = text.lstrip(" ")[:1].isdigit()
        inside = text.startswith(_INSIDE[block[1]]) if block[1] in _INSIDE else row and was_row
        was_row = row or not text
        if text and not inside:
            form = _opener(text)
            command = form is None and _COMMAND.fullmatch(text) is not None
            # a CSV that a table interrupts goes on below it
            back = form is None and interrupted and "|" not in text and not command and not text.isspace()
            if form is not block[1] and (form is not None or command or back):
                table = form is tables.read_drawn_tables
                own = tables.count_above([above for _, above in held]) if table else 0
                while len(held) > own:
                    yield block, *held.popleft()
                interrupted = table and block[1] is read_query
                block = block[0] + 1, read_query if back else form, header if back else ""
            header = text if form is read_query else header
        held.append((number, line))
        if len(held) > _ABOVE:
            yield block, *held.popleft()
    yield from ((block, *each) for each in held)


def _unread(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Count lines that no form reads: rows of numbers above any header are rejected, prose is noise."""
    for number, line in enumerate(lines, first):
        text = line[:1000].strip("\0 \r\n\t\v\f")
        if text and (is_driver_message(text) or _NUMBERS.fullmatch(text)):
            account.sort_out(number, text, BEFORE_HEADER)
        elif text:
            account.noise += 1
    yield from ()
