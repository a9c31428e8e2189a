"""Reads the documents of a log of `nvidia-smi -q`: complete sections become rows, and every line is counted."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import numpy as np

from gpureport.columns import IntArray
from gpureport.importers.delimited.row_sections import NonDataLine
from gpureport.importers.devices.column_values import Values
from gpureport.importers.logs.nvidia_smi.forms.full_query.sections import Document, Section, Sections
from gpureport.importers.logs.nvidia_smi.forms.lines_between_blocks import classify_stray_line
from gpureport.importers.text.text_log import Chunk, Record, make_chunk
from gpureport.metrics import BY_NAME

_MOST = 1024
"""Sections of a document that are held at most; no machine has as many GPUs."""


class DocumentReader:
    """The document that is being read, and the rows of those before.

    Attributes:
        head: the document that is being read, None before the first.
        continued: lines that say more of rows.
        kept: says whether the value at a path is kept.
    """

    def __init__(self) -> None:
        self.head: Document | None = None
        self.continued = 0
        self._sections = Sections()
        self.keeps_path = self._sections.keeps_path
        self._records: list[Record] = []
        self._other_lines: list[NonDataLine] = []

    @property
    def averaged(self) -> bool:
        """Whether power is an average over a second."""
        return self._sections.averaged

    @property
    def full(self) -> bool:
        """Whether the document that is being read has a section."""
        return self.head is None or bool(self.head.sections)

    def begin(self) -> None:
        """Begin a document."""
        self.end()
        self.head = Document()

    def above(self, line: NonDataLine) -> None:
        """Take a line of a document that is of none of its GPUs."""
        if self.head is None or len(self.head.head) >= _MOST:
            self._other_lines.append(line)
        else:
            self.head.head.append(line)

    def add(self, section: Section) -> None:
        """Take a section, of which the cells may come later."""
        if self.head is None or len(self.head.sections) >= _MOST:
            self.end()
            self.head = Document()
        self.head.sections.append(section)

    def add_line(self, line: NonDataLine) -> None:
        """Take a line that is no row."""
        self._other_lines.append(line)

    def stray(self, number: int, line: str) -> None:
        """Take a line of no document: a message of the driver, or noise."""
        self._other_lines.append(classify_stray_line(number, line))

    def end(self) -> None:
        """End the document: its sections are whole."""
        if self.head is None:
            return
        records, other_lines = self._sections.read(self.head)
        self._records += records
        self._other_lines += other_lines
        if records:
            self.continued += len(self.head.head)
        else:
            self._other_lines += self.head.head
        self.head = None

    def ready(self) -> Iterator[Chunk]:
        """Yield the rows of whole documents, those with a time apart from those without, and the account so far."""
        for _, records in groupby(self._records, key=lambda record: record.time is None):
            run = list(records)
            found = make_chunk(run, lines=len(run))
            yield replace(found, data=self._silent(len(run)) | found.data, lost=self._lost(found.numbers))
        notes = tuple(self._sections.notes)
        lines = self.continued + len(self._other_lines)
        yield make_chunk(
            [],
            lines=lines,
            other_lines=self._other_lines,
            continued=self.continued,
            absent=dict(self._sections.absent),
            notes=notes,
        )
        self._records, self._other_lines, self.continued = [], [], 0
        self._sections.absent.clear()
        self._sections.lost.clear()

    def _lost(self, numbers: IntArray) -> dict[str, IntArray]:
        """Return the lines of rows of lost GPUs, by what is said of these."""
        lost = self._sections.lost
        return {
            text: np.array([line for line in numbers.tolist() if lost.get(line) == text], dtype=np.int64)
            for text in {lost[line] for line in numbers.tolist() if line in lost}
        }

    def _silent(self, rows: int) -> dict[str, Values]:
        """Return columns that are there and hold no value."""
        none = np.zeros(rows, dtype=np.bool_)
        names = [name for name in self._sections.silent if name in BY_NAME]
        return {name: Values(np.zeros(rows, dtype=BY_NAME[name].dtype), none) for name in names}
