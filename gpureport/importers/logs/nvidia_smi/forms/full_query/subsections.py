"""Subsections of `nvidia-smi -q`: what stands below one label, or in one XML element.

Most say in every document what they said in the one before, so what a text holds is remembered.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from gpureport.importers.protocol.reject_reasons import TORN
from gpureport.importers.values.cells import Value

MINOR = "minor_number"
"""Path of the number of a GPU's device file."""
_DIGITS = 4
_MOST_BYTES = 2**20
"""Text of passages that is remembered at most; one document of eight H100 has 34 KiB in XML (measured)."""
_LONGEST = 8192
"""Bytes of a passage that is remembered (pragmatic: lists of processes are longer, and differ each time)."""


def parse_small_integer(text: str) -> int | None:
    """Return a number from 0 to 9999, None for another text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SubsectionValues:
    """What the cells of a passage mean.

    Attributes:
        values: values by metric or attribute.
        absent: cells without a value, by query field and reason.
        silent: columns of which a cell has no value.
        averaged: whether it holds power that is an average over a second.
        measured: whether any cell is one of a metric, with a value or without.
        spoilt: the first field whose cell is not what its column holds; empty where all are.
    """

    values: dict[str, Value]
    absent: tuple[tuple[str, str], ...]
    silent: tuple[str, ...]
    averaged: bool
    measured: bool
    spoilt: str


@dataclass(slots=True)
class Subsection:
    """A part of a section.

    Attributes:
        label: the first step of the paths of its cells; empty where they may differ.
        cells: texts by path, of the paths that are kept.
        minor: number of the GPU's device file, empty where it is not said.
        flaw: why it cannot be used, empty where it can.
        lines: lines it was read from.
        above: how far the labels are indented that a line behind it may belong to, and their paths.
        meaning: what its cells mean, None before that was asked for.
    """

    label: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    minor: str = ""
    flaw: str = ""
    lines: int = 0
    above: list[tuple[int, str]] = field(default_factory=list)
    meaning: SubsectionValues | None = None

    def take(self, path: str, text: str) -> None:
        """Take a cell that is kept; another text than stood in its place before is a flaw."""
        if path == MINOR:
            number = parse_small_integer(text)
            self.minor = "" if number is None else str(number)
        elif self.cells.setdefault(path, text) != text:
            self.flaw = TORN


def join_subsections(parts: Iterable[Subsection]) -> Subsection:
    """Return several passages as one."""
    whole = Subsection()
    for part in parts:
        for path, text in part.cells.items():
            whole.take(path, text)
        whole.flaw = part.flaw or whole.flaw
    return whole


class SubsectionCache:
    """Remembers passages by their text, in bounded memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, Subsection] = {}
        self._bytes = 0
        self.get = self._known.get

    def add(self, text: bytes, passage: Subsection) -> None:
        """Remember a passage, unless it is long."""
        if len(text) > _LONGEST:
            return
        self._bytes += len(text)
        if self._bytes > _MOST_BYTES:
            self._known.clear()
            self._bytes = len(text)
        self._known[text] = passage
