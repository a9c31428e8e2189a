"""Maps the cells of a subsection of `nvidia-smi -q` to metrics and values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gpureport.importers.logs.nvidia_smi.forms.full_query.query_paths import PART_KINDS, PARTS, column
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsections import Subsection, SubsectionValues
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.driver_messages import LOST
from gpureport.importers.values.cells import Absent, Column, Value, absent
from gpureport.metrics import BY_NAME

_REMEMBERED = 100_000
_LONGEST = 200
"""Characters of a value at most."""
_EXTRAS = 32
"""Values without a metric that are kept at most."""
_WORDS = re.compile(r"[A-Za-z][A-Za-z/' .-]{1,79}")
"""An error of the driver in the place of a value: words without a number."""

_Meant = Value | Absent | None


class SubsectionReader:
    """Reads what passages mean, and remembers it of paths and texts."""

    def __init__(self) -> None:
        self._columns: dict[str, Column | None] = {}
        self._extras: set[str] = set()
        self._known: dict[tuple[str, str], _Meant] = {}

    def keeps_path(self, path: str) -> bool:
        """Return whether the value at a path is kept."""
        return self._column(path) is not None

    def _column(self, path: str) -> Column | None:
        """Return how the value at a path is read; None where it is not kept: damage may make up ever new names."""
        if path not in self._columns:
            if len(self._columns) > _REMEMBERED:
                self._columns.clear()
            found = column(path)
            if found is not None and found.target not in BY_NAME and found.target.startswith("extra_"):
                self._extras |= {found.target} if len(self._extras) < _EXTRAS else set()
                found = found if found.target in self._extras else None
            self._columns[path] = found
        return self._columns[path]

    def meaning(self, passage: Subsection) -> SubsectionValues:
        """Return what a passage means."""
        passage.meaning = found = passage.meaning or self._meaning(passage.cells)
        return found

    def _meaning(self, cells: Mapping[str, str]) -> SubsectionValues:
        found = _Found()
        for path, text in cells.items():
            known = self._column(path)
            assert known is not None  # noqa: S101 - passages hold cells that are kept
            value = self._cell(path, text, known)
            if value is None:
                found.spoilt = found.spoilt or known.source
            else:
                found.take(path, known, value)
        return found.meaning()

    def _cell(self, path: str, text: str, known: Column) -> _Meant:
        if len(text) > _LONGEST:
            return None
        key = (path, text)
        if key not in self._known:
            if len(self._known) > _REMEMBERED:
                self._known.clear()
            self._known[key] = _read(known, text)
        return self._known[key]


@dataclass(slots=True)
class _Found:
    values: dict[str, Value] = field(default_factory=dict)
    parts: dict[str, dict[str, Value | Absent]] = field(default_factory=dict)
    absent: list[tuple[str, str]] = field(default_factory=list)
    silent: list[str] = field(default_factory=list)
    averaged: bool = False
    measured: bool = False
    spoilt: str = ""

    def take(self, path: str, known: Column, value: Value | Absent) -> None:
        """Take a cell."""
        self.measured |= known.target in BY_NAME
        if path in PARTS:
            self.parts.setdefault(known.source, {})[path] = value
        elif isinstance(value, Absent):
            self._lacks(known.source, known.target, value)
        elif known.target not in self.values or known.source in fields.PREFERRED:
            self.averaged |= known.source == "power.draw.average"
            self.values[known.target] = value

    def _lacks(self, source: str, target: str, value: Absent) -> None:
        self.absent.append((source, value.reason))
        self.silent.append(target)

    def meaning(self) -> SubsectionValues:
        """Return what all of them mean."""
        self._add()
        return SubsectionValues(
            values=self.values,
            absent=tuple(self.absent),
            silent=tuple(self.silent),
            averaged=self.averaged,
            measured=self.measured,
            spoilt=self.spoilt,
        )

    def _add(self) -> None:
        """Add up fields that are written in parts; there is no sum where a part has no value, or a kind is missing."""
        for source, values in self.parts.items():
            target = fields.find_target(source) or source
            missing = next((value for value in values.values() if isinstance(value, Absent)), None)
            kinds = {path.rpartition("/")[2].partition("_")[0] for path in values}
            if missing is not None:
                self._lacks(source, target, missing)
            elif kinds == PART_KINDS:
                self.values[target] = sum(int(value) for value in values.values() if not isinstance(value, Absent))


def _read(known: Column, text: str) -> _Meant:
    """Return what a text holds; None where it is not what its column holds."""
    why = absent(text)
    if why is not None:
        return why
    if text in LOST:
        # of a name, any words are a value
        return Absent(text)
    value = known.read(text.removesuffix("x") if known.target.startswith("pcie_link_width") else text)
    return Absent(text) if value is None and _WORDS.fullmatch(text) else value
