"""Long runs of the store, whose rows stay in their file."""

from pathlib import Path

import pytest

from gpureport.importers import IMPORTER_VERSION
from gpureport.series_rows import RowsInMemory
from gpureport.store import Store, store
from gpureport.store.stored_rows import StoredRows
from gpureport.testing import analyze
from tests.store.runs import noisy, reading


def test_rows_in_a_file_are_those_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By device and column, as tables, and as what an analysis finds in them."""
    log = tmp_path / "gpu.csv"
    log.write_text(noisy(3, rows=400))
    kept = Store(tmp_path / "store")
    entry = kept.write(reading(log), IMPORTER_VERSION)
    whole = kept.read(entry)
    monkeypatch.setattr(store, "_MOST_ROWS_IN_MEMORY", 0)
    long = kept.read(entry)
    assert isinstance(whole.rows, RowsInMemory)
    assert isinstance(long.rows, StoredRows)
    assert (len(long.rows), long.rows.schema, repr(long)) == (len(whole.rows), whole.rows.schema, repr(whole))
    assert long.series.equals(whole.series)
    assert long.by_device() == whole.by_device()
    for device in ("gpu:0", "gpu:1", "gpu:7"):
        rows, expected = long.rows.rows_of(device), whole.rows.rows_of(device)
        assert len(rows) == len(expected)
        assert all(rows.column(name).equals(expected.column(name)) for name in expected.column_names)
    assert analyze(long) == analyze(whole)
