"""Clocks held down by heat, by hardware, by power limits or by a setting, and the ledger of what held them."""

from typing import Any

import numpy as np
import pytest

from gpureport.testing import START, ClockEventTotal, Floats, Recording, analyze, findings_of, steps
from tests.analysis.tables import Table, check, rec, want

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


def test_heat_lowers_the_clock() -> None:
    twice = steps((0, 30), (1, 10), (0, 3), (1, 10), (0, 247))
    freed = {**BUSY, "sw_thermal_slowdown": twice, "every": 5.0}
    bits = rec(**BUSY, clock=DROP, temperature=86, sw_thermal_slowdown=ON, hw_thermal_slowdown=OFF)
    margin = rec(**BUSY, clock=dip(1200, 1400), temperature=dip(94, 70), margin=95 - dip(94, 70), model="Some GPU")
    always = rec(**BUSY, clock=1200, clock_max=1410, temperature=87, sw_thermal_slowdown=np.ones(300))
    warming, late = steps((70, 60), (78, 40), (86, 60), (70, 140)), steps((70, 100), (78, 20), (86, 40), (70, 140))
    slots = [steps((70, 300)), steps((71, 300)), dip(86, 70)]
    table: Table = {
        "a bit": want(
            bits,
            spans=[(99.5, 159.5)],
            confidence="high",
            cause="heat",
            lost=12,
            summary="Heat slowed GPU 0 at 86 °C for 1 min; its clock fell 20%.",
        ),
        "let go for 15 s": want(rec(**freed, temperature=86), spans=[(147.5, 262.5)]),
        "cooled meanwhile": want(rec(**freed, temperature=16 * twice + 70), spans=[(147.5, 197.5), (212.5, 262.5)]),
        "a counter": want(
            heat(np.concatenate([np.zeros(100), np.arange(60) * 0.5, np.full(140, 29.5)])),
            spans=[(100, 159)],
            confidence="high",
        ),
        "without bits": want(
            rec(**BUSY, clock=dip(1200, 1400), temperature=dip(85, 70)),
            spans=[(99.5, 159.5)],
            confidence="medium",
            ruled_out=2,
        ),
        "without bits, 5 s apart": want(
            rec(**BUSY, clock=dip(1200, 1400, 12), temperature=dip(85, 70, 12), every=5.0), spans=[(497.5, 557.5)]
        ),
        "below the power limit on the mean": want(near_limit(386), spans=[(99.5, 199.5)], within=5),
        "the clock back for 5 s": want(back(5), length=125, within=8),
        "the clock back for 40 s": want(back(40), length=120, within=8),
        "the margin in the log": want(margin),
        "its limit unknown": want(hot(86, 1100, 220), spans=[(99.5, 159.5)], confidence="medium"),
        "no limit known": want(hot(86, 1100, 220, power_limit=np.nan), spans=[(99.5, 159.5)]),
        "no power": want(hot(86, 1100, 0, power=np.nan, temperature=warming), spans=[(99.5, 159.5)], ruled_out=1),
        "no power, a heavier load": (hot(86, 1100, 0, power=np.nan, temperature=late), "signals_not_recorded"),
        "far below its limit": want(hot(84, 1100, 220, model="NVIDIA GeForce RTX 3090"), spans=[(99.5, 159.5)]),
        "a boost that gives way": (hot(86, 1330, 280), "signals_not_recorded"),
        "warm": (hot(76, 1100, 220), "signals_not_recorded"),
        "as much power as before": (hot(86, 1100, 300), "signals_not_recorded"),
        "all along": want(always, severity="problem", lost=299 * 210 / 1410),
        "to the last sample": want(
            rec(**BUSY, sw_thermal_slowdown=np.ones(300)), spans=[(0, 299)], within=0.01, lost=None
        ),
        "one of three slots": want(rec(**BUSY, temperature=slots, sw_thermal_slowdown=[OFF, OFF, ON]), gpus="2"),
        **{
            f"{samples} readings {every:g} s apart": (
                rec(
                    util=steps((97, samples + 40)),
                    every=every,
                    sw_thermal_slowdown=steps((0, 40), (1, samples)),
                    clock=1000,
                ),
                [want(confidence=sure)],
            )
            for every, samples, sure in ((1.0, 60, "high"), (20.0, 3, "medium"), (120.0, 30, "low"))
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
        "no clocks": (rec(**BUSY, temperature=84), "signals_not_recorded", "clock_event_hw_slowdown"),
        "unknown limit": (rec(**BUSY, clock=1400, temperature=84, model="Some GPU"), "signals_not_recorded"),
        "a power limit of 0": (
            rec(**BUSY | {"power_limit": 0.0}, clock=dip(1000, 1400), temperature=dip(92, 60)),
            "signals_not_recorded",
        ),
    }
    check("thermal_throttle", table)


def test_hardware_lowers_the_clock() -> None:
    low = {"clock": dip(700, 1400), "clock_max": 1410, "hw_slowdown": ON}
    unknown = {"cause": "hardware slowdown, reason not recorded", "confidence": "medium"}
    brake = rec(**BUSY, hw_power_brake_slowdown=ON, hw_slowdown=ON, sw_thermal_slowdown=OFF)
    flat = rec(**BUSY, clock=1400, temperature=60, hw_slowdown=ON, hw_power_brake_slowdown=ON)

    def artefact(util: float, clock: float) -> Recording:
        series = {"hw_slowdown": ON, "sw_thermal_slowdown": OFF, "clock_max": 1410}
        return rec(util=dip(util, 98), clock=dip(clock, 1400), **series)

    bits = {"hw_slowdown": ON, "sw_thermal_slowdown": OFF, "model": "Some GPU"}
    table: Table = {
        "a power brake": want(brake, severity="problem", cause="power brake"),
        "without bits": want(
            rec(**BUSY | {"power": dip(150, 300)}, clock=dip(560, 1400), temperature=60), confidence="medium"
        ),
        "without bits, in bursts": rec(
            **BUSY | {"power": 40, "util": np.tile([33, 98, 4], 100)},
            clock=np.tile([210, 1400, 700], 100),
            temperature=50,
        ),
        "without bits and utilisation": (
            rec(power=dip(150, 300), power_limit=400, clock=dip(560, 1400), temperature=60),
            "signals_not_recorded",
        ),
        "no thermal bits": want(
            rec(**BUSY, **low, temperature=60.0),
            **unknown,
            summary="The hardware slowed GPU 0 for 1 min; its clock fell 50%; heat or power brake: not known.",
        ),
        "hot": want(rec(**BUSY, **low, temperature=84.0, sw_thermal_slowdown=OFF), **unknown),
        "cool": want(
            rec(**BUSY, **low, temperature=60.0, sw_thermal_slowdown=OFF), cause="hardware", confidence="high"
        ),
        "the mean clock did not fall": want(flat, lost=0),
        "counted for 0.05 s": rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 0.05}, 100)),
        "counted for 1 s": want(
            rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 1.0}, 100)), severity="info"
        ),
        "counted for 4 s": want(
            rec(**LOAD, every=5, hw_power_brake_slowdown_seconds_total=counted({20: 4.0}, 100)),
            severity="problem",
            cause="power brake",
        ),
        "at rest": artefact(2, 210),
        "at full clock": artefact(98, 1300),
        "no clock": (rec(**BUSY, clock=np.nan, **bits), "signals_not_recorded", "gpu_sm_clock_hertz"),
        "no highest clock": (rec(**BUSY, clock=700.0, **bits), "signals_not_recorded", "gpu_sm_clock_max_hertz"),
        "no clocks": (rec(**BUSY, temperature=84), "signals_not_recorded"),
    }
    check("hw_throttle", table)


