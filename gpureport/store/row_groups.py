"""A Parquet file put together of row groups that were encoded each by itself.

Arrow writes one row group after the other, and for a column without a value a level for every row. Here each row
group is a small file in memory that holds the columns whose values differ, so that several threads encode at a time;
the file takes their pages, adds one for each column without values and for each flag that is the same in all rows
(most are: encoding them took a fifth of the writing), and gets one footer for all.
"""

import struct as binary
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
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
_ELEMENT_TYPE, _ELEMENT_REPETITION, _ELEMENT_NAME = 1, 3, 4
"""Fields of SchemaElement."""
_OPTIONAL = 1
"""Repetition of a column that may hold nulls."""
_PLAIN, _RLE = 0, 3
"""Encodings."""
_BARE, _ZSTD = 0, 6
"""What pages are compressed with."""
_MOST_ORDINAL = 2**15 - 1
"""What the place of a row group may be said to be, in two bytes with a sign; it need not be said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """What the footer says of a row group.

    Attributes:
        fields: of the whole.
        chunks: by their names, of its columns.
        same: by their names, flags that are not among these, with the value that all rows have.
        rows: how many there are.
    """

    fields: Struct
    chunks: Mapping[str, bytes]
    same: Mapping[str, bool]
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
    same = {name: value for name in table.column_names if (value := _everywhere(table.column(name))) is not None}
    table = table.drop_columns(list(same))
    whole = memoryview(_written(table.schema, table, options))
    footer = _footer(whole)
    (only,) = thrift.items(footer[_GROUPS])
    fields = thrift.struct(only)
    end = len(whole) - _TAIL - _footer_length(whole)
    chunks = dict(zip(table.column_names, thrift.items(fields[_COLUMNS]), strict=True))
    return Encoded(
        pages=whole[len(_MAGIC) : end],
        group=RowGroup(fields=fields, chunks=chunks, same=same, rows=len(table)),
    )


def _everywhere(column: "pa.ChunkedArray[Any]") -> bool | None:
    """Return the value of a flag that is the same in all rows, None where it is not or the column is none of flags."""
    if not pa.types.is_boolean(column.type) or column.null_count:
        return None
    held: Any = column.chunks
    count = sum(chunk.true_count for chunk in held)
    return bool(count) if count in {0, len(column)} else None


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


class _Page(NamedTuple):
    """A page that is all of its column in a row group.

    Attributes:
        data: its header and its body.
        raw: its length without compression, in bytes.
        fields: what is said of it behind the path of its column, encoded.
    """

    data: bytes
    raw: int
    fields: bytes


class _Column(NamedTuple):
    """What is the same of a column in every row group.

    Attributes:
        fields: what is said of it up to its path, encoded.
        optional: whether it may hold nulls.
    """

    fields: bytes
    optional: bool

    @classmethod
    def of(cls, element: Struct) -> "_Column":
        """Return a column of a schema."""
        encodings = (thrift.integer(I32, each).data for each in (_RLE, _PLAIN))
        fields = {
            _TYPE: element[_ELEMENT_TYPE],
            _ENCODINGS: thrift.listed(I32, encodings),
            _PATH: thrift.listed(BINARY, [element[_ELEMENT_NAME].data]),
        }
        optional = thrift.number(element[_ELEMENT_REPETITION]) == _OPTIONAL
        return cls(fields=thrift.encoded(fields)[:-1], optional=optional)


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
        columns = {name: _Column.of(element) for name, element in zip(schema.names, elements, strict=True)}
        groups = [self._group(place, at, group, columns) for place, (at, group) in enumerate(self._taken)]
        footer[_ROWS] = thrift.integer(I64, sum(group.rows for _, group in self._taken))
        footer[_GROUPS] = thrift.listed(STRUCT, groups)
        end = thrift.encoded(footer)
        self._file.write(end + binary.pack("<I", len(end)) + _MAGIC)
        self._file.close()

    def abandon(self) -> None:
        """Close the file without caring for its content."""
        self._file.close()

    def _group(self, place: int, at: int, group: RowGroup, columns: Mapping[str, _Column]) -> bytes:
        """Return what the footer says of a row group, after writing pages for the columns it was not encoded with."""
        fields = dict(group.fields)
        by = at - len(_MAGIC)
        start = self._file.tell()
        chunks, pages = [], []
        for name, column in columns.items():
            if name in group.chunks:
                chunks.append(_moved(group.chunks[name], by))
                continue
            value = group.same.get(name)
            page = _nulls(group.rows) if value is None else _flags(group.rows, value=value, optional=column.optional)
            chunks.append(_chunk(column, page, start))
            pages.append(page)
            start += len(page.data)
        self._file.write(b"".join(page.data for page in pages))
        for each, added in (
            (_BYTES, sum(page.raw for page in pages)),
            (_COMPRESSED, sum(len(page.data) for page in pages)),
        ):
            fields[each] = thrift.integer(I64, thrift.number(fields[each]) + added)
        fields[_OFFSET] = thrift.integer(I64, thrift.number(fields[_OFFSET]) + by)
        if place <= _MOST_ORDINAL:
            fields[_ORDINAL] = thrift.integer(I16, place)
        fields[_COLUMNS] = thrift.listed(STRUCT, chunks)
        return thrift.encoded(fields)


def _moved(chunk: bytes, by: int) -> bytes:
    """Return what is said of a column, the pages of which lie elsewhere."""
    begin = thrift.place(chunk, _META)
    return chunk[:begin] + thrift.raised(chunk[begin:], _PAGE_OFFSETS, by)


@lru_cache(16)
def _nulls(rows: int) -> _Page:
    """Return a page of nulls."""
    return _page(rows, _levels(rows, 0), _BARE)


@lru_cache(16)
def _flags(rows: int, *, value: bool, optional: bool) -> _Page:
    """Return a page of one flag for all rows, a bit each."""
    bits = (b"\xff" if value else b"\0") * -(-rows // 8)
    return _page(rows, (_levels(rows, 1) if optional else b"") + bits, _ZSTD)


def _levels(rows: int, level: int) -> bytes:
    """Return one definition level for all rows: 0 says null, 1 that there is a value."""
    run = thrift.varint(rows << 1) + bytes([level])
    return binary.pack("<I", len(run)) + run


def _page(rows: int, body: bytes, codec: int) -> _Page:
    stored = body if codec == _BARE else pa.compress(body, codec="zstd", asbytes=True)
    (checksum,) = binary.unpack("<i", binary.pack("<I", crc32(stored)))
    sizes = ((1, 0), (2, len(body)), (3, len(stored)), (4, checksum))
    header = {number: thrift.integer(I32, value) for number, value in sizes}
    described = {1: rows, 2: _PLAIN, 3: _RLE, 4: _RLE}
    fields = {number: thrift.integer(I32, value) for number, value in described.items()}
    header[5] = Field(STRUCT, thrift.encoded(fields))
    begun = thrift.encoded(header)
    raw, length = len(begun) + len(body), len(begun) + len(stored)
    # each of them follows the one before it by one
    said = (thrift.integer(I32, codec), *(thrift.integer(I64, value) for value in (rows, raw, length)))
    return _Page(data=begun + stored, raw=raw, fields=b"".join(bytes([1 << 4 | kind]) + data for kind, data in said))


def _chunk(column: _Column, page: _Page, at: int) -> bytes:
    """Return what is said of a column whose page lies at a place."""
    place = bytes([2 << 4 | I64]) + thrift.integer(I64, at).data
    meta = column.fields + page.fields + place + b"\0"
    return thrift.encoded({_CHUNK_OFFSET: thrift.integer(I64, 0), _META: Field(STRUCT, meta)})
