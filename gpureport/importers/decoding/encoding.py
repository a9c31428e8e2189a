"""Converts text of any common encoding to UTF-8; a byte order mark or the zeros of UTF-16 identify it."""

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
_PLAIN = re.compile(rb"[\t\r\n -~]{24}")
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
    if encoding == _UTF8:
        yield from text
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in text:
        yield decoder.decode(block).encode()
