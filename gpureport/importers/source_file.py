"""The bytes of a file as they were when reading began, hashed in the same read; and unpacked, as far as it is whole."""

import bz2
import errno
import lzma
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from hashlib import sha256
from io import RawIOBase
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from gpureport.errors import SourceError
from gpureport.importers.note_text import format_count
from gpureport.limits import MOST_UNPACKED_RATIO, UNPACKED_FREELY

BLOCK = 2**20
"""Size of a block: it stays in the processor's cache while it is hashed and cleaned."""
_SMALL = 128 * 1024
"""Bytes that are hashed before another thread has woken up for them."""


@dataclass(slots=True)
class ByteAccount:
    """What was met on the way from bytes to lines.

    Attributes:
        nul_bytes: NUL bytes that were skipped, in `nul_runs` runs.
        long_lines: lines that were shortened, of which `longest` is the length of the longest, in bytes.
        damage: why a compressed log could be read in part only, empty when it could be read whole.
        latin_1_lines: lines in Latin-1 among those in UTF-8.
        joined_rows: rows on several lines, as a quoted cell holds newlines.
        trailing: whether bytes of something else follow a compressed log.
    """

    nul_bytes: int = 0
    nul_runs: int = 0
    long_lines: int = 0
    longest: int = 0
    damage: str = ""
    latin_1_lines: int = 0
    joined_rows: int = 0
    trailing: bool = False

    def notes(self) -> tuple[str, ...]:
        """Return what a reader must know, one sentence each."""
        lines, rows = format_count(self.latin_1_lines, "line"), format_count(self.joined_rows, "row")
        runs = format_count(self.nul_runs, "run")
        found = {
            f"The compressed log is {self.damage}: read up to there.": self.damage,
            "The compressed log is followed by other bytes: they are ignored.": self.trailing,
            f"{format_count(self.nul_bytes, 'NUL byte')} in {runs} skipped.": self.nul_bytes,
            f"{lines} in Latin-1, not UTF-8: read as Latin-1.": self.latin_1_lines,
            f"{rows} on several lines, by newlines in quotes: each counted as one row.": self.joined_rows,
            f"{format_count(self.long_lines, 'line')} shortened, the longest of {self.longest:,} bytes.": self.longest,
        }
        return tuple(note for note, met in found.items() if met)


class FileState(NamedTuple):
    """What shows whether a file was written to."""

    inode: int
    size: int
    modified: int

    @classmethod
    def from_path(cls, path: Path) -> "FileState":
        """Return the state of a file now."""
        with raise_source_errors(path):
            found = path.stat()
        return cls(found.st_ino, found.st_size, found.st_mtime_ns)


@contextmanager
def raise_source_errors(path: Path) -> Iterator[None]:
    """Turn errors of the system while a source is read into errors that name it.

    Raises:
        SourceError: when it cannot be read.
    """
    try:
        yield
    except PermissionError as error:
        raise SourceError(
            str(path), "no permission to read it", "change its permissions or copy it", code="no_permission"
        ) from error
    except OSError as error:
        hint = "check its disk, or copy it" if error.errno == errno.EIO else "check the path"
        code = "no_such_file" if isinstance(error, FileNotFoundError) else "cannot_read"
        raise SourceError(str(path), error.strerror or "cannot be read", hint, code=code) from error