def test_an_unknown_loss_is_a_caveat_and_no_class_of_time() -> None:
    analysis = analyze(rec(**BUSY, sw_thermal_slowdown=ON))
    assert findings_of(analysis, "thermal_throttle")[0].lost_gpu_seconds is None
    assert "unknown_throttling_loss" in analysis.limit_codes
    assert dict(analysis.gpu_time[0].seconds)["throttled"] == 0


def test_time_that_the_driver_counted() -> None:
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    hole = counted({21: 0.5, 22: 0.7}, 60)
    hole[21] = np.nan
    both = {"hw_thermal_slowdown_seconds_total": counted({20: 0.6}, 60)}
    name = "clock_event_sw_thermal_slowdown_seconds_total"
    fell, far = (
        np.concatenate([np.full(50, 900.0), np.full(1, 905.0), np.full(49, 3.0)]),
        np.r_[np.full(50, 900.0), np.full(50, 500.0)],
    )
    table: Table = {
        "what no sample saw": want(
            heat(counted({10: 12.0}, 40), every=30, sw_thermal_slowdown=np.zeros(40)),
            spans=[(270, 300)],
            within=0.01,
            evidence={name: 12.0},
        ),
        "a fall is a restart": want(heat(fell, every=5), evidence={name: 8.0}, lost=None),
        "a fall to more than the time gone by": heat(far, every=5),
        "a rise that no clock can show": want(heat(counted({20: 3600.0, 30: 1.5}, 60)), evidence={name: 1.5}),
        "over a missing value": want(heat(hole), evidence={name: 1.2}),
        "two counters are not added": want(heat(counted({20: 0.8}, 60), **both), evidence={name: 0.8}),
        "partly in a log gap": want(
            heat(counted({99: 1.0, 98: 1, 97: 1, 96: 1, 95: 1, 100: 15.0}, 200), times=times),
            spans=[(94, 99)],
            within=0.01,
            evidence={name: 20.0},
            lost=None,
        ),
        "in a log gap alone": want(heat(counted({100: 15.0}, 200), times=times), spans=[], lost=None),
    }
    check("thermal_throttle", table)
    bit = rec(**BUSY, sw_thermal_slowdown=ON)
    still = rec(**BUSY, sw_thermal_slowdown=ON, sw_thermal_slowdown_seconds_total=OFF)
    assert findings_of(analyze(still), "thermal_throttle") == findings_of(analyze(bit), "thermal_throttle")


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


