"""The objects of sysstat's JSON one by one, with the lines they stand on: a log of any length, and one that is cut."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from gpureport.importers.decoding.pieces import Piece
from gpureport.json_text import replace_half_characters

_START = re.compile(r'\{\s*"timestamp"\s*:')
_OPENING = 64
"""Characters in which the start of an object may be cut."""
_LARGEST = 4 * 2**20
"""Characters of an object; a machine of a thousand cores and all of `sar -A` needs a tenth."""
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True)
class Found:
    """An object, or text between objects.

    Attributes:
        number: line it begins on, from 1.
        text: the text between two objects, empty for an object.
        content: the object, None for text between two.
        lines: non-empty lines that begin inside it, and for an object the one it begins on.
        cut: whether it is an object that is not whole.
    """

    number: int
    text: str
    content: dict[str, Any] | None
    lines: int
    cut: bool = False


class Objects:
    """Takes a log apart into objects that begin with their time, and what stands between them."""

    def __init__(self) -> None:
        self._text, self._line = "", 1

    def parse(self, log: Iterable[Piece]) -> Iterator[Found]:
        """Yield all of a log, in its order."""
        for piece in log:
            self._text += replace_half_characters(piece.data.decode(errors="replace").replace("\0", " "))
            yield from self._take_objects(last=piece.last)

    def _take_objects(self, *, last: bool) -> Iterator[Found]:
        place = 0
        while match := _START.search(self._text, place):
            if match.start() > place:
                yield self._between(place, match.start())
            end, content = self._decoded(match.start())
            if content is None and not last and len(self._text) - match.start() < _LARGEST:
                place = match.start()
                break
            if content is None:
                # goes on at the next object; what lies before is not whole
                follower = _START.search(self._text, match.end())
                end = follower.start() if follower else len(self._text)
            text = self._text[match.start() : end]
            yield Found(self._line, "" if content else text, content, _lines(text), cut=content is None)
            self._line += text.count("\n")
            place = end
        else:
            # an object may begin at the end
            keep = len(self._text) if last else max(len(self._text) - _OPENING, place)
            keep = keep if last else self._text.rfind("\n", 0, keep) + 1
            if keep > place:
                yield self._between(place, keep)
                place = keep
        self._text = self._text[place:]

    def _between(self, start: int, end: int) -> Found:
        text = self._text[start:end]
        found = Found(self._line, text, None, _lines(text))
        self._line += text.count("\n")
        return found

    def _decoded(self, start: int) -> tuple[int, dict[str, Any] | None]:
        try:
            content, end = _DECODER.raw_decode(self._text, start)
        except (ValueError, RecursionError):
            return start, None
        return end, content


def _lines(text: str) -> int:
    return sum(1 for line in text.split("\n") if line.strip(" \t\r,"))
