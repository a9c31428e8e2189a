"""JSON documents one below the other, pretty-printed or one per line; any of them may be cut off."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gpureport.importers.protocol.reject_reasons import CUT_DOCUMENT, NOT_JSON
from gpureport.importers.text.numbered_lines import TextLine
from gpureport.json_text import replace_half_characters

_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"')
_BETWEEN = re.compile(r"[\s,]*")
_OPENING = ("{", "[")


@dataclass(frozen=True, slots=True)
class Document:
    """Lines that are one or several documents, or that are none.

    Attributes:
        lines: the lines.
        contents: the documents, as Python has them; none where the lines were not understood.
        fault: why not, one of `reasons`; empty where they were.
    """

    lines: tuple[TextLine, ...]
    contents: tuple[Any, ...] = ()
    fault: str = ""


def iterate_documents(lines: Iterable[TextLine], most: int) -> Iterator[Document]:
    """Yield the documents of a log, and the lines between them.

    A document ends where its brackets close. One that was cut ends where another begins at the start of a line.

    Args:
        lines: the lines of the log that are not empty.
        most: characters of a document; what is longer is none.
    """
    held: list[TextLine] = []
    depth = size = 0
    for line in lines:
        if held and held[0].text.startswith("{") and line.text.startswith("{"):
            yield Document(tuple(held), fault=CUT_DOCUMENT)
            held, depth, size = [], 0, 0
        if not held and not line.text.lstrip().startswith(_OPENING):
            yield Document((line,), fault=NOT_JSON)
            continue
        held.append(line)
        depth += 0 if line.fault else _deeper(line.text)
        size += len(line.text)
        if depth <= 0 or size > most:
            yield _read(held) if size <= most else Document(tuple(held), fault=NOT_JSON)
            held, depth, size = [], 0, 0
    if held:
        yield Document(tuple(held), fault=CUT_DOCUMENT)


def _deeper(text: str) -> int:
    """Return how many more brackets a line opens than it closes, those in strings left out."""
    bare = _STRING.sub("", text)
    return sum(bare.count(bracket) for bracket in "{[") - sum(bare.count(bracket) for bracket in "}]")


def _read(lines: Sequence[TextLine]) -> Document:
    if any(line.fault for line in lines):
        return Document(tuple(lines), fault=NOT_JSON)
    contents = parse_documents("\n".join(line.text for line in lines))
    return Document(tuple(lines), contents or (), "" if contents else NOT_JSON)


def parse_documents(text: str) -> tuple[Any, ...] | None:
    """Return the JSON documents of a text one after the other, None when it is not made of such."""
    text = replace_half_characters(text)
    decoder, found = json.JSONDecoder(), []
    at = _between(text, 0)
    while at < len(text):
        try:
            content, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            # nested too deeply, or a number of thousands of digits
            return None
        found.append(content)
        at = _between(text, at)
    return tuple(found)


def _between(text: str, at: int) -> int:
    match = _BETWEEN.match(text, at)
    return at if match is None else match.end()
