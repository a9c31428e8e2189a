"""A Parquet file put together of row groups that were encoded each by itself.

Arrow writes one row group after the other, and for a column without a value a level for every row. Here each row
group is a small file in memory that holds the columns with values alone, so that several threads encode at a time;
the file takes their pages, adds a page for each column without values, and gets one footer for all.
"""

import struct as binary
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyarrow import parquet

from gpureport.store import thrift
from gpureport.store.thrift import BINARY, I16, I32, I64, STRUCT, Field, Struct

_MAGIC = b"PAR1"
_TAIL = 8
_SCHEMA, _ROWS, _GROUPS = 2, 3, 4
"""Fields of FileMetaData; these and those below are numbered in parquet.thrift of Apache Parquet."""
_COLUMNS, _BYTES, _GROUP_ROWS, _OFFSET, _COMPRESSED, _ORDINAL = 1, 2, 3, 5, 6, 7
"""Fields of RowGroup."""
_CHUNK_OFFSET, _META = 2, 3
"""Fields of ColumnChunk."""
_TYPE, _ENCODINGS, _PATH, _CODEC = 1, 2, 3, 4
_PAGE_OFFSETS = (9, 10, 11)
"""Fields of ColumnMetaData: the type and the path of a column, its sizes, and where its pages are."""
_ELEMENT_TYPE, _ELEMENT_NAME = 1, 4
"""Fields of SchemaElement."""
_PLAIN, _RLE = 0, 3
"""Encodings."""
_MOST_ORDINAL = 2**15 - 1
"""What the place of a row group may be said to be, in two bytes with a sign; it need not be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """What the footer says of a row group.

    Attributes:
        fields: of the whole.
        chunks: by their names, of its columns.
        rows: how many there are.
    """

    fields: Struct
    chunks: Mapping[str, bytes]
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Rows as a row group of their own, not yet in a file.

    Attributes:
        pages: the bytes of all their pages.
        group: what the footer says of them.
    """

    pages: memoryview
    group: RowGroup


def encode(table: "pa.Table", options: Mapping[str, Any]) -> Encoded:
    """Return rows as a row group; several threads may do so at a time.

    Args:
        table: rows, at least one, in columns that are not nested.
        options: how they are written, as `ParquetWriter` names it.
    """
    whole = memoryview(_written(table.schema, table, options))
    footer = _footer(whole)
    (only,) = thrift.items(footer[_GROUPS])
    fields = thrift.struct(only)
    end = len(whole) - _TAIL - _footer_length(whole)
    chunks = dict(zip(table.column_names, thrift.items(fields[_COLUMNS]), strict=True))
    return Encoded(
        pages=whole[len(_MAGIC) : end],
        group=RowGroup(fields=fields, chunks=chunks, rows=len(table)),
    )


def _written(schema: "pa.Schema", table: "pa.Table | None", options: Mapping[str, Any]) -> "pa.Buffer":
    sink = pa.BufferOutputStream()
    with parquet.ParquetWriter(sink, schema, **options) as writer:
        if table is not None:
            writer.write_table(table, row_group_size=len(table))
    return sink.getvalue()


def _footer_length(whole: memoryview) -> int:
    (length,) = binary.unpack("<I", whole[-_TAIL : -len(_MAGIC)])
    return int(length)


def _footer(whole: memoryview) -> Struct:
    return thrift.struct(bytes(whole[-_TAIL - _footer_length(whole) : -_TAIL]))


