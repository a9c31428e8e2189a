"""Series tables."""

import pyarrow as pa

from gpureport import columns
from gpureport.metrics import METRICS
from gpureport.series_table import SCHEMA, arrange_series


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
