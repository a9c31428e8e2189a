"""Collects what a form reads line by line into chunks, with every line accounted for."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby

from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.text.numbered_lines import TextLine
from gpureport.importers.text.text_log import Chunk, Record, make_chunk

_FULL = 20_000
"""Rows of a chunk: some megabytes, and enough for arrays to be fast."""


class ChunkBuilder:
    """Rows, other lines and notes since the last chunk."""

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._other_lines: list[NonDataLine] = []
        self._continued = 0
        self._absent: Counter[tuple[str, str]] = Counter()
        self._notes: dict[str, None] = {}
        self._number = 0

    @property
    def is_full(self) -> bool:
        """Whether a chunk is due."""
        return len(self._records) + len(self._other_lines) >= _FULL

    def add_row(
        self, line: int, time: int | None, values: Mapping[str, float | bool | str], *, host: bool = False
    ) -> None:
        """Add a row of one device; further rows of the same line get the next line numbers."""
        self._number = max(self._number + 1, line)
        self._records.append(Record(number=self._number, time=time, values=values, host=host))

    def add_non_data_line(self, line: TextLine, kind: LineKind, reason: str = "") -> None:
        """Add a line that is no row."""
        self._other_lines.append(NonDataLine(line.number, kind, reason, line.text))

    def reject(self, line: TextLine, reason: str) -> None:
        """Reject a line; a fault of the line itself wins over the reason."""
        self.add_non_data_line(line, LineKind.REJECTED, line.fault or reason)

    def count_continued(self, lines: int) -> None:
        """Count lines that belong to a row which another line is counted for."""
        self._continued += max(lines, 0)

    def count_absent(self, column: str, reason: str) -> None:
        """Count a cell without a value."""
        self._absent[column, reason] += 1

    def add_note(self, text: str) -> None:
        """Add a note for the reader; repeated notes are kept once."""
        self._notes[text] = None

    def chunks(self) -> Iterator[Chunk]:
        """Yield the collected chunks, rows with and without a time separately, and start afresh."""
        parts = [list(part) for _, part in groupby(self._records, lambda record: record.time is None)] or [[]]
        for place, part in enumerate(parts):
            first = place == 0
            yield make_chunk(
                part,
                lines=len(part) + (len(self._other_lines) + self._continued if first else 0),
                other_lines=tuple(self._other_lines) if first else (),
                continued=self._continued if first else 0,
                absent=dict(self._absent) if first else None,
                notes=tuple(self._notes) if first else (),
            )
        self._records, self._other_lines, self._continued = [], [], 0
        self._absent.clear()
        self._notes.clear()
