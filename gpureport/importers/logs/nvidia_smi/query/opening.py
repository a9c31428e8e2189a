"""Decides how to read the lines of a log: the columns of rows before any header, and ambiguities in its headers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpureport.errors import SettingsError, SourceError
from gpureport.importers.decoding.pieces import head as head_of
from gpureport.importers.decoding.pieces import pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.delimited.layout import STAMP, Layout
from gpureport.importers.delimited.layout import split_header as split
from gpureport.importers.logs.nvidia_smi.query import headings, spreadsheet
from gpureport.importers.logs.nvidia_smi.query.fractions import find_fraction_headings
from gpureport.importers.logs.nvidia_smi.query.headerless import is_headerless, suggest_columns
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect, arrange_columns, find_headers
from gpureport.importers.note_text import format_count
from gpureport.importers.protocol.importer import HEAD_BYTES, SEARCHED_BYTES
from gpureport.importers.values import absolute_stamps, stamps
from gpureport.importers.values.cells import Column, absent

_LINES = 2_000
"""Lines whose content is looked at."""
_UNUSED = "The log has a header: --columns was not used."


@dataclass(frozen=True, slots=True)
class Opening:
    """How the lines of a log are read.

    Attributes:
        layout: columns of the rows before any header; None when the log begins with a header.
        dialect: what its lines are.
        notes: what a reader must know about it.
        stamped: whether a header among the first lines names a time stamp.
        columns_by: `--columns` where that names the columns; empty when a header does.
    """

    layout: Layout | None = None
    dialect: QueryGpuDialect = field(default_factory=QueryGpuDialect)
    notes: tuple[str, ...] = ()
    stamped: bool = False
    columns_by: str = ""


@dataclass(frozen=True, slots=True)
class _Head:
    """The first lines of a log, split at its first header.

    Attributes:
        before: lines before any header.
        header: columns of the first header, None when there is none.
        after: lines after it.
    """

    before: Sequence[str]
    header: Layout | None
    after: Sequence[str]

    @classmethod
    def split_at_header(cls, lines: Sequence[str], dialect: QueryGpuDialect) -> "_Head":
        """Part lines at their first header."""
        for place, line in enumerate(lines):
            header = dialect.header(line)
            if header is not None:
                return cls(lines[:place], header, lines[place + 1 :])
        return cls(lines, None, ())


def read_opening(where: str, head: str, names: Sequence[str] | None, whole: Callable[[], Iterable[str]]) -> Opening:
    """Return how the lines of a log are read.

    Args:
        where: the log, for an error.
        head: its first lines, up to some below its first header.
        names: query fields a person named, None when none were.
        whole: gives all its lines, which are read only where the first ones are ambiguous.

    Raises:
        SettingsError: when a name is no query field.
        SourceError: when there is no header, and nobody named the columns.
    """
    lines = _lines_around_header(head)
    dialect = QueryGpuDialect(fractions=find_fraction_headings(lines, whole))
    parted = _Head.split_at_header(lines, dialect)
    if parted.header is not None and absolute_stamps.are_absolute(_iterate_stamps(parted.after, parted.header)):
        dialect = replace(dialect, absolute=True)
        parted = _Head.split_at_header(lines, dialect)
    if parted.header is not None and spreadsheet.has_grouped_thousands(lines, parted.header):
        dialect, parted = replace(dialect, grouped=True), replace(parted, header=parted.header.grouped())
    if names is not None:
        found = _apply_named_columns(names, parted)
    elif parted.header is not None:
        found = _read_rows_above(parted, parted.header)
    else:
        found = _find_header_below(where, lines, whole, dialect) if is_headerless(lines) else Opening()
    layout = found.layout
    if names is not None and layout is not None and absolute_stamps.are_absolute(_iterate_stamps(lines, layout)):
        dialect, layout = replace(dialect, absolute=True), replace(layout, absolute=True)
        instead = None if found.dialect.instead is None else layout
        found = replace(found, layout=layout, dialect=replace(found.dialect, instead=instead))
    return replace(
        found,
        dialect=replace(dialect, instead=found.dialect.instead),
        notes=(*_describe_ambiguities(lines, dialect.fractions), *found.notes),
        stamped=any(header.stamp is not None for header in _iterate_headers(lines, dialect)),
    )


def _iterate_stamps(lines: Sequence[str], layout: Layout) -> Iterator[str]:
    """Yield the time stamps of lines that have as many cells as a layout has columns."""
    if layout.stamp is not None:
        for line in lines:
            cells = line.split(layout.delimiter)
            if len(cells) == len(layout.columns):
                yield cells[layout.stamp]


def _describe_ambiguities(lines: Sequence[str], unread: frozenset[str]) -> Iterator[str]:
    """Yield a note on each ambiguity in the cells."""
    for heading in sorted(unread):
        column = headings.read_heading(heading)
        name = heading if column is None else column.source
        yield (
            f"{heading} has no unit and no value above 1, so it could be fractions or per cent. It is kept as text. "
            f"{name} [1] or {name} [%] in its place is read."
        )
    yield from filter(None, [spreadsheet.describe_slashed_dates([line for line in lines if ";" in line])])


def _apply_named_columns(names: Sequence[str], head: _Head) -> Opening:
    """Return the columns a person named: for the rows before any header, and for those a header does not fit."""
    columns = [headings.read_heading(name) for name in names]
    wrong = next((name for name, column in zip(names, columns, strict=True) if column is None), None)
    if wrong is not None:
        raise SettingsError(
            "--columns",
            f"no query field {wrong!r}",
            "name them as in --query-gpu, one for each cell",
            code="unknown_column",
        )
    delimiter = _delimiter(head, len(names))
    named = arrange_columns([column for column in columns if column is not None], delimiter)
    named = named.grouped() if spreadsheet.has_grouped_thousands([*head.before, *head.after], named) else named
    if head.header is None:
        return Opening(named, columns_by="--columns")
    header, row = len(head.header.columns), _most_common_width(head.after, delimiter)
    if header != row == len(names):
        which = f"{format_count(header, 'column')} and its rows hold {format_count(row, 'cell')}"
        note = f"The header names {which}: --columns was used instead."
        return Opening(named, QueryGpuDialect(instead=named), (note,), columns_by="--columns")
    used = any(line.count(delimiter) + 1 == len(names) for line in head.before)
    return Opening(named, notes=() if used else (_UNUSED,), columns_by="--columns" if used else "")


def _delimiter(head: _Head, cells: int) -> str:
    """Return the delimiter of a log whose rows have a known number of cells."""
    if head.header is not None:
        return head.header.delimiter
    first = head.before[0] if head.before else ""
    return next((each for each in ",;\t" if first.count(each) + 1 == cells), split(first)[0])


def _most_common_width(lines: Sequence[str], delimiter: str) -> int:
    """Return how many cells most lines have."""
    counted = Counter(line.count(delimiter) + 1 for line in lines)
    return counted.most_common(1)[0][0] if counted else 0


def _read_rows_above(head: _Head, header: Layout) -> Opening:
    """Return whether rows above the first header have its columns; those that do not are not read."""
    if any(_row_fits(line, header) for line in head.before):
        return Opening(header, notes=("Rows before the first header are read with its columns.",))
    if not is_headerless(head.before):
        return Opening()
    return Opening(
        notes=(f"Rows before the first header are not its own and not read; {suggest_columns(head.before)}.",)
    )


def _row_fits(line: str, header: Layout) -> bool:
    """Return whether each cell of a line is what its column holds, and some column does not hold any text."""
    cells = line.split(header.delimiter)
    strict = any(column.number is not None for column in header.columns) or header.stamp is not None
    return strict and len(cells) == len(header.columns) and all(map(_is_readable, cells, header.columns))


def _is_readable(cell: str, column: Column) -> bool:
    text = cell.strip()
    if column.target == STAMP:
        return stamps.STAMP.fullmatch(text) is not None
    number = text.replace(column.decimal, ".") if column.number is not None else text
    return absent(text) is not None or column.read(number) is not None


def _find_header_below(
    where: str, lines: Sequence[str], whole: Callable[[], Iterable[str]], dialect: QueryGpuDialect
) -> Opening:
    """Return the columns of a header far below rows that it fits."""
    header = next(_iterate_headers(whole(), dialect), None)
    if header is None or not any(_row_fits(line, header) for line in lines):
        raise SourceError(
            where, "rows of nvidia-smi --query-gpu without their header", suggest_columns(lines), code="no_header"
        )
    return _read_rows_above(_Head(lines, header, ()), header)


def _iterate_headers(lines: Iterable[str], dialect: QueryGpuDialect) -> Iterator[Layout]:
    return (header for line in lines if (header := dialect.header(line.strip())) is not None)


def read_beginning(file: RawFile) -> str:
    """Return the first text of a log: as much as an importer sees, below its first header where that stands deeper."""
    text = head_of(file.again(), HEAD_BYTES)
    first = text.decode(errors="replace")
    if len(text) < HEAD_BYTES or _find_header(first) is not None or is_headerless(take_first_lines(first)):
        return first
    searched = head_of(file.again(), SEARCHED_BYTES).decode(errors="replace")
    place = _find_header(searched, first.rfind("\n") + 1)
    return first if place is None else searched[: place + HEAD_BYTES]


def iterate_lines(file: RawFile) -> Iterator[str]:
    """Yield the lines of a log, read on the side."""
    for piece in pieces(file.again()):
        yield from piece.data.decode(errors="replace").splitlines()


def take_first_lines(text: str) -> list[str]:
    """Return the first non-blank lines of a text."""
    return [line for each in text.splitlines()[:_LINES] if (line := each.strip())]


def _lines_around_header(text: str) -> list[str]:
    """Return as many lines, from some above the first header where that stands below them."""
    place = _find_header(text)
    if place is None or text.count("\n", 0, place) < _LINES:
        return take_first_lines(text)
    above = text[:place].splitlines()[-_LINES // 2 :]
    return take_first_lines("\n".join([*above, text[place:]]))


def _find_header(text: str, start: int = 0) -> int | None:
    """Return where the first header of a text from some line on begins, None when there is none."""
    return next((place for place, _ in find_headers(text, QueryGpuDialect(), start)), None)
