"""How many readings make a finding sure."""

import numpy as np
import pytest

from gpureport.analysis.rules.certainty import confidence_by_readings, lowest_confidence
from gpureport.testing import Confidence, analyze, found, recording, steps

_HIGH, _MEDIUM, _LOW = Confidence


@pytest.mark.parametrize(
    ("readings", "interval", "sure"),
    [(0, 1, _LOW), (1, 1, _LOW), (2, 1, _MEDIUM), (4, 1, _MEDIUM), (5, 59, _HIGH), (5, 60, _LOW), (500, 1000, _LOW)],
)
def test_readings_and_their_distance_decide(readings: int, interval: float, sure: Confidence) -> None:
    """High from five on, medium from two, low where samples lie a minute apart."""
    assert confidence_by_readings(readings, interval) is sure


def test_the_weakest_of_several() -> None:
    """One doubt is enough."""
    assert lowest_confidence(_HIGH, _LOW, _MEDIUM) is _LOW
    assert lowest_confidence(_HIGH) is _HIGH


@pytest.mark.parametrize(("samples", "sure"), [(3, _MEDIUM), (8, _HIGH)])
def test_a_lowered_power_limit(samples: int, sure: Confidence) -> None:
    """Its confidence follows the samples of power."""
    run = recording(util=steps((97, samples)), power=240, power_limit=250, default_limit=400)
    assert found(analyze(run), "power_limited")[0].confidence is sure


@pytest.mark.parametrize(("every", "samples", "sure"), [(1.0, 60, _HIGH), (20.0, 3, _MEDIUM), (120.0, 30, _LOW)])
def test_heat_and_power(every: float, samples: int, sure: Confidence) -> None:
    """Bits are point samples."""
    util = steps((97, samples + 40))
    slowed = np.concatenate([np.zeros(40), np.ones(samples)])
    run = recording(util=util, every=every, sw_thermal_slowdown=slowed, sw_power_cap=slowed, clock=1000)
    assert found(analyze(run), "thermal_throttle")[0].confidence is sure
    assert found(analyze(run), "power_cap")[0].confidence is sure


def test_a_gap_of_a_log_with_few_samples() -> None:
    """What is far is told by the distances of the others."""
    few = recording(util=steps((97, 4)), times=[0, 1, 2, 60])
    many = recording(util=steps((97, 40)), times=[*range(39), 90])
    assert found(analyze(few), "log_gap")[0].confidence is _MEDIUM
    assert found(analyze(many), "log_gap")[0].confidence is _HIGH


def test_an_idle_gap_between_coarse_samples() -> None:
    """Its edges are guesses."""
    run = recording(util=np.concatenate([steps((97, 30), (0, 10), (97, 30))]), every=120.0)
    assert found(analyze(run), "idle_gap")[0].confidence is _LOW
