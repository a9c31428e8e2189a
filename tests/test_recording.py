"""Series tables."""

import pyarrow as pa

from gpureport import columns
from gpureport.metrics import METRICS
from gpureport.quality import Quality, Rejected
from gpureport.recording import SCHEMA, Recording, arrange_series
from tests.builders import recording


def test_every_metric_has_a_column() -> None:
    """SCHEMA holds the keys and then every metric once."""
    assert SCHEMA.names[4:] == [metric.name for metric in METRICS]
    assert len(set(SCHEMA.names)) == len(SCHEMA.names)


def test_names_end_in_their_unit() -> None:
    """A metric's name says its base unit."""
    suffixes = {"1": "_ratio", "By": "_bytes", "W": "_watts", "Hz": "_hertz", "Cel": "_celsius"}
    for metric in METRICS:
        assert metric.name.endswith(suffixes.get(metric.unit, ""))
        assert metric.brief.endswith(".")


def test_rows_are_found_by_device() -> None:
    """Each device has its rows, however the table is cut; one without rows has none."""
    ids = pa.array(["gpu:1", "gpu:1", "gpu:0"]).dictionary_encode()
    parts = [pa.table({"device": ids.slice(0, 1), "row": [0]}), pa.table({"device": ids.slice(1), "row": [1, 2]})]
    run = Recording(run=recording(util=[50.0]).run, series=pa.concat_tables(parts))
    assert {device: rows.column("row").to_pylist() for device, rows in run.by_device().items()} == {
        "gpu:1": [0, 1],
        "gpu:0": [2],
    }
    assert run.of("gpu:0").column("row").to_pylist() == [2]
    assert len(run.of("host")) == 0
    assert Recording(run=run.run, series=run.series.slice(0, 0)).by_device() == {}


def test_arranged_joins_what_differs() -> None:
    """Tables with other columns come together in the order of METRICS, extras last, null where absent."""
    device = columns.categories(columns.integers(pa.array([0])), ["gpu:0"])
    keys = {"device": device, "timestamp": pa.array([0], pa.timestamp("us")), "imputed": pa.array([False])}
    first = pa.table(keys | {"extra_x": pa.array(["a"]), "gpu_power_watts": pa.array([1.0], pa.float32())})
    second = pa.table(keys | {"gpu_utilization_ratio": pa.array([0.5], pa.float32())})
    table = arrange_series([first, second])
    metrics = ["gpu_utilization_ratio", "gpu_power_watts", "extra_x"]
    assert table.column_names == ["device", "timestamp", "imputed", *metrics]
    assert table.column("gpu_power_watts").to_pylist() == [1.0, None]


def test_the_account_must_add_up() -> None:
    """Lines are kept, rejected, headers, noise or events; anything else is a mistake."""
    rejected = (Rejected(reason="x", rows=2, first_line=3),)
    assert Quality(lines=10, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1).accounted
    assert not Quality(lines=11, rows_kept=5, rejected=rejected, headers=1, noise=1, events=1).accounted
