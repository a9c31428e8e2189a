"""nvidia-smi's forms in one log, block by block: a line that begins a form ends the block before."""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from itertools import chain, groupby
from operator import itemgetter

from gpureport.importers.account import Account
from gpureport.importers.columns import Rows
from gpureport.importers.extraction import Form
from gpureport.importers.nvidia_smi import documents, monitors
from gpureport.importers.nvidia_smi.fields import declare, opens_query
from gpureport.importers.nvidia_smi.query import NAME, Opening, read_query

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


def begins_other_form(text: str) -> bool:
    """Return whether a block other than a CSV of queries begins; others write XML as well."""
    forms = {form for (_, form, _), *_ in _cut(text.split("\n"), 1)} - {read_query, None}
    return bool(forms) and (forms != {documents.read_query_xml} or "nvidia_smi_log" in text)


@lru_cache(4096)
def _opener(line: str) -> Form | None:
    return next((form for opens, form, _ in FORMS if opens(line)), None) if len(line) < _LONGEST else None


def read_blocks(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
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
    """Yield a log's lines, some at a time, with their block and the first's number; a table takes lines above."""
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
    for number, line in enumerate(lines, first):
        if text := line[:1000].strip("\0 \r\n\t\v\f"):
            # a comment may hold a command with figures and bars
            account.stray(number, text if text[0] != "#" else "#")
    yield from ()
