"""Reads a CSV that a recorder of one's own wrote: times of any kind, headings as people name them, a column a core."""

import re
from collections.abc import Sequence
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import split_header as header_cells
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.host.day_clock import parse_time_of_day
from gpureport.importers.logs.host.host_form import LineForm, number_lines
from gpureport.importers.logs.host.host_rows import TableReading
from gpureport.importers.logs.host.printed_numbers import LARGEST
from gpureport.importers.logs.host.recorder_csv.wide_layout import Field, WideLayout
from gpureport.importers.logs.host.tick_totals import CORE_COUNT
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED, WRONG_CELLS
from gpureport.importers.values.cells import absent
from gpureport.importers.values.timestamps import parse_timestamp

_NUMBER = re.compile(r"[-+]?(?:\d{1,18}\.?\d{0,18}|\.\d{1,18})(?:[eE][-+]?\d{1,2})?\s*%?", re.ASCII)
_MOST = 1.01
"""A share that is rounded may exceed 1 by this much."""
_TOLD = 10_000
"""First lines that tell what a share counts in."""
_TOO_MUCH = "above 100%"


class WideCsv(LineForm):
    """Rows of such a CSV."""

    name: ClassVar[str] = "a CSV"

    def __init__(self, around: tuple[int, int] | None = None) -> None:
        """Start; `around` is as for all host logs."""
        super().__init__(around)
        self._layout: WideLayout | None = None
        self._core_count: int | None = None
        self._kind: str | None = None

    @staticmethod
    def identify(lines: list[str]) -> bool:
        """Return whether the first line names a time and the load of a processor."""
        return bool(lines) and WideLayout.from_header(*header_cells(lines[0])) is not None

    def _read_piece(self, piece: Piece) -> None:
        lines = [(number, line, cut) for number, line, cut in number_lines(piece) if line.strip()]
        if self._layout is None and lines:
            self._begin(lines[0][1], [line for _, line, cut in lines[1:_TOLD] if not cut])
        for number, line, cut in lines:
            self._line(number, line, cut=cut)

    def _begin(self, header: str, lines: Sequence[str]) -> None:
        """Take the header; what a share without a unit counts in shows in the rows."""
        layout = WideLayout.from_header(*header_cells(header))
        if layout is not None:
            rows = [cells for line in lines if (cells := layout.cells(line)) is not None]
            self._layout = layout.without_unclear_shares(rows)
            self._core_count = self._layout.core_count
            self._readings.notes |= dict.fromkeys(self._layout.notes)

    def _line(self, number: int, line: str, *, cut: bool) -> None:
        layout = self._layout
        if layout is None:
            self._readings.lost(number, WRONG_CELLS, line)
        elif cut and line.strip() != layout.header:
            self._readings.lost(number, CUT_LAST_LINE, line)
        elif line.strip() == layout.header:
            self._readings.lost(number, "", line, LineKind.HEADER)
        elif (cells := layout.cells(line)) is None:
            self._readings.lost(number, WRONG_CELLS, line)
        elif (at := self._at(layout, cells)) is None:
            self._readings.lost(number, f"{MALFORMED} {layout.time}", line)
        else:
            self._take(layout, number, line, at, cells)

    def _at(self, layout: WideLayout, cells: Sequence[str]) -> int | None:
        """Return the time of a row, None where it states none or one of another kind than those before."""
        text = layout.time_text(cells)
        found = parse_timestamp(text)
        since_midnight = parse_time_of_day(text.partition(".")[0]) if found is None else None
        if found is None and since_midnight is None:
            return None
        kind = "time of day" if found is None else "utc" if found.utc or layout.utc else "local"
        if self._kind is None:
            self._kind, self.zone = kind, "UTC" if kind == "utc" else None
        if kind != self._kind:
            return None
        return found.micros if found is not None else None if since_midnight is None else self._clock.at(since_midnight)

    def _take(self, layout: WideLayout, number: int, line: str, at: int, cells: Sequence[str]) -> None:
        values: dict[str, float] = {}
        for field in layout.fields:
            text = cells[field.place].strip()
            missing = absent(text) or (absent("nan") if text in {"None", "NaN", "null", "NA"} else None)
            if missing is not None:
                self._absent(field, missing.reason)
            elif _NUMBER.fullmatch(text := text.replace(",", ".")) is None:
                self._readings.lost(number, f"{MALFORMED} {field.heading}", line)
                return
            else:
                self._value(field, float(text.rstrip("% ")) * field.scale, values)
        if self._core_count is not None:
            values.setdefault(CORE_COUNT, self._core_count)
        self._readings.put(TableReading(table="", stamp=at, number=number, lines=1, values=values))

    def _value(self, field: Field, value: float, values: dict[str, float]) -> None:
        """Take a value; of several cores the busiest counts."""
        if value < 0 or (field.share and value > _MOST) or value >= LARGEST:
            self._absent(field, "negative" if value < 0 else _TOO_MUCH if field.share else "beyond any machine")
        else:
            values[field.metric] = max(value, values.get(field.metric, 0.0)) if field.core else value

    def _absent(self, field: Field, reason: str) -> None:
        key = field.heading, reason
        self._readings.absent[key] = self._readings.absent.get(key, 0) + 1
