"""Compressed files as the bytes they stand for: recognised by their first bytes, and read as far as they are whole."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from gpureport.errors import SourceError
from gpureport.importers.decoding.raw_file import RawFile
from gpureport.limits import MOST_UNPACKED_RATIO, UNPACKED_FREELY

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


class _Decoder(Protocol):
    """What decoders of the standard library have in common."""

    @property
    def eof(self) -> bool: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...

    def decompress(self, data: bytes, max_length: int) -> bytes: ...


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


def _members(make: Callable[[], _Decoder], magic: bytes, chunks: Chunks, size: int) -> Iterator[bytes]:
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
