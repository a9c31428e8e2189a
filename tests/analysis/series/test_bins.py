"""Bins over a window with long stretches that nobody sampled."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.series.bins import build_grid, rolling_mean
from gpureport.analysis.series.device_series import series_by_device
from gpureport.columns import FloatArray
from gpureport.series_table import arrange_series
from gpureport.testing import Interval, Recording, analyze, recording, steps

DAY = 86_400


def paused() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return stamps of ten minutes, a pause of ten days, and twenty minutes more."""
    return np.concatenate([np.arange(600.0), np.arange(1200.0) + 10 * DAY])


def test_a_pause_of_days_costs_no_bins() -> None:
    """An hour of the pause keeps its bins, the rest has none, and every row still has the bin of its time."""
    run = recording(util=steps((50, 1800)), times=paused())
    series = list(series_by_device(run).values())
    bins = build_grid(Interval(run.run.started, run.run.ended), series)
    assert bins.count < 2 * 3600
    places = bins.find_bins(series[0].times)
    assert np.diff(places).max() <= 3601
    starts, ends = bins.find_bin_edges(places, "right"), bins.find_bin_edges(places + 1, "left")
    assert (np.abs(starts - series[0].times) <= 1_000_000).all()
    assert (np.abs(ends - series[0].times) <= 1_000_000).all()


def test_findings_after_a_pause_are_where_they_were() -> None:
    """A phase of low use after the pause is found at its own time."""
    run = recording(util=steps((97, 900), (40, 600), (97, 300)), times=paused())
    (found,) = [finding for finding in analyze(run).findings if finding.kind == "low_util_cause_unknown"]
    (when,) = found.intervals
    start = run.run.started + (10 * DAY + 300) * 1_000_000
    assert abs(when.start - start) < 30_000_000
    assert abs(when.end - start - 600_000_000) < 30_000_000


_series = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), max_size=30).map(np.array)


@given(_series, st.integers(1, 40))
def test_a_rolling_mean_is_that_of_the_bins_around(values: FloatArray, length: int) -> None:
    """Bin by bin it is the mean of what is known of `length` bins, fewer at both ends, NaN where nothing is."""
    parts = [values[max(row - length // 2, 0) : row - length // 2 + length] for row in range(len(values))]
    means = [float(np.mean(known)) if len(known := part[~np.isnan(part)]) else float("nan") for part in parts]
    assert rolling_mean(values, length).tolist() == pytest.approx(means, nan_ok=True)
    full = values > 0.4
    assert rolling_mean(full, length).tolist() == rolling_mean(full.astype(np.float64), length).tolist()


def test_bins_hold_the_mean_over_time_of_the_rows_in_them() -> None:
    """Rows before and after the window are left out, rows without a value count for nothing."""
    run = recording(util=[10, 20, np.nan, 40, 50, 60, np.nan, 80], times=[0, 1, 1.5, 2, 3, 4, 5, 6])
    (series,) = series_by_device(run).values()
    begin = run.run.started
    bins = build_grid(Interval(begin + 500_000, begin + 4_500_000), [series])
    places = bins.find_bins(series.times - series.shift).tolist()
    values, seconds = series.values("gpu_utilization_ratio"), series.seconds
    for number, mean in enumerate(bins.average_metric(series, "gpu_utilization_ratio").tolist()):
        rows = [row for row, place in enumerate(places) if place == number and not np.isnan(values[row])]
        weighed = (
            sum(values[row] * seconds[row] for row in rows) / sum(seconds[row] for row in rows) if rows else np.nan
        )
        assert mean == pytest.approx(weighed, nan_ok=True)


def test_bins_of_one_metric_are_made_once_for_each_grid() -> None:
    """Rules share them and cannot write to them; another window has bins of its own."""
    run = recording(util=steps((50, 60)))
    (series,) = series_by_device(run).values()
    whole = Interval(run.run.started, run.run.ended)
    first = build_grid(whole, [series]).average_metric(series, "gpu_utilization_ratio")
    assert build_grid(whole, [series]).average_metric(series, "gpu_utilization_ratio") is first
    assert (
        len(
            build_grid(Interval(whole.start, whole.end - 30_000_000), [series]).average_metric(
                series, "gpu_utilization_ratio"
            )
        )
        == 29
    )
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0.0


def with_a_lone_sample(times: FloatArray, alone: float) -> Recording:
    """Return a run of a GPU sampled at some times, and of another one that was seen once."""
    run = recording(util=steps((97, 300)), times=np.full(300, 0.0) + times)
    seen = replace(run.run.devices[0], id="gpu:1", index=1)
    other = recording(util=[97.0], times=[alone]).series.to_pydict() | {"device": ["gpu:1"]}
    series = arrange_series([run.series, pa.table(other).cast(run.series.schema)])
    devices = (*run.run.devices, seen)
    return replace(run, run=replace(run.run, devices=devices)).with_series(series)


@pytest.mark.parametrize("alone", [0.0, 20.0 * 365 * DAY])
def test_years_that_no_device_speaks_for_cost_no_bins(alone: float) -> None:
    """Also where one GPU has a single sample, before or after them, and so no gap that holds them."""
    run = with_a_lone_sample(np.concatenate([[0.0, 1.0], np.arange(298.0) + 20 * 365 * DAY]), alone)
    series = list(series_by_device(run).values())
    bins = build_grid(Interval(run.run.started, run.run.ended), series)
    assert bins.count < 3600 + 400
    assert bins.find_bins(series[0].times).tolist() == [0, 1, *range(bins.count - 297, bins.count + 1)]
    assert analyze(run).gpu_time
