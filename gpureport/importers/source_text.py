"""Reads a log as text: hashes it, decompresses intact parts, and splits it into UTF-8 lines."""

import bz2
import codecs
import errno
import lzma
import re
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from gpureport.errors import SourceError
from gpureport.importers.account import format_count
from gpureport.parsing import LONGEST_LINE, MOST_UNPACKED_RATIO, UNPACKED_FREELY

BLOCK = 2**20
"""Size of a block, which fits in the processor's cache while it is hashed and cleaned."""
PIECE_BYTES = 5 * 2**20
"""Size of a piece; 4 MiB takes 4% longer, and 6 MiB takes 30 MB more memory (measured)."""


@dataclass(slots=True)
class ByteAccount:
    """Problems in a log's bytes; `damage` explains why only part of a compressed log was read."""

    nul_bytes: int = 0
    nul_runs: int = 0
    long_lines: int = 0
    damage: str = ""
    latin_1_lines: int = 0

    def notes(self) -> tuple[str, ...]:
        runs = format_count(self.nul_runs, "run")
        found = {
            f"The compressed log is {self.damage}, and was read up to that point.": self.damage,
            f"{format_count(self.nul_bytes, 'NUL byte')} in {runs} skipped.": self.nul_bytes,
            f"{format_count(self.latin_1_lines, 'line')} read as text in Latin-1, not UTF-8.": self.latin_1_lines,
            f"{format_count(self.long_lines, 'line')} shortened, because no log has such long lines.": self.long_lines,
        }
        return tuple(note for note, met in found.items() if met)


FileState = tuple[int, int, int]
"""Inode, size, and time of the last change in nanoseconds."""


def find_state(path: Path) -> FileState:
    with raise_source_errors(path):
        found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


@contextmanager
def raise_source_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except PermissionError as error:
        what, hint = "no permission to read it", "change its permissions or copy it"
        raise SourceError(str(path), what, hint, code="no_permission") from error
    except OSError as error:
        hint = "check its disk, or copy it" if error.errno == errno.EIO else "check the path"
        code = "no_such_file" if isinstance(error, FileNotFoundError) else "cannot_read"
        raise SourceError(str(path), error.strerror or "cannot be read", hint, code=code) from error


_HASHERS = ThreadPoolExecutor(1, thread_name_prefix="sha256")


