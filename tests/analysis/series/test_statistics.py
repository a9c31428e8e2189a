"""Figures of each device over the whole recording."""

import numpy as np
import pytest

from gpureport.testing import GIB, DeviceStatistics, Recording, analyze, recording, steps


def _statistics(run: Recording) -> DeviceStatistics:
    return analyze(run).statistics[0]


def test_mean_is_weighted_by_time() -> None:
    """Ten samples in one second weigh no more than one sample that speaks for a second."""
    times = [*np.arange(0, 10, 0.1), *range(10, 21)]
    figures = _statistics(recording(util=steps((0, 100), (100, 11)), times=times, every=0.1)).metric(
        "gpu_utilization_ratio"
    )
    assert figures is not None
    assert figures.sample_mean == pytest.approx(11 / 111)
    assert figures.mean > 0.15


def test_quantiles_are_weighted_by_time() -> None:
    """Half the time is spent at or below the median."""
    figures = _statistics(recording(util=steps((10, 30), (50, 30), (90, 40)))).metric("gpu_utilization_ratio")
    assert figures is not None
    assert (figures.p5, figures.p50, figures.p95, figures.max, figures.min) == pytest.approx((0.1, 0.5, 0.9, 0.9, 0.1))
    assert dict(figures.below) == pytest.approx({0.25: 0.3, 0.5: 0.3, 0.7: 0.6})


def test_values_off_the_grid_have_the_same_quantiles() -> None:
    """Sorting by comparison and by counting agree."""
    rng = np.random.default_rng(1)
    values = np.round(rng.uniform(50, 300, 999), 2)
    whole, odd = (
        _statistics(recording(power=series, util=50)).metric("gpu_power_watts") for series in (values, values + 1e-3)
    )
    assert whole is not None
    assert odd is not None
    assert whole.p50 == pytest.approx(np.sort(values)[499], abs=0.01)
    assert odd.p50 == pytest.approx(whole.p50, abs=0.02)


def test_idle_seconds_leave_log_gaps_out() -> None:
    """Time without samples is not idle."""
    figures = _statistics(recording(util=steps((0, 20), (90, 20)), times=[*range(20), *range(100, 120)]))
    assert (figures.idle_seconds, figures.observed_seconds) == (20.0, 40.0)


def test_energy_is_the_integral_of_power() -> None:
    """100 W for a minute, from the first of 61 samples to the last, are 6000 J."""
    assert _statistics(recording(power=steps((100, 61)))).energy_joules == pytest.approx(6000)


def test_headroom_is_of_the_memory_installed() -> None:
    """Reserved memory is left out, so that drivers which list it and those which do not compare."""
    figures = _statistics(recording(memory=steps((20, 5), (60, 5)), util=90, reserved=GIB))
    assert (figures.memory_peak_bytes, figures.memory_headroom_ratio) == (60 * GIB, 0.25)


def test_what_was_not_recorded_is_none() -> None:
    """An absent column never turns into 0."""
    figures = _statistics(recording(util=steps((50, 9))))
    assert (figures.energy_joules, figures.memory_peak_bytes, figures.memory_headroom_ratio) == (None, None, None)
    assert figures.metric("gpu_power_watts") is None
