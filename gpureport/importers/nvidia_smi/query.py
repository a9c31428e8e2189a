"""Reads `nvidia-smi --query-gpu` CSV: intact blocks whole, and damaged ones line by line."""

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gpureport.columns import BoolArray, IntArray, integers, read_codes
from gpureport.errors import SettingsError, SourceError
from gpureport.importers import account as reasons
from gpureport.importers.account import NOISE, Account, find_message_kind, format_columns_option
from gpureport.importers.columns import CUT, NAMES, TIME, Column, Layout, Rows, Texts, decode, scan, without_faults
from gpureport.importers.extraction import Extraction, Form
from gpureport.importers.gpu_devices import date_rows, number_gpus
from gpureport.importers.nvidia_smi import (
    arrange,
    declare,
    find_headers,
    is_headerless,
    is_metric,
    is_of_gpus,
    is_plain,
    read_heading,
)
from gpureport.importers.protocol import SEARCHED_BYTES, ReadOptions
from gpureport.importers.source_text import Piece, RawFile, Text, head, head_text

NAME = "nvidia-smi --query-gpu"
_STAMP = re.compile(r"(?:\d{4}([/-])\d\d\1\d\d[ T]|\d{8}[ T])\d\d:\d\d:\d\d(?:[.,]\d{1,6})?\s*$")
_COMPLETE = re.compile(r".*(?:%|MiB|W|MHz|\]|Active|abled|N/A)|0x[0-9A-Fa-f]{16}")
"""Matches complete cells, which cannot be the start of another cell."""
_CUT_NOTE = "The log does not end with a newline, so its last line may be cut off."
_STAMPED = len("2026/03/14 09:26:53")
_ODD = ("\0", "\ufffd", TIME)
"""Texts that no intact row contains: NUL, a replacement character, or a header."""
_HOST = re.compile(r"extra_(?:host_?name|host|node_?name|node|machine)", re.IGNORECASE)
_SEVERAL = 3
_LOOKED_AT, _LONGEST = 2**20, 4096
_LINES = 2_000
_TOGETHER, _AHEAD = 50_000, 2
Scan = tuple[list["pa.Array[Any]"], list[int]]


class NvidiaSmi:
    kind: ClassVar[str] = "nvidia_smi"
    title: ClassVar[str] = "nvidia-smi"

    def identify(self, head: bytes) -> bool:
        text = head_text(head)
        of_gpus = any(is_of_gpus(layout) for _, layout in find_headers(text))
        if of_gpus or _find_other_form(text[: text.rfind("\n") + 1] or text):
            return True
        return next(find_headers(text), None) is None and is_headerless(text.split("\n"))

    def extract(self, file: RawFile, options: ReadOptions) -> Extraction:
        for length in (_LOOKED_AT, SEARCHED_BYTES):
            data = head(file.again(), length)
            text = (data[: data.rfind(b"\n") + 1] or data).decode(errors="replace")
            other = _find_other_form(text)
            if len(data) < length or next(find_headers(text), None) is not None or other:
                break
        if options.columns is None and other:
            return Extraction(file, options, other)
        layout, notes = _read_opening(str(file.path), text, options.columns)
        form = partial(
            read_query,
            layout=layout,
            notes=notes,
            where=str(file.path),
            dated=options.interval is None,
            per_tick=options.gpus_per_tick,
        )
        return Extraction(file, options, form, name=NAME)


def _find_other_form(text: str) -> Form | None:
    if is_plain(text):
        return None
    from gpureport.importers.nvidia_smi.monitors import begins_other_form, read_blocks

    return read_blocks if begins_other_form(text) else None


