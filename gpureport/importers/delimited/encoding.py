"""Text of any common encoding as UTF-8: told by a byte order mark, or by the zeros of UTF-16."""

import codecs
from collections.abc import Iterator
from itertools import chain

import numpy as np

from gpureport.importers.raw import Account

_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_SNIFFED = 4096
_MOST = 0.7
_FEWEST = 16
"""Pairs of bytes that must tell: fewer are the end of a NUL run, not text."""


def sniff(head: bytes) -> tuple[int, str]:
    """Return how many bytes a byte order mark takes, and the encoding.

    Without a mark, text in which most pairs of bytes hold one zero, always on the same side, is UTF-16: that is what
    Latin letters, digits and commas look like. A run of NUL bytes fills both sides of its pairs and says nothing.
    """
    marked = next(((len(mark), name) for mark, name in _BOMS if head.startswith(mark)), None)
    if marked:
        return marked
    zero = np.frombuffer(head[: len(head) // 2 * 2], dtype=np.uint8).reshape(-1, 2) == 0
    little, big = int((~zero[:, 0] & zero[:, 1]).sum()), int((zero[:, 0] & ~zero[:, 1]).sum())
    telling = max(_MOST * int((~zero.all(axis=1)).sum()), _FEWEST)
    if little and little > telling:
        return 0, "utf-16-le"
    return 0, "utf-16-be" if big and big > telling else "utf-8"


def utf8(blocks: Iterator[bytes], account: Account | None = None) -> Iterator[bytes]:
    """Yield text in UTF-8 without a byte order mark.

    Bytes that are no UTF-8 stay as they are: they are a matter of their line. Half a character at the end of cut
    UTF-16 is left out. The account is told what the encoding is.
    """
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SNIFFED:
            break
    mark, encoding = sniff(head[:_SNIFFED])
    if account is not None:
        account.encoding, account.marked = encoding, mark > 0
    text = chain((head[mark:],) if head[mark:] else (), blocks)
    if encoding == "utf-8":
        yield from text
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in text:
        yield decoder.decode(block).encode()
