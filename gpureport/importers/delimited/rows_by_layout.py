"""The rows of a piece by their layout, so that each layout is parsed at once however often it is in force."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.row_sections import Section


@dataclass(slots=True)
class _Rows:
    """Rows of one layout, in the order of the log."""

    data: list[bytes] = field(default_factory=list)
    numbers: list[IntArray] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    alone: list[int] = field(default_factory=list)

    def add(self, data: bytes, numbers: IntArray) -> None:
        """Take rows, behind those that were taken one by one."""
        if self.texts:
            self.data.append("".join(self.texts).encode())
            self.numbers.append(np.array(self.alone, dtype=np.int64))
            self.texts, self.alone = [], []
        self.data.append(data)
        self.numbers.append(numbers)

    def joined(self) -> tuple[bytes, IntArray]:
        """Return all rows, and their lines."""
        self.add(b"", np.zeros(0, dtype=np.int64))
        return b"".join(self.data), np.concatenate(self.numbers)


@dataclass(slots=True)
class RowsByLayout:
    """The rows of a piece.

    Attributes:
        layout: layout in force.
        rows: the rows of each.
        runs: layout and last line of each run of rows between two headers that change the layout.
    """

    layout: Layout | None
    rows: dict[Layout, _Rows] = field(default_factory=dict)
    runs: list[tuple[Layout, int]] = field(default_factory=list)
    _latest: _Rows = field(default_factory=_Rows)

    def add(self, data: bytes, numbers: IntArray) -> None:
        """Take rows of the layout in force."""
        self._rows(int(numbers[-1])).add(data, numbers)

    def add_one(self, text: str, number: int) -> None:
        """Take one row of the layout in force."""
        rows = self._rows(number)
        rows.texts += (text, "\n")
        rows.alone.append(number)

    def _rows(self, last: int) -> _Rows:
        """Return the rows of the layout in force, after noting the line that it holds for."""
        if self.layout is None:
            msg = "rows have a layout"
            raise AssertionError(msg)
        if self.runs and self.runs[-1][0] is self.layout:
            self.runs[-1] = self.layout, last
            return self._latest
        if self.runs and self.runs[-1][0] == self.layout:
            self.runs[-1] = self.layout, last
        else:
            self.runs.append((self.layout, last))
        self._latest = self.rows.setdefault(self.layout, _Rows())
        return self._latest

    def sections(self, parse: Callable[[bytes, Layout, IntArray], Section]) -> Iterator[Section]:
        """Yield the rows in the order of the log; `parse` reads rows of one layout, given their lines' numbers."""
        read = {}
        for layout, rows in self.rows.items():
            data, numbers = rows.joined()
            read[layout] = parse(data, layout, numbers)
        if len(read) == 1:
            yield from (section for section in read.values() if len(section.times))
            return
        done = dict.fromkeys(read, 0)
        for layout, last in self.runs:
            section, start = read[layout], done[layout]
            done[layout] = end = int(np.searchsorted(section.numbers, last, side="right"))
            if start < end:
                yield section.select(slice(start, end))
