"""Time the driver counted: exact whatever the sampling, restarts and log gaps said."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from gpureport.analysis.series import intervals
from gpureport.analysis.series.counter_increments import read_counter
from gpureport.analysis.series.device_series import DeviceSeries, build_device_series
from gpureport.analysis.signals.clock_event_time import CountedTime, measure_counted_time
from gpureport.testing import START, Confidence, Finding, Recording, Severity, analyze, found, recording, spans, steps

_BUSY: dict[str, Any] = {"util": 98.0, "power": 300.0, "power_limit": 400.0}


def counted(rises: dict[int, float], rows: int, start: float = 1000.0) -> npt.NDArray[np.float64]:
    """Return a counter that rises by so much up to some rows."""
    steps = np.zeros(rows)
    for row, seconds in rises.items():
        steps[row] = seconds
    return start + np.cumsum(steps)


def cells(run: Recording) -> DeviceSeries:
    """Return the samples of the first GPU."""
    return build_device_series(run, run.run.gpus[0])


def thermal(run: Recording) -> CountedTime:
    """Return what was counted for heat."""
    said = measure_counted_time(cells(run), "sw_thermal_slowdown", "hw_thermal_slowdown")
    assert said is not None
    return said


def finding(run: Recording, kind: str = "thermal_throttle") -> Finding:
    """Return the only finding of a kind."""
    (only,) = found(analyze(run), kind)
    return only


def seconds(of: CountedTime) -> list[tuple[float, float]]:
    """Return the stretches in seconds of the recording."""
    return [((int(start) - START) / 1e6, (int(end) - START) / 1e6) for start, end in of.spans]


def test_what_no_sample_saw_is_found() -> None:
    """At 30 s, 12 s of heat between two samples that show no bit: the seconds are exact, the place is the step."""
    bits = np.zeros(40)
    run = recording(
        **_BUSY, every=30, sw_thermal_slowdown=bits, sw_thermal_slowdown_seconds_total=counted({10: 12.0}, 40)
    )
    only = finding(run)
    assert spans(only) == [(270.0, 300.0)]
    assert only.evidence[0].observed == pytest.approx(12)
    assert only.evidence[0].statistic == "counted by the driver"
    assert only.evidence[-1].metric == "clock_event_sw_thermal_slowdown_seconds_total"
    assert (only.confidence, only.severity) == (Confidence.HIGH, Severity.WARNING)
    assert "Heat slowed GPU 0 for 12 s; the time lost is not known." in only.summary


def test_a_bit_at_one_end_places_the_seconds() -> None:
    """4 s before a sample with the bit and 7 s after it are one stretch of 11 s around it."""
    bits = steps((0, 10), (1, 1), (0, 29))
    counter = counted({10: 4.0, 11: 7.0}, 40)
    run = recording(**_BUSY, every=30, sw_thermal_slowdown=bits, sw_thermal_slowdown_seconds_total=counter)
    assert seconds(thermal(run)) == [(296.0, 307.0)]
    assert spans(finding(run)) == [(296.0, 307.0)]


def test_a_full_step_tells_what_a_bit_would() -> None:
    """Without bits, a step counted whole shows that the clock was held at both of its ends."""
    counter = counted({10: 4.0, 11: 30.0, 12: 6.0}, 40)
    run = recording(**_BUSY, every=30, sw_thermal_slowdown_seconds_total=counter)
    assert seconds(thermal(run)) == [(296.0, 336.0)]
    assert finding(run).evidence[0].observed == pytest.approx(40)


def test_the_loss_is_that_of_the_counted_time() -> None:
    """Of 60 s, 30 s at 80% of the clock: 6 s, although the bit shows at every other sample only."""
    bits = np.concatenate([np.zeros(100), np.tile([1, 0], 30), np.zeros(140)])
    clock = np.where(bits > 0, 1120.0, 1400.0)
    counter = counted(dict.fromkeys(range(100, 160), 0.5), 300)
    run = recording(**_BUSY, clock=clock, sw_thermal_slowdown=bits, sw_thermal_slowdown_seconds_total=counter)
    only = finding(run)
    assert only.evidence[0].observed == pytest.approx(30)
    assert only.lost_gpu_seconds == pytest.approx(30 * 0.2 * 1.0, rel=0.02)
    assert dict(analyze(run).gpu_time[0].seconds)["throttled"] == pytest.approx(6, rel=0.03)


def test_no_loss_is_claimed_where_no_sample_shows_the_clock() -> None:
    """A clock read while nothing was held says nothing of the clock that was."""
    bits = np.zeros(40)
    counter = counted({10: 12.0}, 40)
    run = recording(**_BUSY, clock=1400, every=30, sw_thermal_slowdown=bits, sw_thermal_slowdown_seconds_total=counter)
    only = finding(run)
    assert only.lost_gpu_seconds is None
    assert "Heat slowed GPU 0 for 12 s; the time lost is not known." in only.summary


def test_a_counter_that_falls_was_started_anew() -> None:
    """What it holds then is counted, as far as it can be true, and the restart is said."""
    counter = np.concatenate([np.full(50, 900.0), np.full(1, 905.0), np.full(49, 3.0)])
    run = recording(**_BUSY, every=5, sw_thermal_slowdown_seconds_total=counter)
    only = finding(run)
    assert only.evidence[0].observed == pytest.approx(8)
    assert "for 8 s; the time lost is not known; the driver's counter restarted, so it may be more." in only.summary


def test_a_fall_to_more_than_the_time_gone_by_is_not_counted() -> None:
    """A counter that falls from 900 s to 500 s within 5 s counted no 500 s in them."""
    counter = np.concatenate([np.full(50, 900.0), np.full(50, 500.0)])
    said = thermal(recording(**_BUSY, every=5, sw_thermal_slowdown_seconds_total=counter))
    assert (said.total_seconds, said.restarts) == (0, 1)


def test_a_rise_no_clock_can_show_is_left_out() -> None:
    """An hour within a second is no time; a second more or less is when the counter was read."""
    counter = counted({20: 3600.0, 30: 1.5}, 60)
    said = thermal(recording(**_BUSY, sw_thermal_slowdown_seconds_total=counter))
    assert said.total_seconds == pytest.approx(1.5)


def test_cells_without_a_value_cost_nothing() -> None:
    """The rise over a missing value is that between its neighbours."""
    counter = counted({21: 0.5, 22: 0.7}, 60)
    counter[21] = np.nan
    said = thermal(recording(**_BUSY, sw_thermal_slowdown_seconds_total=counter))
    assert said.total_seconds == pytest.approx(1.2)


def test_two_counters_of_one_step_are_not_added() -> None:
    """They may have run at once: the larger is sure."""
    one, other = counted({20: 0.8}, 60), counted({20: 0.6}, 60)
    run = recording(**_BUSY, sw_thermal_slowdown_seconds_total=one, hw_thermal_slowdown_seconds_total=other)
    assert thermal(run).total_seconds == pytest.approx(0.8)


def test_a_log_gap_is_no_episode_but_its_seconds_are_said() -> None:
    """The driver counted while nobody logged: 20 s, of which 15 s in the gap."""
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    counter = counted({99: 5.0 / 5, 98: 1, 97: 1, 96: 1, 95: 1, 100: 15.0}, 200)
    only = finding(recording(**_BUSY, times=times, sw_thermal_slowdown_seconds_total=counter))
    assert spans(only) == [(94.0, 99.0)]
    assert only.evidence[0].observed == pytest.approx(20)
    assert "slowed GPU 0 for 20 s; the time lost is not known; 15 s of it lies in gaps of the log." in only.summary


def test_throttling_in_a_log_gap_alone_has_no_place() -> None:
    """It is said without a stretch of time, and without a loss."""
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    only = finding(recording(**_BUSY, times=times, sw_thermal_slowdown_seconds_total=counted({100: 15.0}, 200)))
    assert (only.intervals, only.lost_gpu_seconds) == ((), None)
    assert "slowed GPU 0 for 15 s; the time lost is not known; 15 s of it lies in gaps of the log." in only.summary


def test_a_bit_is_believed_where_its_counter_stands_still() -> None:
    """A driver that lists a counter and never counts leaves the bits their word."""
    bits = steps((0, 100), (1, 60), (0, 140))
    alone = finding(recording(**_BUSY, sw_thermal_slowdown=bits))
    still = finding(recording(**_BUSY, sw_thermal_slowdown=bits, sw_thermal_slowdown_seconds_total=np.zeros(300)))
    assert still == alone


@pytest.mark.parametrize(("rise", "severities"), [(0.05, []), (1.0, [Severity.INFO]), (4.0, [Severity.PROBLEM])])
def test_how_much_counts(rise: float, severities: list[Severity]) -> None:
    """Less than a tenth of a second in a run is nothing, less than an episode is information."""
    run = recording(**_BUSY, every=5, hw_power_brake_slowdown_seconds_total=counted({20: rise}, 100))
    assert [each.severity for each in found(analyze(run), "hw_throttle")] == severities


def test_a_counted_power_brake_is_one() -> None:
    """The counter names the cause as its bit does."""
    run = recording(**_BUSY, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 4.0}, 100))
    assert finding(run, "hw_throttle").cause == "power brake"


def test_the_power_cap_is_counted() -> None:
    """At 30 s, 9 s a step at the limit that no sample shows: 30% of 40 steps, which 41 samples stand for."""
    counter = counted(dict.fromkeys(range(1, 41), 9.0), 41)
    run = recording(**_BUSY, every=30, clock=1200, sw_power_cap=np.zeros(41), sw_power_cap_seconds_total=counter)
    only = finding(run, "power_cap")
    assert only.evidence[0].observed == pytest.approx(0.3 * 40 / 41)
    assert only.evidence[-1].observed == pytest.approx(360)
    assert "GPU 0 ran at its power limit for 29% of its busy time: normal under load." in only.summary
    assert only.severity is Severity.INFO


def test_a_power_cap_counted_for_a_moment_is_silent() -> None:
    """4% of the busy time does not set the speed of a job."""
    counter = counted(dict.fromkeys(range(1, 41), 1.2), 41)
    run = recording(**_BUSY, every=30, sw_power_cap=np.zeros(41), sw_power_cap_seconds_total=counter)
    assert found(analyze(run), "power_cap") == []


def test_a_counter_read_once_says_nothing() -> None:
    """A rise has two ends."""
    counter = np.full(60, np.nan)
    counter[5] = 77.0
    one = cells(recording(**_BUSY, energy=counter))
    assert read_counter(one, "gpu_energy_joules_total", 2000.0) is None


@pytest.mark.parametrize("every", [1, 5, 30])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_seconds_are_the_same_at_any_sampling(every: int, seed: int) -> None:
    """A clock held in bursts of .1 to 20 s: whatever the interval, the counter tells what was held between rows."""
    rng = np.random.default_rng(seed)
    lengths = np.r_[rng.uniform(20, 200, 40), rng.uniform(0.1, 20, 40)].reshape(2, -1).T.ravel()
    on = np.repeat(np.arange(80) % 2, np.round(lengths * 10).astype(int))
    total = np.r_[0, np.cumsum(on) / 10]
    rows = np.arange(0, len(on), every * 10)
    run = recording(
        **_BUSY | {"util": np.full(len(rows), 98.0)},
        every=every,
        sw_thermal_slowdown=on[rows],
        sw_thermal_slowdown_seconds_total=total[rows],
    )
    only = finding(run)
    assert only.evidence[0].observed == pytest.approx(total[rows[-1]], abs=1e-6)
    begins, ends = (np.flatnonzero(np.diff(edges) == 1) for edges in (np.r_[0, on], -np.r_[on, 0]))
    latent = np.column_stack([begins, ends + 1]) * 100_000 + START
    latent = latent[latent[:, 0] < START + rows[-1] * 100_000]
    placed = thermal(run).spans
    both = intervals.total_seconds(intervals.intersection(placed, latent))
    assert both >= {1: 0.999, 5: 0.999, 30: 0.9}[every] * min(total[rows[-1]], intervals.total_seconds(latent))
    # where in a step of 30 s a burst of 10 s lies is not known when no bit shows it
    assert both >= {1: 0.98, 5: 0.9, 30: 0.4}[every] * intervals.total_seconds(placed)