def ledger(run: Recording) -> dict[str, ClockEventTotal]:
    return {entry.reason: entry for entry in analyze(run).throttle_ledger if entry.device == "gpu:0"}


def test_the_ledger_of_clock_events() -> None:
    times = np.concatenate([np.arange(100), np.arange(200, 300)])
    table = {
        "60 of 300 s at 1120 of 1400 MHz": (
            rec(**LOAD, clock=DROP, sw_thermal_slowdown=ON),
            {"sw_thermal_slowdown": (60.0, None, 0.04, "harmful")},
        ),
        "20 of 60 s on a busy GPU": (
            rec(util=steps((98, 20), (0, 40), (98, 60)), hw_slowdown=steps((1, 60), (0, 60))),
            {"hw_slowdown": (20.0, None, None, "harmful")},
        ),
        "the power cap against the highest clock": (
            rec(**LOAD, clock=900, clock_max=1500, sw_power_cap=np.ones(100)),
            {"sw_power_cap": (100.0, None, 0.4, "benign")},
        ),
        "a chosen clock has no cost": (
            rec(**LOAD, clock=900, applications_clocks_setting=np.ones(100), gpu_idle=np.ones(100)),
            {"applications_clocks_setting": (100.0, None, None, "benign"), "gpu_idle": (100.0, None, None, "benign")},
        ),
        "36 s that no sample shows": (
            heat(
                np.cumsum(np.r_[500.0, np.zeros(10), np.full(3, 12.0), np.zeros(10)]),
                every=30,
                sw_thermal_slowdown=np.zeros(24),
                clock=1400,
            ),
            {"sw_thermal_slowdown": (0.0, (36.0, 0.0), None, "harmful")},
        ),
        "a counter without its bit": (
            rec(**LOAD, sync_boost_seconds_total=np.arange(60) * 0.5),
            {"sync_boost": (None, (29.5, 0.0), None, "unclassified")},
        ),
        "bits without a name": (
            rec(**LOAD, unknown_bits=np.where(np.arange(60) < 20, 2.0**11 + 2.0**63, 0.0)),
            {"0x800": (20.0, None, None, "unclassified"), "0x8000000000000000": (20.0, None, None, "unclassified")},
        ),
        "recorded and never held": (
            rec(**LOAD, clock=1400, hw_thermal_slowdown=np.zeros(60)),
            {"hw_thermal_slowdown": (0.0, None, 0.0, "harmful")},
        ),
        "nothing recorded": (rec(**LOAD, clock=1400), {}),
        "counted in a log gap alone": (
            rec(
                **LOAD,
                times=times,
                clock=1400,
                sw_power_cap=np.zeros(200),
                sw_power_cap_seconds_total=np.where(times < 200, 5.0, 25.0),
            ),
            {"sw_power_cap": (0.0, (20.0, 20.0), None, "benign")},
        ),
    }
    for name, (run, expected) in table.items():
        got = {
            reason: (
                entry.busy_seconds,
                entry.counted and (entry.counted.total, entry.counted.in_gaps),
                entry.lost_ratio if entry.lost_ratio is None else round(entry.lost_ratio, 4),
                str(entry.effect),
            )
            for reason, entry in ledger(run).items()
        }
        assert got == expected, name
    entry = ledger(table["60 of 300 s at 1120 of 1400 MHz"][0])["sw_thermal_slowdown"]
    assert (entry.clock_hertz, entry.reference_hertz) == (1120e6, 1400e6)


