"""The cells of the table of GPUs: each holds several fields, and most repeat what other rows hold."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from gpureport.columns import codes as codes_of
from gpureport.columns import everywhere
from gpureport.importers.delimited.cells import Absent, Decoded, Value, absent
from gpureport.importers.nvidia_smi import fields
from gpureport.importers.nvidia_smi.forms.frames import CellBytes

_WORDS = r"N/A|ERR!|On|Off"
_REMEMBERED = 100_000
_BLANK = ord(" ")
_WIDEST = 200
"""A cell that is wider is none."""
_FEWEST = 8
"""Cells below which each is read whole."""
SHORTENED = "shortened"
"""Why a name that ends in dots is no model: several models begin with it."""

Read = Callable[[str], Value | Absent | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What one cell holds.

    Attributes:
        names: query fields in the order of the groups of the pattern.
        pattern: what the cell looks like.
        parts: where it is made of parts between blanks, for each of them the sign it is, empty for a field.
    """

    names: tuple[str, ...]
    pattern: re.Pattern[str]
    parts: tuple[str, ...] = ()


FIRST = (
    Cell(names=("index", "name"), pattern=re.compile(rf" *(\d+) +(\S.*?) +(?:{_WORDS}|WDDM|TCC|MCDM) *", re.ASCII)),
    Cell(
        names=("pci.bus_id",),
        pattern=re.compile(
            rf" *([0-9A-Fa-f]{{4,8}}:[0-9A-Fa-f]{{2}}:[0-9A-Fa-f]{{2}}\.[0-9A-Fa-f]|N/A|ERR!) +(?:{_WORDS}) *"
        ),
    ),
    Cell(names=("ecc.errors.uncorrected.volatile.total",), pattern=re.compile(r" *(\S+) *")),
)
"""Cells of the first line of a GPU."""
SECOND = (
    Cell(
        names=("fan.speed", "temperature.gpu", "pstate", "power.draw", "enforced.power.limit"),
        pattern=re.compile(r" *(\S+) +(\S+) +(\S+) +(N/A|[^\s/]+) */ *(\S+) *"),
        parts=("", "", "", "", "/", ""),
    ),
    Cell(
        names=("memory.used", "memory.total"),
        # MIG and integrated GPUs show one text in place of both
        pattern=re.compile(r" *(?:N/A|Not Supported|(N/A|[^\s/]+) */ *(\S+)) *"),
        parts=("", "/", ""),
    ),
    Cell(names=("utilization.gpu",), pattern=re.compile(r" *(\S+) +\S.*")),
)
THIRD = Cell(names=("mig.mode.current",), pattern=re.compile(r" *(\S*) *"))


def _reader(name: str) -> Read:
    column = fields.column(name)
    if column is None:
        raise AssertionError(name)
    read = column.read
    return lambda text: absent(text) or read(text)


def _name(text: str) -> Value | Absent | None:
    return Absent(SHORTENED) if text.endswith("...") else absent(text) or text


def _errors(text: str) -> Value | Absent | None:
    # a board shows its ECC mode in place of a number where it counts no errors: Off, or On with MIG
    return Absent(text) if text in {"Off", "On"} else _reader("ecc.errors.uncorrected.volatile.total")(text)


_SPECIAL: dict[str, Read] = {"name": _name, "ecc.errors.uncorrected.volatile.total": _errors}


class _NoPart:
    """Stands for a text that is no part of a cell: it is empty, or has blanks within it."""


_NO_PART = _NoPart()


class _Meanings(dict[bytes, Value | Absent | _NoPart | None]):
    """What the texts of a field mean, read when they are first asked for; None where a text is not what it holds."""

    def __init__(self, read: Read) -> None:
        """Start with nothing remembered."""
        super().__init__()
        self._read = read

    def __missing__(self, text: bytes) -> Value | Absent | _NoPart | None:
        """Read a text."""
        if len(self) > _REMEMBERED:
            self.clear()
        part = text.decode(errors="replace").strip()
        self[text] = found = self._read(part) if part and " " not in part else _NO_PART
        return found


