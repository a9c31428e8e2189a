"""Row groups: long devices have their own, short ones share them, and neither shows when series are read."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from gpureport import columns
from gpureport.redaction import HIDDEN
from gpureport.series_table import collect_series
from gpureport.store.series_file import SeriesWriter, redact_series
from gpureport.store.series_reader import SeriesFile, read_series

DEVICES = [f"gpu:{number}" for number in range(6)]
Batch = tuple[int, int, int, bool]


def rows_of(device: int, rows: int, start: int, *, extra: bool = False) -> pa.Table:
    """Return rows of one device from a second on, with a column that not every log has."""
    times = np.arange(start, start + rows) * 1_000_000
    cells: dict[str, pa.Array[Any]] = {
        "device": columns.category(DEVICES[device], rows),
        "timestamp": columns.to_arrow(times, pa.timestamp("us")),
        "imputed": columns.to_arrow(np.zeros(rows), pa.bool_()),
        "gpu_power_watts": columns.to_arrow(times % 97 + device, pa.float32()),
    }
    if extra:
        cells["extra_mode"] = columns.category(f"mode {device}", rows)
    return pa.Table.from_arrays([*cells.values()], names=[*cells])


@settings(deadline=None, max_examples=15)
@given(
    batches=st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 30), st.integers(0, 9), st.booleans()), min_size=1, max_size=14
    ),
    limits=st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(5, 60)),
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, batches: list[Batch], limits: tuple[int, int, int]
) -> None:
    """Whatever comes in which order and however little fits a row group, it is read by device and time."""
    path = tmp_path_factory.mktemp("series") / "hardware.parquet"
    tables = [rows_of(device, rows, start * 20, extra=extra) for device, rows, start, extra in batches]
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in zip(("ROW_GROUP", "SHARED_ROWS", "_MOST_ROWS_HELD"), limits, strict=True):
            patch.setattr(f"gpureport.store.series_file.{name}", limit)
        writer = SeriesWriter(path, lambda: "run")
        for table in tables:
            writer.add(table)
        devices = [device for number, device in enumerate(DEVICES) if any(batch[0] == number for batch in batches)]
        names = writer.close(devices)
    assert read_series(path, names, devices).equals(collect_series(tables, {}, devices))
    opened = SeriesFile(path, names)
    assert {*opened.devices} == {*devices}
    for some in (devices[1:2], devices[::-1], devices[::2], [*devices, "gpu:9"]):
        rest = [device for device in devices if device not in some]
        rows = opened.read(some)
        assert len(rows) == sum(len(table) for table in tables if table.column("device")[0].as_py() in some)
        assert rows.to_pylist() == collect_series(tables, {}, [*some, *rest]).slice(0, len(rows)).to_pylist()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_short_devices_share_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Devices share a row group as far as it holds them whole; a long one between them has its own."""
    monkeypatch.setattr("gpureport.store.series_file.SHARED_ROWS", 25)
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 40)
    path = tmp_path / "hardware.parquet"
    writer = SeriesWriter(path, lambda: "run")
    for device, rows in enumerate([10, 10, 10, 70, 10, 10]):
        writer.add(rows_of(device, rows, 0))
    writer.close(DEVICES)
    file = parquet.ParquetFile(path)
    groups: list[list[Any]] = [
        file.read_row_group(index).column("device").to_pylist() for index in range(file.num_row_groups)
    ]
    assert sorted(sorted({*group}) for group in groups) == [
        ["gpu:0", "gpu:1"],
        ["gpu:2"],
        ["gpu:3"],
        ["gpu:4", "gpu:5"],
    ]
    shared = next(index for index, group in enumerate(groups) if group[0] == "gpu:0")
    for name in ("device", "gpu_power_watts"):
        place = file.schema_arrow.get_field_index(name)
        assert "RLE_DICTIONARY" in file.metadata.row_group(shared).column(place).encodings


def test_a_row_of_no_device_is_damage(tmp_path: Path) -> None:
    """A number in its dictionary that no name has, as one wrong byte makes it where there is no checksum."""
    path, rows = tmp_path / "hardware.parquet", rows_of(0, 2, 0)
    numbers, names = pa.array([0, 5], pa.int32()), pa.array([DEVICES[0]])
    wrong = pa.DictionaryArray.from_arrays(numbers, names, safe=False)
    parquet.write_table(rows.set_column(rows.column_names.index("device"), "device", wrong), path)
    with pytest.raises(ValueError, match="none of the devices"):
        read_series(path, rows.column_names, DEVICES[:1])


@pytest.mark.parametrize("hidden", ["mode 1", "no such text"])
def test_a_series_is_redacted_group_by_group_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    """All else stays as it is; a file without secrets is itself."""
    path, redacted = tmp_path / "hardware.parquet", list[int]()
    monkeypatch.setattr("gpureport.store.series_file.ROW_GROUP", 10)
    monkeypatch.setattr("gpureport.store.series_file.SHARED_ROWS", 10)
    writer = SeriesWriter(path, lambda: "run")
    for device in range(3):
        writer.add(rows_of(device, 10, 0, extra=True))
    writer.close(DEVICES[:3])

    def redact(table: pa.Table) -> pa.Table:
        redacted.append(len(table))
        texts = table.column("extra_mode").to_pylist()
        shown = pa.array([HIDDEN if text == hidden else text for text in texts]).dictionary_encode()
        place = table.schema.get_field_index("extra_mode")
        return table.set_column(place, table.schema.field(place), shown) if hidden in texts else table

    monkeypatch.setattr("gpureport.store.series_file.redact_extra_columns", redact)
    shown = redact_series(path.read_bytes())
    assert redacted == [10, 10, 10]
    before, after = parquet.read_table(path), parquet.read_table(pa.BufferReader(shown))
    expected = [HIDDEN if text == hidden else text for text in before.column("extra_mode").to_pylist()]
    assert after.column("extra_mode").to_pylist() == expected
    assert after.drop_columns("extra_mode").equals(before.drop_columns("extra_mode"))
    assert (shown == path.read_bytes()) is (hidden not in before.column("extra_mode").to_pylist())
