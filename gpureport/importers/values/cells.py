"""One cell of text to a value, decided cell by cell; a column at a time through its distinct texts."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpureport.columns import BoolArray, read_codes, repeat_value, strings_to_arrow
from gpureport.importers.values.numbers import Number, read_all
from gpureport.redaction import redact_text


@dataclass(frozen=True, slots=True)
class Absent:
    """A cell that says it holds no value, with the reason as written."""

    reason: str


Value = float | int | str | bool


class _Unread:
    """A text that was not read yet."""


_UNREAD = _Unread()
Reader = Callable[[str], Value | Absent | None]
"""Reads one stripped cell: a value, an Absent, or None when the text is not what the column holds."""

EMPTY = Absent("empty")
CUT = "cut"
"""The reason for a cell that may have lost a part."""
CUT_CELL = f"[{CUT}]"
"""The text of such a cell."""

_BARE = {"N/A": Absent("N/A"), "-": Absent("-"), "ERR!": Absent("ERR!"), "nan": Absent("nan"), "": EMPTY}
_CACHED = 200_000
_MANY = 256
"""Distinct texts from which on reading them all at once is faster."""
GROUPED = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])")
"""A whole number with a dot before every three digits."""


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
        decimal: character before the decimals of a number.
        thousands: whether dots part the thousands of a number, where the decimal sign is a comma.
        read: reader of one cell; it follows from the rest.
        number: what its numbers are, None when it holds none.
        heading: the heading as written.
        translated: whether a person wrote it, and `source` is what it was taken for.
    """

    target: str
    source: str
    dtype: str
    unit: str = ""
    decimal: str = "."
    thousands: bool = False
    read: Reader = field(compare=False)
    number: Number | None = field(default=None, compare=False)
    heading: str = field(default="", compare=False)
    translated: bool = field(default=False, compare=False)


