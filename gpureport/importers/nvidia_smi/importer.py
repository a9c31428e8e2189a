"""Recognises what nvidia-smi writes, and reads a log block by block: CSV of `--query-gpu`, and the forms beside it."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import itemgetter
from typing import ClassVar

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.account import Account, format_columns_option
from gpureport.importers.columns import Layout, Rows
from gpureport.importers.extraction import Extraction, Form
from gpureport.importers.nvidia_smi import documents, monitors
from gpureport.importers.nvidia_smi.fields import (
    arrange,
    declare,
    find_headers,
    is_headerless,
    is_of_gpus,
    is_plain,
    opens_query,
    read_heading,
)
from gpureport.importers.nvidia_smi.query import NAME, Opening, read_query
from gpureport.importers.protocol.importer import SEARCHED_BYTES, ReadOptions
from gpureport.importers.source_text import RawFile, head, head_text

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
_ABOVE, _TOGETHER = 6, 2_000
"""Lines of text above a table in which its time is looked for, and lines that are handed on together."""
_Block = tuple[int, Form | None, str]
"""How many blocks came before, its form, and the header of a CSV that goes on in it below a table."""
FORMS: tuple[tuple[Callable[[str], object], Form, str], ...] = (
    (documents.TABLE.match, documents.read_drawn_tables, "plain nvidia-smi"),
    (documents.XML.match, documents.read_query_xml, "nvidia-smi -q -x"),
    (documents.TEXT.match, documents.read_query_text, "nvidia-smi -q"),
    (monitors.opens_dmon, monitors.read_dmon, "nvidia-smi dmon"),
    (monitors.PMON.match, monitors.read_pmon, "nvidia-smi pmon"),
    (monitors.opens_apps, monitors.read_compute_apps, "nvidia-smi --query-compute-apps"),
    (opens_query, read_query, NAME),
)
"""What tells a line that opens a block, what reads the block, and what a person calls it; the first has it."""
_INSIDE: dict[Form | None, tuple[str, ...]] = {
    documents.read_drawn_tables: ("|", "+"),
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
        """Return whether a line among the first begins a form, or without a header, rows are nvidia-smi's."""
        text = head_text(head)
        if is_plain(text):
            return True
        declared = [layout for _, layout in find_headers(text)]
        if any(map(is_of_gpus, declared)) or _begins_other_form(text[: text.rfind("\n") + 1] or text):
            return True
        return not declared and is_headerless(text.split("\n"))

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


def read_opening(where: str, text: str, names: Sequence[str] | None) -> Opening:
    """Return how the lines of a log are read, by its beginning and the query fields that a person named, if any."""
    place, header = next(find_headers(text), (len(text), None))
    before, after = text[:place].split("\n")[-_LINES:], text[place:].split("\n")[1:_LINES]
    dates = [match for line in before + after for match in _SLASHED.finditer(line)]
    notes = list[str]()
    if dates and all(int(match[1]) <= _LAST_MONTH for match in dates):
        notes += [f"Dates such as {dates[0][0].strip()} are read as day/month/year; the log does not tell."]
    headed = Opening(where=where, notes=tuple(notes))
    if names is None:
        if header is None and is_headerless(before):
            width = Counter(len(cells) for line in before if len(cells := line.split(",")) > 1).most_common(1)[0][0]
            hint = format_columns_option([f"column_{place + 1}" for place in range(width)])
            raise SourceError(where, "rows of nvidia-smi --query-gpu without their header", hint, code="no_header")
        return headed
    above = [line for line in before if header is None or line.count(header.delimiter) + 1 == len(names)]
    delimiter = header.delimiter if header else next((each for each in ",;\t" if above and each in above[0]), ",")
    columns = [read_heading(name, "," if delimiter == ";" else ".") for name in names]
    if None in columns:
        hint = "name them as in --query-gpu, one for each cell"
        raise SettingsError("--columns", f"no query field {names[columns.index(None)]!r}", hint, code="unknown_column")
    named = arrange([each for each in columns if each], delimiter)
    widths = Counter(line.count(delimiter) + 1 for line in filter(str.strip, after)).most_common(1)
    replaced = header is not None and [len(header.columns)] != [each for each, _ in widths] == [len(names)]
    if header is not None and not replaced and not above:
        return headed._replace(notes=(*notes, "The log has a header: --columns was not used."))
    if replaced:
        notes += ["The header names other columns than its rows hold: --columns was used instead."]

    def declared(line: str) -> Layout | None:
        found = declare(line)
        return named if replaced and found is not None and len(found.columns) != len(names) else found

    return Opening(declared, named, tuple(notes), where=where)


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
        for rows in read(chain.from_iterable(part for *_, part in chain([begin], parts)), begin[1], account):
            account.forms[name] += len(rows)
            yield rows


def _cut(lines: Iterable[str], first: int) -> Iterator[tuple[_Block, int, list[str]]]:
    """Yield the lines of a log, some at a time, with their block and the first's number; a table takes lines above."""
    block: _Block = (0, None, "")
    part, header, interrupted = list[str](), "", False
    inside: tuple[str, ...] = ()
    for number, line in enumerate(lines, first):
        known = line.startswith(inside) if inside else block[1] is not None and line.lstrip(" ")[:1].isdigit()
        if not known and (text := line.rstrip("\r\n")):
            form = _opener(text)
            command = form is None and _COMMAND.fullmatch(text) is not None
            # a CSV that a table interrupts goes on below it
            back = form is None and interrupted and "|" not in text and not command and not text.isspace()
            if form is not block[1] and (form is not None or command or back):
                # the time of a table may stand in the text above it
                table = form is documents.read_drawn_tables
                own = min(len(part), _ABOVE) if table and block[1] is None else 0
                yield block, number - len(part), part[: len(part) - own]
                part = part[len(part) - own :]
                interrupted = table and block[1] is read_query
                block = block[0] + 1, read_query if back else form, header if back else ""
                inside = _INSIDE.get(block[1], ())
            header = text if form is read_query else header
        part.append(line)
        if len(part) > _TOGETHER:
            yield block, number + 1 - len(part), part[:-_ABOVE]
            part = part[-_ABOVE:]
    yield block, number + 1 - len(part) if part else first, part


def _unread(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Count lines that no form reads."""
    for number, line in enumerate(lines, first):
        if text := line[:1000].strip("\0 \r\n\t\v\f"):
            # a comment may hold a command with figures and bars
            account.stray(number, text if text[0] != "#" else "#")
    yield from ()
