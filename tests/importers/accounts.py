"""What a recording of a damaged log is held to: its account, its values and its times."""

import numpy as np

from gpureport.testing import Recording
from tests.support import logs

START = int(logs.EPOCH * 1e6)
"""Time of the first stamp of `logs.stamp`, in microseconds."""


def kept(recording: Recording) -> int:
    """Return how many rows are in the series, after checking that every line is accounted for."""
    quality = recording.run.quality
    assert quality.accounted
    assert quality.rows_kept == len(recording.series)
    for device in recording.run.devices:
        assert (np.diff(_times(recording, device.id)) >= 0).all()
    return quality.rows_kept


def seconds(recording: Recording, device: str = "gpu:0", start: int = START) -> list[float]:
    return [(time - start) / 1e6 for time in _times(recording, device).tolist()]


def _times(recording: Recording, device: str) -> np.ndarray:
    return recording.rows_of(device).column("timestamp").to_numpy().astype("datetime64[us]").astype(np.int64)


def column(recording: Recording, metric: str, device: str = "gpu:0") -> list[float | None]:
    """Return a column of a device, numbers rounded to what a log holds of them."""
    cells = recording.rows_of(device).column(metric).to_pylist()
    return [None if cell is None else round(float(cell), 6) for cell in cells]
