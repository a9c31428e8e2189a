"""CSV of `nvidia-smi --query-gpu` beside other forms in one log; a log of nothing else has an extraction of its own."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.layout import Layout
from gpureport.importers.delimited.parsing import Parser
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine, ParsedPiece, Section
from gpureport.importers.devices.column_values import columns_by_target, split_clock_events
from gpureport.importers.logs.nvidia_smi.query import fields
from gpureport.importers.logs.nvidia_smi.query.driver_messages import find_lost_rows
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.nvidia_smi.monitors import CUT_NOTE as CUT
from gpureport.importers.protocol.reject_reasons import UNUSABLE_HEADER
from gpureport.importers.text.text_log import Chunk


class QueryCsv:
    """Reads CSV of `nvidia-smi --query-gpu` under headers."""

    name: ClassVar[str] = "nvidia-smi --query-gpu"
    zone: str | None = None

    def __init__(self) -> None:
        self.averaged = False
        self._parser = Parser(QueryGpuDialect())
        self._layout: Layout | None = None

    @staticmethod
    def opens(line: str) -> bool:
        """Return whether a line is a header that names a GPU metric, or a time and what only GPUs have.

        The name of a field alone may as well be an item of a list.
        """
        layout = QueryGpuDialect().header(line.strip())
        told = layout is not None and (len(layout.columns) > 1 or bool(layout.columns[0].unit))
        return layout is not None and told and fields.is_gpu_layout(layout)

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield of each piece the lines that are no rows, then a chunk for each stretch under one header.

        Lines that are given later go on where these end.
        """
        for piece in log:
            parsed = self._parser.parse(piece, self._layout)
            self._layout = parsed.layout
            usable = [section for section in parsed.sections if section.layout.holds(fields.METRICS)]
            yield _others(piece, parsed)
            yield from map(self._rows, usable)

    def _rows(self, section: Section) -> Chunk:
        columns = section.layout.columns
        self.averaged |= any(
            (each.source, each.target) == ("power.draw.average", "gpu_power_watts") for each in columns
        )
        every = np.ones(len(section.numbers), dtype=np.bool_)
        return Chunk(
            numbers=section.numbers,
            times=None if section.layout.stamp is None else section.times,
            data=split_clock_events(columns_by_target(section)),
            lines=len(section.numbers),
            absent={
                (columns[position].source, reason): cells
                for position, decoded in section.columns.items()
                for reason, cells in decoded.absences(every).items()
            },
            lost=find_lost_rows(section),
        )


def _others(piece: Piece, parsed: ParsedPiece) -> Chunk:
    """Return the lines of a piece that are no rows, or rows under a header that names no metric."""
    other_lines = list(parsed.other_lines)
    for section in parsed.sections:
        if not section.layout.holds(fields.METRICS):
            other_lines += _refused(piece, section.layout, section.numbers.tolist())
    return Chunk(
        numbers=np.zeros(0, dtype=np.int64),
        times=None,
        data={},
        lines=sum(line.kind is not LineKind.TORN_OFF for line in other_lines),
        other_lines=sorted(other_lines, key=lambda line: line.number),
        notes=(CUT,) if parsed.cut else (),
    )


def _refused(piece: Piece, layout: Layout, numbers: list[int]) -> Iterator[NonDataLine]:
    names = ", ".join(column.source for column in layout.columns)
    reason = f"{UNUSABLE_HEADER} no GPU metric among the columns {names}"
    texts = piece.data.split(b"\n")
    for number in numbers:
        text = texts[number - piece.first_line].decode(errors="replace").strip("\r")
        yield NonDataLine(number, LineKind.REJECTED, reason, text)
