"""Reads what `dcgmi dmon` prints: a heading with the tags of the fields, a line with their units, a row an entity.

The columns follow the heading and never the order they were asked for in: DCGM puts them into one of its own, and adds
some. There is no time in it, unless every line was stamped by whatever it went through.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import ClassVar

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind
from gpureport.importers.logs.dcgm import fields
from gpureport.importers.logs.dcgm.field_values import Values, read_field
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER, CUT_LAST_LINE, OTHER_ENTITY, WRONG_CELLS
from gpureport.importers.text.chunk_builder import ChunkBuilder
from gpureport.importers.text.numbered_lines import TextLine, text_lines
from gpureport.importers.text.text_log import Chunk
from gpureport.importers.values.timestamps import Moment, parse_epoch_time, parse_iso_time
from gpureport.units import UNITS

_LINE = re.compile(
    r"(?:\[?(?P<stamp>\d[\d./:T+-]*(?:,\d+)?(?: [\d:.]+(?:,\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)\]?[\s,]{1,8})?"
    r"(?P<rest>#? *(?:Entity|[A-Za-z]).*)"
)
_HEADING = re.compile(r"#? *Entity(?:\s+(.*))?")
_UNITS = re.compile(r"I[Dd](?:\s.*|)")
_ROW = re.compile(r"(GPU|GPU-I|GPU-CI|Switch|Link|Lnk|vGPU|CPU|Core|CX)\s+(\S+)\s*(.*)")
_GPU = "GPU"
_INSTANCES = "Rows of MIG instances, switches and links stand for no GPU and are not read."


def is_header(text: str) -> bool:
    """Return whether a line is a heading of dmon that names a field."""
    found = _HEADING.fullmatch(_parts(text)[1])
    return found is not None and any(fields.find_field(tag) for tag in (found[1] or "").split())


def _parts(text: str) -> tuple[str, str]:
    """Return the stamp before a line of dmon, empty where there is none, and the line."""
    match = _LINE.fullmatch(text.strip())
    return ("", text.strip()) if match is None else (match["stamp"] or "", match["rest"])


class DmonForm:
    """Lines of `dcgmi dmon`."""

    name: ClassVar[str] = "dcgmi dmon"
    averaged = False

    def __init__(self) -> None:
        self.zone: str | None = None
        self._tags: list[str] = []
        self._starts: list[int] = []
        self._units: dict[str, str] = {}

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what a log holds, in its order."""
        builder = ChunkBuilder()
        for line in text_lines(log):
            self._take(line, builder)
            if builder.is_full:
                yield from builder.chunks()
        yield from builder.chunks()

    def _take(self, line: TextLine, builder: ChunkBuilder) -> None:
        stamp, text = _parts(line.text)
        heading = None if line.fault else _HEADING.fullmatch(text)
        row = None if line.fault else _ROW.fullmatch(text)
        if heading is not None:
            self._head(text)
            builder.add_non_data_line(line, LineKind.HEADER)
        elif not line.fault and _UNITS.fullmatch(text):
            self._measure(text)
            builder.add_non_data_line(line, LineKind.HEADER)
        elif row is None:
            builder.reject(line, WRONG_CELLS if self._tags else BEFORE_HEADER)
        elif row[1] != _GPU:
            builder.add_note(_INSTANCES)
            builder.reject(line, OTHER_ENTITY)
        else:
            self._row(line, stamp, row[2], row[3].split(), builder)

    def _row(self, line: TextLine, stamp: str, gpu: str, cells: Sequence[str], builder: ChunkBuilder) -> None:
        if line.cut or len(cells) != len(self._tags) or not (gpu.isascii() and gpu.isdigit() and len(gpu) <= 4):  # noqa: PLR2004 - 0 to 9999
            builder.reject(line, CUT_LAST_LINE if line.cut else WRONG_CELLS if self._tags else BEFORE_HEADER)
            return
        values: Values = {"index": gpu}
        for tag, cell in zip(self._tags, cells, strict=True):
            read_field(tag, cell, values, builder, self._units.get(tag))
        builder.add_row(line.number, self._time(stamp), values)

    def _head(self, text: str) -> None:
        found = [(match.start(), match[0]) for match in re.finditer(r"\S+", text) if match[0] not in {"#", "#Entity"}]
        self._starts = [start for start, tag in found if tag != "Entity"]
        self._tags = [tag for _, tag in found if tag != "Entity"]
        self._units = {}

    def _measure(self, text: str) -> None:
        """Learn the units from the line below a heading, each under the tag it belongs to."""
        for match in list(re.finditer(r"\S+", text))[1:]:
            before = [tag for start, tag in zip(self._starts, self._tags, strict=True) if start <= match.start() + 1]
            known = fields.find_field(before[-1]) if before else None
            if known is not None and match[0] in UNITS and known.unit in UNITS:
                same = UNITS[match[0]].base == UNITS[known.unit].base
                self._units |= {before[-1]: match[0]} if same else {}

    def _time(self, stamp: str) -> int | None:
        """Return the time of a row; a log whose first stamp is UTC is one in UTC."""
        moment: Moment | None = (parse_iso_time(stamp) or parse_epoch_time(stamp)) if stamp else None
        if moment is None:
            return None
        self.zone = "UTC" if moment.utc else self.zone
        return moment.micros if moment.utc == (self.zone is not None) else None