def number_column(target: str, source: str, dtype: str, number: Number, unit: str = "") -> Column:
    """Return a column of numbers."""
    return Column(target=target, source=source, dtype=dtype, unit=unit, read=number.read, number=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """A column read: codes into its distinct values, or one value a row; and the state of each row.

    Attributes:
        codes: index into `distinct` for each row; negative for a row whose value is in `plain`.
        distinct: distinct values; what stands where there is none is undefined.
        present: for each distinct value, whether it is one.
        malformed: for each distinct value, whether its text is not what the column holds.
        bare: for each distinct value, whether it is a number without a unit.
        reasons: for each distinct value, why it is absent, else None.
        plain: values of rows that were read without their distinct texts; None when there are none.
        plain_bare: whether these are numbers without a unit.
    """

    codes: npt.NDArray[np.int32]
    distinct: list[Value]
    present: BoolArray
    malformed: BoolArray
    bare: BoolArray
    reasons: list[str | None]
    plain: npt.NDArray[Any] | None = None
    plain_bare: BoolArray | None = None

    def values(self, dtype: str) -> npt.NDArray[Any]:
        """Return one value a row."""
        if self.plain is None:
            return np.array(self.distinct, dtype=dtype).take(self.codes)
        values = self.plain.astype(dtype)
        coded = np.flatnonzero(self.codes >= 0)
        if len(coded):
            values[coded] = np.array(self.distinct, dtype=dtype)[self.codes[coded]]
        return values

    def valid(self) -> BoolArray:
        """Return where a row holds a value."""
        return repeat_value(np.True_, len(self.codes)) if self.present.all() else self._expand(self.present, plain=True)

    def wrong(self) -> BoolArray:
        """Return where the text of a row is not what the column holds."""
        return (
            self._expand(self.malformed, plain=False) if self.malformed.any() else np.zeros(len(self.codes), np.bool_)
        )

    def without_unit(self) -> BoolArray | None:
        """Return where a number has no unit of its own, in a column where others have; None where all are alike."""
        if self.plain_bare is not None:
            bare = np.where(self.codes < 0, self.plain_bare, self._expand(self.bare, plain=False))
            numbers = self.valid()
            return None if not (bare & numbers).any() or bare[numbers].all() else bare & numbers
        if not self.bare.any() or self.bare[self.present].all():
            return None
        return self._expand(self.bare, plain=False)

    def _expand(self, states: BoolArray, *, plain: bool) -> BoolArray:
        if self.plain is None:
            return states.take(self.codes)
        return np.append(states, plain)[self.codes]

    def absences(self, rows: BoolArray) -> Counter[str]:
        """Return how many of some rows hold no value, by reason."""
        if all(reason is None for reason in self.reasons):
            return Counter()
        codes = self.codes[rows]
        counts = np.bincount(codes[codes >= 0], minlength=len(self.reasons)).tolist()
        found: Counter[str] = Counter()
        for reason, cells in zip(self.reasons, counts, strict=True):
            if reason is not None and cells:
                found[reason] += cells
        return found

    def select(self, rows: BoolArray | slice) -> "Decoded":
        """Return some rows of the column."""
        return Decoded(
            codes=self.codes[rows],
            distinct=self.distinct,
            present=self.present,
            malformed=self.malformed,
            bare=self.bare,
            reasons=self.reasons,
            plain=None if self.plain is None else self.plain[rows],
            plain_bare=None if self.plain_bare is None else self.plain_bare[rows],
        )


class CellReader:
    """Reads whole columns and remembers what each distinct text meant."""

    def __init__(self) -> None:
        self._known: dict[Column, dict[str, Value | Absent | None]] = {}

    def decode(self, column: Column, cells: Any) -> Decoded:
        """Return a column of texts, an Arrow dictionary array or a plain one, as values."""
        if column.thousands and not hasattr(cells, "dictionary"):
            cells = cells.dictionary_encode()
        if hasattr(cells, "dictionary"):
            return self._coded(column, cells.dictionary.to_pylist(), read_codes(cells.indices))
        assert column.number is not None  # noqa: S101 - only columns of numbers are parsed as plain text
        values, known, bare = read_all(cells, column.number)
        rest = np.flatnonzero(~known)
        places = np.full(len(values), -1, dtype=np.int32)
        if not len(rest):
            return replace(self._coded(column, [], places, values), plain_bare=bare)
        # Arrow would encode them by its functions, the import of which takes longer than the few cells there are
        texts = [cells[row].as_py() for row in rest.tolist()]
        found = {text: code for code, text in enumerate(dict.fromkeys(texts))}
        places[rest] = [found[text] for text in texts]
        return replace(self._coded(column, [*found], places, values), plain_bare=bare)

    def _coded(
        self, column: Column, texts: list[str], codes: npt.NDArray[np.int32], plain: npt.NDArray[Any] | None = None
    ) -> Decoded:
        known = self._known.setdefault(column, {})
        if len(known) > _CACHED:
            known.clear()
        read = self._all(column, texts, known)
        none: Value = "" if column.dtype == "str" else 0
        return Decoded(
            codes=codes,
            distinct=[none if cell is None or isinstance(cell, Absent) else cell for cell in read],
            present=np.array([not (cell is None or isinstance(cell, Absent)) for cell in read], dtype=np.bool_),
            malformed=np.array([cell is None for cell in read], dtype=np.bool_),
            bare=np.array(
                [column.number is not None and text.rstrip()[-1:].isdigit() for text in texts], dtype=np.bool_
            ),
            reasons=[cell.reason if isinstance(cell, Absent) else None for cell in read],
            plain=plain,
        )

    def _all(
        self, column: Column, texts: list[str], known: dict[str, Value | Absent | None]
    ) -> list[Value | Absent | None]:
        """Return the values of distinct texts, one by one unless they are many."""
        if column.number is None or column.thousands or len(texts) < _MANY:
            return [self._read(column, text, known) for text in texts]
        values, told, _ = read_all(strings_to_arrow(texts), column.number)
        whole = values.astype(np.int64) if column.number.whole else values
        pairs = zip(texts, whole.tolist(), told.tolist(), strict=True)
        return [value if sure else self._read(column, text, known) for text, value, sure in pairs]

    @staticmethod
    def _read(column: Column, raw: str, known: dict[str, Value | Absent | None]) -> Value | Absent | None:
        # other threads fill and clear the same memory, so what is found is taken in one step
        found = known.get(raw, _UNREAD)
        if isinstance(found, _Unread):
            text = raw.strip()
            found = known[raw] = absent(text) or column.read(text if column.number is None else _dotted(column, text))
        return found


def _dotted(column: Column, text: str) -> str:
    """Return a number with a dot as its decimal sign, and nothing between its thousands."""
    if column.thousands and (match := GROUPED.match(text)):
        text = match[0].replace(".", "") + text[match.end() :]
    return text if column.decimal == "." else text.replace(column.decimal, ".")


def extra_name(source: str) -> str:
    """Return the name of the column that keeps what has no place of its own."""
    return "extra_" + "".join(character if character.isalnum() else "_" for character in redact_text(source))
