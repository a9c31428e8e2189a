"""Fields of a protobuf message, by number: just what the wire says, without its types."""

import struct
from collections.abc import Iterator

_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_MORE, _LOW = 0x80, 0x7F
_SIGNED = 1 << 63
_LONGEST = 70
"""Bits a number can have at most, and some."""

Field = int | float | bytes


def fields(data: bytes) -> Iterator[tuple[int, Field]]:
    """Yield number and value of each field: whole numbers as they are written, doubles and floats, else bytes.

    Raises:
        ValueError: when the data is no message.
    """
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        value: Field
        if kind == _VARINT:
            value, at = _number(data, at)
        elif kind == _BYTES:
            length, at = _number(data, at)
            value, at = data[at : at + length], at + length
        elif kind in {_DOUBLE, _FLOAT}:
            length = 8 if kind == _DOUBLE else 4
            if at + length > len(data):
                raise ValueError("a field is cut")
            value = struct.unpack_from("<d" if kind == _DOUBLE else "<f", data, at)[0]
            at += length
        else:
            raise ValueError(f"a field is of kind {kind}")
        if at > len(data):
            raise ValueError("a field is cut")
        yield tag >> 3, value


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and where the next byte lies."""
    value = shift = 0
    while at < len(data) and shift < _LONGEST:
        byte = data[at]
        value |= (byte & _LOW) << shift
        shift, at = shift + 7, at + 1
        if not byte & _MORE:
            return value, at
    raise ValueError("a number is cut")


def signed(value: Field) -> int:
    """Return a whole number that was written as one of 64 bits with a sign."""
    number = int(value) if not isinstance(value, bytes) else 0
    return number - (1 << 64) if number >= _SIGNED else number
