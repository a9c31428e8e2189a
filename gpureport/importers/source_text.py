"""A log as text, whatever it is packed with and encoded in: its lines, or blocks of bytes, one after the other.

Blocks of plain text are taken as they are. Others are unpacked, decoded to UTF-8, freed of NUL bytes, lone carriage
returns and the quotes around cells first, and cut at line ends, with bounded memory.
"""

import codecs
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import StringIO
from itertools import chain, islice

import numpy as np

from gpureport.importers.account import Account
from gpureport.importers.protocol.reject_reasons import NOT_TEXT, NUL_BYTES
from gpureport.importers.source_file import BLOCK, ByteAccount, RawFile, decompressed_blocks
from gpureport.limits import LONGEST_LINE

_UTF8, _LITTLE, _BIG = "utf-8", "utf-16-le", "utf-16-be"
_BOMS = (
    (codecs.BOM_UTF8, _UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, _LITTLE),
    (codecs.BOM_UTF16_BE, _BIG),
)
_SNIFFED = 4096
_MOST_PAIRS = 0.7
_FEWEST_PAIRS = 16
"""Pairs of bytes that must tell: fewer are the end of a NUL run, not text."""
_PLAIN = re.compile(rb"[\t\r\n -~]{24}")
_LATIN = re.compile(rb"[\t\r -~]*+[\xa0-\xfd][\t\r -~\xa0-\xfd]*+")
"""A line as Windows and Linux wrote it before UTF-8; damage leaves control characters, and the two highest bytes."""


def _decode_latin_1(lines: bytes, account: ByteAccount) -> bytes:
    """Return lines with those in UTF-8 that are Latin-1; the account counts them.

    Bytes that are neither stay as they are: they are a matter of their line.
    """
    if lines.isascii():
        return lines
    try:
        lines.decode()
    except UnicodeDecodeError:
        return b"\n".join(_latin_line(each, account) for each in lines.split(b"\n"))
    return lines


def _latin_line(raw: bytes, account: ByteAccount) -> bytes:
    if raw.isascii() or not _LATIN.fullmatch(raw):
        return raw
    try:
        raw.decode()
    except UnicodeDecodeError:
        account.latin_1_lines += 1
        return raw.decode("latin-1").encode()
    return raw


def _sniff(head: bytes) -> tuple[int, str]:
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
    telling = max(_MOST_PAIRS * int((~zero.all(axis=1)).sum()), _FEWEST_PAIRS)
    if little and little > telling:
        return 0, _LITTLE
    return 0, _BIG if big and big > telling else _UTF8


