"""`nvidia-smi -q`, with `-d` and `-l` or without: sections of text, whose indentation says what belongs to what."""

import re
from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.full_query.document_reader import DocumentReader
from gpureport.importers.logs.nvidia_smi.forms.full_query.query_paths import step
from gpureport.importers.logs.nvidia_smi.forms.full_query.sections import Section
from gpureport.importers.logs.nvidia_smi.forms.full_query.subsections import (
    MINOR,
    Subsection,
    SubsectionCache,
    parse_small_integer,
)
from gpureport.importers.logs.nvidia_smi.forms.lines_between_blocks import classify_stray_line
from gpureport.importers.logs.nvidia_smi.forms.printed_times import parse_printed_time
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, TORN
from gpureport.importers.text.text_log import Chunk

_NEWLINE, _BLANK = b"\n "
_HEADER = re.compile(r"=+ ?NVSMI LOG ?=+\s*")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])\s*", re.ASCII)
_MARGIN = 4
"""Blanks before what a section says of its GPU; deeper lines belong to one above."""
_TOP = re.compile(rb" {4}\S")
_HEAD = {"timestamp", "driver_version", "kmd_version", "cuda_version", "cuda_umd_version", "attached_gpus"}
_REMEMBERED = 50_000
_LONGEST = 300
"""Characters of a line that is remembered; a process may have a longer name."""


