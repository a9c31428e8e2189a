"""A log with blocks of one or several forms of nvidia-smi output, each read by its own form."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby, islice
from operator import itemgetter

import numpy as np

from gpureport.errors import CodedProblem
from gpureport.importers.account import Account, is_driver_message
from gpureport.importers.columns import Rows, Texts
from gpureport.importers.extraction import INTERVAL, Form
from gpureport.importers.nvidia_smi import documents, drawn_tables, monitors, process_lists
from gpureport.importers.nvidia_smi.drawn_tables import find_time_above, read_drawn_tables
from gpureport.importers.nvidia_smi.headers import opens_query
from gpureport.importers.nvidia_smi.query import NAME, read_query, read_query_below
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, NO_TIME
from gpureport.importers.source_text import Text, split_lines

TEXT = "text"
"""What lines are called that no form reads."""
_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""A line with a command and its prompt, or a line across the page: what stood above ends there."""
_LONGEST, _LOOKED_AT = 16_384, 1_000
"""A line longer than this opens no block: a query of all fields has a header of 6,000 characters. And characters that
are looked at of a line that no form reads."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|MiB)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers: a row of something, not prose."""
_INDENT, _LOOKED_ABOVE, _TOGETHER = 64, 4_096, 20_000
"""Blanks before a line's first word that are looked past; characters above a table in which its time is looked for;
and lines that are cut together."""
_Block = tuple[int, Form | None, bool]
"""How many blocks came before, its form, and whether a CSV goes on in it below a table."""
FORMS: tuple[tuple[Callable[[str], bool], Form, str], ...] = (
    (drawn_tables.opens, read_drawn_tables, drawn_tables.NAME),
    (documents.opens_xml, documents.read_query_xml, documents.XML),
    (documents.opens_text, documents.read_query_text, documents.TEXT),
    (monitors.opens_dmon, monitors.read_dmon, monitors.NAME),
    (process_lists.opens_pmon, process_lists.read_pmon, process_lists.PMON),
    (process_lists.opens_apps, process_lists.read_compute_apps, process_lists.APPS),
    (opens_query, read_query, NAME),
)
"""What tells a line that opens a block, what reads the block, and what a person calls it; the first has it."""
QUERY = FORMS[-1][1]
_CSV = {QUERY, process_lists.read_compute_apps}
_NAMES = {form: name for _, form, name in FORMS}
_ROWS = re.compile(r"\n {0,64}(?![ \d])")
_INSIDE: dict[Form | None, re.Pattern[str]] = {
    read_drawn_tables: re.compile(r"\n(?![|+\n])"),
    documents.read_query_xml: re.compile(r"\n(?![ \t<\n])"),
    documents.read_query_text: re.compile(r"\n(?![ \n])"),
}
"""What may open a block of another form, behind a line end, as that is found fast: no row, or what begins no row."""


@lru_cache(4096)
def opener(line: str) -> Form | None:
    """Return the form of which a line begins a block, None when it begins none."""
    return next((form for opens, form, _ in FORMS if opens(line)), None)


def find_forms(text: str) -> set[Form]:
    """Return the forms of which a block begins in a text."""
    return {form for (_, form, _), *_ in _cut([(text, 1)]) if form is not None}


_GPU = {"timestamp", "gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid"}