class CellTexts:
    """Reads cells and remembers what each text meant."""

    def __init__(self) -> None:
        """Start with nothing remembered."""
        self._known: dict[tuple[str, ...], dict[bytes, tuple[Value | Absent | None, ...]]] = {}
        names = [name for cell in (*FIRST, *SECOND, THIRD) for name in cell.names]
        self._readers = {name: _SPECIAL.get(name) or _reader(name) for name in names}
        self._meanings = {name: _Meanings(read) for name, read in self._readers.items()}

    def decode(self, cell: Cell, cells: CellBytes) -> dict[str, Decoded]:
        """Return what cells of one kind hold, by query field."""
        matrix = cells.matrix()
        if matrix is None:
            places: dict[bytes, int] = {}
            codes = np.array([places.setdefault(text, len(places)) for text in cells.texts()], dtype=np.int32)
            return self._whole(cell, codes, list(places))
        return self._parted(cell, matrix) or self._whole(cell, *_distinct(matrix))

    def _whole(self, cell: Cell, codes: npt.NDArray[np.int32], texts: Sequence[bytes]) -> dict[str, Decoded]:
        """Return what cells hold by their distinct texts."""
        known = self._known.setdefault(cell.names, {})
        if len(known) > _REMEMBERED:
            known.clear()
        for text in texts:
            if text not in known and len(text) <= _WIDEST:
                known[text] = self._read(cell, text)
        none = (None,) * len(cell.names)
        columns = zip(*[known.get(text, none) for text in texts], strict=True)
        return {name: _decoded(codes, column) for name, column in zip(cell.names, columns, strict=True)}

    def _read(self, cell: Cell, text: bytes) -> tuple[Value | Absent | None, ...]:
        match = cell.pattern.fullmatch(text.decode(errors="replace"))
        if match is None:
            return (None,) * len(cell.names)
        whole = match[0].strip()
        return tuple(
            Absent(whole) if part is None else self._readers[name](part)
            for name, part in zip(cell.names, match.groups(), strict=True)
        )

    def _parted(self, cell: Cell, matrix: npt.NDArray[np.uint8]) -> dict[str, Decoded] | None:
        """Return what cells hold part by part, where blanks that all share stand between the parts; else None.

        Together the parts of a cell differ from row to row, each alone has few texts.
        """
        if len(cell.names) != cell.parts.count("") or len(matrix) < _FEWEST:
            return None
        used = np.concatenate([[False], (matrix != _BLANK).any(axis=0), [False]])
        edges = np.flatnonzero(used[1:] != used[:-1])
        if len(edges) != 2 * len(cell.parts):
            return None
        found, names = {}, iter(cell.names)
        for sign, begin, end in zip(cell.parts, edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            codes, texts = _distinct(np.ascontiguousarray(matrix[:, begin:end]))
            if sign and [text.decode(errors="replace").strip() for text in texts] != [sign]:
                return None
            if not sign:
                name = next(names)
                meant = list(map(self._meanings[name].__getitem__, texts))
                parts = [each for each in meant if not isinstance(each, _NoPart)]
                if len(parts) < len(meant):
                    return None
                found[name] = _decoded(codes, parts)
        return found


def _distinct(matrix: npt.NDArray[np.uint8]) -> tuple[npt.NDArray[np.int32], list[bytes]]:
    """Return an index into the distinct rows of a matrix for each row, and these."""
    rows, width = matrix.shape
    coded: Any = pa.Array.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(matrix.data)]).dictionary_encode()
    return codes_of(coded.indices), coded.dictionary.to_pylist()


def _decoded(codes: npt.NDArray[np.int32], cells: Sequence[Value | Absent | None]) -> Decoded:
    nowhere = np.zeros(len(cells), dtype=np.bool_)
    values = [cell for cell in cells if not (cell is None or isinstance(cell, Absent))]
    if len(values) == len(cells):
        none: list[str | None] = [None] * len(cells)
        present = everywhere(len(cells))
        return Decoded(codes=codes, distinct=values, present=present, malformed=nowhere, bare=nowhere, reasons=none)
    blank = "" if any(isinstance(cell, str) for cell in values) else 0
    return Decoded(
        codes=codes,
        distinct=[blank if cell is None or isinstance(cell, Absent) else cell for cell in cells],
        present=np.array([not (cell is None or isinstance(cell, Absent)) for cell in cells], dtype=np.bool_),
        malformed=np.array([cell is None for cell in cells], dtype=np.bool_),
        bare=nowhere,
        reasons=[cell.reason if isinstance(cell, Absent) else None for cell in cells],
    )
