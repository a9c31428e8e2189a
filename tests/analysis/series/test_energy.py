"""Energy by the integral of power and by the driver's counter, and what the sensor does not see."""

import numpy as np
import pytest

from gpureport.analysis.results import CounterReading
from gpureport.columns import FloatArray
from gpureport.testing import DeviceStatistics, Recording, analyze, recording

_HOUR = 3600


def energy(run: Recording) -> DeviceStatistics:
    """Return the figures of the first GPU."""
    return analyze(run).statistics[0]


def test_both_agree_on_a_steady_load() -> None:
    """300 W for an hour are 1.08 MJ; the counter is read from the first sample to the last."""
    seconds = np.arange(_HOUR + 1)
    found = energy(recording(util=98, power=np.full(_HOUR + 1, 300.0), energy=5e6 + 300.0 * seconds))
    assert found.energy_joules == pytest.approx(1.08e6)
    assert found.energy_counter == CounterReading(total=1.08e6, in_gaps=0, seconds=_HOUR)


def test_the_counter_covers_log_gaps_and_the_integral_does_not() -> None:
    """100 s at 200 W are missing from the integral, and said."""
    times = np.r_[0:100, 199:300].astype(float)
    run = recording(times=times, util=98, power=np.full(201, 200.0), energy=200.0 * times)
    found = energy(run)
    assert found.energy_joules == pytest.approx(200 * 200)
    assert found.energy_counter == CounterReading(total=59800, in_gaps=20000, seconds=299)
    assert "The integral of power leaves out the time of log gaps, and the driver's counter does not." in (
        analyze(run).limits
    )


def test_a_restart_is_counted_and_its_part_kept() -> None:
    """The driver was loaded again: 400 J before it, 900 J since."""
    counted = np.r_[np.full(5, 7000.0), 7400.0, 100.0, 900.0]
    found = energy(recording(util=98, power=np.full(8, 200.0), energy=counted)).energy_counter
    assert found is not None
    assert (found.total, found.restarts) == (1300, 1)


def test_a_jump_no_board_can_take_is_left_out() -> None:
    """A megajoule in a second is no energy of a GPU."""
    counted = np.r_[0.0, 200.0, 1e6, 1e6 + 200]
    found = energy(recording(util=98, power=np.full(4, 200.0), energy=counted)).energy_counter
    assert found is not None
    assert (found.total, found.impossible) == (400, 1)


def test_no_counter_is_null() -> None:
    """What was not recorded is not 0."""
    assert energy(recording(util=98, power=np.full(60, 200.0))).energy_counter is None


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("NVIDIA A100-SXM4-80GB", "sees a quarter of the runtime"),
        ("NVIDIA H100 80GB HBM3", "sees a quarter of the runtime"),
        ("Tesla T4", "as of every GPU before Ampere, is that of a moment"),
        ("NVIDIA L4", None),
        ("A board nobody knows", None),
    ],
)
def test_the_sensor_is_spoken_of_by_architecture(model: str, said: str | None) -> None:
    """What it misses hangs on the model; of an unknown one nothing is claimed."""
    limits = analyze(recording(util=98, power=np.full(120, 60.0), model=model)).limits
    about = [limit for limit in limits if "sensor" in limit or "power reading" in limit]
    assert len(about) == (said is not None)
    assert all(said in limit for limit in about if said)


def test_pauses_below_a_log_gap_are_bridged() -> None:
    """Two pauses of 4 s are too short for a gap: their power is known, and only 2.5 s of each is owned."""
    times = np.r_[0:50, 53:100, 103:150].astype(float)
    run = recording(times=times, util=98, power=np.full(len(times), 200.0))
    found = energy(run)
    assert found.energy_joules == pytest.approx(200 * 149)
    assert (found.energy_seconds, found.energy_bridged_seconds) == (149.0, 3.0)
    assert found.observed_seconds == 147.0


def test_the_time_of_the_integral_is_time_of_the_run() -> None:
    """Samples at both ends own half an interval beyond the run, which weighs them like others but is no time of it."""
    found = energy(recording(util=0, power=np.full(60, 200.0)))
    assert (found.observed_seconds, found.idle_seconds, found.energy_seconds) == (60.0, 60.0, 59.0)
    assert found.energy_joules == pytest.approx(200 * 59)


@pytest.mark.parametrize("times", [np.arange(4) * 10.0, np.r_[0.0, 10.0, 20.0, 46.0, 56.0]], ids=["even", "a pause"])
def test_a_short_run_sampled_rarely_takes_what_lies_between_its_samples(times: FloatArray) -> None:
    """Half of an interval before the first and after the last was a third more of 30 s sampled every 10 s."""
    power = np.linspace(100.0, 400.0, len(times))
    found = energy(recording(times=times, util=98, power=power))
    assert found.energy_joules == pytest.approx(float(np.trapezoid(power, times)))
    assert found.energy_seconds == times[-1] - times[0]


def test_a_single_value_of_power_is_drawn_for_the_time_it_owns() -> None:
    """It has no neighbour to bridge to."""
    power = np.full(60, np.nan)
    power[30] = 200.0
    found = energy(recording(util=98, power=power))
    assert (found.energy_joules, found.energy_seconds, found.energy_bridged_seconds) == (200.0, 1.0, 0.0)


def test_a_single_value_that_owns_no_time_is_no_energy() -> None:
    """It shares its stamp with rows before and after it, so nothing tells how long it was drawn."""
    found = energy(recording(util=98, power=[np.nan, 200.0, np.nan, np.nan], times=[0, 0, 0, 1]))
    assert (found.energy_joules, found.energy_seconds) == (None, None)


def test_time_between_two_jobs_is_no_log_gap() -> None:
    """Nothing is missing of the log."""
    util, memory = np.repeat([98.0, 0.0, 98.0], 300), np.repeat([20.0, 0.01, 20.0], 300)
    run = recording(util=util, memory=memory, power=np.repeat([300.0, 50.0, 300.0], 300))
    assert not [line for line in analyze(run).limits if "log gaps" in line]
