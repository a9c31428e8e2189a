"""What is made of the rows of a recording is made once, and goes when they go."""

import gc
import weakref
from unittest.mock import Mock

import numpy as np
import pytest

from gpureport.analysis import trace_gpu_time
from gpureport.analysis.job import jobs
from gpureport.analysis.series import latest_rows
from gpureport.analysis.series.device_series import build_device_series, series_by_device
from gpureport.testing import analyze, recording, steps


def test_series_are_made_once() -> None:
    """Whoever asks for a device of the same recording gets the same series."""
    run = recording(util=steps((50, 10)))
    assert build_device_series(run, run.run.devices[0]) is series_by_device(run)["gpu:0"]


def test_only_the_latest_rows_are_kept() -> None:
    """Another recording takes the place of the one before."""
    first, second = (recording(util=steps((level, 10))) for level in (50, 60))
    series = build_device_series(first, first.run.devices[0])
    build_device_series(second, second.run.devices[0])
    again = build_device_series(first, first.run.devices[0])
    assert again is not series
    assert np.array_equal(again.values("gpu_utilization_ratio"), series.values("gpu_utilization_ratio"))


def test_nothing_outlives_its_rows() -> None:
    """When a recording is gone, so is what was made of it."""
    run, latest = recording(util=steps((50, 10))), latest_rows.LatestRows()
    kept = weakref.ref(latest.memoize(run.rows, "values", lambda: np.zeros(1)))
    assert kept() is not None
    del run
    gc.collect()
    assert kept() is None


def test_long_recordings_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Series of many rows are made again, so that their memory is free meanwhile."""
    monkeypatch.setattr(latest_rows, "MOST_ROWS", 9)
    run = recording(util=steps((50, 10)))
    assert build_device_series(run, run.run.devices[0]) is not build_device_series(run, run.run.devices[0])


def test_gpu_time_is_traced_without_looking_for_jobs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis and the trace of its GPU time look for jobs once, and the trace has the GPUs that are asked for."""
    looked = Mock(wraps=jobs.find_occupancy)
    monkeypatch.setattr(jobs, "find_occupancy", looked)
    run = recording(util=[steps((50, 300)), steps((70, 300))])
    analysis = analyze(run)
    everything = trace_gpu_time(run, analysis, 10)
    one = trace_gpu_time(run, analysis, 10, devices=["gpu:1"])
    assert list(one) == ["gpu:1"]
    assert all(np.array_equal(one["gpu:1"][name], everything["gpu:1"][name]) for name in everything["gpu:1"])
    assert looked.call_count == 1
