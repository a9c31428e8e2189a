"""The stretch of time each sample speaks for."""

import numpy as np
import pytest

from gpureport.analysis.series.device_series import series_by_device
from gpureport.columns import IntArray
from gpureport.data_quality import gap_seconds
from gpureport.testing import START, Interval, at, recording, steps


def test_cells_reach_half_way_to_their_neighbours() -> None:
    """With even sampling every cell is one interval wide and nothing is left over."""
    series = series_by_device(recording(util=steps((50, 10))))["gpu:0"]
    assert series.interval == 1.0
    assert series.seconds.tolist() == [1.0] * 10
    assert (series.start[1:] == series.end[:-1]).all()


def test_a_late_sample_leaves_at_most_a_cell_and_a_quarter_each_side() -> None:
    """Between 2.5 and 3.5 intervals the middle of the hole belongs to nobody, and it is no log gap."""
    series = series_by_device(recording(util=steps((50, 6)), times=[0, 10, 20, 50, 60, 70]))["gpu:0"]
    assert series.gaps == ()
    assert (series.end[2], series.start[3]) == (at(32.5), at(37.5))


def test_a_log_gap_belongs_to_nobody() -> None:
    """Beside a log gap a cell reaches half an interval, and the gap is listed."""
    series = series_by_device(recording(util=steps((50, 6)), times=[0, 1, 2, 60, 61, 62]))["gpu:0"]
    assert series.gaps == (Interval(at(2), at(60)),)
    assert float(series.seconds.sum()) == 6.0


def test_a_slower_stretch_is_no_row_of_gaps() -> None:
    """Where a log goes on at 10 s, its samples own the way to their neighbours; a real gap there stays one."""
    times = [*range(100), *range(100, 210, 10), 500, *range(510, 630, 10), *range(630, 900)]
    series = series_by_device(recording(util=steps((50, len(times))), times=times))["gpu:0"]
    assert (series.interval, [each.interval for each in series.sampling_rate.slow]) == (1.0, [10.0])
    assert series.gaps == (Interval(at(200), at(500)),)
    assert series.seconds[100:103].tolist() == [5.5, 10.0, 10.0]
    assert float(series.seconds.sum()) == 900 - 300 + 10


def test_a_log_may_end_in_a_slower_stretch() -> None:
    """Its last sample owns half of the longer interval."""
    times = [*range(300), *range(300, 450, 10)]
    series = series_by_device(recording(util=steps((50, len(times))), times=times))["gpu:0"]
    assert (series.interval, series.sampling_rate.denser) == (1.0, None)
    assert series.seconds[[0, -1]].tolist() == [1.0, 10.0]


def test_samples_with_equal_stamps_share_one_cell() -> None:
    """A repeated stamp adds no time."""
    series = series_by_device(recording(util=steps((50, 5)), times=[0, 1, 1, 2, 3]))["gpu:0"]
    assert float(series.seconds.sum()) == 4.0
    assert float(series.seconds[1:3].sum()) == 1.0


def test_one_sample_has_a_cell() -> None:
    """A log of one row has a mean, and no length."""
    series = series_by_device(recording(util=[50.0]))["gpu:0"]
    assert (len(series), float(series.seconds.sum())) == (1, 0.0)


def test_null_is_nan_and_an_absent_column_is_all_nan() -> None:
    """Null never reads as 0."""
    series = series_by_device(recording(util=[50, np.nan, 70]))["gpu:0"]
    assert np.isnan(series.values("gpu_utilization_ratio")).tolist() == [False, True, False]
    assert np.isnan(series.values("gpu_power_watts")).all()
    assert not series.is_recorded("gpu_power_watts")


def test_gap_limit_has_a_floor_below_two_seconds() -> None:
    """At 0.1 s a hole of a second is jitter of the collector."""
    assert (gap_seconds(0.1), gap_seconds(1.0), gap_seconds(10.0)) == (5.0, 5.0, 35.0)


def test_rows_are_chosen_by_stamp() -> None:
    """Rows from start up to, not including, end."""
    series = series_by_device(recording(util=steps((50, 10))))["gpu:0"]
    assert series.rows_between(START, at(3)) == slice(0, 3)


def test_what_is_made_of_a_device_is_made_once() -> None:
    """What several rules ask for is the same array, which none of them can write to."""
    series = series_by_device(recording(util=steps((50, 10))))["gpu:0"]
    made: list[int] = []

    def make() -> IntArray:
        made.append(1)
        return series.times + 1

    first = series.memoize("later", make)
    assert series.memoize("later", make) is first
    assert made == [1]
    assert series.memoize("much later", lambda: series.times + 2) is not first
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 0


def test_the_interval_is_a_distance_of_the_log() -> None:
    """Of two middle distances the lower, as importers tell it, so that both agree on what is a gap."""
    run = recording(util=[80, 70, 75, 60, 30], times=[0, 6815, 7041, 7918, 48745])
    series = series_by_device(run)["gpu:0"]
    assert round(series.interval) == 877
    assert [round(gap.seconds) for gap in series.gaps] == [6815, 40827]
