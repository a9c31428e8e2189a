"""UTF-8 bytes as lines that end in a newline: NUL runs and quotes removed, carriage returns turned, long lines cut."""

import re
from collections.abc import Iterator

from gpureport.importers.decoding.quoting import unquoted
from gpureport.importers.decoding.raw_file import Account

LONGEST = 2**20
"""A line longer than this is no line of a log."""
KEPT = 64 * 1024
"""What is kept of such a line."""
_NULS = re.compile(rb"\0+")


def clean(blocks: Iterator[bytes], account: Account) -> Iterator[bytes]:
    """Yield text in which a line ends with LF or CRLF, a run of NUL bytes is one such byte, and no row is quoted."""
    return unquoted(_lines(blocks, account), account)


def _lines(blocks: Iterator[bytes], account: Account) -> Iterator[bytes]:
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
            block = _newlines(block, account)
        if block:
            yield block
    if held:
        account.returns += 1
        yield b"\n"


def _collapsed(block: bytes, account: Account, *, inside: bool) -> tuple[bytes, bool]:
    """Return a block with its NUL runs collapsed, and whether it ends inside one; `inside`, it begins in one."""
    account.nul_bytes += block.count(0)
    if inside:
        block = block.lstrip(b"\0")
        if not block:
            return block, True
    block, runs = _NULS.subn(b"\0", block)
    account.nul_runs += runs
    return block, block.endswith(b"\0")


def _newlines(block: bytes, account: Account) -> bytes:
    """Return a block in which carriage returns without a newline after them are newlines."""
    pairs = block.count(b"\r\n")
    lone = block.count(b"\r") - pairs
    account.pairs += pairs
    account.returns += lone
    if not lone:
        return block
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


class OpenLine:
    """The line that the next block goes on with, held in bounded memory."""

    def __init__(self, account: Account, longest: int = LONGEST) -> None:
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
            self._parts = [b"".join([*self._parts, part])[:KEPT]]

    def ended(self) -> bytes:
        """Return the line, without its end, and begin the next."""
        line, length = b"".join(self._parts), self._length
        self._parts, self._length = [], 0
        if length <= self._longest:
            return line
        self._account.long_lines += 1
        self._account.longest = max(self._account.longest, length)
        return line