def _read_opening(where: str, text: str, names: Sequence[str] | None) -> tuple[Layout | None, tuple[str, ...]]:
    """Return the columns that the user named, if the log needs them, and notes."""
    place, header = next(find_headers(text), (len(text), None))
    before = text[:place].split("\n")[-_LINES:]
    after = text[place:].split("\n")[1:_LINES]
    dates = [date for line in before + after for date in re.findall(r"(\d{1,2}/\d{1,2}/\d{4}) ", line)]
    notes: tuple[str, ...] = ()
    if dates and all(re.match(r"(?:0?\d|1[0-2])/", date) for date in dates):
        notes = (f"Dates such as {dates[0]} are read as day/month/year, because the log does not show the order.",)
    if names is None and header is None and is_headerless(before):
        rows = [cells for line in before if len(cells := line.split(",")) > 1]
        width = Counter(map(len, rows)).most_common(1)[0][0]
        hint = format_columns_option(next(row for row in rows if len(row) == width))
        raise SourceError(where, "output of nvidia-smi --query-gpu without its header", hint, code="no_header")
    if names is None:
        return None, notes
    above = [line for line in before if header is None or line.count(header.delimiter) + 1 == len(names)]
    found = (each for each in ",;\t" if above and above[0].count(each) + 1 == len(names))
    delimiter = header.delimiter if header else next(found, ",")
    columns = [read_heading(name, "," if delimiter == ";" else ".") for name in names]
    if None in columns:
        hint = "use the field names of --query-gpu, one per cell"
        raise SettingsError("--columns", f"no query field {names[columns.index(None)]!r}", hint, code="unknown_column")
    if header is not None and not above:
        return None, (*notes, "The log has a header, so --columns was not used.")
    return arrange([each for each in columns if each], delimiter), notes


def read_query(  # noqa: PLR0913 - options of a log
    lines: Iterable[str],
    first: int,
    account: Account,
    *,
    layout: Layout | None = None,
    notes: tuple[str, ...] = (),
    where: str = "",
    dated: bool = True,
    per_tick: int | None = None,
) -> Iterator[Rows]:
    """Yield the rows of `where`; if `dated`, rows without times get the date above them."""
    log = QueryLines(declare, account, layout)
    pieces = lines.blocks() if isinstance(lines, Text) else as_pieces(lines, first)
    yield from number_gpus(_usable(log, where, _parse(pieces, log), dated=dated), per_tick, log)
    account.note(*[f"Torn lines that end in a whole row, which was kept: {log.torn}."] * bool(log.torn), *notes)


def _usable(log: "QueryLines", where: str, parts: Iterable[tuple[Layout, Rows]], *, dated: bool) -> Iterator[Rows]:
    translated, machines, doubted, account = dict[str, None](), Counter[str](), set[str](), log.account
    for layout, rows in parts:
        for each in layout.columns:
            account.averaged |= (each.source, each.target) == ("power.draw.average", "gpu_power_watts")
            account.columns[each.heading or each.source, each.target] = None
            if each.translated:
                translated[f"{each.heading} is read as {each.source} {each.stated}".strip()] = None
        machine = next((rows.data[name] for name in rows.data if _HOST.fullmatch(name)), None)
        if isinstance(machine, Texts) and not {"uuid", "serial"} & rows.data.keys():
            machines.update(machine.texts[code] for code in machine.codes.tolist() if code >= 0)
            known = [name for name, count in machines.items() if count >= _SEVERAL and re.search(r"[^\W\d_]", name)]
            if len(known) > 1:
                what = f"it has GPUs from several machines ({', '.join(sorted(known)[:5])}), but no uuid"
                hint = "write one file per machine and read them with --as-one-run, or log the uuid"
                raise SourceError(where, what, hint, code="several_machines")
        if rows.times is None and log.dates and dated:
            rows = date_rows(rows, log)  # noqa: PLW2901 - same rows
        for each in [each for each in layout.columns if each.unit == "%" and not each.stated]:
            shares = 100 * np.nan_to_num(np.asarray(rows.data[each.target]))
            if each.target in doubted or (shares.max(initial=0) <= 1 and (shares % 1).any()):
                doubted.add(each.target)
                account.note(f"{each.heading} has no unit or values above 1, so it could be fractions or percentages.")
                del rows.data[each.target]
        if not any(map(is_metric, rows.data)):
            account.reject_rows(reasons.NO_READING, rows.lines)
        elif len(rows):
            yield rows
    if translated:
        account.note(f"Headings that nvidia-smi does not write were translated: {', '.join(translated)}.")


