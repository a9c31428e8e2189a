"""Clocks that somebody set."""

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Severity, analyze, found, recording, steps, unjudged

_UTIL = steps((0, 20), (97, 200))


@pytest.mark.parametrize("bit", ["applications_clocks_setting", "display_clock_setting"])
def test_a_bit_tells_once_a_run(bit: str) -> None:
    """Both GPUs in one finding, with clock and highest clock."""
    bits = steps((0, 20), (1, 200))
    set_clocks = bits if bit == "applications_clocks_setting" else 0
    shown = bits if bit == "display_clock_setting" else 0
    run = recording(
        util=[_UTIL, _UTIL],
        clock=1230,
        clock_max=1530,
        applications_clocks_setting=set_clocks,
        display_clock_setting=shown,
    )
    (finding,) = found(analyze(run), "clocks_locked")
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.HIGH)
    assert finding.devices == ("gpu:0", "gpu:1")
    assert "The clock of both GPUs was locked at 1,230 MHz or more; the highest is 1,530 MHz." in finding.summary


def test_a_clock_that_never_moves_below_the_highest_seems_set() -> None:
    """Without a bit it is of medium confidence."""
    run = recording(util=_UTIL, clock=1005, clock_max=1410, power=200, power_limit=400)
    (finding,) = found(analyze(run), "clocks_locked")
    assert finding.confidence is Confidence.MEDIUM
    assert "The clock of GPU 0 was probably locked at 1,005 MHz; the highest is 1,410 MHz." in finding.summary


_MOVING = np.where(np.arange(220) % 3 == 0, 1005.0, 1050.0)


@pytest.mark.parametrize(
    ("clock", "power"),
    [(np.full(220, 1410.0), 200), (np.full(220, 1300.0), 200), (np.full(220, 1005.0), 396), (_MOVING, 200)],
    ids=["highest", "near the highest", "at the power limit", "moving"],
)
def test_what_is_no_setting(clock: FloatArray, power: float) -> None:
    """Power, heat and voltage hold clocks too."""
    run = recording(util=_UTIL, clock=clock, clock_max=1410, power=power, power_limit=400)
    assert found(analyze(run), "clocks_locked") == []


def test_a_clock_held_by_heat_is_no_setting() -> None:
    """Its bit says so."""
    run = recording(util=_UTIL, clock=1005, clock_max=1410, sw_thermal_slowdown=1)
    assert found(analyze(run), "clocks_locked") == []


def test_a_setting_at_the_highest_clock_costs_nothing() -> None:
    """The bit alone is not worth a word."""
    run = recording(util=_UTIL, clock=1410, clock_max=1410, applications_clocks_setting=1)
    assert found(analyze(run), "clocks_locked") == []


def test_a_gpu_at_rest_and_absent_columns_are_not_judged() -> None:
    """Either says why."""
    idle = analyze(recording(util=steps((0, 100)), clock=210, clock_max=1410))
    assert "0 busy samples" in unjudged(idle, "clocks_locked")[0].reason
    absent = analyze(recording(util=_UTIL))
    assert "clock_event_applications_clocks_setting" in unjudged(absent, "clocks_locked")[0].metrics


def test_a_clock_far_below_what_the_log_shows_seems_set() -> None:
    """A board of unknown model at 525 MHz that ran at 2,130 MHz before the job."""
    clock = steps((2130, 20), (525, 200))
    (finding,) = found(analyze(recording(util=_UTIL, clock=clock, model=None, power=14)), "clocks_locked")
    assert finding.confidence is Confidence.MEDIUM
    assert "The clock of GPU 0 was probably locked at 525 MHz; the highest seen was 2,130 MHz." in finding.summary


def test_a_steady_clock_near_the_highest_seen_is_no_setting() -> None:
    """Boards run a few steps lower at work than at rest."""
    clock = steps((2505, 20), (2490, 200))
    assert found(analyze(recording(util=_UTIL, clock=clock, model=None, power=58)), "clocks_locked") == []


def test_a_clock_of_nothing_but_zeros_tells_nothing() -> None:
    """There is no highest clock that it could be a share of."""
    run = recording(util=_UTIL, clock=0, applications_clocks_setting=steps((0, 20), (1, 200)), model=None)
    (finding,) = found(analyze(run), "clocks_locked")
    assert "of 0 MHz" not in finding.summary