def decode_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield text in UTF-8 without a byte order mark.

    Bytes that are no UTF-8 stay as they are: they are a matter of their line. Half a character at the end of cut
    UTF-16 is left out.
    """
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SNIFFED:
            break
    mark, encoding = _sniff(head)
    text = chain((head[mark:],) if head[mark:] else (), blocks)
    if encoding == _UTF8:
        yield from text
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    for block in text:
        yield decoder.decode(block).encode()


_HELD = 64 * 1024
"""A line longer than this is no row."""


def _quoted_row(delimiter: bytes) -> bytes:
    # nothing is to be tried another way: a place to go back to at each cell takes more memory than the line;
    # behind a last cell that fails, Python before 3.11.5 goes on after its delimiter (gh-106052)
    quoted, bare = rb'"[^"\n%b]*+"' % delimiter, rb'[^"\n%b]++' % delimiter
    return rb"^%b(?:%b(?:%b|%b))++(?<!%b)\r?$" % (quoted, delimiter, quoted, bare, delimiter)


_ROW = re.compile(b"|".join(map(_quoted_row, (b",", b";", b"\t"))), re.MULTILINE)
"""A row whose first cell is quoted; each other cell is quoted too or holds no quote."""


_MULTILINE_CELL = re.compile(
    # the branch that fails last must take nothing, as Python before 3.11.5 goes on where it failed (gh-106052)
    rb'^(?P<before>(?:"[^"\n]*+"|[^"\n]++)*+)(?:(?<=[,;\t])|(?<=[,;\t] )|(?<![^\n]))'
    rb'"(?P<cell>[^"\n]*+(?:\n[^"\n]{0,200}+){1,8}?)"(?P<after>[ \r]*+(?:[,;\t][^\n]*+)?)$',
    re.MULTILINE,
)
"""A line whose last cell opens a quote that a later line closes."""


def _join_rows(lines: bytes, account: ByteAccount) -> bytes:
    """Return whole lines with each row on one, of which a quoted cell holds newlines: these are blanks then.

    The lines that a row took are empty behind it, so that lines keep their numbers. The account counts the rows.
    """
    if b'"' not in lines:
        return lines
    found, rows = _MULTILINE_CELL.subn(_on_one_line, lines)
    account.joined_rows += rows
    return found


def _on_one_line(match: re.Match[bytes]) -> bytes:
    before, cell, after = match["before"], match["cell"], match["after"]
    whole = re.sub(rb"\s*\n\s*", b" ", cell)
    plain = whole if not re.search(rb"[,;\t]", whole) else b'"%b"' % whole
    row = before + plain + after
    quoted = before + b'"%b"' % whole + after
    row = quoted.replace(b'"', b"") if _ROW.fullmatch(quoted) else row
    return row + b"\n" * cell.count(b"\n")


def _unquoted(blocks: Iterator[bytes], *, inside_line: bool = False) -> Iterator[bytes]:
    """Yield text in which the cells of quoted rows stand without their quotes.

    Args:
        blocks: text whose lines end with LF.
        inside_line: whether the first block goes on with a line.
    """
    held, opened = b"", inside_line
    for each in blocks:
        # one letter is found 60 times as fast as two (measured: 14 and 930 us a MiB); most logs have no quote
        begins = b'"' in each and (b'\n"' in each or (not opened and each.startswith(b'"')))
        if not held and not begins:
            opened = not each.endswith(b"\n")
            yield each
            continue
        block = held + each
        start = block.find(b"\n") + 1 if opened else 0
        if opened and not start:
            yield block
            continue
        end = max(block.rfind(b"\n") + 1, start)
        held = block[end:] if block[end : end + 1] == b'"' and len(block) - end <= _HELD else b""
        opened = not held and end < len(block)
        yield block[:start] + _without(block[start:end]) + (b"" if held else block[end:])
    if held:
        yield _without(held)


def _without(lines: bytes) -> bytes:
    return _ROW.sub(lambda match: match[0].replace(b'"', b""), lines)


_NULS = re.compile(rb"\0+")


def _clean(blocks: Iterator[bytes], account: ByteAccount, *, inside_line: bool = False) -> Iterator[bytes]:
    """Yield text in which a line ends with LF or CRLF, a run of NUL bytes is one such byte, and no row is quoted.

    Args:
        blocks: text in UTF-8.
        account: counts what is changed.
        inside_line: whether the first block goes on with a line.
    """
    return _unquoted(_lines(blocks, account), inside_line=inside_line)


def _lines(blocks: Iterator[bytes], account: ByteAccount) -> Iterator[bytes]:
    """Yield text in which a line ends with LF or CRLF, and every run of NUL bytes is one such byte."""
    nul = False
    held = b""
    for each in blocks:
        block = held + each if held else each
        held = b""
        if block.endswith(b"\r"):
            # what follows decides whether it ends the line alone
            block, held = block[:-1], b"\r"
        if nul or b"\0" in block:
            block, nul = _collapsed(block, account, inside=nul)
        if b"\r" in block:
            block = _newlines(block)
        if block:
            yield block
    if held:
        yield b"\n"


def _collapsed(block: bytes, account: ByteAccount, *, inside: bool) -> tuple[bytes, bool]:
    """Return a block with its NUL runs collapsed, and whether it ends inside one; `inside`, it begins in one."""
    account.nul_bytes += block.count(0)
    if inside:
        block = block.lstrip(b"\0")
        if not block:
            return block, True
    block, runs = _NULS.subn(b"\0", block)
    account.nul_runs += runs
    return block, block.endswith(b"\0")


def _newlines(block: bytes) -> bytes:
    """Return a block in which carriage returns without a newline after them are newlines."""
    if block.count(b"\r") == block.count(b"\r\n"):
        return block
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


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
    file.account = ByteAccount()
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
        decoded = decode_utf8(decompressed_blocks(file, size))
        yield from _clean(islice(decoded, most), file.account)
        return
    inside_line = False
    blocks = islice(file.blocks(size), most)
    for block in blocks:
        if not is_plain_text(block):
            yield from _clean(chain((block,), blocks), file.account, inside_line=inside_line)
            return
        inside_line = not block.endswith(b"\n")
        yield block


def _text(lines: bytes, account: ByteAccount) -> bytes:
    if lines.isascii() and b'"' not in lines:
        return lines
    return _join_rows(_decode_latin_1(lines, account), account)


class _OpenLine:
    """The unfinished line that the next block continues, in bounded memory."""

    def __init__(self, account: ByteAccount, longest: int) -> None:
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
    file.account = ByteAccount()
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
            yield from StringIO(text, newline="\n")


def damage(line: str) -> str:
    """Return why a line cannot be read, one of `reject_reasons`; empty when it can."""
    if "\0" in line:
        return NUL_BYTES
    return NOT_TEXT if "\ufffd" in line else ""


def sound_lines(lines: Iterable[str], first: int, account: Account) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not empty, each with its number and without its line end; damaged ones are rejected."""
    for number, line in enumerate(lines, first):
        if not line or line.isspace():
            continue
        if fault := damage(line):
            account.reject(fault, number, line)
        else:
            yield number, line.rstrip("\r\n")
