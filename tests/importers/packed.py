"""Bytes compressed in every way that is read."""

import bz2
import gzip
import lzma
from collections.abc import Callable

import pyarrow as pa


def zstd(content: bytes) -> bytes:
    """Return one zstd frame."""
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": lambda content: gzip.compress(content, mtime=0),
    "zstd": zstd,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
}
COMPRESSED = [name for name in PACKED if name != "plain"]