def test_power_limits() -> None:
    bursts = np.tile(np.repeat([1, 0], [5, 15]), 15)
    nine, little = (counted(dict.fromkeys(range(1, 41), each), 41) for each in (9.0, 1.2))
    hidden = {"every": 30, "sw_power_cap": np.zeros(41)}
    chosen = rec(util=98, power=219, power_limit=220, default_limit=400, clock=900, sw_power_cap=np.ones(300))
    unknown = rec(util=steps((98, 300)), power=390)
    capped = {"util": 98, "power_limit": 400, "clock": 990, "sw_power_cap": np.ones(300)}
    held, spiky = rec(**capped, power=240 * waver(0.02)), rec(**capped, power=240 * waver(0.3))
    zero = rec(util=steps((97, 60)), power=200, power_limit=0, default_limit=400, clock=1000, clock_max=0)
    power_cap: Table = {
        "at full load": want(
            rec(util=98, power=70, power_limit=70, clock=900, sw_power_cap=np.ones(300), model="Tesla T4"),
            severity="info",
            evidence={"gpu_sm_clock_hertz": 0.57},
        ),
        "bursts are one stretch": want(
            rec(util=98, power=70, power_limit=70, clock=900, sw_power_cap=bursts),
            length=284,
            evidence={"share of busy time": 0.25},
        ),
        "power alone": want(rec(util=steps((98, 300)), power=398, power_limit=400), confidence="medium"),
        "a third of the clock": want(
            rec(util=98, power=400, power_limit=400, clock=900, sw_power_cap=np.ones(300)), severity="warning"
        ),
        "a limit that was chosen": want(chosen, severity="info"),
        "counted, and no sample shows it": want(
            rec(**LOAD, **hidden, clock=1200, sw_power_cap_seconds_total=nine),
            severity="info",
            evidence={"share of busy time": 0.3 * 40 / 41, "clock_event_sw_power_cap_seconds_total": 360.0},
        ),
        "counted for 4%": rec(**LOAD, **hidden, sw_power_cap_seconds_total=little),
        "no limit": (unknown, "signals_not_recorded", "gpu_power_limit_watts"),
        "peaks at the limit": want(spiky),
        "held far below it": held,
    }
    check("power_cap", power_cap)
    power_limited: Table = {
        "that binds": want(
            rec(util=steps((98, 300)), power=219, power_limit=220, default_limit=400),
            severity="warning",
            confidence="high",
            lost=None,
            evidence={"gpu_power_limit_watts": 0.55},
        ),
        "with its clock": want(chosen, lost=None, evidence={"gpu_sm_clock_hertz": 0.64}),
        "lowered in mid-run": want(
            rec(util=98, power=dip(249, 395), power_limit=dip(250, 400), default_limit=400),
            severity="warning",
            spans=[(99.5, 159.5)],
            evidence={"gpu_power_limit_watts": 0.62},
        ),
        "lowered, the default unknown": want(
            rec(util=98, power=dip(249, 395), power_limit=dip(250, 400), model="Some GPU"),
            spans=[(99.5, 159.5)],
            evidence={"median, of the highest (as logged)": 0.62},
        ),
        "lowered for a moment": rec(util=98, power=dip(249, 395, 20), power_limit=dip(250, 400, 20), default_limit=400),
        "that nobody reaches": want(
            rec(util=steps((98, 300)), power=120, power_limit=220), severity="info", confidence="low"
        ),
        "of an idle GPU": want(
            rec(util=np.zeros(60), power=30, power_limit=400, default_limit=450),
            evidence={"gpu_power_limit_watts": 0.89},
        ),
        "of three samples": want(
            rec(util=steps((97, 3)), power=240, power_limit=250, default_limit=400), confidence="medium"
        ),
        "of eight samples": want(
            rec(util=steps((97, 8)), power=240, power_limit=250, default_limit=400), confidence="high"
        ),
        "something else": want(
            held,
            severity="warning",
            confidence="medium",
            cause="capped below its limit",
            spans=[(0, 299)],
            evidence={"level at the cap": 240.0, "in force": 400.0},
        ),
        "the default": rec(util=steps((98, 300)), power=390, power_limit=400),
        "no limit": (unknown, "unknown_power_limit", "gpu_power_limit_default_watts"),
        "a limit of 0": (zero, "unknown_power_limit"),
    }
    check("power_limited", power_limited)


