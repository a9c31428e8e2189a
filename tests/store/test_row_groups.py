"""Row groups that are encoded one by one make the file that Arrow would write of them together."""

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport.store import row_groups, thrift
from gpureport.store.row_groups import RowGroupFile, encode

TEXT = pa.dictionary(pa.int32(), pa.string())
SCHEMA = pa.schema(
    [
        pa.field("device", TEXT, nullable=False),
        pa.field("timestamp", pa.timestamp("us"), nullable=False),
        pa.field("imputed", pa.bool_(), nullable=False),
        *(pa.field(f"ratio_{place}", pa.float32()) for place in range(20)),
        pa.field("bytes", pa.int64()),
        pa.field("bits", pa.uint64()),
        pa.field("hertz", pa.float64()),
        pa.field("flag", pa.bool_()),
        pa.field("always", pa.bool_()),
        pa.field("never", pa.bool_()),
        pa.field("stage", TEXT),
    ]
)
OPTIONS: dict[str, Any] = {
    "compression": "zstd",
    "use_dictionary": [name for name in SCHEMA.names if name != "timestamp"],
    "column_encoding": {"timestamp": "DELTA_BINARY_PACKED"},
    "write_statistics": ["device", "timestamp"],
    "write_page_checksum": True,
}


def table(device: str, rows: int, names: set[str]) -> pa.Table:
    """Return rows of a device in some of the columns; some cells hold nothing."""
    generator = random.Random(f"{device} {rows}")
    values: dict[str, list[Any]] = {
        "device": [device] * rows,
        "timestamp": list(range(rows)),
        # of one value in some row groups, and in others not
        "imputed": [rows == MIXED and row % 7 == 0 for row in range(rows)],
        **{name: [name == "always"] * rows for name in names & {"always", "never"}},
    }
    for name in names - {"always", "never"}:
        cells: list[Any] = [generator.choice([None, 1, 2, generator.randrange(2**20)]) for _ in range(rows)]
        kind = SCHEMA.field(name).type
        if pa.types.is_boolean(kind):
            cells = [None if cell is None else cell % 2 == 0 for cell in cells]
        if pa.types.is_dictionary(kind):
            cells = [None if cell is None else str(cell) for cell in cells]
        values[name] = [*cells[:-1], cells[-1] if any(c is not None for c in cells) else None]
    fields = [field for field in SCHEMA if field.name in values]
    arrays = [pa.array(values[field.name], field.type) for field in fields]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


MIXED = 700
PARTS = (
    ("gpu:0", 1, {"ratio_0", "always"}),
    ("gpu:1", MIXED, {"ratio_0", "ratio_19", "bytes", "bits", "never"}),
    ("gpu:2", 70_000, {"flag", "stage", "hertz", "always", "never"}),
    ("host", 40, set[str]()),
)


def written(path: Path) -> pa.Table:
    """Write a file of row groups that hold different columns; return what it is to hold."""
    tables = [table(*part) for part in PARTS]
    file = RowGroupFile(path)
    for each in tables:
        file.take(encode(each, OPTIONS))
    file.close(SCHEMA, OPTIONS)
    whole = pa.concat_tables(tables, promote_options="default")
    missing = [field for field in SCHEMA if field.name not in whole.column_names]
    for field in missing:
        whole = whole.append_column(field, pa.nulls(len(whole), field.type))
    return whole.select(SCHEMA.names).cast(SCHEMA).unify_dictionaries()


def test_the_file_is_what_arrow_would_write(tmp_path: Path) -> None:
    """Schema, rows, and the rows of each group are those of a file that Arrow wrote as a whole."""
    path = tmp_path / "own.parquet"
    expected = written(path)
    file = parquet.ParquetFile(path, page_checksum_verification=True)
    assert file.schema_arrow.equals(SCHEMA, check_metadata=True)
    assert file.read().unify_dictionaries().combine_chunks().equals(expected.combine_chunks())
    rows = [file.metadata.row_group(place).num_rows for place in range(file.num_row_groups)]
    assert rows == [rows for _, rows, _ in PARTS]
    assert file.metadata.num_rows == sum(rows)