class QueryText:
    """Reads the text of `nvidia-smi -q`: the line that names a GPU is counted for its row, others say more of it."""

    name: ClassVar[str] = "nvidia-smi -q"

    def __init__(self) -> None:
        self.zone: str | None = None
        self.averaged = False
        self._documents = DocumentReader()
        self._section: Section | None = None
        self._above: list[tuple[int, str]] = []
        self._outdented = False
        self._passages = SubsectionCache()
        self._labelled: dict[str, tuple[int, str, str | None]] = {}
        self._paths: dict[tuple[str, str], tuple[str, bool]] = {}

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is the heading of a document."""
        return line.startswith("=") and _HEADER.fullmatch(line) is not None

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the documents hold that end in each piece."""
        for piece in log:
            whole = piece.data.rfind(b"\n") + 1 if piece.last else len(piece.data)
            self._read(piece.data[:whole], piece.first_line)
            cut = piece.data[whole:].decode(errors="replace")
            if cut.strip():
                self._documents.add_line(
                    NonDataLine(piece.first_line + piece.lines, LineKind.REJECTED, CUT_LAST_LINE, cut)
                )
            yield from self._ready()
        self._documents.end()
        yield from self._ready()

    def _read(self, data: bytes, first: int) -> None:
        numbers, starts = _tops(data)
        known, continued = self._passages.get, 0
        for number, start, stop in zip(numbers, starts[:-1], starts[1:], strict=True):
            passage, section = data[start:stop], self._section
            if passage == b"\n":
                continue
            part = None if section is None or self._outdented else known(passage)
            # the last one may go on in the next piece, with lines whose path it begins
            if section is None or part is None or stop == len(data):
                self._passage(passage, first + number)
            else:
                section.join(part)
                self._above = part.above
                continued += part.lines
        self._documents.continued += continued

    def _passage(self, passage: bytes, number: int) -> None:
        lines = passage.decode(errors="replace").split("\n")
        if self._section is None or self._outdented or _TOP.match(passage) is None:
            self._lines(lines, number)
            return
        part = Subsection()
        self._above = part.above = [(-1, "")]
        self._inside(part, lines, 0)
        part.label = self._above[1][1].partition("/")[0] if len(self._above) > 1 else ""
        self._passages.add(passage, part)
        self._join(self._section, part)

    def _lines(self, lines: list[str], number: int) -> None:
        """Read lines of a document or of none, of which the first has a number."""
        at = 0
        # that of a passage which is remembered stays as it is
        self._above = [*self._above]
        while at < len(lines):
            if self._section is not None:
                part = Subsection()
                at = self._inside(part, lines, at)
                self._join(self._section, part)
                self._outdented = len(self._above) > 1 and self._above[1][0] < _MARGIN
            if at < len(lines):
                self._take(number + at, lines[at])
                at += 1

    def _ready(self) -> Iterator[Chunk]:
        self.averaged = self._documents.averaged
        yield from self._documents.ready()

    def _take(self, number: int, line: str) -> None:
        if not line or line.isspace():
            return
        if self.opens(line):
            self._section = None
            self._documents.begin()
            self._documents.add_line(NonDataLine(number, LineKind.HEADER, "", line))
        elif (gpu := _GPU.fullmatch(line)) is not None:
            self._section = Section(number=number, bus_id=gpu[1].upper(), text=line.strip())
            self._documents.add(self._section)
            self._above, self._outdented = [(-1, "")], False
        else:
            self._section = None
            self._outside(number, line)

    def _inside(self, part: Subsection, lines: list[str], at: int) -> int:
        """Take lines of a GPU's section, from one on; return the line that is none."""
        above, known, paths = self._above, self._labelled, self._paths
        for place in range(at, len(lines)):
            line = lines[place]
            if line[:1] != " ":
                if line and not line.isspace():
                    return place
                continue
            parts = known.get(line) or self._parts(line)
            if parts is None:
                if not line.isspace():
                    part.lines += 1
                    part.flaw = TORN
                continue
            part.lines += 1
            indent, label, text = parts
            while above[-1][0] >= indent:
                above.pop()
            below = above[-1][1]
            path, kept = paths.get((below, label)) or self._path(below, label)
            above.append((indent, path))
            if kept and text is not None:
                part.take(path, text)
        return len(lines)

    def _join(self, section: Section, part: Subsection) -> None:
        section.join(part)
        self._documents.continued += part.lines

    def _path(self, below: str, label: str) -> tuple[str, bool]:
        """Return the path of a label below another path, and whether the value there is kept."""
        if len(self._paths) > _REMEMBERED:
            self._paths.clear()
        path = f"{below}/{label}" if below else label
        self._paths[below, label] = found = path, path == MINOR or self._documents.keeps_path(path)
        return found

    def _parts(self, line: str) -> tuple[int, str, str | None] | None:
        """Return how far a line is indented, its label as a step of a path, and its value; None where it is no such."""
        written = line.lstrip(" ")
        label, colon, text = written.partition(":")
        name = step(label) if len(label) <= _LONGEST else ""
        if not name:
            return None
        known = (len(line) - len(written), name, text.strip() if colon else None)
        if len(line) <= _LONGEST:
            # most lines stand in every document
            if len(self._labelled) > _REMEMBERED:
                self._labelled.clear()
            self._labelled[line] = known
        return known

    def _outside(self, number: int, line: str) -> None:
        """Take a line outside of any section: of the head of a document, or of something else."""
        head = self._documents.head
        parts = None if head is None or ":" not in line else self._parts(line)
        label, text = ("", None) if parts is None else parts[1:]
        if head is None or text is None or label not in _HEAD:
            self._documents.add_line(classify_stray_line(number, line))
            return
        self._documents.above(NonDataLine(number, LineKind.NOISE, "", line))
        if label == "timestamp":
            head.time = parse_printed_time(text)
        elif label in {"driver_version", "kmd_version"}:
            head.driver = text
        elif label == "attached_gpus":
            head.attached = parse_small_integer(text)


def _tops(data: bytes) -> tuple[list[int], list[int]]:
    """Return the first line and each that is not indented below another, and where they begin, with the end."""
    if not data:
        return [], [0]
    letters = np.frombuffer(data, dtype=np.uint8)
    starts = np.append(0, np.flatnonzero(letters == _NEWLINE)[:-1] + 1)
    inside = np.ones(len(starts), dtype=np.bool_)
    for place in range(_MARGIN, -1, -1):
        inside &= letters[np.minimum(starts + place, len(letters) - 1)] == _BLANK
    tops = np.flatnonzero(np.append(True, ~inside[1:]))
    return tops.tolist(), [*starts[tops].tolist(), len(data)]
