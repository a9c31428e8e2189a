"""The columns of a log: typed values for the series, and which heading became which metric."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpureport import columns
from gpureport.columns import BoolArray, IntArray
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.row_sections import Section
from gpureport.importers.values.cells import Column, Decoded
from gpureport.metrics import CLOCK_EVENT_BITS
from gpureport.series_table import METRIC_TYPES

if TYPE_CHECKING:
    import pyarrow as pa

CLOCK_EVENTS = "clock_events"
"""Target of the bit mask of clock events."""
_KNOWN_BITS = np.uint64(sum(CLOCK_EVENT_BITS.values()))


@dataclass(frozen=True, slots=True)
class Values:
    """One column of rows: numbers with where they are present, or codes into texts."""

    data: npt.NDArray[Any]
    valid: BoolArray
    texts: list[str] | None = None

    def select(self, rows: BoolArray | IntArray) -> "Values":
        """Return the values of some rows."""
        if rows.dtype == np.bool_:
            return Values(self.data[rows], self.valid[rows], self.texts)
        valid = columns.repeat_value(np.True_, len(rows)) if self.valid.all() else self.valid.take(rows)
        data = self.data[: len(rows)] if columns.is_constant(self.data) else self.data.take(rows)
        return Values(data, valid, self.texts)

    def arrow(self, name: str, rows: slice) -> "pa.Array[Any]":
        """Return the values of some rows as the Arrow type of the column."""
        if self.texts is not None:
            return columns.categories(self.data[rows], self.texts, self.valid[rows])
        return columns.to_arrow(self.data[rows], METRIC_TYPES[name], self.valid[rows])


def to_values(decoded: Decoded, dtype: str) -> Values:
    """Return a decoded column as values."""
    if dtype == "str":
        return _texts(decoded)
    return Values(decoded.values(dtype), decoded.valid())


def _texts(decoded: Decoded) -> Values:
    """Return a column of texts, each text once: cells that differ in blanks or hold nothing may be equal."""
    texts = [str(value) for value in decoded.distinct]
    places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
    if len(places) == len(texts):
        return Values(decoded.codes, decoded.valid(), texts)
    table = np.array([places[text] for text in texts], dtype=decoded.codes.dtype)
    return Values(table.take(decoded.codes), decoded.valid(), list(places))


def columns_by_target(section: Section) -> dict[str, Values]:
    """Return the columns of a section by their targets, the time stamp aside."""
    return {
        column.target: to_values(section.columns[position], column.dtype)
        for position, column in enumerate(section.layout.columns)
        if position != section.layout.stamp
    }


def split_clock_events(data: dict[str, Values]) -> dict[str, Values]:
    """Return the columns with the mask replaced by one column a reason; bits without a name are kept in hex.

    Columns of single reasons the log holds besides the mask give way to it: the mask is read in one moment.
    """
    mask = data.get(CLOCK_EVENTS)
    if mask is None:
        return data
    rest = {name: values for name, values in data.items() if name != CLOCK_EVENTS}
    bits = mask.data.astype(np.uint64)
    ever, always = np.bitwise_or.reduce(bits), np.bitwise_and.reduce(bits)
    reasons = {
        f"clock_event_{reason}": Values(_bit_column(bits, np.uint64(bit), ever, always), mask.valid)
        for reason, bit in CLOCK_EVENT_BITS.items()
    }
    unknown = bits & ~_KNOWN_BITS if ever & ~_KNOWN_BITS else columns.repeat_value(np.uint64(0), len(bits))
    return rest | reasons | {"clock_event_unknown_bits": Values(unknown, mask.valid)}


def _bit_column(bits: npt.NDArray[np.uint64], bit: np.uint64, ever: np.uint64, always: np.uint64) -> BoolArray:
    """Return where a bit is set, given the bits that are set anywhere and those set everywhere: most never are."""
    return (bits & bit) != 0 if ever & bit and not always & bit else columns.repeat_value(bool(always & bit), len(bits))


class ColumnsRead:
    """Remembers which columns a log has, and what they became."""

    def __init__(self) -> None:
        self._columns: dict[tuple[str, str], Column] = {}
        self._layout: Layout | None = None

    def metrics(self) -> tuple[tuple[str, str], ...]:
        """Return each heading with the metric or attribute that its column became, in the order of the log."""
        return tuple(self._columns)

    def fills(self, source: str, target: str) -> bool:
        """Return whether a column of some name fills a target."""
        return any((column.source, column.target) == (source, target) for column in self._columns.values())

    def translated(self) -> list[str]:
        """Return for each heading that was taken for another one, which."""
        return [
            f"{column.heading} is taken for {column.source}{f' [{column.unit}]' if column.unit else ''}"
            for column in self._columns.values()
            if column.translated
        ]

    def see(self, layout: Layout) -> None:
        """Take the columns of a section."""
        if layout is not self._layout:
            self._layout = layout
            for column in layout.columns:
                self._columns.setdefault((column.heading or column.source, column.target), column)
