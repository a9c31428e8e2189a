"""Reads a log with blocks of one or several forms of nvidia-smi output, each by its own reader."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import ClassVar

import numpy as np

from gpureport.importers.decoding.pieces import Piece
from gpureport.importers.delimited.row_sections import LineKind, NonDataLine
from gpureport.importers.logs.nvidia_smi.forms.blocks import Blocks, Part
from gpureport.importers.logs.nvidia_smi.forms.monitors.compute_apps import ComputeApps
from gpureport.importers.logs.nvidia_smi.forms.query_csv import QueryCsv
from gpureport.importers.logs.nvidia_smi.query.non_data_lines import QueryGpuDialect
from gpureport.importers.protocol.reject_reasons import BEFORE_HEADER
from gpureport.importers.text.text_log import Chunk, Form

TEXT = "text"
"""What lines are called that no form reads."""
_YEAR = 366 * 86_400_000_000
"""Microseconds: stamps below have no date."""
_LONGEST = 1_000
"""Characters of a line that no form reads which are looked at."""
_NUMBERS = re.compile(r"(?:(?:-|[-+]?\d[\d.:/-]*|%|W|MHz|MiB)(?:[\s,;|]+|$)){2,}")
"""A line of nothing but numbers: a row of something, not prose."""


class MixedForms:
    """Reads a log block by block.

    Attributes:
        rows: rows that were read so far, by form.
    """

    name: ClassVar[str] = "nvidia-smi"

    def __init__(self) -> None:
        self.zone: str | None = None
        self.averaged = False
        self.rows = Counter[str]()
        self._stated: tuple[str | None, bool] | None = None
        self._csv: tuple[int, Form] | None = None

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield what the blocks hold, in their order."""
        cutter = Blocks()
        parts = (part for piece in log for part in cutter.parts(piece))
        for _, block in groupby(parts, key=lambda part: part.block):
            yield from self._block(block)

    def _block(self, parts: Iterator[Part]) -> Iterator[Chunk]:
        first = next(parts)
        form = self._reader(first)
        name = command_of_header(first.opening) if first.form in {QueryCsv, ComputeApps} else form.name
        pieces = (part.piece for part in _chain(first, parts))
        for chunk in form.chunks(pieces):
            self.rows[name] += len(chunk.numbers)
            yield self._placed(form, chunk)
        self.averaged |= form.averaged

    def _reader(self, first: Part) -> Form:
        """Return the form of a block; for a CSV that goes on, the one that knows its columns."""
        if self._csv is not None and self._csv[0] == first.block:
            return self._csv[1]
        form: Form = _Unread() if first.form is None else first.form()
        if isinstance(form, QueryCsv):
            self._csv = first.block, form
        return form

    def _placed(self, form: Form, chunk: Chunk) -> Chunk:
        """Return a chunk; stamps that cannot be compared with those of the first block are none here."""
        if chunk.times is None or not len(chunk.times):
            return chunk
        stated = form.zone, int(chunk.times.max()) > _YEAR
        if self._stated is None:
            self._stated, self.zone = stated, form.zone
        return chunk if stated == self._stated else replace(chunk, times=None)


def _chain(first: Part, others: Iterator[Part]) -> Iterator[Part]:
    yield first
    yield from others


_GPU = {"timestamp", "gpu_name", "gpu_bus_id", "gpu_serial", "gpu_uuid"}
_CLOCKS = {"memory", "mem", "graphics", "gr"}
_PAGES = {"retired_pages.address", "retired_pages.timestamp", "retired_pages.cause"}
_ENDED = {"time", "max_memory_usage"}
_REMAPPED = "remapped_rows."


def command_of_header(header: str) -> str:
    """Return the command whose header a line of CSV is."""
    names = {cell.partition("[")[0].strip().lower() for cell in header.split(",")}
    rest = names - _GPU
    if rest & _PAGES:
        return "nvidia-smi --query-retired-pages"
    if "pid" in rest:
        return "nvidia-smi --query-accounted-apps" if rest & _ENDED else "nvidia-smi --query-compute-apps"
    if rest and rest <= _CLOCKS:
        return "nvidia-smi --query-supported-clocks"
    if rest and names & _GPU - {"timestamp"} and all(name.startswith(_REMAPPED) for name in rest):
        return "nvidia-smi --query-remapped-rows"
    return "nvidia-smi --query-gpu"


class _Unread:
    """Lines that no form reads."""

    name: ClassVar[str] = TEXT
    zone: str | None = None
    averaged: bool = False

    def chunks(self, log: Iterable[Piece]) -> Iterator[Chunk]:
        """Yield their account: rows of numbers above any header are rejected, prose is noise."""
        for piece in log:
            lines = enumerate(piece.data.split(b"\n"), piece.first_line)
            other_lines = [_classify_line(number, line) for number, line in lines if line.strip(b"\0\r\t\v\f ")]
            none = np.zeros(0, dtype=np.int64)
            yield Chunk(numbers=none, times=None, data={}, lines=len(other_lines), other_lines=other_lines)


def _classify_line(number: int, line: bytes) -> NonDataLine:
    text = line[:_LONGEST].decode(errors="replace").strip()
    if _NUMBERS.fullmatch(text):
        return NonDataLine(number, LineKind.REJECTED, BEFORE_HEADER, text)
    message = QueryGpuDialect().classify(text) is LineKind.EVENT
    return NonDataLine(number, LineKind.EVENT if message else LineKind.NOISE, "", text)