class RawFile:
    """A file read up to the size it had at first, so that a log that grows meanwhile is one log.

    What cannot be read is a `SourceError`. Whatever is read for the first time is hashed. The hash can be asked for
    before the end: then the rest is read for it at once, and again when it is parsed; `settle` makes sure that both
    saw the same.
    """

    def __init__(self, path: Path) -> None:
        """Take a file; it is looked at when it is first read."""
        self.path = path
        self.account = ByteAccount()
        self.watch: Callable[[int], None] | None = None
        self.hashed = 0
        """Bytes that were hashed."""
        self._state: FileState | None = None
        self._hasher = sha256()
        self._hashing: Future[None] | None = None
        self._ended = False
        self._again = False

    def __reduce__(self) -> "tuple[type[RawFile], tuple[Path]]":
        """Return how another process opens it: from the start, wherever that process works."""
        return RawFile, (self.path.absolute(),)

    def again(self) -> "RawFile":
        """Return the file to be read once more on the side, as long as it is now."""
        other = RawFile(self.path)
        other._state = self._state
        return other

    @property
    def size(self) -> int:
        """Bytes it had when it was first looked at."""
        self._state = self._state or FileState.from_path(self.path)
        return self._state.size

    def first_bytes(self, length: int = 512) -> bytes:
        """Return its first bytes."""
        with raise_source_errors(self.path), self.path.open("rb") as file:
            return file.read(min(length, self.size))

    def blocks(self, size: int = BLOCK) -> Iterator[bytes]:
        """Yield its bytes from the start."""
        for block in self._read(0, size):
            if self.watch:
                self.watch(len(block))
            yield block

    def _read(self, at: int, size: int) -> Iterator[bytes]:
        with raise_source_errors(self.path), self.path.open("rb", buffering=0) as file:
            file.seek(at)
            while block := file.read(min(size, self.size - at)):
                self._hash(block, at)
                at += len(block)
                yield block
        self._ended = True

    def _hash(self, block: bytes, at: int) -> None:
        known = self.hashed - at
        self._again |= known > 0
        if known < len(block):
            self._wait()
            fresh = memoryview(block)[max(known, 0) :]
            if len(fresh) < _SMALL:
                self._hasher.update(fresh)
            else:
                # aside, while the block is parsed; the interpreter is not held meanwhile
                self._hashing = _hashers().submit(self._hasher.update, fresh)
            self.hashed = at + len(block)

    def _wait(self) -> None:
        if self._hashing is not None:
            self._hashing.result()
            self._hashing = None

    def sha256(self) -> str:
        """Return the hash of its bytes, after reading those that were not read yet."""
        if not self._ended and self.hashed < self.size:
            for _ in self._read(self.hashed, BLOCK):
                pass
        self._ended = True
        self._wait()
        return self._hasher.hexdigest()

    def settle(self) -> None:
        """Make sure that what was parsed is what was hashed, after parsing.

        Raises:
            SourceError: when bytes that were read twice were not the same.
        """
        if not self._again or FileState.from_path(self.path) == self._state:
            return
        if self.again().sha256() != self.sha256():
            what = "it changed while it was read"
            raise SourceError(str(self.path), what, "copy it and read the copy", code="changed_while_read")


@cache
def _hashers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="sha256")


_CHUNK = 4096
"""Compressed bytes that are unpacked at once, of which bzip2 can make 80 MB; and text that zstd gives at once."""
_XZ_MEMORY = 256 * 2**20
_GZIP, _BZIP2, _XZ, _ZSTD = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
_DECODERS: dict[bytes, Callable[[], Any]] = {
    _GZIP: partial(zlib.decompressobj, 16 + zlib.MAX_WBITS),
    _BZIP2: bz2.BZ2Decompressor,
    _XZ: partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_MEMORY),
}
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"PK\x05\x06": "a zip archive", b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive"}
_TAR, _TAR_AT, _HEADER = b"ustar", 257, 512


def _unpack_members(magic: bytes, chunks: Iterator[bytes], account: ByteAccount) -> Iterator[bytes]:
    """Yield what concatenated members hold; NUL bytes between them are padding."""
    decoder = _DECODERS[magic]()
    for chunk in chunks:
        left = chunk
        while left:
            if decoder.eof:
                if not (left := left.lstrip(b"\0")):
                    break
                if not magic.startswith(left[: len(magic)]):
                    account.trailing = True
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


class _Chunks(RawIOBase):
    """Chunks as the file that Arrow reads from."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self.ended = False

    def readable(self) -> bool:
        return True

    def read(self, _: int = -1) -> bytes:
        chunk = next(self._chunks, b"")
        self.ended = not chunk
        return chunk


def _unpack_zstd(chunks: Iterator[bytes], account: ByteAccount) -> Iterator[bytes]:
    source = _Chunks(chunks)
    stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
    try:
        while out := stream.read(_CHUNK):
            yield out
    except (OSError, pa.ArrowException) as error:
        account.damage = "cut" if source.ended else f"damaged ({error})"


def archive_kind(file: RawFile) -> str | None:
    """Return what kind of archive of several files, compressed or not, a file is, None when it is none."""
    head, inner = file.first_bytes(), next(decompressed_blocks(file, _HEADER), b"")
    if inner[_TAR_AT:].startswith(_TAR):
        return "a tar archive"
    return next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)


def decompressed_blocks(file: RawFile, size: int) -> Iterator[bytes]:
    """Yield the content of a file in blocks of `size`, decompressed where it is compressed.

    A file that is cut or damaged gives what can be read before; its account says so.
    """
    magic = next((magic for magic in (*_DECODERS, _ZSTD) if file.first_bytes().startswith(magic)), b"")
    if not magic:
        yield from file.blocks(size)
        return
    chunks, most = file.blocks(_CHUNK), max(UNPACKED_FREELY, MOST_UNPACKED_RATIO * file.size)
    unpacked = _unpack_zstd(chunks, file.account) if magic == _ZSTD else _unpack_members(magic, chunks, file.account)
    held, done = bytearray(), 0
    for part in unpacked:
        held += part
        done += len(part)
        if done > most:
            what = f"it unpacks to more than {MOST_UNPACKED_RATIO} times its size, as no recording does"
            raise SourceError(str(file.path), what, "unpack it, and give the log in it", code="unpacks_too_large")
        while len(held) >= size:
            yield bytes(held[:size])
            del held[:size]
    if held:
        yield bytes(held)
