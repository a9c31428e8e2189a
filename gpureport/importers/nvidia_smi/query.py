"""CSV of `nvidia-smi --query-gpu`, the usual log: which columns its rows have, and the rows that can be believed."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from gpureport.columns import BoolArray
from gpureport.errors import CodedProblem, SettingsError, SourceError
from gpureport.importers.account import Account
from gpureport.importers.columns import CUT, TIME, Rows, Texts, absence, parse_time
from gpureport.importers.headings import is_time_heading
from gpureport.importers.note_text import format_columns_option, format_count
from gpureport.importers.nvidia_smi.fields import read_heading
from gpureport.importers.nvidia_smi.headers import (
    arrange,
    declare,
    find_headers,
    holds_metric,
    is_headerless,
    split_header,
)
from gpureport.importers.nvidia_smi.query_lines import STAMP, QueryLines, Scan, is_text
from gpureport.importers.nvidia_smi.ticks import LEFT_OUT, MIXED_NOTE, TickAssignment, names_gpus
from gpureport.importers.nvidia_smi.torn_rows import find_torn_rows
from gpureport.importers.protocol.reject_reasons import (
    GPU_NOT_NAMED,
    MALFORMED,
    NO_TIME,
    NOT_SELECTED,
    TORN,
    UNUSABLE_HEADER,
    WRONG_TICK,
)
from gpureport.importers.source_text import Piece, Text
from gpureport.importers.tables import Layout, scan
from gpureport.metrics import BY_NAME
from gpureport.recording_advice import RECORDS_ONE

NAME = "nvidia-smi --query-gpu"
_LINES = 2_000
"""Lines whose content is looked at."""
_UNUSED = "The log has a header: --columns was not used."
_SLASHED = re.compile(r"(\d{1,2})/\d{1,2}/\d{4} ")
_LAST_MONTH = 12
_HOST = re.compile(r"extra_(?:host_?name|host|node_?name|node|machine)", re.IGNORECASE)
"""Columns that name the machine."""
_IDENTITY = {"uuid": "uuid", "pci.bus_id": "bus_id", "serial": "serial", "index": "index", "name": "model"}
_UNIT = "say in its header whether utilization.gpu [1] or utilization.gpu [%] is meant"
_TIMES = {"time", "datetime", "date_time", "time_stamp", "date", "epoch", "unix_time", "ts"}
"""What people call a column of times."""
_INTERVAL = "say with --interval how many seconds apart it was recorded, as given to -l"
_SHOWN, _LONGEST, _TOGETHER, _AHEAD, _FEW = 24, 80, 50_000, 2, 20
"""Characters of a stamp and of a line that a message quotes, lines of a block, blocks that are parsed ahead, and rows
that show what a column holds."""
_SEVERAL = 3
"""Rows from which on a name is that of a machine, and not a damaged one."""


@dataclass(frozen=True, slots=True)
class Opening:
    """How the lines of a log are read.

    Attributes:
        layout: columns of the rows before any header; None when the log begins with a header.
        instead: columns in place of those of a header that names another number of them.
        fractions: headings whose values may be fractions or per cent; their columns stay text.
        time: heading of the column that holds the time, where nvidia-smi does not call it so.
        notes: what a reader must know about it.
        stamped: whether its rows have time stamps.
        by_option: whether `--columns` names the columns.
    """

    layout: Layout | None = None
    instead: Layout | None = None
    fractions: frozenset[str] = frozenset()
    time: str = ""
    notes: tuple[str, ...] = ()
    stamped: bool = False
    by_option: bool = False

    def header(self, line: str) -> Layout | None:
        """Return the columns a header declares, None for any other line."""
        found = declare(line, self.fractions, self.time)
        other = found is not None and self.instead is not None and len(found.columns) != len(self.instead.columns)
        return self.instead if other else found


def read_opening(
    where: str, head: str, names: Sequence[str] | None, headers_below: Callable[[], Iterator[Layout]]
) -> Opening:
    """Return how the lines of a log are read.

    Args:
        where: the log, for an error.
        head: its first lines, up to some below its first header.
        names: query fields a person named, None when none were.
        headers_below: yields the headers of the whole log, where none stands among the first lines.

    Raises:
        SettingsError: when a name is no query field.
        SourceError: when there is no header, and nobody named the columns.
    """
    lines = _lines_around_header(head)
    fractions = _find_fractions(lines)
    at = next((place for place, line in enumerate(lines) if declare(line, fractions) is not None), len(lines))
    header = declare(lines[at], fractions) if at < len(lines) else None
    time = "" if header is None or header.stamp is not None else _find_time(header, lines[at + 1 :])
    header = declare(lines[at], fractions, time) if time else header
    before, after = lines[:at], lines[at + 1 :]
    notes = tuple(_describe_ambiguities(lines, fractions))
    if names is not None:
        return _apply_names(names, header, before, after, notes)
    if header is None and is_headerless(lines):
        header = next((each for each in headers_below() if any(_row_fits(line, each) for line in lines)), None)
        if header is None:
            what = "rows of nvidia-smi --query-gpu without their header"
            raise SourceError(where, what, suggest_columns(lines), code="no_header")
        before = lines
    stamped = header is not None and header.stamp is not None
    if header is not None and any(_row_fits(line, header) for line in before):
        notes = (*notes, "Rows before the first header are read with its columns.")
        return Opening(header, fractions=fractions, time=time, notes=notes, stamped=stamped)
    if is_headerless(before):
        notes = (*notes, f"Rows before the first header are not its own and not read; {suggest_columns(before)}.")
    return Opening(fractions=fractions, time=time, notes=notes, stamped=stamped)


def _find_time(header: Layout, rows: Sequence[str]) -> str:
    """Return the heading of a column that is called a time and holds one in the first rows, empty where none is."""
    cells = [line.split(header.delimiter) for line in rows[:_FEW]]
    for place, column in enumerate(header.columns):
        own = [row[place] for row in cells if len(row) == len(header.columns)]
        if own and is_time_heading(column.heading) and all(parse_time(cell) is not None for cell in own):
            return column.heading
    return ""


def _apply_names(
    names: Sequence[str], header: Layout | None, before: Sequence[str], after: Sequence[str], notes: tuple[str, ...]
) -> Opening:
    """Return the columns a person named: for the rows before any header, and for those a header does not fit."""
    first = before[0] if before else ""
    delimiter = next((each for each in ",;\t" if first.count(each) + 1 == len(names)), split_header(first)[0])
    delimiter = delimiter if header is None else header.delimiter
    columns = [read_heading(name, "," if delimiter == ";" else ".") for name in names]
    wrong = next((name for name, column in zip(names, columns, strict=True) if column is None), None)
    if wrong is not None:
        raise SettingsError(
            "--columns",
            f"no query field {wrong!r}",
            "name them as in --query-gpu, one for each cell",
            code="unknown_column",
        )
    named = arrange([column for column in columns if column is not None], delimiter)
    stamped = named.stamp is not None
    if header is None:
        return Opening(named, notes=notes, stamped=stamped, by_option=True)
    widths = Counter(line.count(delimiter) + 1 for line in after).most_common(1)
    row = widths[0][0] if widths else 0
    if len(header.columns) != row == len(names):
        which = f"{format_count(len(header.columns), 'column')} and its rows hold {format_count(row, 'cell')}"
        note = f"The header names {which}: --columns was used instead."
        return Opening(named, named, notes=(*notes, note), stamped=stamped, by_option=True)
    used = any(line.count(delimiter) + 1 == len(names) for line in before)
    return Opening(named, notes=notes if used else (*notes, _UNUSED), stamped=header.stamp is not None, by_option=used)


def _lines_around_header(text: str) -> list[str]:
    """Return the first lines that are not blank, from some above the first header where that stands below them."""
    place = next((place for place, _ in find_headers(text)), None)
    if place is not None and text.count("\n", 0, place) >= _LINES:
        text = "\n".join([*text[:place].splitlines()[-_LINES // 2 :], text[place:]])
    return take_first_lines(text)


def take_first_lines(text: str) -> list[str]:
    """Return the first non-blank lines of a text."""
    return [line for each in text.splitlines()[:_LINES] if (line := each.strip())]


def suggest_columns(lines: Sequence[str]) -> str:
    """Return the `--columns` to type for rows without a header: a name for each cell."""
    widths = Counter(len(cells) for _, cells in map(split_header, lines) if len(cells) > 1)
    width = widths.most_common(1)[0][0] if widths else 1
    return format_columns_option([f"column_{place + 1}" for place in range(width)])


def _row_fits(line: str, header: Layout) -> bool:
    """Return whether each cell of a line is what its column holds, and some column does not hold any text."""
    cells = [cell.strip() for cell in line.split(header.delimiter)]
    strict = any(column.unit for column in header.columns) or header.stamp is not None
    return (
        strict
        and len(cells) == len(header.columns)
        and all(
            STAMP.fullmatch(cell)
            if column.target == TIME
            else absence(cell) is not None or column.read(cell) is not None
            for cell, column in zip(cells, header.columns, strict=True)
        )
    )


def _find_fractions(lines: Sequence[str]) -> frozenset[str]:
    """Return the headings of columns of shares that name no unit and hold decimals, none of them above 1."""
    columns: list[str] = []
    delimiter = ","
    decimal, above = set[str](), set[str]()
    for line in lines:
        declared = declare(line)
        if declared is not None:
            delimiter = declared.delimiter
            columns = [each.heading if _is_share(each.target) and not each.stated else "" for each in declared.columns]
        elif any(columns):
            cells = line.split(delimiter)
            for heading, cell in zip(columns, cells, strict=False):
                number = cell.strip().replace(",", ".")
                if heading and len(cells) == len(columns) and re.fullmatch(r"\d+(?:\.\d+)?", number):
                    decimal |= {heading} if "." in number else set()
                    above |= {heading} if float(number) > 1 else set()
    return frozenset(decimal - above)


def _is_share(target: str) -> bool:
    return target in BY_NAME and BY_NAME[target].unit == "1" and not BY_NAME[target].may_exceed_one


def _describe_ambiguities(lines: Sequence[str], fractions: frozenset[str]) -> Iterator[str]:
    """Yield a note on each ambiguity in the cells."""
    for heading in sorted(fractions):
        column = read_heading(heading)
        name = heading if column is None else column.source
        yield (
            f"{heading} has no unit and no value above 1, so it could be fractions or per cent. It is kept as text. "
            f"{name} [1] or {name} [%] in its place is read."
        )
    dates = [match for line in lines if ";" in line for match in _SLASHED.finditer(line)]
    if dates and all(int(match[1]) <= _LAST_MONTH for match in dates):
        yield f"Dates such as {dates[0][0].strip()} are read as day/month/year; the log does not tell."


@dataclass(slots=True)
class Query:
    """One log being read, and why it may hold no row.

    Attributes:
        opening: how its lines are read.
        per_tick: rows of a tick where no column names GPUs, as a person gave them.
        interval: whether a person said how far apart rows without a time are.
        where: the log, for an error.
    """

    opening: Opening = field(default_factory=Opening)
    per_tick: int | None = None
    interval: bool = False
    where: str = ""
    _problem: CodedProblem | None = None
    _misaligned: Counter[tuple[int, int]] = field(default_factory=Counter)
    _translated: dict[str, None] = field(default_factory=dict)

    def read(self, lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
        """Yield the rows of a log that can be believed."""
        parser = QueryLines(self.opening.header, account, self.opening.layout, misaligned=self._misaligned)
        pieces = lines.blocks() if isinstance(lines, Text) else _pieces(lines, first)
        ticks = TickAssignment(self.per_tick, damaged=parser.damaged)
        seen: dict[str, Counter[str]] = {}
        machines: Counter[tuple[str, str]] = Counter()
        for rows, places in ticks.assign(self._usable(_parse(pieces, parser), parser, account), lambda: parser.ended):
            self._see_machines(rows, machines)
            bad = find_torn_rows(rows, np.zeros(len(rows), dtype=np.int64) if rows.times is None else rows.times, seen)
            account.reject_rows(TORN, rows.lines[bad])
            if places is not None:
                account.reject_rows(WRONG_TICK, rows.lines[(places == LEFT_OUT) & ~bad])
                bad |= places == LEFT_OUT
                rows.data["index"] = Texts(places.astype(np.int32), [str(place) for place in range(places.max() + 1)])
            cut = _name_is_cut(rows) & ~bad
            account.reject_rows(GPU_NOT_NAMED, rows.lines[cut])
            bad |= cut
            yield rows.select(~bad) if bad.any() else rows
        taken = ", ".join(self._translated)
        translations = [f"Headings that nvidia-smi does not write: {taken}."] if taken else []
        account.note(*parser.notes(), *self.opening.notes, *translations, *ticks.notes)
        if self.per_tick != 1:
            account.mixed, account.mixed_note = ticks.mixed, MIXED_NOTE

    def _usable(self, parts: Iterable[tuple[Layout, Rows]], parser: QueryLines, account: Account) -> Iterator[Rows]:
        """Yield the rows that have a column of a GPU, and count the others."""
        for layout, rows in parts:
            names = ", ".join(column.source for column in layout.columns)
            if not holds_metric(layout):
                what = f"no GPU metric among the columns {names}"
                self._problem = what, _UNIT if self.opening.fractions else RECORDS_ONE, "no_gpu_metric"
                account.reject_rows(f"{UNUSABLE_HEADER} {what}", rows.lines)
                continue
            if rows.times is None and not self.interval and parser.dates:
                rows = _dated(rows, parser.dates, account)  # noqa: PLW2901
                if not len(rows):
                    continue
            if rows.times is None and not self.interval:
                time = next((each.source for each in layout.columns if each.source.lower() in _TIMES), "")
                hint = f"if {time} holds the time, call it timestamp in the header; else {_INTERVAL}"
                self._problem = f"no timestamp column among {names}", hint if time else _INTERVAL, "no_timestamps"
            for each in layout.columns:
                account.averaged |= (each.source, each.target) == ("power.draw.average", "gpu_power_watts")
                account.columns[each.heading or each.source, each.target] = None
                if each.translated:
                    unit = f" [{each.stated}]" if each.stated else ""
                    self._translated[f"{each.heading} is taken for {each.source}{unit}"] = None
            yield rows

    def _see_machines(self, rows: Rows, seen: Counter[tuple[str, str]]) -> None:
        """Look at the machines that a column names.

        Raises:
            SourceError: when there are several, and nothing distinguishes their GPUs.
        """
        name = next((name for name in rows.data if _HOST.fullmatch(name)), None)
        if name is None or any(across in rows.data for across in ("uuid", "serial")):
            return
        machine, address = rows.data[name], rows.data.get("bus_id")
        if not isinstance(machine, Texts):
            return
        held = address if isinstance(address, Texts) else Texts(np.full(len(rows), -1, dtype=np.int32), [])
        pairs, counts = np.unique(np.stack([held.codes, machine.codes]), axis=1, return_counts=True)
        for (where, which), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
            if which >= 0:
                seen[held.texts[where] if where >= 0 else "", machine.texts[which]] += count
        known: dict[str, list[str]] = {}
        for (where, which), count in sorted(seen.items()):
            if count >= _SEVERAL and re.search(r"[^\W\d_]", which):
                known.setdefault(where, []).append(which)
        shared = next((each for each in known.values() if len(each) > 1), None)
        if shared is not None:
            what = f"GPUs of several machines ({', '.join(shared[:5])}) in one log without uuid"
            hint = "write one file a machine, and read them with --as-one-run; or log uuid"
            raise SourceError(self.where, what, hint, code="several_machines")

    def explain(self, account: Account) -> CodedProblem | None:
        """Return why no row is left; None where that is the same for any log."""
        rejected = sum(rows for rows, _ in account.rejected.values())
        reasons = ", ".join(f"{n} {reason}" for reason, (n, _) in account.rejected.items())
        if self._problem is not None:
            return self._problem
        if set(account.rejected) in ({NOT_SELECTED}, {GPU_NOT_NAMED}):
            return None
        unread, line = account.rejected.get(f"{MALFORMED} {TIME}", (0, 0))
        if 2 * unread > rejected:
            text = account.examples[f"{MALFORMED} {TIME}"][0].text[:_SHOWN]
            what = f"its time stamps are none that nvidia-smi writes (line {line} begins {text!r})"
            hint = "--source-kind mapped prints a map in which their format can be said"
            return what, hint, "unread_time_stamps"
        if account.lines == account.headers:
            return "it holds a header and no row", RECORDS_ONE, "no_row"
        ((header, row), lines), *_ = self._misaligned.most_common(1) or [((0, 0), 0)]
        if 2 * lines > rejected:
            names = "its header names" if account.headers else "--columns names"
            which = f"{format_count(header, 'column')} and its rows hold {format_count(row, 'cell')}"
            what = f"{names} {which}, so which is which cannot be told"
            return what, "name the columns of its rows with --columns", "wrong_number_of_cells"
        several = f"none of its {account.lines} lines is a row that can be used"
        what = several if account.lines > 1 else "its only line is no row that can be used"
        shown = next((each[0] for each in account.examples.values() if each), None)
        reasons += f"; line {shown.line} says {shown.text[:_LONGEST]!r}" if shown else ""
        return what + (f" ({reasons})" if reasons else ""), RECORDS_ONE, "no_usable_row"


def _dated(rows: Rows, dates: Sequence[tuple[int, int]], account: Account) -> Rows:
    """Return rows without stamps with the time of the date that a script printed above them.

    Where no column names GPUs, each is a place below its date.
    """
    lines, times = np.array(dates, dtype=np.int64).T
    ticks = np.searchsorted(lines, rows.lines) - 1
    account.reject_rows(NO_TIME, rows.lines[ticks < 0])
    rows, ticks = replace(rows, times=times[ticks]).select(ticks >= 0), ticks[ticks >= 0]
    sizes = np.bincount(ticks)
    usual = int(np.bincount(sizes[sizes > 0]).argmax()) if len(ticks) else 1
    if usual > 1 and not names_gpus(rows):
        places = np.arange(len(rows)) - np.searchsorted(ticks, ticks)
        codes = np.where(sizes[ticks] == usual, places, -1).astype(np.int32)
        rows.data["index"] = Texts(codes, [str(place) for place in range(usual)])
        said = f"a date stands above each {usual} rows; high confidence"
        account.note(f"No column tells the GPUs apart: each is a place in the tick ({said}).")
    return rows


def _name_is_cut(rows: Rows) -> BoolArray:
    """Return rows of which the cell that names the GPU may be a part of another name."""
    cut = np.zeros(len(rows), dtype=np.bool_)
    for source, target in _IDENTITY.items():
        reasons = rows.reasons.get(source)
        if reasons is not None and target in rows.data and CUT in reasons.texts:
            cut |= reasons.codes == reasons.texts.index(CUT)
    return cut


def _pieces(lines: Iterable[str], first: int) -> Iterator[Piece]:
    """Yield lines in blocks."""
    remaining = iter(lines)
    part = list(islice(remaining, _TOGETHER))
    while part:
        following = list(islice(remaining, _TOGETHER))
        yield Piece("".join(part).encode(), first, last=not following, lines=len(part))
        part, first = following, first + len(part)


def _parse(pieces: Iterable[Piece], parser: QueryLines) -> Iterator[tuple[Layout, Rows]]:
    """Yield the rows of blocks, while two threads are at the next ones."""
    pending: deque[tuple[Piece, Layout | None, Future[Scan] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for piece in pieces:
            layout = parser.layout
            ahead = pool.submit(scan, piece.data, layout) if layout is not None and is_text(piece.data) else None
            pending.append((piece, layout, ahead))
            if layout is None or len(pending) > _AHEAD:
                yield from _next(pending, parser)
        while pending:
            yield from _next(pending, parser)


def _next(
    pending: deque[tuple[Piece, Layout | None, Future[Scan] | None]], parser: QueryLines
) -> Iterator[tuple[Layout, Rows]]:
    piece, layout, ahead = pending.popleft()
    yield from parser.read(piece, (layout, ahead.result()) if layout is not None and ahead is not None else None)


def read_query(lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a CSV of queries that stands beside other forms."""
    yield from Query().read(lines, first, account)


def read_query_below(header: str, lines: Iterable[str], first: int, account: Account) -> Iterator[Rows]:
    """Yield the rows of a CSV of queries that goes on below something else."""
    yield from Query(Opening(declare(header.strip()))).read(lines, first, account)
