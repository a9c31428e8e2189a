"""Reads the scalars of TensorBoard's event files: records of a fixed frame around messages of protobuf.

A record is the length of its message, a checksum of that, the message and its checksum (tensorflow/core/lib/io
record_writer). The message says a wall time, a step and values, each a number or a tensor of one (event.proto,
summary.proto). Images, histograms and texts are passed over.
"""

import struct
from collections.abc import Iterator
from functools import cache

from gpureport.importers.account import Account
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED
from gpureport.importers.source_file import BLOCK, RawFile, decompressed_blocks

MARK = "brain.Event:"
"""What the first record of every such file holds: its version."""
_FRAME, _CHECKSUM = 12, 4
_LONGEST = 2**28
"""Bytes of a message at most: an image may be large, a damaged length is larger."""
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE, _TAG, _SIMPLE, _TENSOR = 1, 1, 2, 8
_CONTENTS, _DTYPES = (4, 5, 6), {1: "<f", 2: "<d"}
"""Fields of a tensor that hold its values, as bytes or packed, and its types that are read."""


def read_events(file: RawFile, account: Account) -> Iterator[tuple[int, dict[str, float | str]]]:
    """Yield the number of each record that holds scalars, with its `wall_time`, its `step`, and each by its tag."""
    for number, (message, checksum) in enumerate(_records(file, account), 1):
        try:
            cells = _read_event(message)
        except (ValueError, IndexError, KeyError, struct.error):
            cells = None
        if cells is None or (len(cells) > 2 and _mask(message) != checksum):  # noqa: PLR2004 - time and step
            account.reject(f"{MALFORMED} record", number)
        elif len(cells) > 2:  # noqa: PLR2004 - as above
            yield number, cells
        else:
            account.noise += 1


def _records(file: RawFile, account: Account) -> Iterator[tuple[bytes, int]]:
    """Yield each message and its checksum; what follows a damaged length is lost, and counted as one record."""
    held, number, needed = b"", 1, _FRAME
    for block in decompressed_blocks(file, BLOCK):
        held += block
        at = 0
        while len(held) - at >= _FRAME:
            length, checksum = struct.unpack_from("<QI", held, at)
            if length > _LONGEST or _mask(held[at : at + 8]) != checksum:
                account.reject(f"{MALFORMED} record", number)
                return
            needed = _FRAME + length + _CHECKSUM
            if len(held) - at < needed:
                break
            end = at + needed
            yield held[at + _FRAME : end - _CHECKSUM], int.from_bytes(held[end - _CHECKSUM : end], "little")
            at, number = end, number + 1
        held = held[at:]
    if held:
        account.reject(CUT_LAST_LINE, number)


def _read_event(message: bytes) -> dict[str, float | str]:
    """Return what an event says of time, step and scalars."""
    cells: dict[str, float | str] = {"wall_time": "", "step": 0}
    for field, value in _fields(message):
        if field == _TIME and isinstance(value, bytes):
            cells["wall_time"] = f"{struct.unpack('<d', value)[0]:.6f}"
        elif field == _STEP and isinstance(value, int):
            cells["step"] = value
        elif field == _SUMMARY and isinstance(value, bytes):
            for tag, scalar in map(_read_value, (each for part, each in _fields(value) if part == _VALUE)):
                if tag not in cells and scalar is not None:
                    cells[tag] = scalar
    return cells


def _read_value(message: bytes | int) -> tuple[str, float | None]:
    tag, scalar = "", None
    for field, value in _fields(message if isinstance(message, bytes) else b""):
        if field == _TAG and isinstance(value, bytes):
            tag = value.decode()
        elif field == _SIMPLE and isinstance(value, bytes):
            scalar = struct.unpack("<f", value)[0]
        elif field == _TENSOR and isinstance(value, bytes):
            parts = dict(_fields(value))
            content = next((each for name in _CONTENTS if isinstance(each := parts.get(name), bytes) and each), b"")
            kind = _DTYPES.get(int(parts.get(1) or 0), "")
            if kind and len(content) == struct.calcsize(kind):
                scalar = struct.unpack(kind, content)[0]
    return tag, scalar


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the number of each field of a message with its value: a whole number, or bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        size, at = _varint(message, at) if kind == _BYTES else ({_DOUBLE: 8, _FLOAT: 4}[kind], at)
        if at + size > len(message):
            raise ValueError(size)
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:  # noqa: PLR2004 - ten bytes of seven bits
        value |= (message[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 128:  # noqa: PLR2004 - the highest bit says that more follow
            return value, at
    raise ValueError(shift)


@cache
def _crc_table() -> list[int]:
    table = []
    for each in range(256):
        for _ in range(8):
            each = (each >> 1) ^ (0x82F63B78 if each & 1 else 0)  # noqa: PLW2901 - a byte at a time
        table.append(each)
    return table


def _mask(data: bytes) -> int:
    """Return the checksum of bytes as records hold it: a CRC-32C that is turned and shifted."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for each in data:
        crc = table[(crc ^ each) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
