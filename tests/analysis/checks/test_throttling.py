"""Clocks held down by heat, by hardware, by power limits or by a setting, and the ledger of what held them."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import START, Floats, Recording, analyze, findings_of, steps
from tests.analysis.tables import Hold, rec

BUSY: dict[str, Any] = {"util": steps((98, 300)), "power": 300.0, "power_limit": 400.0}
LOAD: dict[str, Any] = {"util": 98.0, "power": 300.0, "power_limit": 400.0}
ON, OFF = steps((0, 100), (1, 60), (0, 140)), np.zeros(300)
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


def back(seconds: int) -> Recording:
    clock = steps((1400, 100), (1200, 60), (1395, seconds), (1200, 60), (1400, 100))
    hot = steps((70, 100), (85, 120 + seconds), (70, 100))
    return rec(util=98, power=300, power_limit=400, clock=clock, temperature=hot)


def hot(celsius: float, clock: float, watts: float, **more: Any) -> Recording:
    """Return a GPU of an unknown kind that is hot for a while, with the clock and the power it has then."""
    series = {"clock": dip(clock, 1400), "temperature": dip(celsius, 70), "power": dip(watts, 300)}
    return rec(util=98, **{"model": "Some GPU", "power_limit": 400} | series | more)


def test_heat_lowers_the_clock(hold: Hold) -> None:
    twice = steps((0, 30), (1, 10), (0, 3), (1, 10), (0, 247))
    freed = {**BUSY, "sw_thermal_slowdown": twice, "every": 5.0}
    bits = rec(**BUSY, clock=DROP, temperature=86, sw_thermal_slowdown=ON, hw_thermal_slowdown=OFF)
    margin = rec(**BUSY, clock=dip(1200, 1400), temperature=dip(94, 70), margin=95 - dip(94, 70), model="Some GPU")
    always = rec(**BUSY, clock=1200, clock_max=1410, temperature=87, sw_thermal_slowdown=np.ones(300))
    warming, late = steps((70, 60), (78, 40), (86, 60), (70, 140)), steps((70, 100), (78, 20), (86, 40), (70, 140))
    slots = [steps((70, 300)), steps((71, 300)), dip(86, 70)]
    table = {
        "a bit": bits,
        "let go for 15 s": rec(**freed, temperature=86),
        "cooled meanwhile": rec(**freed, temperature=16 * twice + 70),
        "a counter": heat(np.concatenate([np.zeros(100), np.arange(60) * 0.5, np.full(140, 29.5)])),
        "without bits": rec(**BUSY, clock=dip(1200, 1400), temperature=dip(85, 70)),
        "without bits, 5 s apart": rec(**BUSY, clock=dip(1200, 1400, 12), temperature=dip(85, 70, 12), every=5.0),
        "below the power limit on the mean": near_limit(386),
        "the clock back for 5 s": back(5),
        "the clock back for 40 s": back(40),
        "the margin in the log": margin,
        "its limit unknown": hot(86, 1100, 220),
        "no limit known": hot(86, 1100, 220, power_limit=np.nan),
        "no power": hot(86, 1100, 0, power=np.nan, temperature=warming),
        "no power, a heavier load": hot(86, 1100, 0, power=np.nan, temperature=late),
        "far below its limit": hot(84, 1100, 220, model="NVIDIA GeForce RTX 3090"),
        "a boost that gives way": hot(86, 1330, 280),
        "warm": hot(76, 1100, 220),
        "as much power as before": hot(86, 1100, 300),
        "all along": always,
        "to the last sample": rec(**BUSY, sw_thermal_slowdown=np.ones(300)),
        "one of three slots": rec(**BUSY, temperature=slots, sw_thermal_slowdown=[OFF, OFF, ON]),
        **{
            f"{samples} readings {every:g} s apart": rec(
                util=steps((97, samples + 40)),
                every=every,
                sw_thermal_slowdown=steps((0, 40), (1, samples)),
                clock=1000,
            )
            for every, samples in ((1.0, 60), (20.0, 3), (120.0, 30))
        },
        "power cap and idle bits": rec(
            **BUSY, sw_power_cap=np.ones(300), gpu_idle=ON, sw_thermal_slowdown=OFF, hw_slowdown=OFF
        ),
        "hot at full clock": rec(**BUSY, clock=1400.0, temperature=84.0),
        "at the power limit": rec(
            **BUSY | {"power": 398}, clock=steps((1400, 100), (1200, 200)), temperature=steps((70, 100), (84, 200))
        ),
        "cool": rec(**BUSY, clock=steps((1400, 100), (1200, 200)), temperature=70.0),
        "at the power limit on the mean": near_limit(397),
        "a counter that starts anew": heat(np.concatenate([np.full(100, 500.0), np.zeros(200)])),
        "no clocks": rec(**BUSY, temperature=84),
        "unknown limit": rec(**BUSY, clock=1400, temperature=84, model="Some GPU"),
        "a power limit of 0": rec(**BUSY | {"power_limit": 0.0}, clock=dip(1000, 1400), temperature=dip(92, 60)),
    }
    hold("thermal_throttle", table)
    hold("summaries, GPU time", {"a bit": bits})


def test_hardware_lowers_the_clock(hold: Hold) -> None:
    low = {"clock": dip(700, 1400), "clock_max": 1410, "hw_slowdown": ON}
    brake = rec(**BUSY, hw_power_brake_slowdown=ON, hw_slowdown=ON, sw_thermal_slowdown=OFF)
    flat = rec(**BUSY, clock=1400, temperature=60, hw_slowdown=ON, hw_power_brake_slowdown=ON)

    def artefact(util: float, clock: float) -> Recording:
        series = {"hw_slowdown": ON, "sw_thermal_slowdown": OFF, "clock_max": 1410}
        return rec(util=dip(util, 98), clock=dip(clock, 1400), **series)

    bits = {"hw_slowdown": ON, "sw_thermal_slowdown": OFF, "model": "Some GPU"}
    table = {
        "a power brake": brake,
        "without bits": rec(**BUSY | {"power": dip(150, 300)}, clock=dip(560, 1400), temperature=60),
        "without bits, in bursts": rec(
            **BUSY | {"power": np.tile([41, 40, 40], 100), "util": np.tile([33, 98, 4], 100)},
            clock=np.tile([210, 1400, 700], 100),
            temperature=50,
        ),
        "without bits and utilisation": rec(power=dip(150, 300), power_limit=400, clock=dip(560, 1400), temperature=60),
        "no thermal bits": rec(**BUSY, **low, temperature=60.0),
        "hot": rec(**BUSY, **low, temperature=84.0, sw_thermal_slowdown=OFF),
        "cool": rec(**BUSY, **low, temperature=60.0, sw_thermal_slowdown=OFF),
        "the mean clock did not fall": flat,
        "counted for 0.05 s": rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 0.05}, 100)),
        "counted for 1 s": rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 1.0}, 100)),
        "counted for 4 s": rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 4.0}, 100)),
        "at rest": artefact(2, 210),
        "at full clock": artefact(98, 1300),
        "no clock": rec(**BUSY, clock=np.nan, **bits),
        "no highest clock": rec(**BUSY, clock=700.0, **bits),
        "no clocks": rec(**BUSY, temperature=84),
    }
    hold("hw_throttle", table)
    hold("summaries", {"no thermal bits": table["no thermal bits"]})


def test_time_that_the_driver_counted(hold: Hold) -> None:
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    hole = counted({21: 0.5, 22: 0.7}, 60)
    hole[21] = np.nan
    both = {"hw_thermal_slowdown_seconds_total": counted({20: 0.6}, 60)}
    fell, far = np.r_[np.full(50, 900.0), 905.0, np.full(49, 3.0)], np.r_[np.full(50, 900.0), np.full(50, 500.0)]
    table = {
        "what no sample saw": heat(counted({10: 12.0}, 40), every=30, sw_thermal_slowdown=np.zeros(40)),
        "a fall is a restart": heat(fell, every=5),
        "a fall to more than the time gone by": heat(far, every=5),
        "a rise that no clock can show": heat(counted({20: 3600.0, 30: 1.5}, 60)),
        "over a missing value": heat(hole),
        "two counters are not added": heat(counted({20: 0.8}, 60), **both),
        "partly in a log gap": heat(counted({99: 1.0, 98: 1, 97: 1, 96: 1, 95: 1, 100: 15.0}, 200), times=times),
        "in a log gap alone": heat(counted({100: 15.0}, 200), times=times),
    }
    hold("thermal_throttle", table)
    bit = {"a bit": rec(**BUSY, sw_thermal_slowdown=ON)}
    still = {"a counter that stands still": rec(**BUSY, sw_thermal_slowdown=ON, sw_thermal_slowdown_seconds_total=OFF)}
    hold("thermal_throttle, caveats, GPU time", bit | still)


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
