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
from io import FileIO
from pathlib import Path
from typing import Any

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
        nul_bytes: NUL bytes that were skipped.
        nul_runs: runs they lay in.
        long_lines: lines that were shortened.
        longest: length of the longest of them, in bytes.
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
        found = []
        if self.damage:
            found.append(f"The compressed log is {self.damage}: read up to there.")
        if self.trailing:
            found.append("The compressed log is followed by other bytes: they are ignored.")
        if self.nul_bytes:
            found.append(f"{format_count(self.nul_bytes, 'NUL byte')} in {format_count(self.nul_runs, 'run')} skipped.")
        if self.latin_1_lines:
            found.append(f"{format_count(self.latin_1_lines, 'line')} in Latin-1, not UTF-8: read as Latin-1.")
        if self.joined_rows:
            found.append(
                f"{format_count(self.joined_rows, 'row')} on several lines, by newlines in quotes: "
                "each counted as one row."
            )
        if self.long_lines:
            found.append(f"{format_count(self.long_lines, 'line')} shortened, the longest of {self.longest:,} bytes.")
        return tuple(found)


@dataclass(frozen=True, slots=True)
class FileState:
    """What tells whether a file was written to."""

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
        raise SourceError(
            str(path),
            error.strerror or "cannot be read",
            hint,
            code="no_such_file" if isinstance(error, FileNotFoundError) else "cannot_read",
        ) from error


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
        self._state: FileState | None = None
        self._hasher = sha256()
        self._hashing: Future[None] | None = None
        self._hashed = 0
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
        at = 0
        with self._open() as file:
            while block := self._read(file, min(size, self.size - at)):
                self._hash(block, at)
                at += len(block)
                if self.watch:
                    self.watch(len(block))
                yield block
        self._ended = True

    def _open(self) -> FileIO:
        with raise_source_errors(self.path):
            return self.path.open("rb", buffering=0)

    def _read(self, file: FileIO, length: int) -> bytes:
        with raise_source_errors(self.path):
            return file.read(length)

    def _hash(self, block: bytes, at: int) -> None:
        known = self._hashed - at
        self._again |= known > 0
        if known < len(block):
            self._wait()
            fresh = memoryview(block)[max(known, 0) :]
            if len(fresh) < _SMALL:
                self._hasher.update(fresh)
            else:
                # aside, while the block is parsed; the interpreter is not held meanwhile
                self._hashing = _hashers().submit(self._hasher.update, fresh)
            self._hashed = at + len(block)

    def _wait(self) -> None:
        """Wait until the block before is hashed."""
        if self._hashing is not None:
            self._hashing.result()
            self._hashing = None

    def sha256(self) -> str:
        """Return the hash of its bytes, after reading those that were not read yet."""
        if not self._ended and self._hashed < self.size:
            with self._open() as file:
                at = file.seek(self._hashed)
                while block := self._read(file, min(BLOCK, self.size - at)):
                    self._hash(block, at)
                    at += len(block)
        self._ended = True
        self._wait()
        return self._hasher.hexdigest()

    @property
    def hashed(self) -> int:
        """Bytes that were hashed."""
        return self._hashed

    def settle(self) -> None:
        """Make sure that what was parsed is what was hashed, after parsing.

        Raises:
            SourceError: when bytes that were read twice were not the same.
        """
        if not self._again or FileState.from_path(self.path) == self._state:
            return
        now = RawFile(self.path)
        now._state = self._state
        if now.sha256() != self.sha256():
            raise SourceError(
                str(self.path), "it changed while it was read", "copy it and read the copy", code="changed_while_read"
            )


@cache
def _hashers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="sha256")


