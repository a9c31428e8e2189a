"""Power readings that cannot be right."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import Analysis, analyze, recording, steps, unjudged

_UTIL = steps((0, 60), (97, 400), (0, 60), (97, 80))
_WARM = np.interp(np.arange(600), [0, 60, 200, 599], [35, 35, 68, 70]).round()
_POWER = np.where(_UTIL > 0, 330.0, 62.0) + np.random.default_rng(1).normal(0, 4, 600).round(2)


def _analysis(**series: Any) -> Analysis:  # noqa: ANN401 - what `recording` takes
    return analyze(recording(**({"util": _UTIL, "temperature": _WARM, "power": _POWER} | series)))


def _doubts(analysis: Analysis) -> list[str]:
    return [said for said in analysis.limits if "rests on power" in said]


def test_a_sensor_that_stands_still() -> None:
    """Power to the last digit the same for ten minutes of waiting and work: said, and no energy, no `hollow_util`."""
    analysis = _analysis(power=np.full(600, 62.11))
    (said,) = _doubts(analysis)
    assert said == (
        "The power of GPU 0 stays at 62.11 W to the last digit while utilisation and temperature change: that cannot "
        "be right, so energy and all else that rests on power is left out."
    )
    figures = analysis.statistics[0]
    assert (figures.energy_joules, figures.energy_seconds, figures.metric("gpu_power_watts")) == (None, None, None)
    assert figures.power_doubt
    (entry,) = unjudged(analysis, "hollow_util")
    assert entry.reason == "gpu_power_watts was recorded, but cannot be right"
    assert not any("Energy is the integral" in limit for limit in analysis.limits)


@pytest.mark.parametrize("factor", [1000, 10], ids=["milliwatts", "ten times"])
def test_a_mean_above_any_board(factor: float) -> None:
    """Milliwatts read as watts are 300 kW, and 3 kW are more than a board of 400 W draws."""
    analysis = _analysis(power=_POWER * factor)
    assert len(_doubts(analysis)) == 1
    assert analysis.statistics[0].energy_joules is None


def test_a_mean_above_twice_its_own_limit() -> None:
    """900 W of an A100 that is limited to 400 W, though a larger board draws as much."""
    analysis = _analysis(power=_POWER + 650, power_limit=400)
    assert "although it is limited to 400 W" in _doubts(analysis)[0]
    assert _doubts(_analysis(power=_POWER + 200, power_limit=400)) == []


def test_one_gpu_of_two() -> None:
    """The other one's energy is stated, and the cost of both by energy is not."""
    analysis = _analysis(power=[_POWER, np.full(600, 62.11)])
    assert "The power of GPU 1 stays" in _doubts(analysis)[0]
    first, second = analysis.statistics
    assert (first.energy_joules is None, second.energy_joules is None) == (False, True)


@pytest.mark.parametrize(
    "series",
    [
        {},
        {"util": 0, "power": 9.0},
        {"util": 0, "power": 9.0, "temperature": 41},
        {"util": 98, "power": 70.0},
        {"power": 62.11, "temperature": 41},
        {"power": 62.11, "temperature": np.nan},
        {"power": np.r_[62.12, np.full(599, 62.11)]},
        {"power": np.nan},
        {"util": np.where(np.arange(600) % 60 == 0, 90.0, 0.0), "power": 62.11},
    ],
    ids=["sound", "idle", "idle and cool", "at its limit", "all still", "no temperature", "a digit", "none", "stray"],
)
def test_power_that_may_be_right(series: dict[str, Any]) -> None:
    """An idle GPU at 9 W in whole watts, one at its limit, and one of which too little is known."""
    assert _doubts(_analysis(**series)) == []


def test_a_minute_is_too_short() -> None:
    """A sensor may stand for a while."""
    part = slice(30, 130)
    assert _doubts(_analysis(util=_UTIL[part], temperature=_WARM[part], power=np.full(100, 62.11))) == []
