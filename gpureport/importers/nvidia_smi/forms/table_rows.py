"""The rows of tables of GPUs: two or three lines each."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from gpureport.columns import BoolArray, IntArray
from gpureport.importers.assembly import Values, values
from gpureport.importers.delimited.cells import Decoded
from gpureport.importers.delimited.parts import LineKind, OddLine
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.forms.frames import Frames, LineShape
from gpureport.importers.nvidia_smi.forms.table_cells import FIRST, SECOND, SHORTENED, THIRD, CellTexts
from gpureport.importers.reasons import MALFORMED, TORN

SHORT = "Names of GPUs are shortened in such tables, so what is known of their models is not used."


class TableRows:
    """The GPUs of some lines.

    Attributes:
        lines: the first line of each.
        taken: all lines they stand in, and the first lines of those that are torn.
        indices: the index of each, as far as it is one.
        wrong: whether a cell of it is not what its column holds.
    """

    def __init__(self, frames: Frames, texts: CellTexts) -> None:
        """Read them."""
        self._frames = frames
        begin = frames.gpus()
        shapes = np.append(frames.shapes, [0, 0])
        followed = (shapes[begin + 1] == LineShape.DEVICE) & ~np.isin(begin + 1, begin)
        self.lines, self._torn = begin[followed], begin[~followed]
        third = (shapes[self.lines + 2] == LineShape.DEVICE) & ~np.isin(self.lines + 2, begin)
        self._third = np.flatnonzero(third)
        if len(self._third):
            self._third = self._third[_blank_before(frames, self.lines[self._third] + 2)]
        self.taken = np.concatenate([begin, self.lines + 1, self.lines[self._third] + 2])
        self._cells: dict[str, Decoded] = {}
        self._settings: dict[str, Decoded] = {}
        if len(self.lines):
            self._decode(texts)
        self.wrong = np.zeros(len(self.lines), dtype=np.bool_)
        for rows, decoded in self._columns():
            self.wrong[rows] |= decoded.wrong()

    def _decode(self, texts: CellTexts) -> None:
        for cells, lines in ((FIRST, self.lines), (SECOND, self.lines + 1)):
            for cell, column in zip(cells, self._frames.cells(lines), strict=True):
                self._cells |= texts.decode(cell, column)
        if len(self._third):
            *_, column = self._frames.cells(self.lines[self._third] + 2)
            self._settings = texts.decode(THIRD, column)

    def _columns(self) -> Iterator[tuple[IntArray | slice, Decoded]]:
        """Yield the columns, with the rows each is of."""
        yield from ((slice(None), decoded) for decoded in self._cells.values())
        yield from ((self._third, decoded) for decoded in self._settings.values())

    @property
    def indices(self) -> IntArray:
        """The index of each GPU, 0 where it is none."""
        if "index" not in self._cells:
            return np.zeros(0, dtype=np.int64)
        decoded = self._cells["index"]
        return np.array([int(text or 0) for text in decoded.distinct], dtype=np.int64)[decoded.codes]

    def data(self, rows: IntArray) -> dict[str, Values]:
        """Return the columns of some rows, by metric or attribute."""
        found = {}
        for name, decoded in self._cells.items():
            column = fields.column(name)
            assert column is not None  # noqa: S101 - the table names fields that are known
            found[column.target] = values(decoded, column.dtype).taken(rows)
        for decoded in self._settings.values():
            whole = np.full(len(self.lines), -1, dtype=np.int32)
            whole[self._third] = decoded.codes
            texts = values(decoded, "str")
            code, held = np.zeros(len(whole), dtype=np.int64), np.zeros(len(whole), dtype=np.bool_)
            code[self._third], held[self._third] = texts.data, texts.valid
            found["mig"] = Values(code[rows], held[rows], texts.texts)
        return found

    def absent(self, rows: BoolArray) -> Counter[tuple[str, str]]:
        """Return how many cells of some rows hold no value, by query field and reason."""
        found: Counter[tuple[str, str]] = Counter()
        for name, decoded in self._cells.items():
            found.update({(name, reason): count for reason, count in decoded.absences(rows).items()})
        for name, decoded in self._settings.items():
            found.update({(name, reason): count for reason, count in decoded.absences(rows[self._third]).items()})
        return found

    def rejected(self, first: int) -> Iterator[OddLine]:
        """Yield the rows that cannot be used, once each; `first` is the number of the first line of all."""
        for line in self._torn.tolist():
            yield OddLine(line + first, LineKind.REJECTED, TORN, self._frames.text(line))
        for row in np.flatnonzero(self.wrong).tolist():
            line = int(self.lines[row])
            text = f"{self._frames.text(line)}\n{self._frames.text(line + 1)}"
            yield OddLine(line + first, LineKind.REJECTED, f"{MALFORMED} {self._malformed(row)}", text)

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know of names that are shortened."""
        return (SHORT,) if any(SHORTENED in decoded.reasons for decoded in self._cells.values()) else ()

    def _malformed(self, row: int) -> str:
        """Return the first column whose cell is not what the column holds."""
        wrong = [name for name, decoded in self._cells.items() if decoded.wrong()[row]]
        return wrong[0] if wrong else next(iter(self._settings))


def _blank_before(frames: Frames, lines: IntArray) -> BoolArray:
    """Return which lines hold nothing in their first two cells."""
    names, places, _ = frames.cells(lines)
    blank: BoolArray = names.blank() & places.blank()
    return blank