_CHUNK, _STEP = 64 * 1024, 4096
"""Bytes that are read at once, and that zstd gives at once: a step that fails gives nothing."""
_XZ_MEMORY = 256 * 2**20
_GZIP, _BZIP2, _XZ = b"\x1f\x8b\x08", b"BZh", b"\xfd7zXZ\0"
_ARCHIVES = {b"PK\x03\x04": "a zip archive", b"PK\x05\x06": "a zip archive", b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive"}
_TAR, _TAR_AT, _HEADER = b"ustar", 257, 512


class _DamageError(Exception):
    """A compressed stream ends too early, or is not what it says it is; the text completes `the log is …`."""


class _TrailingError(_DamageError):
    """After the end of a whole stream comes something that is none."""


class _Gzip:
    """A gzip member, decoded the way bz2 and lzma do it."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        out = self._stream.decompress(self._stream.unconsumed_tail + data, max_length)
        self.needs_input = not self._stream.unconsumed_tail and len(out) < max_length
        return out


Chunks = Iterator[bytes]
_Method = Callable[[Chunks, int], Iterator[bytes]]


def _members(make: Callable[[], Any], magic: bytes, chunks: Chunks, size: int) -> Iterator[bytes]:
    """Yield what concatenated members hold, in blocks of `size` at most; NUL bytes between them are padding."""
    decoder = make()
    for data in chunks:
        while True:
            if decoder.eof:
                data = data.lstrip(b"\0")  # noqa: PLW2901 - what is left of the chunk
                if not data:
                    break
                if not magic.startswith(data[: len(magic)]):
                    what = "followed by other bytes"
                    raise _TrailingError(what)
                decoder = make()
            try:
                out = decoder.decompress(data, size)
            except (zlib.error, OSError, lzma.LZMAError, EOFError) as error:
                raise _DamageError(f"damaged ({error})") from error
            if out:
                yield out
            data = decoder.unused_data if decoder.eof else b""  # noqa: PLW2901 - as above
            if not decoder.eof and decoder.needs_input:
                break
    if not decoder.eof:
        raise _DamageError("cut")


class _Pulled:
    """Chunks as the file Arrow reads from."""

    def __init__(self, chunks: Chunks) -> None:
        self._chunks = chunks
        self._rest = b""
        self.closed = self.ended = False
        self.failure: SourceError | None = None

    def read(self, length: int) -> bytes:
        try:
            data = self._rest or next(self._chunks, b"")
        except SourceError as error:
            self.failure = error
            raise
        self.ended = not data
        self._rest = data[length:]
        return data[:length]

    def close(self) -> None:
        self.closed = True


def _zstd(chunks: Chunks, size: int) -> Iterator[bytes]:
    """Yield what zstd frames hold."""
    source: Any = _Pulled(chunks)
    stream: Any = pa.CompressedInputStream(pa.PythonFile(source, mode="r"), "zstd")
    try:
        while out := stream.read(min(size, _STEP)):
            yield out
    except (OSError, SourceError, pa.ArrowException) as error:
        if source.failure is not None:
            # the disk failed, whatever Arrow makes of that: what follows may be whole
            raise source.failure from error
        raise _DamageError("cut" if source.ended else f"damaged ({error})") from error


_METHODS: dict[bytes, _Method] = {
    _GZIP: partial(_members, _Gzip, _GZIP),
    b"\x28\xb5\x2f\xfd": _zstd,
    _BZIP2: partial(_members, bz2.BZ2Decompressor, _BZIP2),
    _XZ: partial(_members, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, _XZ_MEMORY), _XZ),
}


def archive_kind(file: RawFile) -> str | None:
    """Return what kind of archive of several files, compressed or not, a file is, None when it is none."""
    head, inner = file.first_bytes(), next(decompressed_blocks(file, _HEADER), b"")
    if inner[_TAR_AT:].startswith(_TAR):
        return "a tar archive"
    return next((name for magic, name in _ARCHIVES.items() if head.startswith(magic)), None)


def decompressed_blocks(file: RawFile, size: int) -> Iterator[bytes]:
    """Yield the content of a file in blocks of `size` at most, decompressed where it is compressed.

    A file that is cut or damaged gives what can be read before; its account says so.
    """
    head = file.first_bytes()
    magic = next((magic for magic in _METHODS if head.startswith(magic)), None)
    if magic is None:
        yield from file.blocks(size)
        return
    method, done = _METHODS[magic], 0
    try:
        for block in method(file.blocks(_CHUNK), size):
            done += len(block)
            if done > max(UNPACKED_FREELY, MOST_UNPACKED_RATIO * file.size):
                what = f"it unpacks to more than {MOST_UNPACKED_RATIO} times its size, as no recording does"
                raise SourceError(str(file.path), what, "unpack it, and give the log in it", code="unpacks_too_large")
            yield block
    except _TrailingError:
        file.account.trailing = True
    except _DamageError as error:
        file.account.damage = str(error)
