"""Thrift's compact protocol, as far as the footer of a Parquet file needs it; what is not touched stays encoded."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, STRUCT = 3, 4, 5, 6, 7, 8, 9, 10, 12
_BOOLEANS = (1, 2)
_MOST_SHORT = 15
"""What four bits hold: a shorter list, or a smaller step to the next field, is said in one byte."""


class Field(NamedTuple):
    """A value of a struct: its type, and its encoded bytes."""

    kind: int
    data: bytes


Struct = dict[int, Field]


def varint(value: int) -> bytes:
    """Return a number that is not negative in as few bytes as it takes."""
    found = bytearray()
    while value >= 0x80:  # noqa: PLR2004 - seven bits a byte
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _unsigned(data: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    value = shift = 0
    while data[at] >= 0x80:  # noqa: PLR2004 - seven bits a byte
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1


def integer(kind: int, value: int) -> Field:
    """Return an integer of a type as a field."""
    return Field(kind, varint(value << 1 if value >= 0 else (-value << 1) - 1))


def number(field: Field) -> int:
    """Return the integer a field holds."""
    value, _ = _unsigned(field.data, 0)
    return (value >> 1) ^ -(value & 1)


def text(value: str) -> bytes:
    """Return an encoded text."""
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def listed(kind: int, items: Iterable[bytes]) -> Field:
    """Return encoded values of one type as a list."""
    found = list(items)
    count = len(found)
    head = bytes([count << 4 | kind]) if count < _MOST_SHORT else bytes([0xF0 | kind]) + varint(count)
    return Field(LIST, head + b"".join(found))


def items(field: Field) -> list[bytes]:
    """Return the encoded values of a list."""
    kind, count, at = _list(field.data, 0)
    found = []
    for _ in range(count):
        end = _end(kind, field.data, at)
        found.append(field.data[at:end])
        at = end
    return found


def struct(data: bytes) -> Struct:
    """Return the fields of an encoded struct by their numbers."""
    return {number_: Field(kind, data[begin:end]) for number_, kind, begin, end in _walk(data)}


def place(data: bytes, wanted: int) -> int:
    """Return where the value of a field of an encoded struct begins.

    Raises:
        ValueError: when the struct has no such field.
    """
    at = last = 0
    while head := data[at]:
        at += 1
        last += head >> 4
        if last == wanted:
            return at
        at = at if head & 0xF in _BOOLEANS else _end(head & 0xF, data, at)
    msg = f"no field {wanted} in the footer of a Parquet file"
    raise ValueError(msg)


def raised(data: bytes, numbers: Sequence[int], by: int) -> bytes:
    """Return an encoded struct of which some fields, integers in the order of their numbers, are larger by so much."""
    parts, done = [], 0
    for number_, kind, begin, end in _walk(data):
        if number_ in numbers:
            parts += [data[done:begin], integer(kind, number(Field(kind, data[begin:end])) + by).data]
            done = end
        if number_ >= numbers[-1]:
            # what follows is not looked at
            break
    return b"".join([*parts, data[done:]])


def _walk(data: bytes) -> Iterator[tuple[int, int, int, int]]:
    """Yield of each field of an encoded struct its number and type, and where its value begins and ends."""
    at = last = 0
    while head := data[at]:
        at += 1
        kind, step = head & 0xF, head >> 4
        if step:
            last += step
        else:
            value, at = _unsigned(data, at)
            last = (value >> 1) ^ -(value & 1)
        end = at if kind in _BOOLEANS else _end(kind, data, at)
        yield last, kind, at, end
        at = end


def encoded(fields: Mapping[int, Field]) -> bytes:
    """Return a struct, encoded; its fields follow each other by less than sixteen."""
    parts, last = [], 0
    for number_, (kind, data) in sorted(fields.items()):
        parts += [bytes([(number_ - last) << 4 | kind]), data]
        last = number_
    return b"".join([*parts, b"\0"])


def _list(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the type of a list's values, how many there are, and where the first begins."""
    kind, count = data[at] & 0xF, data[at] >> 4
    if count < _MOST_SHORT:
        return kind, count, at + 1
    count, at = _unsigned(data, at + 1)
    return kind, count, at


def _end(kind: int, data: bytes, at: int) -> int:
    """Return where a value ends.

    Raises:
        ValueError: when it is of a type no footer has.
    """
    if kind in {I16, I32, I64}:
        return _unsigned(data, at)[1]
    if kind == BINARY:
        length, at = _unsigned(data, at)
        return at + length
    if kind in {LIST, SET}:
        inner, count, at = _list(data, at)
        for _ in range(count):
            at = _end(inner, data, at)
        return at
    if kind == STRUCT:
        return _struct_end(data, at)
    if kind in {BYTE, *_BOOLEANS, DOUBLE}:
        return at + (8 if kind == DOUBLE else 1)
    msg = f"type {kind} in the footer of a Parquet file"
    raise ValueError(msg)


def _struct_end(data: bytes, at: int) -> int:
    while head := data[at]:
        at += 1
        if not head >> 4:
            at = _unsigned(data, at)[1]
        if head & 0xF not in _BOOLEANS:
            at = _end(head & 0xF, data, at)
    return at + 1
