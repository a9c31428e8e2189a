"""Reads messages of protobuf without their schema."""

from collections import defaultdict
from typing import Any

_VARINT, _BYTES, _SIZES = 0, 2, {1: 8, 5: 4}
"""Kinds of fields: a whole number, bytes, and those of a fixed size."""


def read_message(data: bytes) -> defaultdict[int, list[Any]]:
    """Return each field's values by number, integers or bytes; ValueError for no message."""
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
            raise ValueError("a field is cut, or of no kind that is known")
        found[key >> 3].append(data[at : at + size])
        at += size
    return found


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of seven bits per byte, and the next one's place; the highest bit means more."""
    value = 0
    for place, byte in enumerate(data[at : at + 10]):
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:  # noqa: PLR2004 - as above
            return value % 2**64, at + place + 1
    raise ValueError("a number is cut")
