"""The rows of tables of GPUs: two or three lines each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_cells import (
    SHORTENED,
    TARGETS,
    Meaning,
    cells,
    read_line,
)
from gpureport.importers.logs.nvidia_smi.forms.drawn_table.table_lines import LineShape, TableLines
from gpureport.importers.protocol.reject_reasons import MALFORMED, TORN
from gpureport.importers.values.cells import Absent, Value

SHORT = "Names of GPUs are shortened in such tables, so what is known of their models is not used."


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRow:
    """What a table says of one GPU.

    Attributes:
        line: its first line.
        lines: how many lines it has.
        cells: what they hold, by query field.
    """

    line: int
    lines: int
    cells: Mapping[str, Meaning]

    @property
    def index(self) -> int:
        """Its index, 0 where it has none."""
        found = self.cells["index"]
        return 0 if found is None or isinstance(found, Absent) else int(found)

    @property
    def malformed(self) -> str:
        """The first query field whose cell is not what the field holds; empty where all are."""
        return next((name for name, found in self.cells.items() if found is None), "")

    def values(self) -> dict[str, Value | None]:
        """Return its values, by metric or attribute."""
        return {TARGETS[name]: None if isinstance(found, Absent) else found for name, found in self.cells.items()}


class TableRows:
    """The GPUs of some lines.

    Attributes:
        torn: first lines of those of which the second is missing.
        rows: the others.
    """

    def __init__(self, lines: TableLines) -> None:
        self._lines = lines
        begins = lines.gpus()
        first = set(begins)
        others = {line for line in lines.where(LineShape.DEVICE) if line not in first}
        self.torn = [line for line in begins if line + 1 not in others]
        self.rows = [self._row(line, others) for line in begins if line + 1 in others]

    def _row(self, line: int, others: set[int]) -> TableRow:
        raw = self._lines.raw
        third = line + 2 in others and not any(cell.strip() for cell in cells(raw[line + 2])[:-1])
        found = {**read_line(0, raw[line]), **read_line(1, raw[line + 1])}
        if third:
            found |= read_line(2, raw[line + 2])
        return TableRow(line=line, lines=2 + third, cells=found)

    def taken(self) -> set[int]:
        """Return all lines they stand in."""
        return {line for row in self.rows for line in range(row.line, row.line + row.lines)}.union(self.torn)

    def rejected(self, first: int) -> Iterator[NonDataLine]:
        """Yield the rows that cannot be used, once each; `first` is the number of the first line of all."""
        for line in self.torn:
            yield NonDataLine(line + first, LineKind.REJECTED, TORN, self._lines.text(line))
        for row in self.rows:
            if row.malformed:
                text = f"{self._lines.text(row.line)}\n{self._lines.text(row.line + 1)}"
                yield NonDataLine(row.line + first, LineKind.REJECTED, f"{MALFORMED} {row.malformed}", text)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know of names that are shortened."""
        return (SHORT,) if any(row.cells["name"] == Absent(SHORTENED) for row in self.rows) else ()


def absences(rows: Sequence[TableRow]) -> Counter[tuple[str, str]]:
    """Return how many cells of some rows hold no value, by query field and reason."""
    return Counter(
        (name, found.reason) for row in rows for name, found in row.cells.items() if isinstance(found, Absent)
    )
