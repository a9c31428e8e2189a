"""CSV of `nvidia-smi --query-gpu`, the usual log: which columns its rows have, and the rows that can be believed."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from gpureport.errors import CodedProblem, SettingsError, SourceError
from gpureport.importers.account import Account, format_columns_option, format_count
from gpureport.importers.columns import TIME, Layout, Rows, Texts, scan
from gpureport.importers.nvidia_smi.fields import read_heading
from gpureport.importers.nvidia_smi.headers import (
    arrange,
    declare,
    find_headers,
    holds_metric,
    is_headerless,
    split_header,
)
from gpureport.importers.nvidia_smi.query_lines import QueryLines, Scan, is_text, names_gpus
from gpureport.importers.protocol.reject_reasons import (
    GPU_NOT_NAMED,
    MALFORMED,
    NO_TIME,
    NOT_SELECTED,
    UNUSABLE_HEADER,
    WRONG_CELLS,
)
from gpureport.importers.source_text import Piece, Text
from gpureport.metrics import BY_NAME
from gpureport.recording_advice import RECORDS_ONE

NAME = "nvidia-smi --query-gpu"
_LINES = 2_000
"""Lines whose content is looked at."""
_SLASHED = re.compile(r"(\d{1,2})/\d{1,2}/\d{4} ")
_LAST_MONTH = 12
_HOST = re.compile(r"extra_(?:host_?name|host|node_?name|node|machine)", re.IGNORECASE)
"""Columns that name the machine."""
_UNIT = "say in its header whether utilization.gpu [1] or utilization.gpu [%] is meant"
_INTERVAL = "say with --interval how many seconds apart it was recorded, as given to -l"
_SHOWN, _TOGETHER, _AHEAD = 80, 50_000, 2
"""Characters of a line that a message quotes, lines of a block, and blocks that are parsed ahead."""
_SEVERAL = 3
"""Rows from which on a name is that of a machine, and not a damaged one."""


class Opening(NamedTuple):
    """How the lines of a log are read: what recognises a header, and the columns of the rows before any.

    `stamped` says whether its rows have time stamps, `by_option` whether `--columns` names their columns, `where` which
    log it is, for an error, and `dated` whether dates between rows are the times of those that have none.
    """

    header: Callable[[str], Layout | None] = declare
    layout: Layout | None = None
    notes: tuple[str, ...] = ()
    stamped: bool = False
    by_option: bool = False
    where: str = ""
    dated: bool = True


def read_opening(where: str, text: str, names: Sequence[str] | None) -> Opening:
    """Return how the lines of a log are read, by its beginning and the query fields that a person named, if any.

    Raises:
        SettingsError: when a name is no query field.
        SourceError: when there is no header, and nobody named the columns.
    """
    place, header = next(find_headers(text), (len(text), None))
    before, after = split_lines(text[:place])[-_LINES:], split_lines(text[place:])[1:_LINES]
    unclear = frozenset() if header is None else _find_fractions(header, after)
    notes = [
        f"{heading} has no unit and no value above 1, so it could be fractions or per cent. It is kept as text. "
        f"{heading} [1] or {heading} [%] in its place is read."
        for heading in sorted(unclear)
    ]
    dates = [match for line in before + after if ";" in line for match in _SLASHED.finditer(line)]
    if dates and all(int(match[1]) <= _LAST_MONTH for match in dates):
        notes += [f"Dates such as {dates[0][0].strip()} are read as day/month/year; the log does not tell."]
    named, by_option, replaced, stamped = None, False, False, header is not None and header.stamp is not None
    if names is not None:
        above = [line for line in before if header is None or line.count(header.delimiter) + 1 == len(names)]
        delimiter = header.delimiter if header is not None else split_header(above[0] if above else "")[0]
        named = _name_columns(names, delimiter)
        width = Counter(line.count(delimiter) + 1 for line in after or [""]).most_common(1)[0][0]
        replaced = header is not None and len(header.columns) != width == len(names)
        by_option = header is None or replaced or bool(above)
        stamped = named.stamp is not None if header is None or replaced else stamped
        if header is not None and replaced:
            which = f"{format_count(len(header.columns), 'column')} and its rows hold {format_count(width, 'cell')}"
            notes += [f"The header names {which}: --columns was used instead."]
        elif not by_option:
            notes += ["The log has a header: --columns was not used."]
    elif is_headerless(before):
        widths = Counter(len(cells) for _, cells in map(split_header, before) if len(cells) > 1)
        hint = format_columns_option([f"column_{place + 1}" for place in range(widths.most_common(1)[0][0])])
        if header is None:
            raise SourceError(where, "rows of nvidia-smi --query-gpu without their header", hint, code="no_header")
        notes += [f"Rows before the first header are not its own and not read; {hint}."]

    def declared(line: str) -> Layout | None:
        found = declare(line, unclear)
        other = replaced and found is not None and named is not None and len(found.columns) != len(named.columns)
        return named if other else found

    return Opening(declared, named, tuple(notes), stamped, by_option, where)


def _name_columns(names: Sequence[str], delimiter: str) -> Layout:
    columns = [read_heading(name, "," if delimiter == ";" else ".") for name in names]
    if None in columns:
        hint = "name them as in --query-gpu, one for each cell"
        raise SettingsError("--columns", f"no query field {names[columns.index(None)]!r}", hint, code="unknown_column")
    return arrange([column for column in columns if column is not None], delimiter)


def split_lines(text: str) -> list[str]:
    """Return the lines of a text that are not blank."""
    return [line for each in text.split("\n") if (line := each.strip())]


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


def read_query(
    lines: Iterable[str],
    first: int,
    account: Account,
    *,
    opening: Opening | None = None,
    per_tick: int | None = None,
) -> Iterator[Rows]:
    """Yield the rows of a log that can be believed; `per_tick` is how many a tick has, where a person said so.

    Raises:
        SourceError: when rows are of several machines, and nothing distinguishes their GPUs.
    """
    opening = opening or Opening()
    log = QueryLines(opening.header, account, opening.layout)
    parts = _usable(log, opening, _parse(lines.blocks() if isinstance(lines, Text) else _pieces(lines, first), log))
    for rows in parts:
        if names_gpus(rows):
            yield rows
            continue
        from gpureport.importers.nvidia_smi.ticks import number_gpus  # noqa: PLC0415 - most logs name their GPUs

        yield from number_gpus(chain([rows], parts), per_tick, log, account)
    log.note_torn()
    account.note(*opening.notes)


def _usable(log: QueryLines, opening: Opening, parts: Iterable[tuple[Layout, Rows]]) -> Iterator[Rows]:
    """Yield the rows that have a column of a GPU, and count the others."""
    translated: dict[str, None] = {}
    machines: Counter[str] = Counter()
    account = log.account
    for layout, rows in parts:
        if not holds_metric(layout):
            names = ", ".join(column.source for column in layout.columns)
            account.reject_rows(f"{UNUSABLE_HEADER} no GPU metric among the columns {names}", rows.lines)
            continue
        for each in layout.columns:
            account.averaged |= (each.source, each.target) == ("power.draw.average", "gpu_power_watts")
            account.columns[each.heading or each.source, each.target] = None
            if each.translated:
                unit = f" [{each.stated}]" if each.stated else ""
                translated[f"{each.heading} is taken for {each.source}{unit}"] = None
        _refuse_several_machines(opening.where, rows, machines)
        if rows.times is None and log.dates and opening.dated:
            from gpureport.importers.nvidia_smi.ticks import date_rows  # noqa: PLC0415 - as above

            rows = date_rows(rows, log)  # noqa: PLW2901
        if len(rows):
            yield rows
    if translated:
        account.note(f"Headings that nvidia-smi does not write: {', '.join(translated)}.")


def _refuse_several_machines(where: str, rows: Rows, seen: Counter[str]) -> None:
    """Refuse rows of several machines without uuid and serial number: machines of a kind share addresses."""
    machine = next((rows.data[name] for name in rows.data if _HOST.fullmatch(name)), None)
    if isinstance(machine, Texts) and not {"uuid", "serial"} & rows.data.keys():
        counts = np.bincount(machine.codes + 1, minlength=len(machine.texts) + 1)[1:].tolist()
        seen.update(dict(zip(machine.texts, counts, strict=True)))
        names = [name for name, count in seen.items() if count >= _SEVERAL and re.search(r"[^\W\d_]", name)]
        if len(names) > 1:
            what = f"GPUs of several machines ({', '.join(sorted(names)[:5])}) in one log without uuid"
            hint = "write one file a machine, and read them with --as-one-run; or log uuid"
            raise SourceError(where, what, hint, code="several_machines")


def explain_no_rows(account: Account) -> CodedProblem | None:
    """Return why no row of a log is left; None where that is the same for any log."""
    rejected = sum(rows for rows, _ in account.rejected.values())
    most = max(account.rejected, key=lambda reason: account.rejected[reason][0], default="")
    useless = next((reason for reason in account.rejected if reason.startswith(UNUSABLE_HEADER)), None)
    if useless is not None:
        hint = _UNIT if any("could be fractions" in note for note in account.notes) else RECORDS_ONE
        return useless.removeprefix(f"{UNUSABLE_HEADER} "), hint, "no_gpu_metric"
    if NO_TIME in account.rejected:
        names = ", ".join(heading for heading, _ in account.columns)
        return f"no timestamp column among {names}", _INTERVAL, "no_timestamps"
    if set(account.rejected) in ({NOT_SELECTED}, {GPU_NOT_NAMED}):
        return None
    if account.lines == account.headers:
        return "it holds a header and no row", RECORDS_ONE, "no_row"
    reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in account.rejected.items())
    shown = next((each[0] for each in account.examples.values() if each), None)
    reasons += f"; line {shown.line} says {shown.text[:_SHOWN]!r}" if shown else ""
    what = f"none of its {account.lines} lines is a row that can be used ({reasons})"
    mostly = most if 2 * account.rejected.get(most, [0])[0] > rejected else ""
    if mostly == f"{MALFORMED} {TIME}":
        hint, code = "--source-kind mapped prints a map in which their format can be said", "unread_time_stamps"
    elif mostly == WRONG_CELLS:
        hint, code = "name the columns of its rows with --columns", "wrong_number_of_cells"
    else:
        hint, code = RECORDS_ONE, "no_usable_row"
    return what, hint, code


def _pieces(lines: Iterable[str], first: int) -> Iterator[Piece]:
    """Yield lines in blocks."""
    remaining = iter(lines)
    part = list(islice(remaining, _TOGETHER))
    while part:
        following = list(islice(remaining, _TOGETHER))
        yield Piece("".join(part).encode(), first, last=not following, lines=len(part))
        part, first = following, first + len(part)


def _parse(pieces: Iterable[Piece], log: QueryLines) -> Iterator[tuple[Layout, Rows]]:
    """Yield the rows of blocks, while two threads are at the next ones."""
    pending: deque[tuple[Piece, Layout, Future[Scan] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for piece in chain(pieces, [None] * _AHEAD):
            if piece is not None and log.layout is None:
                yield from log.read(piece)
                continue
            if piece is not None and log.layout is not None:
                ahead = pool.submit(scan, piece.data, log.layout) if is_text(piece.data) else None
                pending.append((piece, log.layout, ahead))
            if pending and (piece is None or len(pending) > _AHEAD):
                block, layout, scanned = pending.popleft()
                yield from log.read(block, None if scanned is None else (layout, scanned.result()))
