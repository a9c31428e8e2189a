"""A log as text, whatever it is packed with and encoded in: its lines, or blocks of bytes, one after the other."""

from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import islice

from gpureport.importers.account import Account
from gpureport.importers.decoding.pieces import Piece, pieces
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.importers.protocol.reject_reasons import NOT_TEXT, NUL_BYTES
from gpureport.limits import LONGEST_LINE


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
