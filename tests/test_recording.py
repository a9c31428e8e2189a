"""Recordings."""

import pyarrow as pa

from gpureport.testing import Quality, Recording, Rejected, recording


def test_rows_are_found_by_device() -> None:
    """Each device has its rows, however the table is cut; one without rows has none."""
    ids = pa.array(["gpu:1", "gpu:1", "gpu:0"]).dictionary_encode()
    parts = [pa.table({"device": ids.slice(0, 1), "row": [0]}), pa.table({"device": ids.slice(1), "row": [1, 2]})]
    run = Recording(run=recording(util=[50.0]).run, series=pa.concat_tables(parts))
    assert {device: rows.column("row").to_pylist() for device, rows in run.by_device().items()} == {
        "gpu:1": [0, 1],
        "gpu:0": [2],
    }
    assert run.rows_of("gpu:0").column("row").to_pylist() == [2]
    assert len(run.rows_of("host")) == 0
    assert Recording(run=run.run, series=run.series.slice(0, 0)).by_device() == {}


def test_the_account_must_add_up() -> None:
    """Lines are kept, rejected, headers, noise or events; anything else is a mistake."""
    rejected = (Rejected(reason="x", rows=2, first_line=3),)
    assert Quality(lines=10, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1).accounted
    assert not Quality(lines=11, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1).accounted
