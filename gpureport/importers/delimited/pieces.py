"""A log as a stream of UTF-8 pieces that end at a line end, with bounded memory."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

PIECE_BYTES = 8 * 2**20
"""Size of a piece: larger ones are no faster and cost memory (measured 8, 16 and 64 MiB)."""

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a log.

    Attributes:
        data: UTF-8 bytes; every line but possibly the log's last ends with a newline.
        first_line: number of its first line in the log, from 1.
        last: whether the log ends here.
    """

    data: bytes
    first_line: int
    last: bool


def head_text(head: bytes) -> str:
    """Return the first bytes of a log as text, whatever its byte order mark says of its encoding."""
    bom, encoding = next(((mark, name) for mark, name in _BOMS if head.startswith(mark)), (b"", "utf-8"))
    return head[len(bom) :].decode(encoding, errors="replace")


def digest(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    hasher = sha256()
    with path.open("rb") as file:
        while block := file.read(2**20):
            hasher.update(block)
    return hasher.hexdigest()


def _decoded(path: Path, size: int) -> Iterator[bytes]:
    """Yield the file in blocks of UTF-8 without a byte order mark."""
    with path.open("rb") as file:
        block = file.read(size)
        bom, encoding = next(((mark, name) for mark, name in _BOMS if block.startswith(mark)), (b"", "utf-8"))
        block = block[len(bom) :]
        decoder = None if encoding == "utf-8" else codecs.getincrementaldecoder(encoding)(errors="replace")
        while block:
            yield block if decoder is None else decoder.decode(block).encode()
            block = file.read(size)


def pieces(path: Path, size: int = PIECE_BYTES) -> Iterator[Piece]:
    """Yield the log in pieces of about `size` bytes, cut at line ends.

    UTF-8 and UTF-16 with a byte order mark are decoded; a file without one is taken as UTF-8. A line end is
    a newline; a carriage return before it is left to the parser.
    """
    rest, line = b"", 1
    for block in _decoded(path, size):
        cut = block.rfind(b"\n") + 1
        if cut == 0:
            rest += block
            continue
        data, rest = rest + block[:cut], block[cut:]
        yield Piece(data, line, last=False)
        line += data.count(b"\n")
    yield Piece(rest, line, last=True)
