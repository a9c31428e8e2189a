"""A source that was read: its identity, its content, and the first rejected line of each reason."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from gpureport.importers.decoding.pieces import pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.importer import Input, Outcome


@dataclass(frozen=True, slots=True)
class FirstLine:
    """The first line that was rejected for a reason: its number from 1, and what it says."""

    reason: str
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class SourceSummary:
    """A source that was read.

    Attributes:
        given: what a person named.
        file: its bytes.
        outcome: what is known of it; devices are called as in the run.
    """

    given: Input
    file: RawFile
    outcome: Outcome

    def first_lines(self) -> tuple[FirstLine, ...]:
        """Return the first rejected line of each reason; a row that was left out later is looked up in the source."""
        # rows that two logs share are counted, not kept apart
        wanted = {e.reason: e.first_line for e in self.outcome.quality.rejected if e.first_line is not None}
        found = {line.reason: line for line in self._rejected_lines(wanted)}
        left = {reason: number for reason, number in wanted.items() if reason not in found}
        found |= {line.reason: line for line in self._source_lines(left)}
        return tuple(found[reason] for reason in wanted if reason in found)

    def _rejected_lines(self, wanted: dict[str, int]) -> Iterator[FirstLine]:
        if not self.outcome.rejects:
            return
        left = dict(wanted)
        stream: Any = pa.CompressedInputStream(pa.BufferReader(self.outcome.rejects), "zstd")
        for entry in map(json.loads, io.BufferedReader(stream)):
            if left.get(entry["reason"]) == entry["line"]:
                yield FirstLine(entry["reason"], left.pop(entry["reason"]), entry["text"])
            if not left:
                return

    def _source_lines(self, wanted: dict[str, int]) -> Iterator[FirstLine]:
        """Yield lines by their numbers, after reading the source as far as the last of them."""
        left = dict(wanted)
        for piece in pieces(self.file.again()) if left else ():
            after = piece.first_line + piece.lines + piece.last
            here = {reason: number for reason, number in left.items() if number < after}
            lines = piece.data.split(b"\n") if here else []
            for reason, number in here.items():
                yield FirstLine(reason, number, lines[number - piece.first_line].decode(errors="replace"))
                del left[reason]
            if not left:
                return