def as_pieces(lines: Iterable[str], first: int) -> Iterator[Piece]:
    remaining = iter(lines)
    following = list(islice(remaining, _TOGETHER))
    while part := following:
        following = list(islice(remaining, _TOGETHER))
        yield Piece("".join(part).encode(), first, last=not following)
        first += len(part)


def _parse(pieces: Iterable[Piece], log: "QueryLines") -> Iterator[tuple[Layout, Rows]]:
    pending: deque[tuple[Piece, Layout, Future[Scan] | None]] = deque()
    with ThreadPoolExecutor(_AHEAD) as pool:
        for piece in chain(pieces, [None] * _AHEAD):
            if piece is not None and log.layout is None:
                yield from log.read(piece)
                continue
            if piece is not None and log.layout is not None:
                ahead = pool.submit(scan, piece.data, log.layout) if piece.data.isascii() else None
                pending.append((piece, log.layout, ahead))
            if pending and (piece is None or len(pending) > _AHEAD):
                block, layout, scanned = pending.popleft()
                yield from log.read(block, None if scanned is None else (layout, scanned.result()))


def complete_row(line: str, layout: Layout, *, begun: bool = True, ended: bool = True) -> tuple[str, str] | None:
    """Return the row at the end of a line, and the text before it, or None if there is no row.

    A row whose start may be lost needs a timestamp. If its end may be lost, its last cell is treated
    as cut off; there is no row if only that cell identifies the GPU.
    """
    cells, width = line.split(layout.delimiter), len(layout.columns)
    if len(cells) == width + 1 and not cells[-1].strip():
        # a delimiter after the last cell
        cells.pop()
    cut = not ended and not _COMPLETE.fullmatch(cells[-1].strip())
    named = [column.target in NAMES for column in layout.columns]
    if len(cells) < width or (cut and named[-1] and sum(named) == 1):
        return None
    torn, cells = "".join(each + layout.delimiter for each in cells[:-width]), cells[-width:]
    stamp = _STAMP.search(cells[0]) if layout.stamp == 0 else None
    if stamp is not None:
        torn, cells[0] = torn + cells[0][: stamp.start()], stamp[0]
    elif torn or not begun:
        return None
    if cut:
        cells[-1] = f"[{CUT}]"
    return layout.delimiter.join(cells), torn.strip()


