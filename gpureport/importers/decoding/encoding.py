"""Converts text of any common encoding to UTF-8; a byte order mark or the zeros of UTF-16 identify it.

The encoding may change on the way: what PowerShell appends with `>>` is UTF-16, whatever was there before.
"""

import codecs
import re
from collections.abc import Iterator
from itertools import chain

import numpy as np

from gpureport.importers.decoding.raw_file import Account

_UTF8, _LITTLE, _BIG = "utf-8", "utf-16-le", "utf-16-be"
_BOMS = (
    (codecs.BOM_UTF8, _UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, _LITTLE),
    (codecs.BOM_UTF16_BE, _BIG),
)
_SNIFFED = 4096
_MOST = 0.7
_FEWEST = 16
"""Pairs of bytes that must tell: fewer are the end of a NUL run, not text."""
_AT_ONCE = 256 * 1024
"""Bytes in which a change is looked for at once: their places take eight times the memory."""
_PLAIN = re.compile(rb"[\t\r\n -~]{24}")
_CHANGES = {
    _UTF8: re.compile(rb"(?:\xff\xfe)?(?P<little>[^\0\n]\0(?:[^\0]\0){15})|(?:\xfe\xff)?(?P<big>(?:\0[^\0]){16})"),
    _LITTLE: re.compile(rb"\n\0(?P<plain>(?:\xef\xbb\xbf)?[\t\r\n -~]{24})"),
    _BIG: re.compile(rb"\0\n(?P<plain>(?:\xef\xbb\xbf)?[\t\r\n -~]{24})"),
}
"""Where text of one encoding ends: UTF-16 of Latin letters and digits, or plain ASCII after the end of a line."""
_ENCODINGS = {"little": _LITTLE, "big": _BIG, "plain": _UTF8}
_BEGUN = re.compile(rb"(?:\xff\xfe[^\xfe\xff]|[\xfe\xff]+)\Z", re.DOTALL)
"""A byte order mark of UTF-16, or the first half of one, with no zero after it yet."""
_MARKED = 3
"""Bytes of a mark and the first half of a character."""
_HELD = 36
"""Bytes within which a change shows."""


_LATIN = re.compile(rb"[\t\r -~]*+[\xa0-\xfd][\t\r -~\xa0-\xfd]*+")
"""A line as Windows and Linux wrote it before UTF-8; damage leaves control characters, and the two highest bytes."""


def decode_latin_1(lines: bytes, account: Account) -> bytes:
    """Return lines with those in UTF-8 that are Latin-1; the account counts them.

    Bytes that are neither stay as they are: they are a matter of their line.
    """
    if lines.isascii():
        return lines
    try:
        lines.decode()
    except UnicodeDecodeError:
        return b"\n".join(_line(each, account) for each in lines.split(b"\n"))
    return lines


def _line(raw: bytes, account: Account) -> bytes:
    if raw.isascii() or not _LATIN.fullmatch(raw):
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        account.latin_1_lines += 1
        return raw.decode("latin-1").encode()
    return raw


