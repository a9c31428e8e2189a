"""A map to start from, made from the first lines of a table that no importer knows."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpureport.importers.logs.mapped.column_guesses import (
    ColumnGuess,
    guess_column,
    names_gpu,
    numbers_gpus,
    time_formats,
)
from gpureport.importers.logs.mapped.loose_quantities import use_decimal_point
from gpureport.importers.logs.mapped.table import DELIMITERS
from gpureport.importers.text.csv_lines import split_cells
from gpureport.importers.values import quantities
from gpureport.metrics import BY_NAME, Scope
from gpureport.redaction import redact_value

_LINES = 50
_SHOWN = 3
_MOST_COLUMNS = 200
_LONGEST = 24


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A draft of a map for an unknown table, or why there is none.

    Attributes:
        text: a map to save and correct; empty when there is none.
        problem: why no map can read the table; empty when one can.
    """

    text: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Sample:
    """The header of a table and the cells of its first rows, and whether their decimal sign is a comma."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    comma: bool = False

    def column(self, place: int) -> list[str]:
        return [row[place] for row in self.rows]

    def read(self, place: int) -> list[str]:
        """Return the cells of a column with a dot as their decimal sign."""
        return [use_decimal_point(cell) if self.comma else cell for cell in self.column(place)]

    def guess(self, place: int) -> ColumnGuess:
        """Guess what a column holds; without rows, from its heading alone."""
        cells_below = self.read(place) if self.rows else ["50"]
        return guess_column(self.header[place], cells_below, others=any(map(names_gpu, self.header)))


def suggest_map(text: str) -> Suggestion:
    """Return a map for the beginning of a table, and why there can be none."""
    # what stands behind the last newline may be cut
    lines = [line for line in text[: text.rfind("\n") + 1].splitlines() if line.strip()][:_LINES]
    for place, line in enumerate(lines):
        for delimiter in DELIMITERS:
            header = _trimmed(split_cells(line, delimiter))
            if not _names(header):
                continue
            below = [_trimmed(split_cells(row, delimiter)) for row in lines[place + 1 :]]
            fitting = tuple(tuple(row) for row in below if len(row) == len(header))
            if fitting:
                return _suggested(_Sample(tuple(header), fitting, comma=delimiter == ";"))
            if below and _guessed(_Sample(tuple(header), ())):
                return Suggestion(problem=_misfit(header, below))
    return Suggestion()


def _trimmed(row: list[str]) -> list[str]:
    return row[:-1] if len(row) > 1 and not row[-1] else row


def _names(header: Sequence[str]) -> bool:
    """Return whether cells are headings: several texts, each once."""
    texts = [cell for cell in header if cell and quantities.parse_number(cell) is None]
    return 2 <= len(header) <= _MOST_COLUMNS and len(texts) == len(header) == len(set(header))  # noqa: PLR2004 - a table has several


def _misfit(header: Sequence[str], below: Sequence[Sequence[str]]) -> str:
    counts = [len(row) for row in below]
    most = max(set(counts), key=counts.count)
    return f"its header names {len(header)} columns, but its rows have {most} cells: nobody can say which is which"


def _guessed(sample: _Sample) -> list[ColumnGuess]:
    found = [sample.guess(place) for place in range(len(sample.header))]
    return [each for each in found if each.metric]


def _suggested(sample: _Sample) -> Suggestion:
    found = _guessed(sample)
    if not found:
        return Suggestion()
    return Suggestion("\n".join(_lines(sample)) + "\n")


def _lines(sample: _Sample) -> Iterator[str]:
    yield "# Correct this, save it as map.toml, and give --map map.toml. What no line names is not read."
    times = {place: forms for place, heading in enumerate(sample.header) if (forms := _times(sample, place, heading))}
    time = next(iter(times), None)
    if time is None:
        yield "# No time was found: name it below, or leave [time] out and give --interval."
        yield "# [time]"
        yield '# column = "..."'
    else:
        yield "[time]"
        yield f"column = {_quoted(sample.header[time])}  # {_examples(sample, time)}"
        likeliest, *others = map(_quoted, times[time])
        yield f"format = {likeliest}" + (f"  # or {', '.join(others)}" if others else "")
    numbered = next(
        (place for place, name in enumerate(sample.header) if numbers_gpus(name, sample.column(place))), None
    )
    if numbered is not None:
        yield "\n[device]"
        yield f"column = {_quoted(sample.header[numbered])}  # {_examples(sample, numbered)}"
    filled: set[tuple[str, int | None]] = set()
    for place, heading in enumerate(sample.header):
        if place not in {time, numbered}:
            yield from _column(sample, place, heading, by_row=numbered is not None, filled=filled)


def _times(sample: _Sample, place: int, heading: str) -> list[str]:
    return time_formats(heading, sample.column(place)) or time_formats(heading, sample.read(place)[:1])


def _column(
    sample: _Sample, place: int, heading: str, *, by_row: bool, filled: set[tuple[str, int | None]]
) -> Iterator[str]:
    found = sample.guess(place)
    host = bool(found.metric) and BY_NAME[found.metric].scope is Scope.HOST
    gpu = None if host or (by_row and found.gpu is None) else found.gpu or 0
    known = bool(found.metric) and (found.metric, gpu) not in filled
    filled |= {(found.metric, gpu)}
    yield ""
    if not known:
        yield f"# [columns.{_quoted(heading)}]  # {_examples(sample, place)}"
        return
    yield f"[columns.{_quoted(heading)}]  # {_examples(sample, place)}"
    yield f"metric = {_quoted(found.metric)}{'' if found.sure else '  # told by the cells alone'}"
    yield f"unit = {_quoted(found.unit or '?')}{'' if found.unit else _unit_comment(found)}"
    if not host and gpu is not None:
        yield f'device = "gpu:{gpu}"'


def _unit_comment(found: ColumnGuess) -> str:
    *some, last = found.units
    choice = f"{', '.join(some)} or {last}" if some else last
    share = "; if it is a share in %, delete the column" if found.metric.endswith("used_bytes") else ""
    return f"  # fill in {choice}, as neither heading nor cells say which{share}"


def _examples(sample: _Sample, place: int) -> str:
    name = sample.header[place]
    cells = (redact_value(name, cell)[:_LONGEST] for cell in sample.column(place) if cell)
    shown = list(dict.fromkeys(cells))[:_SHOWN]
    text = ", ".join(shown) or "empty"
    return "".join(character for character in text if character.isprintable())


def _quoted(text: str) -> str:
    """Return a text as TOML writes it, which is as JSON does."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