class RawFile:
    """The bytes of a file, hashed when first read; if bytes are read twice, they must be the same."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.account = ByteAccount()
        # number of hashed bytes
        self.hashed = 0
        self._state: FileState | None = None
        self._hasher = sha256()
        self._hashing: Future[None] | None = None
        self._ended = self._again = False

    def __reduce__(self) -> "tuple[type[RawFile], tuple[Path]]":
        """Let another process read the file from the beginning, in any working directory."""
        return RawFile, (self.path.absolute(),)

    def again(self) -> "RawFile":
        other = RawFile(self.path)
        other._state = self._state
        return other

    @property
    def size(self) -> int:
        self._state = self._state or find_state(self.path)
        return self._state[1]

    def first_bytes(self, length: int = 512) -> bytes:
        with raise_source_errors(self.path), self.path.open("rb") as file:
            return file.read(min(length, self.size))

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        return self._read(0, size)

    def _read(self, at: int, size: int) -> Iterator[bytes]:
        with raise_source_errors(self.path), self.path.open("rb", buffering=0) as file:
            file.seek(at)
            while block := file.read(min(size, self.size - at)):
                known = max(self.hashed - at, 0)
                self._again |= known > 0
                if known < len(block):
                    self._wait()
                    # hash in another thread while parsing, since hashing releases the interpreter lock
                    self._hashing = _HASHERS.submit(self._hasher.update, memoryview(block)[known:])
                    self.hashed = at + len(block)
                at += len(block)
                yield block
        self._ended = True

    def _wait(self) -> None:
        if self._hashing is not None:
            self._hashing.result()
            self._hashing = None

    def sha256(self) -> str:
        if not self._ended and self.hashed < self.size:
            deque(self._read(self.hashed, BLOCK), 0)
        self._ended = True
        self._wait()
        return self._hasher.hexdigest()

    def settle(self) -> None:
        """Raise SourceError if the file changed between two reads."""
        if not self._again or find_state(self.path) == self._state:
            return
        if self.again().sha256() != self.sha256():
            what = "it changed while being read"
            raise SourceError(str(self.path), what, "copy it and read the copy", code="changed_while_read")


_CHUNK = 4096
"""Number of bytes to decompress at once, which bzip2 can expand to 80 MB."""
_ZSTD = b"\x28\xb5\x2f\xfd"
_DECODERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b\x08": partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=256 * 2**20),
}
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"PK\x05\x06": "a zip archive", b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive"}
_TAR, _TAR_AT, _HEADER = b"ustar", 257, 512


def _unpack_members(magic: bytes, chunks: Iterator[bytes], account: ByteAccount) -> Iterator[bytes]:
    """Yield the content of concatenated members, ignoring NUL bytes between them."""
    decoder = _DECODERS[magic]()
    for chunk in chunks:
        left = chunk
        while left := left.lstrip(b"\0") if decoder.eof else left:
            if decoder.eof:
                if not magic.startswith(left[: len(magic)]):
                    account.damage = "followed by other bytes"
                    return
                decoder = _DECODERS[magic]()
            try:
                yield decoder.decompress(left)
            except (zlib.error, OSError, lzma.LZMAError) as error:
                account.damage = f"damaged ({error})"
                return
            left = decoder.unused_data
    if not decoder.eof:
        account.damage = "cut"


def _unpack_zstd(chunks: Iterator[bytes], account: ByteAccount) -> Iterator[bytes]:
    # a truncated log fails after the empty chunk, and a damaged log before it
    remaining = chain(chunks, [b""])
    source: Any = SimpleNamespace(read=lambda _: next(remaining, b""), close=lambda: None, closed=False)
    stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
    try:
        while out := stream.read(_CHUNK):
            yield out
    except (OSError, pa.ArrowException) as error:
        account.damage = "cut" if next(remaining, None) is None else f"damaged ({error})"


def archive_kind(file: RawFile) -> str | None:
    """Return what kind of archive a file is, even if compressed, or None for any other file."""
    if next(decompressed_blocks(file, _HEADER), b"")[_TAR_AT:].startswith(_TAR):
        return "a tar archive"
    return next((name for magic, name in _ARCHIVES.items() if file.first_bytes().startswith(magic)), None)


def decompressed_blocks(file: RawFile, size: int) -> Iterator[bytes]:
    magic = next((magic for magic in (*_DECODERS, _ZSTD) if file.first_bytes().startswith(magic)), b"")
    if not magic:
        yield from file.blocks(size)
        return
    chunks = file.blocks(_CHUNK)
    most = max(UNPACKED_FREELY, MOST_UNPACKED_RATIO * file.size)
    unpacked = _unpack_zstd(chunks, file.account) if magic == _ZSTD else _unpack_members(magic, chunks, file.account)
    held, done = bytearray(), 0
    for part in unpacked:
        held += part
        done += len(part)
        if done > most:
            what = f"it unpacks to more than {MOST_UNPACKED_RATIO} times its size, unlike any recording"
            raise SourceError(str(file.path), what, "unpack it and give the extracted log", code="unpacks_too_large")
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)


_SNIFFED = 4096
_BOMS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_LATIN = re.compile(rb"[\t -~]*+[\xa0-\xfd][\t -~\xa0-\xfd]*+")
"""Matches lines in encodings older than UTF-8; damaged lines contain control characters."""


def _decode(blocks: Iterator[bytes]) -> Iterator[bytes]:
    head = b""
    for block in blocks:
        head += block
        if len(head) >= _SNIFFED:
            break
    # zeros on one side of most byte pairs mean UTF-16; a run of NUL bytes has them on both
    low, high = head[:_SNIFFED:2].count(0), head[1:_SNIFFED:2].count(0)
    most = max(0.3 * len(head[:_SNIFFED]), 16)
    utf_16 = "utf-16-le" if high - low > most else "utf-16-be" if low - high > most else "utf-8"
    encoding = next((name for mark, name in _BOMS.items() if head.startswith(mark)), utf_16)
    text = chain((head.removeprefix(codecs.BOM_UTF8),), blocks)
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    yield from text if encoding == "utf-8" else (decoder.decode(block).encode() for block in text)


def _blocks(file: RawFile, size: int) -> Iterator[bytes]:
    """Yield UTF-8 text with LF line endings, and a single NUL byte for several in a row."""
    account, held, nul = file.account, b"", False
    for each in _decode(decompressed_blocks(file, size)):
        block = held + each if held else each
        # the next character shows whether a carriage return alone ends a line
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
    # possessive, since backtracking would take more memory than the line; if the last cell fails, Python before 3.11.5
    # continues after its delimiter (gh-106052)
    quoted, bare = rb'"[^"\n%b]*+"' % delimiter, rb'[^"\n%b]++' % delimiter
    return rb"^%b(?:%b(?:%b|%b))++(?<!%b)$" % (quoted, delimiter, quoted, bare, delimiter)


_ROW = re.compile(b"|".join(map(_quoted_row, (b",", b";", b"\t"))), re.MULTILINE)
"""Matches a row whose first cell is quoted; its other cells are quoted too, or contain no quotation marks."""


def _clean(lines: bytes, account: ByteAccount) -> bytes:
    # searching for one character is many times faster than searching for two
    if b'"' in lines and (lines.startswith(b'"') or b'\n"' in lines):
        lines = _ROW.sub(lambda match: match[0].replace(b'"', b""), lines)
    try:
        lines.isascii() or lines.decode()
    except UnicodeDecodeError:
        split = lines.split(b"\n")
        for place, line in enumerate(split):
            if _LATIN.fullmatch(line) and line.decode(errors="ignore").encode() != line:
                account.latin_1_lines += 1
                split[place] = line.decode("latin-1").encode()
        return b"\n".join(split)
    return lines


def head(file: RawFile, length: int) -> bytes:
    file.account = ByteAccount()
    found = b""
    # a file of zeros contains no text, whatever its length
    for block in islice(_blocks(file, length), 256):
        found += block
        if len(found) >= length:
            break
    whole = found.rfind(b"\n", 0, length) + 1
    return _clean(found[:whole], file.account) + found[whole:length]


def head_text(head: bytes) -> str:
    return head.decode(errors="replace").replace("\0", "\n")


_LEFT_OUT = b"\xff"
"""Replaces the middle of a line that is too long; it is invalid in UTF-8, so the line is rejected."""


class Piece(NamedTuple):
    """Whole lines of a log in UTF-8; `last` is true for the end of the log."""

    data: bytes
    first_line: int
    last: bool


class Text:
    """The text of a log, or of its first `blocks`. Each iteration starts from the beginning."""

    def __init__(self, file: RawFile, *, longest: int = LONGEST_LINE, blocks: int | None = None) -> None:
        self._file, self._longest, self._most = file, longest, blocks

    def blocks(self) -> Iterator[Piece]:
        return islice(self._pieces(), self._most)

    def __iter__(self) -> Iterator[str]:
        for block in self.blocks():
            # invalid UTF-8 becomes the replacement character, which `damage` finds
            yield from StringIO(block.data.decode(errors="replace"), newline="\n")

    def _pieces(self) -> Iterator[Piece]:
        account = self._file.account = ByteAccount()
        first, lines, held, whole, opened = 1, 0, 0, list[bytes | memoryview](), b""
        size = min(PIECE_BYTES, BLOCK)
        for block in _blocks(self._file, size):
            if cut := block.rfind(b"\n") + 1:
                whole += [opened, memoryview(block)[:cut]]
                held += len(opened) + cut
                # NumPy counts three times as fast as `bytes.count`
                lines += int(np.count_nonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")))
                opened = b""
            opened, shortened = opened + block[cut:], opened.endswith(_LEFT_OUT)
            if len(opened) > self._longest:
                # a longer line takes no more memory
                account.long_lines += not shortened
                opened = opened[: self._longest - len(_LEFT_OUT)] + _LEFT_OUT
            # the first piece is smaller, since lines with a header are checked one by one
            if held >= (PIECE_BYTES if first > 1 else size // 2):
                yield Piece(_clean(b"".join(whole), account), first, last=False)
                first, lines, held, whole = first + lines, 0, 0, []
        yield Piece(_clean(b"".join([*whole, opened]), account), first, last=True)
