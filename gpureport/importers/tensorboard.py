"""Reads the scalars of TensorBoard's event files: records of a fixed frame around messages of protobuf.

A record is the length of its message, a checksum of that, the message and its checksum (tensorflow/core/lib/io
record_writer). The message says a wall time, a step and values, each a number or a tensor of one (event.proto,
summary.proto, tensor.proto). Images, histograms and texts are passed over.
"""

import struct
from collections.abc import Iterator
from functools import cache

from gpureport.importers.account import Account
from gpureport.importers.protocol.reject_reasons import CUT_LAST_LINE, MALFORMED
from gpureport.importers.source_text import BLOCK, RawFile, decompressed_blocks

MARK = "brain.Event:"
"""What the first record of every such file holds: its version."""
_FRAME, _CHECKSUM, _LONGEST = 12, 4, 2**28
"""Bytes before and behind a message, and of one at most: an image may be large, a damaged length is larger."""
_VARINT, _BYTES, _SIZES = 0, 2, {1: 8, 5: 4}
"""Kinds of fields: a whole number, bytes, and those of a fixed size."""
_TIME, _STEP, _SUMMARY = 1, 2, 5
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_CONTENTS, _DTYPES = (4, 5, 6), {1: "<f", 2: "<d"}
"""Fields of a tensor that hold its values, as bytes or packed, and its types that are read."""


def read_events(file: RawFile, account: Account) -> Iterator[tuple[int, dict[str, float | str]]]:
    """Yield the number of each record that holds scalars, with its `wall_time`, its `step`, and each by its tag.

    What follows a damaged length is lost, and counted as one record.
    """
    held, number = b"", 0
    for block in decompressed_blocks(file, BLOCK):
        held, at = held + block, 0
        while len(held) - at >= _FRAME:
            length, checksum = struct.unpack_from("<QI", held, at)
            if length > _LONGEST or _mask(held[at : at + 8]) != checksum:
                account.reject(f"{MALFORMED} record", number + 1)
                return
            start, end = at + _FRAME, at + _FRAME + length
            if len(held) < end + _CHECKSUM:
                break
            number, at = number + 1, end + _CHECKSUM
            try:
                found = _read_event(held[start:end])
                sound = not found or _mask(held[start:end]) == int.from_bytes(held[end:at], "little")
            except (ValueError, IndexError, KeyError, TypeError, struct.error):
                sound = False
            if not sound:
                account.reject(f"{MALFORMED} record", number)
            elif found:
                yield number, found
            else:
                account.noise += 1
        held = held[at:]
    if held:
        account.reject(CUT_LAST_LINE, number + 1)


def _read_event(message: bytes) -> dict[str, float | str]:
    """Return the time, the step and the scalars of an event; nothing where it has none."""
    time, step, scalars = 0.0, 0, dict[str, float]()
    for field, number, content in _fields(message):
        if field == _TIME:
            time = struct.unpack("<d", content)[0]
        elif field == _STEP:
            step = number
        elif field == _SUMMARY:
            for _, _, value in _fields(content):
                parts = {part: each for part, _, each in _fields(value)}
                tensor = {part: (size, each) for part, size, each in _fields(parts.get(_TENSOR, b""))}
                kind = "<f" if _SIMPLE in parts else _DTYPES.get(tensor.get(1, (0, b""))[0], "")
                found = parts.get(_SIMPLE) or next((tensor[each][1] for each in _CONTENTS if each in tensor), b"")
                if kind and len(found) == struct.calcsize(kind):
                    scalars.setdefault(parts[_TAG].decode(), struct.unpack(kind, found)[0])
    return {**scalars, "wall_time": f"{time:.6f}", "step": step} if scalars else {}


def _fields(message: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield the number of each field of a message with its value: a whole number, or else bytes."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        if key & 7 == _VARINT:
            value, at = _varint(message, at)
            yield key >> 3, value, b""
            continue
        size, at = _varint(message, at) if key & 7 == _BYTES else (_SIZES[key & 7], at)
        if at + size > len(message):
            raise ValueError(size)
        yield key >> 3, 0, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    # ten bytes of seven bits; the highest bit says that more follow
    while shift < 70:  # noqa: PLR2004
        value |= (message[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if message[at - 1] < 128:  # noqa: PLR2004
            return value, at
    raise ValueError(shift)


@cache
def _crc_table() -> list[int]:
    table = list(range(256))
    for _ in range(8):
        table = [(each >> 1) ^ (0x82F63B78 if each & 1 else 0) for each in table]
    return table


def _mask(data: bytes) -> int:
    """Return the checksum of bytes as records hold it: a CRC-32C that is turned and shifted."""
    table, crc = _crc_table(), 0xFFFFFFFF
    for each in data:
        crc = table[(crc ^ each) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