def name_command(header: str) -> str:
    """Return the command whose header a line of CSV is."""
    names = {cell.partition("[")[0].strip().lower() for cell in header.split(",")}
    rest = names - _GPU
    if rest & {"retired_pages.address", "retired_pages.timestamp", "retired_pages.cause"}:
        return "nvidia-smi --query-retired-pages"
    if "pid" in rest:
        ended = rest & {"time", "max_memory_usage"}
        return "nvidia-smi --query-accounted-apps" if ended else "nvidia-smi --query-compute-apps"
    if rest and rest <= {"memory", "mem", "graphics", "gr"}:
        return "nvidia-smi --query-supported-clocks"
    if rest and names & _GPU - {"timestamp"} and all(name.startswith("remapped_rows.") for name in rest):
        return "nvidia-smi --query-remapped-rows"
    return NAME


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a log block by block."""
    throttling = False
    header = ""
    chunks = lines.chunks() if isinstance(lines, Text) else _chunks(lines, first)
    for (_, form, goes_on), parts in groupby(_cut(chunks), key=itemgetter(0)):
        part = next(parts)
        line, number = part[1].partition("\n")[0], part[2]
        header = line if form is QUERY and not goes_on else header
        name = name_command(header if goes_on else line) if form in _CSV else _NAMES[form] if form else TEXT
        account.forms.setdefault(name, 0)
        texts = chain.from_iterable(split_lines(text) for _, text, _ in chain([part], parts))
        for rows in (partial(read_query_below, header) if goes_on else form or _unread)(texts, number, account):
            account.forms[name] += len(rows)
            told = (
                values for target, values in rows.data.items() if target.startswith(("gpu_sm_clock", "clock_event"))
            )
            throttling |= any(isinstance(each, Texts) or not np.isnan(each).all() for each in told)
            yield rows
    if throttling and drawn_tables.LACKS in account.notes:
        account.notes = {
            drawn_tables.LACKS_BESIDE if note == drawn_tables.LACKS else note: None for note in account.notes
        }


def _cut(chunks: Iterable[tuple[str, int]]) -> Iterator[tuple[_Block, str, int]]:
    """Yield parts of a log with the block of each and the number of its first line.

    Args:
        chunks: whole lines, and the number of the first of each.
    """
    block: _Block = (0, None, False)
    interrupted = False
    for chunk, first in chunks:
        text, number, begin, at, below = f"\n{chunk}", first, 1, 1, True
        silent: set[str] = set()
        while at < len(text):
            inside = _INSIDE.get(block[1], _ROWS)
            # the first row below other lines may open a block, as any other line may
            found = None if below and text[at : at + _INDENT].lstrip(" ")[:1].isdigit() else inside.search(text, at - 1)
            start = at if below and found is None else len(text) if found is None else found.start() + 1
            at = text.find("\n", start) + 1 or len(text) + 1
            line = text[start : at - 1]
            below = found is not None and inside is _ROWS and not line.lstrip(" ").startswith("#")
            if line in silent or not line or line.isspace():
                continue
            form = opener(line) if len(line) < _LONGEST else None
            command = form is None and _COMMAND.fullmatch(line) is not None
            back = form is None and interrupted and "|" not in line and not command
            if form is block[1] or not (form is not None or command or back):
                silent.add(line)
                continue
            interrupted = form is read_drawn_tables and block[1] is QUERY
            top = start - (_size_above(text[begin:start]) if form is read_drawn_tables else 0)
            if begin < top:
                yield block, text[begin:top], number
            number += text.count("\n", begin, top)
            begin, block = top, (block[0] + 1, QUERY if back else form, back)
            silent.clear()
        if begin < len(text):
            yield block, text[begin:], number


def _size_above(text: str) -> int:
    """Return how many of the last characters above a table are its own: its border, and the lines up to its time."""
    lines = text[-_LOOKED_ABOVE:].splitlines(keepends=True)
    found = find_time_above(lines)
    own = found[0] if found else int(bool(lines) and drawn_tables.shape_line(lines[-1].strip()) == "frame")
    return sum(map(len, lines[len(lines) - own :]))


def _chunks(lines: Iterable[str], first: int) -> Iterator[tuple[str, int]]:
    """Yield lines some thousands at a time, with the number of the first of each."""
    remaining = iter(lines)
    while part := list(islice(remaining, _TOGETHER)):
        yield "".join(part), first
        first += len(part)


_HINT = f"{INTERVAL}: 1 s unless -d said otherwise; dmon -o DT writes the time"
_LISTS = "record a list of processes with its time: pmon -o DT, or --query-compute-apps=timestamp,..."


def explain_no_rows(account: Account) -> CodedProblem | None:
    """Return what to do about rows without a time."""
    if NO_TIME not in account.rejected:
        return None
    forms = [form for form in account.forms if form != TEXT]
    hint = INTERVAL if any(account.forms.values()) else _LISTS
    return f"its rows ({', '.join(forms)}) have no time", _HINT if monitors.NAME in forms else hint, "no_timestamps"


def _unread(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Count lines that no form reads: rows of numbers above any header are rejected, prose is noise."""
    for number, line in enumerate(lines, first):
        text = line[:_LOOKED_AT].strip("\0 \r\n\t\v\f")
        if not text:
            continue
        if _NUMBERS.fullmatch(text):
            account.reject(BEFORE_HEADER, number, text)
        elif is_driver_message(text):
            account.message(number, text)
        else:
            account.noise += 1
    yield from ()