class RowGroupFile:
    """A Parquet file that takes encoded row groups, whose columns may differ; it has those of all."""

    def __init__(self, path: Path) -> None:
        """Make the file."""
        self._file = path.open("wb")
        self._file.write(_MAGIC)
        self._taken: list[tuple[int, RowGroup]] = []

    def take(self, encoded: Encoded) -> None:
        """Write the pages of a row group."""
        self._taken.append((self._file.tell(), encoded.group))
        self._file.write(encoded.pages)

    def close(self, schema: "pa.Schema", options: Mapping[str, Any]) -> None:
        """Write pages of nulls for the columns that row groups lack, then the footer.

        Args:
            schema: columns of the file; those that a row group lacks are nullable.
            options: how they would be written, as `ParquetWriter` names it.
        """
        footer = _footer(memoryview(_written(schema, None, options)))
        elements = [thrift.struct(each) for each in thrift.items(footer[_SCHEMA])[1:]]
        absent = {name: _beginning(element) for name, element in zip(schema.names, elements, strict=True)}
        groups = [self._group(place, at, group, absent) for place, (at, group) in enumerate(self._taken)]
        footer[_ROWS] = thrift.integer(I64, sum(group.rows for _, group in self._taken))
        footer[_GROUPS] = thrift.listed(STRUCT, groups)
        end = thrift.encoded(footer)
        self._file.write(end + binary.pack("<I", len(end)) + _MAGIC)
        self._file.close()

    def abandon(self) -> None:
        """Close the file without caring for its content."""
        self._file.close()

    def _group(self, place: int, at: int, group: RowGroup, absent: Mapping[str, bytes]) -> bytes:
        """Return what the footer says of a row group, after writing pages for the columns it lacks."""
        fields = dict(group.fields)
        by = at - len(_MAGIC)
        page, sizes = _nulls(group.rows)
        start = self._file.tell()
        columns, added = [], 0
        for name, beginning in absent.items():
            if name in group.chunks:
                columns.append(_moved(group.chunks[name], by))
                continue
            columns.append(_null_chunk(beginning, sizes, start + added * len(page)))
            added += 1
        self._file.write(page * added)
        for each in (_BYTES, _COMPRESSED):
            fields[each] = thrift.integer(I64, thrift.number(fields[each]) + added * len(page))
        fields[_OFFSET] = thrift.integer(I64, thrift.number(fields[_OFFSET]) + by)
        if place <= _MOST_ORDINAL:
            fields[_ORDINAL] = thrift.integer(I16, place)
        fields[_COLUMNS] = thrift.listed(STRUCT, columns)
        return thrift.encoded(fields)


def _moved(chunk: bytes, by: int) -> bytes:
    """Return what is said of a column, the pages of which lie elsewhere."""
    begin = thrift.place(chunk, _META)
    return chunk[:begin] + thrift.raised(chunk[begin:], _PAGE_OFFSETS, by)


def _beginning(element: Struct) -> bytes:
    """Return the fields of a column without values that are the same in every row group, without their end."""
    path = thrift.listed(BINARY, [element[_ELEMENT_NAME].data])
    encodings = thrift.listed(I32, [thrift.integer(I32, each).data for each in (_RLE, _PLAIN)])
    fields = {
        _TYPE: element[_ELEMENT_TYPE],
        _ENCODINGS: encodings,
        _PATH: path,
        _CODEC: thrift.integer(I32, 0),
    }
    return thrift.encoded(fields)[:-1]


def _nulls(rows: int) -> tuple[bytes, bytes]:
    """Return a page of nulls, and the fields that say how large it is."""
    levels = thrift.varint(rows << 1) + b"\0"
    body = binary.pack("<I", len(levels)) + levels
    data = {1: rows, 2: _PLAIN, 3: _RLE, 4: _RLE}
    (checksum,) = binary.unpack("<i", binary.pack("<I", crc32(body)))
    header = {number: thrift.integer(I32, value) for number, value in ((1, 0), (2, len(body)), (3, len(body)))}
    header[4] = thrift.integer(I32, checksum)
    header[5] = Field(STRUCT, thrift.encoded({number: thrift.integer(I32, value) for number, value in data.items()}))
    page = thrift.encoded(header) + body
    # each field follows the one before it by one, as the type and the codec do that stand before them
    values = (rows, len(page), len(page))
    sizes = b"".join(bytes([1 << 4 | I64]) + thrift.integer(I64, value).data for value in values)
    return page, sizes


def _null_chunk(beginning: bytes, sizes: bytes, at: int) -> bytes:
    """Return what is said of a column without values whose page lies at a place."""
    place = bytes([2 << 4 | I64]) + thrift.integer(I64, at).data
    meta = beginning + sizes + place + b"\0"
    return thrift.encoded({_CHUNK_OFFSET: thrift.integer(I64, 0), _META: Field(STRUCT, meta)})
