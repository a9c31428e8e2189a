"""A log as a stream of UTF-8 pieces that end at a line end, with bounded memory.

Blocks of plain text are taken as they are. Blocks that are compressed, encoded, quoted or damaged go through the
modules beside this one first.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from gpureport.importers.decoding import cleaning, compression, encoding, quoting
from gpureport.importers.decoding.raw_file import BLOCK, Account, RawFile
from gpureport.limits import LONGEST_LINE

PIECE_BYTES = 5 * 2**20
"""Size of a piece: one of 4 MiB takes 4 % longer, one of 6 no less, and 30 MB more memory (measured 4 to 8 MiB)."""
_HEAD_BLOCKS = 256
_NEWLINE = ord("\n")
_KEPT = 64 * 1024
"""Bytes that are kept of such a line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a log.

    Attributes:
        data: UTF-8 bytes; every line but possibly the log's last ends with a newline, before which a carriage
            return may stand. A run of NUL bytes is a single one.
        first_line: number of its first line in the log, from 1; lines end with LF, CRLF or a lone CR.
        last: whether the log ends here.
        lines: number of its lines that end.
    """

    data: bytes
    first_line: int
    last: bool
    lines: int


def head_text(head: bytes) -> str:
    """Return the first bytes of a log, in UTF-8, as text."""
    return head.decode(errors="replace").replace("\0", "\n")


def is_plain_text(block: bytes) -> bool:
    """Return whether bytes are ASCII text without quotes whose lines end with LF, so that nothing needs a change."""
    return block.isascii() and not (b"\0" in block or b"\r" in block or b'"' in block or block.startswith(b"BZh"))


def head(file: RawFile, length: int) -> bytes:
    """Return the first bytes of a log's text, whatever it is compressed with and encoded in."""
    file.account = Account()
    found = b""
    # a file of zeros has no text, however long it is
    for block in _blocks(file, length, most=_HEAD_BLOCKS):
        found += block
        if len(found) >= length:
            break
    whole = found.rfind(b"\n", 0, length) + 1
    return _text(found[:whole], file.account) + found[whole:length]


def _blocks(file: RawFile, size: int, most: int | None = None) -> Iterator[bytes]:
    """Yield clean text in UTF-8, in blocks of about `size` bytes; of the first `most` blocks, all when None."""
    if not is_plain_text(file.first_bytes()):
        decoded = encoding.utf8(compression.decompressed_blocks(file, size))
        yield from cleaning.clean(islice(decoded, most), file.account)
        return
    inside_line = False
    blocks = islice(file.blocks(size), most)
    for block in blocks:
        if not is_plain_text(block):
            yield from cleaning.clean(chain((block,), blocks), file.account, inside_line=inside_line)
            return
        inside_line = not block.endswith(b"\n")
        yield block


def _text(lines: bytes, account: Account) -> bytes:
    if lines.isascii() and b'"' not in lines:
        return lines
    return quoting.join_rows(encoding.decode_latin_1(lines, account), account)


class _OpenLine:
    """The unfinished line that the next block continues, in bounded memory."""

    def __init__(self, account: Account, longest: int) -> None:
        """Start at the beginning of a line; one of more than `longest` bytes is shortened."""
        self._account = account
        self._longest = longest
        self._parts: list[bytes] = []
        self._length = 0

    def add(self, part: bytes) -> None:
        """Take more of the line."""
        before, self._length = self._length, self._length + len(part)
        if self._length <= self._longest:
            self._parts.append(part)
        elif before <= self._longest:
            self._parts = [b"".join([*self._parts, part])[:_KEPT]]

    def end(self) -> bytes:
        """Return the line, without its end, and begin the next."""
        line, length = b"".join(self._parts), self._length
        self._parts, self._length = [], 0
        if length <= self._longest:
            return line
        self._account.long_lines += 1
        self._account.longest = max(self._account.longest, length)
        return line


def pieces(file: RawFile, size: int = PIECE_BYTES, *, longest: int = LONGEST_LINE) -> Iterator[Piece]:
    """Yield the log in pieces of about `size` bytes, cut at line ends; a line of more than `longest` is shortened.

    What was skipped or shortened on the way stands in the file's account.
    """
    file.account = Account()
    line, lines = 1, 0
    whole: list[bytes | memoryview] = []
    held = 0
    rest = _OpenLine(file.account, longest)
    for block in _blocks(file, min(size, BLOCK)):
        cut = block.rfind(b"\n") + 1
        if cut:
            first = block.find(b"\n")
            rest.add(block[:first])
            opened = rest.end()
            whole += [opened, memoryview(block)[first:cut]]
            held += len(opened) + cut - first
            # three times as fast as counting in bytes
            lines += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == _NEWLINE))
        rest.add(block[cut:])
        if held >= size:
            yield Piece(_text(b"".join(whole), file.account), line, last=False, lines=lines)
            line, lines, held, whole = line + lines, 0, 0, []
    whole.append(rest.end())
    yield Piece(_text(b"".join(whole), file.account), line, last=True, lines=lines)
