"""Reads protobuf messages without their schema, and the scalars in TensorBoard's event files.

A record in an event file consists of the length of its message, a checksum of the length,
the message, and its checksum. Images, histograms and texts are skipped.
"""

import struct
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from gpureport.importers.account import CUT_LAST_LINE, MALFORMED, Account
from gpureport.importers.source_text import BLOCK, RawFile, decompressed_blocks

_VARINT, _BYTES, _SIZES = 0, 2, {1: 8, 5: 4}  # kinds of fields, and the size of each fixed-size kind


def read_message(data: bytes) -> defaultdict[int, list[Any]]:
    """Return values by field number, as integers or bytes. Raises ValueError if the data is not a message."""
    found: defaultdict[int, list[Any]] = defaultdict(list)
    at = 0
    while at < len(data):
        key, at = _read_number(data, at)
        if key & 7 == _VARINT:
            value, at = _read_number(data, at)
            found[key >> 3].append(value)
            continue
        size, at = _read_number(data, at) if key & 7 == _BYTES else (_SIZES.get(key & 7, len(data)), at)
        if at + size > len(data):
            raise ValueError("a field is cut off, or its kind is unknown")
        found[key >> 3].append(data[at : at + size])
        at += size
    return found


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a varint (seven bits per byte, lowest first) and the position after it."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - as above
            return value % 2**64, at + place + 1
    raise ValueError("a number is cut off")


MARK = "brain.Event:"
"""Start of the version in the first record of every event file."""
_FRAME, _CHECKSUM, _LONGEST = 12, 4, 2**28  # bytes around a message, and the maximum message size
_TIME, _STEP, _SUMMARY = 1, 2, 5
_TAG, _SIMPLE, _TENSOR = 1, 2, 8
_CONTENTS, _DTYPES = (4, 5, 6), {1: "<f", 2: "<d"}
"""Fields of a tensor that contain its values, as bytes or packed numbers, and the supported types."""


def read_events(file: RawFile, account: Account) -> Iterator[tuple[int, dict[str, float | str]]]:
    """Yield the number of each record with scalars, its `wall_time`, `step` and scalars by tag."""
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
    event, scalars = read_message(message), dict[str, float]()
    for value in (read_message(each) for summary in event[_SUMMARY] for each in read_message(summary)[1]):
        tensor = read_message(value[_TENSOR][-1] if value[_TENSOR] else b"")
        kind = "<f" if value[_SIMPLE] else _DTYPES.get(tensor[1][-1], "") if tensor[1] else ""
        found = [*value[_SIMPLE][-1:], *(each for field in _CONTENTS for each in tensor[field][-1:]), b""][0]
        if kind and len(found) == struct.calcsize(kind):
            scalars.setdefault(value[_TAG][-1].decode(), struct.unpack(kind, found)[0])
    time = struct.unpack("<d", event[_TIME][-1])[0] if event[_TIME] else 0.0
    return {**scalars, "wall_time": f"{time:.6f}", "step": event[_STEP][-1] if event[_STEP] else 0} if scalars else {}


_CRC = list(range(256))
for _ in range(8):
    _CRC = [(each >> 1) ^ (0x82F63B78 if each & 1 else 0) for each in _CRC]


def _mask(data: bytes) -> int:
    """Return the checksum of bytes as in event files: a CRC-32C, rotated and offset."""
    crc = 0xFFFFFFFF
    for each in data:
        crc = _CRC[(crc ^ each) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF
