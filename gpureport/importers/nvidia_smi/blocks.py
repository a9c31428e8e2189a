"""A log with blocks of one or several forms of nvidia-smi output, each read by its own form."""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby, islice
from operator import itemgetter

from gpureport.errors import CodedProblem
from gpureport.importers.account import Account, is_driver_message
from gpureport.importers.columns import Rows
from gpureport.importers.extraction import INTERVAL, Form
from gpureport.importers.nvidia_smi import documents, drawn_tables, monitors, process_lists
from gpureport.importers.nvidia_smi.drawn_tables import read_drawn_tables
from gpureport.importers.nvidia_smi.headers import declare, opens_query
from gpureport.importers.nvidia_smi.query import NAME, Opening, read_query
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, NO_TIME

TEXT = "text"
"""What lines are called that no form reads."""
_COMMAND = re.compile(r"\s*(?:#\s*)?\$ \S.*|#{20,}\s*", re.DOTALL)
"""A line with a command and its prompt, or a line across the page: what stood above ends there."""
_LONGEST, _LOOKED_AT = 16_384, 1_000
"""A line longer than this opens no block: a query of all fields has a header of 6,000 characters. And characters that
are looked at of a line that no form reads."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|MiB)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers: a row of something, not prose."""
_ABOVE, _TOGETHER = 12, 2_000
"""Lines above a table in which its time is looked for, and lines of dmon that are looked at together."""
_Block = tuple[int, Form | None, str]
"""How many blocks came before, its form, and the header of a CSV that goes on in it below a table."""
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
_NAMES = {form: name for _, form, name in FORMS} | {None: TEXT}
_INSIDE: dict[Form | None, tuple[str, ...]] = {
    read_drawn_tables: ("|", "+"),
    documents.read_query_xml: (" ", "\t", "<"),
    documents.read_query_text: (" ",),
}
"""What lines of a block begin with that open no other one."""


@lru_cache(4096)
def opener(line: str) -> Form | None:
    """Return the form of which a line begins a block, None when it begins none."""
    return next((form for opens, form, _ in FORMS if opens(line)), None) if len(line) < _LONGEST else None


def find_forms(text: str) -> set[Form]:
    """Return the forms of which a block begins in a text."""
    return {form for (_, form, _), *_ in _cut(text.split("\n"), 1) if form is not None}


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a log block by block."""
    for (_, form, header), parts in groupby(_cut(lines, first), key=itemgetter(0)):
        begin = next(parts)
        account.forms.setdefault(_NAMES[form], 0)
        read = partial(read_query, opening=Opening(layout=declare(header))) if header else form or _unread
        for rows in read(chain.from_iterable(part for *_, part in chain([begin], parts)), begin[1], account):
            account.forms[_NAMES[form]] += len(rows)
            yield rows


def _cut(lines: Iterable[str], first: int) -> Iterator[tuple[_Block, int, list[str]]]:
    """Yield the lines of a log, some at a time, with their block and the first's number; a table takes lines above."""
    block: _Block = (0, None, "")
    held: deque[tuple[int, list[str]]] = deque()
    silent: set[str] = set()
    header, interrupted, was_row, remaining = "", False, False, iter(lines)
    while part := list(islice(remaining, _TOGETHER)):
        # no row ends a block of dmon, so only its other lines are looked at
        others = (line.rstrip("\r\n") for line in part if not line.lstrip(" ")[:1].isdigit())
        if block[1] is monitors.read_dmon and len(part) == _TOGETHER and silent.issuperset(others):
            yield from ((block, *each) for each in held)
            held.clear()
            yield block, first, part[:-_ABOVE]
            first, part = first + _TOGETHER - _ABOVE, part[-_ABOVE:]
        for number, line in enumerate(part, first):
            text = line.rstrip("\r\n")
            row = text.lstrip(" ")[:1].isdigit()
            inside = text.startswith(_INSIDE[block[1]]) if block[1] in _INSIDE else row and was_row
            was_row = row or not text
            if text and not inside and text not in silent:
                form = opener(text)
                command = form is None and _COMMAND.fullmatch(text) is not None
                # a CSV that a table interrupts goes on below it
                back = form is None and interrupted and "|" not in text and not command and not text.isspace()
                if form is not block[1] and (form is not None or command or back):
                    own = _count_above([each for _, (each,) in held]) if form is read_drawn_tables else 0
                    while len(held) > own:
                        yield block, *held.popleft()
                    interrupted = form is read_drawn_tables and block[1] is read_query
                    block = block[0] + 1, read_query if back else form, header if back else ""
                    silent.clear()
                else:
                    silent.add(text)
                header = text if form is read_query else header
            held.append((number, [line]))
            if len(held) > _ABOVE:
                yield block, *held.popleft()
        first += len(part)
    yield from ((block, *each) for each in held)


def _count_above(lines: list[str]) -> int:
    """Return how many of the lines above a table are its own: its border, and the lines up to its time."""
    found = drawn_tables.find_time_above(lines)
    return found[0] if found else int(bool(lines) and drawn_tables.shape_line(lines[-1].strip()) == "frame")


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
