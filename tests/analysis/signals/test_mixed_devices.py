"""Rows of one device that come from two GPUs in turn."""

import numpy as np
import pytest

from gpureport.analysis.series.device_series import series_by_device
from gpureport.analysis.signals import mixed_devices
from gpureport.columns import FloatArray
from gpureport.testing import recording, steps

_CHANCE = np.random.default_rng(7)


def _alternates(**series: FloatArray) -> bool:
    return mixed_devices.has_alternating_rows(series_by_device(recording(**series))["gpu:0"])  # type: ignore[arg-type]  # series by name


@pytest.mark.parametrize("metric", ["memory", "temperature"])
def test_what_jumps_to_and_fro_is_of_two_gpus(metric: str) -> None:
    """Memory and temperature of one GPU do not return to where they were from row to row."""
    assert _alternates(**{metric: np.tile([20.0, 40.0], 50)})


@pytest.mark.parametrize(
    "memory",
    [
        pytest.param(np.tile([20.0, 20.001], 50), id="less than a page"),
        pytest.param(steps(*[(20.0, 5), (10.0, 5)] * 20), id="slowly"),
        pytest.param(np.tile([20.0, 40.0], 10), id="a few rows"),
        pytest.param(20 + 10 * _CHANCE.random(400), id="at random"),
    ],
)
def test_what_changes_otherwise_is_of_one(memory: FloatArray) -> None:
    """An allocator that gives memory back does so at times of its own."""
    assert not _alternates(memory=memory)


def test_utilisation_may_jump() -> None:
    """Of a GPU that is sampled in step with its batches."""
    assert not _alternates(util=np.tile([0.0, 97.0], 50))
