"""One cell of text to a value, decided cell by cell; a column at a time through its distinct texts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, IntArray, integers


@dataclass(frozen=True, slots=True)
class Absent:
    """A cell that says it holds no value, with the reason as written."""

    reason: str


Value = float | int | str | bool


class _Unread:
    """Stands for a text that was not read yet."""


_UNREAD = _Unread()
Reader = Callable[[str], Value | Absent | None]
"""Reads one stripped cell: a value, an Absent, or None when the text is not what the column holds."""

EMPTY = Absent("empty")
CUT_CELL = "[cut]"
"""Stands for the last cell of a file that ends inside it."""

_BARE = {"N/A": Absent("N/A"), "-": Absent("-"), "ERR!": Absent("ERR!"), "nan": Absent("nan"), "": EMPTY}
_CACHED = 200_000


def absent(text: str) -> Absent | None:
    """Return why a cell holds no value, None when it does; any `[bracketed]` text is such a reason."""
    if text.startswith("[") and text.endswith("]"):
        return Absent(text[1:-1])
    return _BARE.get(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """How one column of a source is read.

    Attributes:
        target: column of the series, or a name of the importer's own.
        source: the name the source gives it.
        dtype: NumPy type of its values; `str` for text.
        unit: unit its heading states, empty when it states none.
        read: reader of one cell; it follows from the rest.
    """

    target: str
    source: str
    dtype: str
    unit: str = ""
    read: Reader = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A column read: codes into its distinct values, and the state of each row.

    Attributes:
        codes: index into `distinct` for each row.
        distinct: distinct values; what stands where there is none is undefined.
        present: for each distinct value, whether it is one.
        malformed: for each distinct value, whether its text is not what the column holds.
        reasons: for each distinct value, why it is absent, else None.
    """

    codes: IntArray
    distinct: list[Value]
    present: BoolArray
    malformed: BoolArray
    reasons: list[str | None]

    def values(self, dtype: str) -> npt.NDArray[Any]:
        """Return one value a row."""
        return np.array(self.distinct, dtype=dtype)[self.codes] if self.distinct else np.zeros(0, dtype=dtype)

    def valid(self) -> BoolArray:
        """Return where a row holds a value."""
        return self.present[self.codes]


class CellReader:
    """Reads whole columns and remembers what each distinct text meant."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._known: dict[Column, dict[str, Value | Absent | None]] = {}

    def decode(self, column: Column, cells: Any) -> Decoded:  # noqa: ANN401 - the stubs give dictionary arrays two parameters Arrow has not
        """Return a column of texts, an Arrow dictionary array, as values."""
        known = self._known.setdefault(column, {})
        if len(known) > _CACHED:
            known.clear()
        read = [self._read(column, text, known) for text in cells.dictionary.to_pylist()]
        none: Value = "" if column.dtype == "str" else 0
        return Decoded(
            codes=integers(cells.indices),
            distinct=[none if cell is None or isinstance(cell, Absent) else cell for cell in read],
            present=np.array([not (cell is None or isinstance(cell, Absent)) for cell in read], dtype=np.bool_),
            malformed=np.array([cell is None for cell in read], dtype=np.bool_),
            reasons=[cell.reason if isinstance(cell, Absent) else None for cell in read],
        )

    @staticmethod
    def _read(column: Column, raw: str, known: dict[str, Value | Absent | None]) -> Value | Absent | None:
        # other threads fill and clear the same memory, so what is found is taken in one step
        found = known.get(raw, _UNREAD)
        if isinstance(found, _Unread):
            text = raw.strip()
            found = known[raw] = absent(text) or column.read(text)
        return found