@dataclass(slots=True)
class QueryLines:
    header: Callable[[str], Layout | None]
    account: Account
    layout: Layout | None = None
    damaged: list[int] = field(default_factory=list)
    torn: int = 0
    dates: dict[int, str] = field(default_factory=dict)
    ended: bool = False

    def read(self, piece: Piece, scanned: "tuple[Layout, Scan] | None" = None) -> Iterator[tuple[Layout, Rows]]:
        self.ended, layout, data, first = piece.last, self.layout, piece.data, piece.first_line
        if scanned is not None and layout is scanned[0]:
            cells, odd = scanned[1]
            blank = len(cells) == 1 and b"\n\n" in data
            if not (odd or blank or b"\0" in data) and data.endswith(b"\n"):
                rows, faults = _decode(layout.columns, cells, np.arange(first, first + len(cells[0]), dtype=np.int64))
                if not faults:
                    yield layout, rows
                    return
        text = data.decode(errors="replace")
        whole, odd_text = text.count("\n"), any(each in text for each in _ODD)
        lines, numbers = list[str](), list[int]()
        for place, line in enumerate(text.split("\n")):
            same = layout is not None and line.count(layout.delimiter) == len(layout.columns) - 1
            sound = line[:1].isdigit() and place < whole and not (odd_text and any(each in line for each in _ODD))
            row: str | None = line
            if not (same and sound):
                row = self._sort(first + place, line, cut=place == whole) if line else None
                if self.layout is not layout:
                    yield from self._rows_of(layout, lines, numbers)
                    layout, lines, numbers = self.layout, [], []
            if row is not None:
                lines.append(row)
                numbers.append(first + place)
        yield from self._rows_of(layout, lines, numbers)

    def _sort(self, number: int, line: str, *, cut: bool) -> str | None:
        self.account.note(*[_CUT_NOTE] if cut else [])
        # only the part of a line after its NUL bytes is used
        torn, nul, text = line.rpartition("\0")
        text, unreadable = text.strip("\r\ufeff"), "\ufffd" in text
        header = None if unreadable else self._header(text)
        # if the writer was killed mid-line, the next header follows on the same line
        heading = self.layout.header.partition(self.layout.delimiter)[0] if self.layout else ""
        if header is None and heading and len(text) <= _LONGEST and (at := text.rfind(heading)) > 0:
            header = self._header(text[at:])
        if header is not None:
            self.account.headers += 1
            self.layout = self.layout if header == self.layout else header
            return None
        if self.layout is not None and text.strip() and not unreadable:
            found = complete_row(text, self.layout, begun=not nul, ended=not cut)
            if found is not None:
                self._tear_off(number, torn.replace("\0", "") + found[1])
                return found[0]
        if rest := (text if text.strip() else torn).strip("\0 \t\r\ufeff"):
            missing = reasons.CUT_LAST_LINE if cut else reasons.WRONG_CELLS
            missing = reasons.BEFORE_HEADER if self.layout is None else missing
            self._reject(number, rest, reasons.NOT_TEXT if unreadable else reasons.NUL_BYTES if nul else missing)
        return None

    def _header(self, text: str) -> Layout | None:
        found, layout = self.header(text.strip()), self.layout
        if found is None or layout is None or found == layout or self.header is not declare:
            return found
        names = [column.source for column in found.columns]
        alone = len(names) == 1 < len(layout.columns)
        timeless = found.stamp is None and layout.stamp is not None
        return None if alone or timeless or len(set(names)) < len(names) else found

    def _reject(self, number: int, text: str, reason: str) -> None:
        text = text.replace("\0", "").strip()
        self.account.sort_out(number, text, reason)
        if NOISE.fullmatch(text) and (self.layout is None or self.layout.stamp is None):
            self.dates[number] = text
        elif (
            (text[:1].isdigit() and "," in text)
            or sum(map(str.isdigit, text[:_STAMPED])) > _STAMPED // 2
            or (reason == reasons.NUL_BYTES and not find_message_kind(text))
        ):
            # a row keeps its position in a tick even if its first characters are damaged
            self.damaged.append(number)

    def _tear_off(self, number: int, text: str) -> None:
        if find_message_kind(text):
            self.account.message(number, text)
        elif text:
            self.torn += 1
            self.damaged.append(number)

    def _rows_of(self, layout: Layout | None, lines: list[str], numbers: list[int]) -> Iterator[tuple[Layout, Rows]]:
        if layout is None or not lines:
            return
        rows, faults = _decode(layout.columns, scan("\n".join([*lines, ""]).encode(), layout)[0], np.array(numbers))
        mended = False
        for place in np.flatnonzero(faults.get(f"{reasons.MALFORMED} {TIME}", [])).tolist():
            found = complete_row(lines[place], layout)
            if found is not None and found[1]:
                lines[place], mended = found[0], True
                self._tear_off(numbers[place], found[1])
        if mended:
            yield from self._rows_of(layout, lines, numbers)
            return
        rows, wrong = without_faults(rows, faults)
        for place, reason in sorted(wrong):
            self._reject(numbers[place], lines[place], reason)
        yield layout, rows


def _decode(columns: Sequence[Column], cells: Sequence[Any], lines: IntArray) -> tuple[Rows, dict[str, BoolArray]]:
    rows, faults = decode(columns, cells, lines)
    if columns[-1].unit:
        bare = integers(pc.match_substring_regex(cells[-1].dictionary, r"[0-9]\s*$")) == 1
        if bare.any() and not bare.all():
            codes = read_codes(cells[-1].indices)
            alike = pc.match_substring_regex(cells[-1].dictionary, "[%A-Za-z]$")
            torn = bare[codes]
            if torn.sum() <= 0.1 * integers(alike)[codes].sum():
                faults[reasons.TORN] = torn
    return rows, faults
