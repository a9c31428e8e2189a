"""Clocks held down by heat, by hardware, by power limits or by a setting, and the ledger of what held them."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import START, Floats, Recording, analyze, findings_of, steps
from tests.analysis.tables import Hold, rec

LOAD: dict[str, Any] = {"util": 98.0, "power": 300.0, "power_limit": 400.0}
ON = steps((0, 100), (1, 60), (0, 140))
DROP = steps((1400, 100), (1120, 60), (1400, 140))


def dip(level: float, usual: float, length: int = 60) -> Floats:
    return steps((usual, 100), (level, length), (usual, 300 - 100 - length))


def counted(rises: dict[int, float], rows: int, start: float = 1000.0) -> Floats:
    risen = np.zeros(rows)
    risen[list(rises)] = list(rises.values())
    return start + np.cumsum(risen)


def heat(total: Floats, **series: Any) -> Recording:
    return rec(**(LOAD | series), sw_thermal_slowdown_seconds_total=total)


def waver(size: float) -> Floats:
    return 1 + size * np.tile([-1.0, 0.6, -0.2, 1.0, -0.6, 0.4, -0.2], 43)[:300]


def near_limit(watts: float) -> Recording:
    """Return a hot GPU whose clock is a little low, and its power near the limit while it is."""
    power = dip(watts, 397, 100) * waver(0.03)
    return rec(util=98, power=power, power_limit=400, clock=dip(1380, 1410, 100), temperature=dip(85, 70, 100))


def test_heat_lowers_the_clock(hold: Hold) -> None:
    table = {
        "a counter": heat(np.concatenate([np.zeros(100), np.arange(60) * 0.5, np.full(140, 29.5)])),
        "below the power limit on the mean": near_limit(386),
        "at the power limit on the mean": near_limit(397),
    }
    hold("thermal_throttle", table)
    hold("summaries, GPU time")


def test_hardware_lowers_the_clock(hold: Hold) -> None:
    hold("hw_throttle")
    hold("summaries")


def test_time_that_the_driver_counted(hold: Hold) -> None:
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    table = {
        "partly in a log gap": heat(counted({99: 1.0, 98: 1, 97: 1, 96: 1, 95: 1, 100: 15.0}, 200), times=times),
        "in a log gap alone": heat(counted({100: 15.0}, 200), times=times),
    }
    hold("thermal_throttle", table)
    hold("thermal_throttle, caveats, GPU time")


def test_counted_seconds_are_the_same_at_any_sampling() -> None:
    """A clock held in bursts of .1 to 20 s: whatever the interval, the counter says what was held between rows."""
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        lengths = np.r_[rng.uniform(20, 200, 40), rng.uniform(0.1, 20, 40)].reshape(2, -1).T.ravel()
        on = np.repeat(np.arange(80) % 2, np.round(lengths * 10).astype(int))
        total = np.r_[0, np.cumsum(on) / 10]
        for every, least in ((1, 0.999), (5, 0.999), (30, 0.85)):
            rows = np.arange(0, len(on), every * 10)
            run = heat(total[rows], every=every, sw_thermal_slowdown=on[rows], util=np.full(len(rows), 98.0))
            (one,) = findings_of(analyze(run), "thermal_throttle")
            assert one.evidence[0].observed == pytest.approx(total[rows[-1]], abs=1e-6), (seed, every)
            placed = np.zeros(len(on) + 1)
            for part in one.intervals:
                first, stop = ((edge - START) // 100_000 for edge in (part.start, part.end))
                placed[first:stop] = 1
            # where in a step of 30 s a burst of 10 s lies is not known when no bit shows it
            assert (placed[: len(on)] * on).sum() >= least * 10 * total[rows[-1]], (seed, every)


def test_the_ledger_of_clock_events(hold: Hold) -> None:
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    unseen = np.cumsum(np.r_[500.0, np.zeros(10), np.full(3, 12.0), np.zeros(10)])
    gap = {"sw_power_cap": np.zeros(200), "sw_power_cap_seconds_total": np.where(times < 200, 5.0, 25.0)}
    table = {
        "60 of 300 s at 1120 of 1400 MHz": rec(**LOAD, clock=DROP, sw_thermal_slowdown=ON),
        "36 s that no sample shows": heat(unseen, every=30, sw_thermal_slowdown=np.zeros(24), clock=1400),
        "a counter without its bit": rec(**LOAD, sync_boost_seconds_total=np.arange(60) * 0.5),
        "bits without a name": rec(**LOAD, unknown_bits=np.where(np.arange(60) < 20, 2.0**11 + 2.0**63, 0.0)),
        "counted in a log gap alone": rec(**LOAD, times=times, clock=1400, **gap),
    }
    hold("ledger", table)


def test_power_limits(hold: Hold) -> None:
    nine, little = (counted(dict.fromkeys(range(1, 41), each), 41) for each in (9.0, 1.2))
    hidden = {"every": 30, "sw_power_cap": np.zeros(41)}
    capped = {"util": 98, "power_limit": 400, "clock": 990, "sw_power_cap": np.ones(300)}
    held, spiky = rec(**capped, power=240 * waver(0.02)), rec(**capped, power=240 * waver(0.3))
    power_cap = {
        "counted, and no sample shows it": rec(**LOAD, **hidden, clock=1200, sw_power_cap_seconds_total=nine),
        "counted for 4%": rec(**LOAD, **hidden, sw_power_cap_seconds_total=little),
        "peaks at the limit": spiky,
        "held far below it": held,
    }
    hold("power_cap", power_cap)
    power_limited = {
        "something else": held,
    }
    hold("power_limited", power_limited)


def test_locked_clocks(hold: Hold) -> None:
    hold("clocks_locked")
