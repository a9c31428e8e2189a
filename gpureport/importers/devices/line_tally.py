"""Counts what became of every line of a log."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from gpureport.columns import BoolArray, IntArray
from gpureport.data_quality import AbsentCells, LogGap, Quality, Rejected, RejectedLine
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine, ParsedPiece, Section
from gpureport.importers.timebase.device_clock import Clock
from gpureport.importers.timebase.placed_rows import PlacedRows
from gpureport.redaction import redact_start

_KEPT, _LONGEST = 5, 200
"""Rejected lines of each reason that are kept, and characters of each."""
_SHOWN, _EXAMPLES = 60, 3
"""Letters of a cell, and how many cells, that a note shows."""


@dataclass(slots=True)
class Tally:
    """Counts what became of every line."""

    lines: int = 0
    rows: int = 0
    headers: int = 0
    noise: int = 0
    events: int = 0
    continued: int = 0
    rejected: dict[str, list[int]] = field(default_factory=dict)
    absent: Counter[tuple[str, str]] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    misaligned: Counter[tuple[int, int]] = field(default_factory=Counter)
    _unnamed_cells: Counter[str] = field(default_factory=Counter)
    _torn: "array[int]" = field(default_factory=lambda: array("q"))
    _examples: dict[str, list[RejectedLine]] = field(default_factory=dict)

    def add(self, parsed: ParsedPiece) -> None:
        """Count the lines of one piece."""
        self.take(parsed.lines, sum(len(section.times) for section in parsed.sections), 0, parsed.other_lines)
        for line in parsed.other_lines:
            if line.cells and parsed.layout is not None:
                self.misaligned[len(parsed.layout.columns), line.cells] += 1
        self._unnamed_cells.update(parsed.unnamed_cells)
        if parsed.cut:
            self.notes.append("The log has no newline at its end, so its last line may be cut.")

    def take(self, lines: int, rows: int, continued: int, other_lines: Iterable[NonDataLine]) -> None:
        """Count lines: the rows, the lines that continue a row, and all others."""
        self.lines += lines
        self.rows += rows
        self.continued += continued
        other_lines = list(other_lines)
        kinds = Counter([line.kind for line in other_lines])
        self.headers += kinds[LineKind.HEADER]
        self.noise += kinds[LineKind.NOISE]
        self.events += kinds[LineKind.EVENT]
        self._count_rejected([line for line in other_lines if line.kind is LineKind.REJECTED])
        # the torn part of a line that ends in a whole row counts as no line
        self._torn.extend(line.number for line in other_lines if line.kind is LineKind.TORN_OFF)

    def _count_rejected(self, lines: Sequence[NonDataLine]) -> None:
        """Count and keep rejected lines."""
        numbers: dict[str, list[int]] = {}
        for line in lines:
            numbers.setdefault(line.reason, []).append(line.number)
        for reason, places in numbers.items():
            self.reject(reason, len(places), min(places))
        for line in lines:
            examples = self._examples.setdefault(line.reason, [])
            if line.text and len(examples) < _KEPT:
                text = redact_start(line.text.strip(), _LONGEST)
                examples.append(RejectedLine(line=line.number, text=text))

    def reject(self, reason: str, rows: int, line: int) -> None:
        """Count rejected lines of one reason."""
        entry = self.rejected.setdefault(reason, [0, line])
        entry[0] += rows
        entry[1] = min(entry[1], line)

    def drop(self, reason: str, numbers: IntArray) -> None:
        """Count rows that were read but stay out of the series."""
        if len(numbers):
            self.rows -= len(numbers)
            self.reject(reason, len(numbers), int(numbers.min()))

    def settle(self, section: Section, placed: PlacedRows) -> None:
        """Count the rows of a section that its placement leaves out, then keep the others."""
        self.leave_out(section.numbers, placed)
        self.keep(section, placed.devices >= 0)

    def leave_out(self, numbers: IntArray, placed: PlacedRows) -> None:
        """Count the rows that their placement leaves out."""
        for reason, rows in placed.left_out.items():
            self.drop(reason, numbers[rows])

    def keep(self, section: Section, rows: BoolArray) -> None:
        """Count the cells without a value in the rows that are kept."""
        for position, decoded in section.columns.items():
            for reason, cells in decoded.absences(rows).items():
                self.absent[section.layout.columns[position].source, reason] += cells

    def quality(self, clocks: list[Clock], notes: tuple[str, ...] = ()) -> Quality:
        """Return the account, with the timing of the devices and the notes on the order of the rows."""
        gaps = tuple(gap for clock in clocks for gap in clock.gaps())
        return Quality(
            lines=self.lines,
            rows_kept=self.rows,
            rejected=tuple(
                Rejected(reason=reason, rows=rows, first_line=at, examples=tuple(self._examples.get(reason, ())))
                for reason, (rows, at) in sorted(self.rejected.items())
            ),
            headers=self.headers,
            noise=self.noise,
            events=self.events,
            continued=self.continued,
            absent_cells=tuple(AbsentCells(column=c, reason=r, cells=n) for (c, r), n in sorted(self.absent.items())),
            gaps=gaps,
            duplicates=sum(clock.duplicates for clock in clocks),
            clock_steps=tuple(step for clock in clocks for step in clock.steps),
            coverage_ratio=coverage_ratio(clocks, gaps),
            notes=(*self.notes, *self._torn_line_notes(), *self._unnamed_cell_notes(), *notes),
        )

    def _unnamed_cell_notes(self) -> Iterator[str]:
        """Yield what a reader must know of cells that no heading names."""
        if self._unnamed_cells:
            rows = self._unnamed_cells.total()
            texts = [redact_start(text, _SHOWN) for text, _ in self._unnamed_cells.most_common(_EXAMPLES)]
            holds = f"{rows} rows hold" if rows > 1 else "1 row holds"
            yield f"{holds} cells before the time stamp that have no heading ({'; '.join(texts)}): they are left out."

    def _torn_line_notes(self) -> Iterator[str]:
        """Yield what a reader must know of the lines of which a part was left out."""
        if self._torn:
            number, first = len(self._torn), min(self._torn)
            several = f"{number} torn lines (the first is line {first}) end"
            torn = several if number > 1 else f"Line {first} is torn and ends"
            yield f"{torn} in a whole row: the row is kept, what stands before it is left out."


def coverage_ratio(clocks: list[Clock], gaps: tuple[LogGap, ...]) -> float | None:
    """Return the share of the time from first to last sample, over all devices, in which each was sampled."""
    spans = [(clock.first, clock.last) for clock in clocks if clock.first is not None and clock.last is not None]
    whole = max((end for _, end in spans), default=0) - min((start for start, _ in spans), default=0)
    sampled = sum(end - start for start, end in spans) - sum(gap.end - gap.start for gap in gaps)
    return sampled / (whole * len(spans)) if whole else None
