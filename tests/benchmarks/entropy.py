"""The fewest bytes a row of a log needs, estimated: the entropy of each varying column, given the row before."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pyarrow import parquet

from gpureport import columns
from tests.benchmarks.log import GPUS

VARYING = ("utilization", "memory_controller", "memory_used", "temperature", "power", "sm_clock", "reasons")
_DENSE = 10
_ABSENT = -1


def bytes_a_row(written: Path) -> float:
    """Return the estimate for a Parquet file that polars wrote, in which the GPUs alternate."""
    file = parquet.ParquetFile(written)
    table: Any = file.read(columns=["timestamp", *VARYING])
    stamps = _by_gpu(columns.integers(table.column("timestamp")))
    bits = _entropy(np.diff(stamps))
    for name in VARYING:
        values = columns.floats(table.column(name))
        bits += _given_before(_by_gpu(np.where(np.isnan(values), _ABSENT, np.round(values * 100)).astype(np.int64)))
    return bits / 8


def _by_gpu(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    return values[: len(values) // GPUS * GPUS].reshape(-1, GPUS).T


def _given_before(values: npt.NDArray[np.int64]) -> float:
    """Return the conditional entropy; where pairs are too rare to count, the least of value and difference alone."""
    codes = np.unique(values, return_inverse=True)[1].reshape(values.shape)
    pairs = codes[:, :-1] * (codes.max() + 1) + codes[:, 1:]
    if len(np.unique(pairs)) * _DENSE > pairs.size:
        return min(_entropy(values), _entropy(np.diff(values)))
    return _entropy(pairs) - _entropy(codes[:, :-1])


def _entropy(values: npt.NDArray[np.int64]) -> float:
    counts = np.unique(values, return_counts=True)[1]
    shares = counts / counts.sum()
    return float(-(shares * np.log2(shares)).sum())
