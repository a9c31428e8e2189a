"""A log as text, whatever it is packed with and encoded in: its lines, or blocks of whole lines, one after the other.

Its bytes are unpacked, decoded to UTF-8, freed of runs of NUL bytes and lone carriage returns, and cut at line ends,
with bounded memory. Of whole lines the quotes around cells are taken away, and Latin-1 is decoded.
"""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, islice

import numpy as np

from gpureport.importers.protocol.reject_reasons import NOT_TEXT, NUL_BYTES
from gpureport.importers.source_file import BLOCK, ByteAccount, RawFile, decompressed_blocks
from gpureport.limits import LONGEST_LINE

PIECE_BYTES = 5 * 2**20
"""Size of a piece: one of 4 MiB takes 4 % longer, one of 6 no less, and 30 MB more memory (measured 4 to 8 MiB)."""
_SNIFFED = 4096
_HEAD_BLOCKS = 256
"""Blocks that are searched for the beginning of the text: a file of zeros has none, however long it is."""
_KEPT = 64 * 1024
"""Bytes that are kept of a line that is too long."""
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32-le",
    codecs.BOM_UTF32_BE: "utf-32-be",
    codecs.BOM_UTF16_LE: "utf-16-le",
    codecs.BOM_UTF16_BE: "utf-16-be",
}
_MOST_PAIRS, _FEWEST_PAIRS = 0.7, 16
"""Share of the pairs of bytes with one zero from which on a text is UTF-16, and pairs that are no end of a NUL run."""
_LATIN = re.compile(rb"[\t -~]*+[\xa0-\xfd][\t -~\xa0-\xfd]*+")
"""A line as Windows and Linux wrote it before UTF-8; damage leaves control characters, and the two highest bytes."""


