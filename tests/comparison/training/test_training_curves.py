"""Curves of training metrics: which a run has."""

import pyarrow as pa

from gpureport.comparison.training.training_curves import build_training_curves
from gpureport.redaction.tables import redact_column
from gpureport.series_table import TRAINING_SCHEMA


def build_names(*names: str) -> list[str]:
    """Return the names of the curves of a run with a value of each of some metrics."""
    rows = [{"timestamp": None, "name": name, "step": 1, "value": 1.0} for name in names]
    training = pa.Table.from_pylist(rows, TRAINING_SCHEMA)
    return [curve.name for curve in build_training_curves(redact_column(training, "name"))]


def test_names_with_secrets_are_not_compared() -> None:
    """The same number stands behind other names in another run, so that two curves would be taken for one."""
    assert build_names("loss", "b:s3cr3t@node") == ["loss"]
    assert build_names("loss", "a:s3cr3t@node", "b:s3cr3t@node") == ["loss"]