def sniff(head: bytes) -> tuple[int, str]:
    """Return how many bytes a byte order mark takes, and the encoding the text begins with.

    Without a mark, text in which most pairs of bytes hold one zero, always on the same side, is UTF-16: that is what
    Latin letters, digits and commas look like. A run of NUL bytes fills both sides of its pairs and says nothing.
    """
    marked = next(((len(mark), name) for mark, name in _BOMS if head.startswith(mark)), None)
    if marked:
        return marked
    if _PLAIN.match(head):
        return 0, _UTF8
    head = head[:_SNIFFED]
    zero = np.frombuffer(head[: len(head) // 2 * 2], dtype=np.uint8).reshape(-1, 2) == 0
    little, big = int((~zero[:, 0] & zero[:, 1]).sum()), int((zero[:, 0] & ~zero[:, 1]).sum())
    telling = max(_MOST * int((~zero.all(axis=1)).sum()), _FEWEST)
    if little and little > telling:
        return 0, _LITTLE
    return 0, _BIG if big and big > telling else _UTF8


def utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text in UTF-8 without a byte order mark.

    Bytes that are no UTF-8 stay as they are: they are a matter of their line. Half a character at the end of cut
    UTF-16 is left out.
    """
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SNIFFED:
            break
    mark, encoding = sniff(head)
    text = chain((head[mark:],) if head[mark:] else (), blocks)
    if encoding in _CHANGES:
        yield from _changing(text, encoding)
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in text:
        yield decoder.decode(block).encode()


def utf8_from_plain_text(blocks: Iterator[bytes], *, inside_line: bool) -> Iterator[bytes]:
    """Yield text in UTF-8 that goes on below plain text, perhaps in UTF-16.

    Args:
        blocks: the text.
        inside_line: whether it goes on with a line.
    """
    return _changing(blocks, _UTF8, inside_line=inside_line)


def _changing(blocks: Iterator[bytes], encoding: str, *, inside_line: bool = False) -> Iterator[bytes]:
    """Yield text in UTF-8 that begins in an encoding and goes on in others; UTF-8 without NUL bytes as it is."""
    text = _Text(encoding, inside_line=inside_line)
    held = b""
    for block in blocks:
        if text.encoding == _UTF8 and not held and b"\0" not in block and not _BEGUN.search(block[-_MARKED:]):
            yield text.utf8(block)
            continue
        data = held + block
        while change := text.change(data):
            yield text.utf8(data[: change[0]])
            data = data[change[1] :]
            text = _Text(change[2])
        held = text.undecided(data)
        yield text.utf8(data[: len(data) - len(held)])
    yield text.utf8(held)


class _Text:
    """Text of one encoding, from block to block."""

    def __init__(self, encoding: str, *, inside_line: bool = False) -> None:
        self.encoding = encoding
        self._open = inside_line
        self._decoder = None if encoding == _UTF8 else codecs.getincrementaldecoder(encoding)(errors="replace")

    def utf8(self, data: bytes) -> bytes:
        """Return more of the text."""
        self._open = not data.endswith(b"\n") if data else self._open
        return data if self._decoder is None else self._decoder.decode(data).encode()

    def undecided(self, data: bytes) -> bytes:
        """Return the end of what follows, where a change may show in what comes after it."""
        end = data[-_HELD:]
        if self.encoding != _UTF8 or b"\0" in end:
            return end
        begun = _BEGUN.search(end)
        return b"" if begun is None else end[begun.start() :]

    def change(self, data: bytes) -> tuple[int, int, str] | None:
        """Return where in what follows the text ends, where text of another encoding begins, and which."""
        begin = _alternating(data) if self.encoding == _UTF8 else 0
        # a mark may stand before it
        match = None if begin is None else _CHANGES[self.encoding].search(data, max(begin - 2, 0))
        if match is None or match.lastgroup is None:
            return None
        begin, encoding = match.start(match.lastgroup), _ENCODINGS[match.lastgroup]
        if encoding == _BIG and match.start() == 0 and self._open:
            # the first half of a pair was the end of the block before
            return 0, 1, _LITTLE
        return begin if encoding == _UTF8 else match.start(), begin, encoding


def _alternating(data: bytes) -> int | None:
    """Return where zeros begin to alternate with other bytes long enough to be UTF-16, None where they never do."""
    for begin in range(0, len(data), _AT_ONCE):
        zero = np.frombuffer(data[begin : begin + _AT_ONCE + 2 * _FEWEST], dtype=np.uint8) == 0
        edges = np.concatenate([[-1], np.flatnonzero(zero[1:] == zero[:-1]), [len(zero) - 1]])
        long = np.flatnonzero(np.diff(edges) >= 2 * _FEWEST)
        if len(long):
            return begin + int(edges[long[0]]) + 1
    return None
