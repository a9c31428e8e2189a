"""A log with blocks of one or several forms of nvidia-smi output, each read by its own form."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from io import StringIO
from itertools import chain, groupby
from operator import itemgetter

import numpy as np

from gpureport.errors import CodedProblem
from gpureport.importers.account import Account, is_driver_message
from gpureport.importers.columns import Rows, Texts
from gpureport.importers.extraction import INTERVAL, Form
from gpureport.importers.nvidia_smi import documents, drawn_tables
from gpureport.importers.nvidia_smi.drawn_tables import find_time_above, read_drawn_tables
from gpureport.importers.nvidia_smi.old_forms import OLD, csv_going_on
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, NO_TIME

TEXT, QUERY_COMMAND = "text", "nvidia-smi --query-gpu"
"""What lines are called that no form reads, and the usual CSV."""
_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""A line with a command and its prompt, or a line across the page: what stood above ends there."""
_LONGEST, _LOOKED_AT = 16_384, 1_000
"""A line longer than this opens no block: a query of all fields has a header of 6,000 characters. And characters that
are looked at of a line that no form reads."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|MiB)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers: a row of something, not prose."""
_HELD = 8
"""Lines that are held back, since the time of a table may stand above it."""
_Block = tuple[int, Form | None, bool]
"""How many blocks came before, its form, and whether a CSV goes on in it below a table."""
FORMS: tuple[tuple[Callable[[str], bool], Form, str], ...] = (
    (drawn_tables.opens, read_drawn_tables, drawn_tables.NAME),
    (documents.opens_xml, documents.read_query_xml, documents.XML),
    (documents.opens_text, documents.read_query_text, documents.TEXT),
    *OLD,
)
"""What tells a line that opens a block, what reads the block, and what a person calls it; the first has it."""
QUERY = FORMS[-1][1]
_CSV = {FORMS[-1][1], FORMS[-2][1]}
DMON = OLD[0][2]
_NAMES = {form: name for _, form, name in FORMS}
_INSIDE: dict[Form | None, str] = {
    read_drawn_tables: "|+",
    documents.read_query_xml: " \t<",
    documents.read_query_text: " ",
}
"""Of forms whose lines begin with characters of their own: these open no block of another form."""


@lru_cache(4096)
def opener(line: str) -> Form | None:
    """Return the form of which a line begins a block, None when it begins none."""
    return next((form for opens, form, _ in FORMS if opens(line)), None)


def find_forms(text: str) -> set[Form]:
    """Return the forms of which a block begins in a text."""
    return {form for (_, form, _), *_ in _label(StringIO(text), 1) if form is not None}


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
    return QUERY_COMMAND


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a log block by block."""
    throttling = False
    header = ""
    for (_, form, goes_on), block in groupby(_label(lines, first), key=itemgetter(0)):
        number, line = (opened := next(block))[1:]
        header = line if form is QUERY and not goes_on else header
        texts = (text for _, _, text in chain([opened], block))
        name = name_command(header if goes_on else line) if form in _CSV else _NAMES[form] if form else TEXT
        account.forms.setdefault(name, 0)
        for rows in (csv_going_on(header) if goes_on else form or _unread)(texts, number, account):
            told = (values for name, values in rows.data.items() if name.startswith(("gpu_sm_clock", "clock_event")))
            account.forms[name] += len(rows)
            throttling |= any(isinstance(each, Texts) or not np.isnan(each).all() for each in told)
            yield rows
    if throttling and drawn_tables.LACKS in account.notes:
        account.notes = {
            drawn_tables.LACKS_BESIDE if note == drawn_tables.LACKS else note: None for note in account.notes
        }


def _label(lines: Iterable[str], first: int) -> Iterator[tuple[_Block, int, str]]:
    """Yield each line with its block and its number."""
    current: _Block = (0, None, False)
    held: deque[tuple[_Block, int, str]] = deque()
    interrupted = row = False
    for number, line in enumerate(lines, first):
        start, form = line.lstrip(" ")[:1], current[1]
        follows, row = not row, start.isdigit()
        if start > " " and (follows or not row) and not (form in _INSIDE and start in _INSIDE[form]):
            found = opener(line.rstrip("\n")) if len(line) < _LONGEST else None
            command = found is None and _COMMAND.fullmatch(line) is not None
            back = found is None and interrupted and "|" not in line and not command
            if found is not form and (found is not None or command or back):
                interrupted = found is read_drawn_tables and form is QUERY
                current = current[0] + 1, QUERY if back else found, back
                for place in range(len(held) - (_lines_above(held) if found is read_drawn_tables else 0), len(held)):
                    held[place] = current, *held[place][1:]
        row = row and start != "#"
        held.append((current, number, line))
        if len(held) > _HELD:
            yield held.popleft()
    yield from held


def _lines_above(held: Iterable[tuple[_Block, int, str]]) -> int:
    """Return how many of the lines above a table are its own: its border, and those up to its time."""
    texts = [text for *_, text in held]
    found = find_time_above(texts)
    return found[0] if found else int(bool(texts) and drawn_tables.shape_line(texts[-1].strip()) == "frame")


_HINT = f"{INTERVAL}: 1 s unless -d said otherwise; dmon -o DT writes the time"
_LISTS = "record a list of processes with its time: pmon -o DT, or --query-compute-apps=timestamp,..."


def explain_no_rows(account: Account) -> CodedProblem | None:
    """Return what to do about rows without a time."""
    if NO_TIME not in account.rejected:
        return None
    forms = [form for form in account.forms if form != TEXT]
    hint = INTERVAL if any(account.forms.values()) else _LISTS
    return f"its rows ({', '.join(forms)}) have no time", _HINT if DMON in forms else hint, "no_timestamps"


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