def _sniff(head: bytes) -> tuple[int, str]:
    """Return how many bytes a byte order mark takes, and the encoding the text begins with.

    Without a mark, text in which most pairs of bytes hold one zero, always on the same side, is UTF-16: that is what
    Latin letters, digits and commas look like. A run of NUL bytes fills both sides of its pairs and says nothing.
    """
    marked = next(((len(mark), name) for mark, name in _BOMS.items() if head.startswith(mark)), None)
    if marked or b"\0" not in head[:_SNIFFED]:
        return marked or (0, "utf-8")
    head = head[:_SNIFFED]
    zero = np.frombuffer(head[: len(head) // 2 * 2], dtype=np.uint8).reshape(-1, 2) == 0
    fewest = max(_MOST_PAIRS * int((~zero.all(axis=1)).sum()), _FEWEST_PAIRS)
    for name, low, high in (("utf-16-le", zero[:, 0], zero[:, 1]), ("utf-16-be", zero[:, 1], zero[:, 0])):
        if int((~low & high).sum()) > fewest:
            return 0, name
    return 0, "utf-8"


def decode_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text in UTF-8 without a byte order mark.

    Bytes that are not UTF-8 stay as they are: they are a matter of their line. Half a character at the end of cut
    UTF-16 is left out.
    """
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SNIFFED:
            break
    mark, encoding = _sniff(head)
    text = chain((head[mark:],), blocks)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield from text if encoding == "utf-8" else (decoder.decode(block).encode() for block in text)


def _blocks(file: RawFile, size: int) -> Iterator[bytes]:
    """Yield text in UTF-8 in which a line ends with LF, and every run of NUL bytes is one such byte."""
    account, held, nul = file.account, b"", False
    for each in decode_utf8(decompressed_blocks(file, size)):
        block = held + each if held else each
        # what follows a carriage return decides whether it ends a line alone
        held = b"\r" if block.endswith(b"\r") else b""
        block = block[:-1] if held else block
        if nul or b"\0" in block:
            account.nul_bytes += block.count(0)
            block, runs = re.subn(rb"\0+", b"\0", block.lstrip(b"\0") if nul else block)
            account.nul_runs += runs
            nul = block.endswith(b"\0") or (nul and not block)
        yield block.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in block else block
    if held:
        yield b"\n"


def _quoted_row(delimiter: bytes) -> bytes:
    # nothing is to be tried another way: a place to go back to at each cell takes more memory than the line;
    # behind a last cell that fails, Python before 3.11.5 goes on after its delimiter (gh-106052)
    quoted, bare = rb'"[^"\n%b]*+"' % delimiter, rb'[^"\n%b]++' % delimiter
    return rb"^%b(?:%b(?:%b|%b))++(?<!%b)$" % (quoted, delimiter, quoted, bare, delimiter)


_ROW = re.compile(b"|".join(map(_quoted_row, (b",", b";", b"\t"))), re.MULTILINE)
"""A row whose first cell is quoted; each other cell is quoted too or holds no quote."""
_MULTILINE_CELL = re.compile(
    # the branch that fails last must take nothing, as Python before 3.11.5 goes on where it failed (gh-106052)
    rb'^(?P<before>(?:"[^"\n]*+"|[^"\n]++)*+)(?:(?<=[,;\t])|(?<=[,;\t] )|(?<![^\n]))'
    rb'"(?P<cell>[^"\n]*+(?:\n[^"\n]{0,200}+){1,8}?)"(?P<after> *+(?:[,;\t][^\n]*+)?)$',
    re.MULTILINE,
)
"""A line whose last cell opens a quote that a later line closes."""


def _clean(lines: bytes, account: ByteAccount) -> bytes:
    """Return whole lines without the quotes of their cells, each row on one, and Latin-1 as UTF-8.

    The lines that a row took are empty behind it, so that lines keep their numbers.
    """
    if b'"' in lines:
        lines = _unquote(lines)
        lines, rows = _MULTILINE_CELL.subn(_on_one_line, lines)
        account.joined_rows += rows
    try:
        lines.isascii() or lines.decode()
    except UnicodeDecodeError:
        return b"\n".join(_decode_latin_1(line, account) for line in lines.split(b"\n"))
    return lines


def _unquote(lines: bytes) -> bytes:
    quoted = lines.startswith(b'"') or b'\n"' in lines
    return _ROW.sub(lambda match: match[0].replace(b'"', b""), lines) if quoted else lines


def _on_one_line(match: re.Match[bytes]) -> bytes:
    cell = re.sub(rb"\s*\n\s*", b" ", match["cell"])
    quoted = match["before"] + b'"' + cell + b'"' + match["after"]
    bare = not re.search(rb"[,;\t]", cell)
    row = match["before"] + cell + match["after"] if bare and _unquote(quoted) == quoted else _unquote(quoted)
    return row + b"\n" * match["cell"].count(b"\n")


def _decode_latin_1(line: bytes, account: ByteAccount) -> bytes:
    try:
        line.decode()
    except UnicodeDecodeError:
        if _LATIN.fullmatch(line):
            account.latin_1_lines += 1
            return line.decode("latin-1").encode()
    return line


def head(file: RawFile, length: int) -> bytes:
    """Return the first bytes of a log's text, whatever it is compressed with and encoded in."""
    file.account = ByteAccount()
    found = b""
    for block in islice(_blocks(file, length), _HEAD_BLOCKS):
        found += block
        if len(found) >= length:
            break
    whole = found.rfind(b"\n", 0, length) + 1
    return _clean(found[:whole], file.account) + found[whole:length]


def head_text(head: bytes) -> str:
    """Return the first bytes of a log, in UTF-8, as text."""
    return head.decode(errors="replace").replace("\0", "\n")


def is_plain_text(block: bytes) -> bool:
    """Return whether bytes are text that nothing is packed in."""
    return block.isascii() and b"\0" not in block and not block.startswith(b"BZh")


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole lines of a log.

    Attributes:
        data: UTF-8 bytes; every line but possibly the last ends with a newline. A run of NUL bytes is a single one.
        first_line: number of its first line in the log, from 1.
        last: whether the log ends here.
        lines: number of its lines that end.
    """

    data: bytes
    first_line: int
    last: bool
    lines: int


def pieces(file: RawFile, size: int = PIECE_BYTES, *, longest: int = LONGEST_LINE) -> Iterator[Piece]:
    """Yield the log in pieces of about `size` bytes, cut at line ends; a line of more than `longest` is shortened.

    What was skipped or shortened on the way stands in the file's account.
    """
    account = file.account = ByteAccount()
    first, lines, held, whole = 1, 0, 0, list[bytes | memoryview]()
    opened, beyond = b"", 0
    """The line that the next block continues, and how many bytes of it are dropped."""

    def continue_line(part: bytes, *, ends: bool) -> bytes:
        nonlocal beyond
        line = opened + part
        if beyond or len(line) > longest:
            beyond += len(line) - _KEPT
            line = line[:_KEPT]
        if ends and beyond:
            account.long_lines += 1
            account.longest = max(account.longest, len(line) + beyond)
            beyond = 0
        return line

    for block in _blocks(file, min(size, BLOCK)):
        cut = block.rfind(b"\n") + 1
        if cut:
            end = block.find(b"\n")
            whole += [continue_line(block[:end], ends=True), memoryview(block)[end:cut]]
            held += len(whole[-2]) + cut - end
            # three times as fast as counting in bytes
            lines += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")))
            opened = b""
        opened = continue_line(block[cut:], ends=False)
        if held >= size:
            yield Piece(_clean(b"".join(whole), account), first, last=False, lines=lines)
            first, lines, held, whole = first + lines, 0, 0, []
    whole.append(continue_line(b"", ends=True))
    yield Piece(_clean(b"".join(whole), account), first, last=True, lines=lines)


class Text:
    """The text of a log, from its first line; each iteration reads it anew.

    It is iterated as an open file is: line by line, each with its line end, which the last one lacks where the log ends
    inside it.
    """

    def __init__(self, file: RawFile, *, longest: int = LONGEST_LINE, blocks: int | None = None) -> None:
        """Take a log.

        Args:
            file: its bytes.
            longest: bytes of a line at most; a longer one is shortened.
            blocks: how many blocks are read, all when None.
        """
        self._file, self._longest, self._most = file, longest, blocks

    def blocks(self) -> Iterator[Piece]:
        """Yield blocks of whole lines, in UTF-8, with the number of the first line of each."""
        return islice(pieces(self._file, longest=self._longest), self._most)

    def chunks(self) -> Iterator[tuple[str, int]]:
        """Yield blocks of whole lines as text, with the number of the first line of each."""
        for block in self.blocks():
            # what is no UTF-8 becomes a letter that stands for none, so that `damage` finds it
            yield block.data.decode(errors="replace"), block.first_line

    def __iter__(self) -> Iterator[str]:
        for text, _ in self.chunks():
            yield from split_lines(text)


def split_lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, each with its line end."""
    start = 0
    while end := text.find("\n", start) + 1:
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def damage(line: str) -> str:
    """Return why a line cannot be read, one of `reject_reasons`; empty when it can."""
    if "\0" in line:
        return NUL_BYTES
    return NOT_TEXT if "\ufffd" in line else ""