def test_other_readers_read_it(tmp_path: Path) -> None:
    """DuckDB and polars find the same as in a file that Arrow wrote."""
    own, arrows = tmp_path / "own.parquet", tmp_path / "arrows.parquet"
    parquet.write_table(written(own), arrows)
    assert pl.read_parquet(own).equals(pl.read_parquet(arrows))
    flags = ", ".join(f"count({name}), count_if({name})" for name in ("imputed", "flag", "always", "never"))
    counted = f"select count(*), count(ratio_0), sum(bytes), count(stage), {flags} from '{{}}'"  # noqa: S608 - a test
    ducks = duckdb.connect()
    assert ducks.execute(counted.format(own)).fetchall() == ducks.execute(counted.format(arrows)).fetchall()
    chosen = f"select count(*) from '{own}' where device = 'gpu:1'"  # noqa: S608 - a test
    assert ducks.execute(chosen).fetchall() == [(700,)]


def test_the_footer_says_where_everything_is(tmp_path: Path) -> None:
    """Chunks follow each other without a gap in use, sizes add up, and the bounds of a row group are kept."""
    path = tmp_path / "own.parquet"
    written(path)
    metadata = parquet.read_metadata(path)
    spans = []
    for place in range(metadata.num_row_groups):
        group = metadata.row_group(place)
        chunks = [group.column(number) for number in range(group.num_columns)]
        assert group.total_byte_size == sum(chunk.total_uncompressed_size for chunk in chunks)
        assert [chunk.path_in_schema for chunk in chunks] == SCHEMA.names
        assert chunks[0].statistics is not None
        assert chunks[0].statistics.min == PARTS[place][0]
        for chunk in chunks:
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            spans.append((start, start + chunk.total_compressed_size))
    spans.sort()
    assert spans[0][0] == len(b"PAR1")
    assert all(end == start for (_, end), (start, _) in pairwise(spans))


@pytest.mark.parametrize("name", ["bytes", "always", "imputed"])
def test_a_flipped_bit_of_a_page_written_here_is_an_error(tmp_path: Path, name: str) -> None:
    """Columns without values, and flags that are the same in all rows, are covered by a checksum as every page is."""
    path = tmp_path / "own.parquet"
    written(path)
    metadata = parquet.read_metadata(path)
    content = bytearray(path.read_bytes())
    chunk = metadata.row_group(2).column(SCHEMA.names.index(name))
    content[chunk.data_page_offset + chunk.total_compressed_size - 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(OSError, match="CRC"):
        parquet.read_table(path, page_checksum_verification=True)


def test_no_row_group_is_an_empty_file(tmp_path: Path) -> None:
    """A file that took nothing has the columns and no rows."""
    path = tmp_path / "own.parquet"
    RowGroupFile(path).close(SCHEMA, OPTIONS)
    assert parquet.read_table(path).equals(SCHEMA.empty_table())


def test_a_place_too_high_to_be_said_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of a row group has two bytes in the footer; a reader that finds none counts."""
    monkeypatch.setattr(row_groups, "_MOST_ORDINAL", 1)
    path = tmp_path / "own.parquet"
    expected = written(path)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    places = [thrift.struct(group).get(7) for group in thrift.items(thrift.struct(footer)[4])]
    assert [None if place is None else thrift.number(place) for place in places] == [0, 1, None, None]
    assert parquet.read_table(path).unify_dictionaries().combine_chunks().equals(expected.combine_chunks())


def test_a_footer_is_encoded_as_it_was(tmp_path: Path) -> None:
    """What is read of a footer and written again is the same bytes, whole and a row group at a time."""
    path = tmp_path / "arrows.parquet"
    parquet.write_table(table("gpu:1", 700, {"ratio_0", "flag"}), path, row_group_size=30)
    content = path.read_bytes()
    footer = content[-8 - int.from_bytes(content[-8:-4], "little") : -8]
    fields = thrift.struct(footer)
    assert thrift.encoded(fields) == footer
    groups = thrift.items(fields[4])
    assert len(groups) == 24
    assert thrift.listed(thrift.STRUCT, groups) == fields[4]
    assert [thrift.encoded(thrift.struct(group)) for group in groups] == groups


@given(st.integers(-(2**63), 2**63 - 1))
def test_integers_come_back(value: int) -> None:
    """A number is what it was, whatever its sign."""
    assert thrift.number(thrift.integer(thrift.I64, value)) == value