def test_locked_clocks() -> None:
    util = steps((0, 20), (97, 200))
    bits = steps((0, 20), (1, 200))
    slow = {"util": util, "clock_max": 1410, "power_limit": 400}
    names = ("applications_clocks_setting", "display_clock_setting")

    moving = np.where(np.arange(220) % 3 == 0, 1005.0, 1050.0)
    table: Table = {
        **{
            name: (
                rec(util=[util, util], clock=1230, clock_max=1530, **{name: bits}),
                [
                    want(
                        gpus="0,1", severity="info", confidence="high", evidence={"gpu_sm_clock_hertz": 1230e6 / 1530e6}
                    )
                ],
            )
            for name in names
        },
        "never moves": want(rec(**slow, clock=1005, power=200), confidence="medium"),
        "far below the highest seen": want(
            rec(util=util, clock=steps((2130, 20), (525, 200)), model=None, power=14), confidence="medium"
        ),
        "a clock of zeros": want(rec(util=util, clock=0, applications_clocks_setting=bits, model=None)),
        "bursts at low use": rec(**slow | {"util": np.tile([35.0, 35, 0, 0], 55)}, clock=1005, power=100),
        "at the power limit": rec(**slow, clock=1005, power=396),
        "moving": rec(**slow, clock=moving, power=200),
        "heat": rec(util=util, clock=1005, clock_max=1410, sw_thermal_slowdown=1),
        "set to the highest": rec(util=util, clock=1410, clock_max=1410, applications_clocks_setting=1),
        "near the highest seen": rec(util=util, clock=steps((2505, 20), (2490, 200)), model=None, power=58),
        "at rest": (rec(util=steps((0, 100)), clock=210, clock_max=1410), "too_few_busy_samples"),
        "no columns": (rec(util=util), "not_recorded", "clock_event_applications_clocks_setting"),
    }
    check("clocks_locked", table)
