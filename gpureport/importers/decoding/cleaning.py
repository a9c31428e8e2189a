"""UTF-8 bytes as lines that end in a newline: NUL runs and quotes removed, carriage returns turned into newlines."""

import re
from collections.abc import Iterator

from gpureport.importers.decoding.quoting import unquoted
from gpureport.importers.decoding.raw_file import Account

_NULS = re.compile(rb"\0+")


def clean(blocks: Iterator[bytes], account: Account, *, inside_line: bool = False) -> Iterator[bytes]:
    """Yield text in which a line ends with LF or CRLF, a run of NUL bytes is one such byte, and no row is quoted.

    Args:
        blocks: text in UTF-8.
        account: counts what is changed.
        inside_line: whether the first block goes on with a line.
    """
    return unquoted(_lines(blocks, account), inside_line=inside_line)


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
            block = _newlines(block)
        if block:
            yield block
    if held:
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


def _newlines(block: bytes) -> bytes:
    """Return a block in which carriage returns without a newline after them are newlines."""
    if block.count(b"\r") == block.count(b"\r\n"):
        return block
    return block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
