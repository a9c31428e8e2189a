"""Figures of each device, and what a run cost by stated prices, worked out by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport.errors import SettingsError
from gpureport.testing import (
    GIB,
    Analysis,
    Cost,
    DeviceStatistics,
    MetricSummary,
    Recording,
    analyze,
    findings_of,
    steps,
    unjudged,
)
from tests.analysis.tables import rec

UTILISATION, POWER = "gpu_utilization_ratio", "gpu_power_watts"


def figures(run: Recording) -> DeviceStatistics:
    return analyze(run).statistics[0]


def summary(run: Recording, metric: str = UTILISATION) -> MetricSummary:
    one = figures(run).metric(metric)
    assert one is not None
    return one


def test_means_and_quantiles_are_weighted_by_time() -> None:
    dense = summary(rec(util=steps((0, 100), (100, 11)), times=[*np.arange(0, 10, 0.1), *range(10, 21)], every=0.1))
    assert dense.sample_mean == pytest.approx(11 / 111)
    assert dense.mean > 0.15
    three = summary(rec(util=steps((10, 30), (50, 30), (90, 40))))
    assert (three.p5, three.p50, three.p95, three.max, three.min) == pytest.approx((0.1, 0.5, 0.9, 0.9, 0.1))
    assert dict(three.below) == pytest.approx({0.25: 0.3, 0.5: 0.3, 0.7: 0.6})
    twice = [*np.arange(0, 30, 0.1), *np.arange(30, 60, 0.2)]
    halves = summary(rec(times=twice, util=steps((20, 300), (80, 150)), model=None))
    assert (halves.mean, halves.p95) == pytest.approx((0.5, 0.8), abs=0.01)


def test_the_time_that_samples_own() -> None:
    slower = [*range(100), *range(100, 210, 10), 500, *range(510, 630, 10), *range(630, 900)]
    table = {
        "even": (range(10), 10.0),
        "a late sample": ([0, 10, 20, 50, 60, 70], 75.0),
        "a log gap": ([0, 1, 2, 60, 61, 62], 6.0),
        "a slower stretch": (slower, 900 - 300 + 10),
        "ends slower": ([*range(300), *range(300, 450, 10)], 445.0),
        "equal stamps": ([0, 1, 1, 2, 3], 4.0),
        "a single sample": ([0], 0.0),
        "a gap of a minute": ([*range(20), *range(100, 120)], 40.0),
    }
    for name, (times, owned) in table.items():
        run = rec(util=steps((50, len(list(times)))), times=list(times))
        assert figures(run).observed_seconds == pytest.approx(owned, abs=1), name
    idle = figures(rec(util=steps((0, 20), (90, 20)), times=[*range(20), *range(100, 120)]))
    assert idle.idle_seconds == 20.0


def test_what_was_not_recorded_is_none_and_rows_are_counted() -> None:
    absent = figures(rec(util=steps((50, 9))))
    assert (absent.energy_joules, absent.memory_peak_bytes, absent.memory_headroom_ratio) == (None, None, None)
    assert (absent.metric(POWER), absent.energy_counter) == (None, None)
    memory = figures(rec(memory=steps((20, 5), (60, 5)), util=90, reserved=GIB))
    assert (memory.memory_peak_bytes, memory.memory_headroom_ratio) == (60 * GIB, 0.25)
    alone = figures(rec(util=[50.0], power=100.0, memory=10.0))
    assert (alone.energy_joules, alone.observed_seconds, alone.idle_seconds) == (None, 0.0, 0.0)
    nulls = summary(rec(util=[50, np.nan, 70]))
    assert (nulls.samples, nulls.mean) == pytest.approx((2, 0.6))
    one = summary(rec(every=0.01, util=np.repeat(np.random.default_rng(0).integers(90, 99, 300).astype(float), 20)))
    assert (one.samples, one.effective_samples, one.changes, one.repeated_ratio) == (6000, 6000, None, None)


def test_energy() -> None:
    hour, gap = np.arange(3601), np.r_[0:100, 199:300].astype(float)
    pauses, rising = np.r_[0:50, 53:100, 103:150].astype(float), np.linspace(100.0, 400.0, 5)
    jump, restart = np.r_[0.0, 200.0, 1e6, 1e6 + 200], np.r_[np.full(5, 7000.0), 7400.0, 100.0, 900.0]
    lone = np.full(60, np.nan)
    lone[30] = 200.0
    shared = {"power": [np.nan, 200.0, np.nan, np.nan], "times": [0, 0, 0, 1]}
    none = (None, None, None)
    table: dict[str, tuple[dict[str, Any], tuple[Any, ...], tuple[Any, ...] | None]] = {
        "300 W for an hour": (
            {"power": np.full(3601, 300.0), "energy": 5e6 + 300.0 * hour},
            (1.08e6, 3600.0, 0.0),
            (1.08e6, 0, 0, 0),
        ),
        "a log gap": (
            {"power": np.full(201, 200.0), "energy": 200.0 * gap, "times": gap},
            (40_000, None, None),
            (59_800, 20_000, 0, 0),
        ),
        "a restart": ({"power": np.full(8, 200.0), "energy": restart}, none, (1300, 0, 1, 0)),
        "a jump no board can take": ({"power": np.full(4, 200.0), "energy": jump}, none, (400, 0, 0, 1)),
        "pauses below a log gap": ({"power": np.full(144, 200.0), "times": pauses}, (29_800, 149.0, 3.0), None),
        "a minute": ({"power": np.full(60, 200.0)}, (11_800, 59.0, None), None),
        "sampled rarely": (
            {"power": rising, "times": np.r_[0.0, 10.0, 20.0, 46.0, 56.0]},
            (float(np.trapezoid(rising, [0, 10, 20, 46, 56])), 56.0, None),
            None,
        ),
        "a single value": ({"power": lone}, (200.0, 1.0, 0.0), None),
    }
    for name, (series, (joules, over, bridged), counter) in table.items():
        one = figures(rec(util=98, **series))
        read = one.energy_counter
        got = (one.energy_joules, one.energy_seconds, one.energy_bridged_seconds)
        said = read and (read.total, read.in_gaps, read.restarts, read.impossible)
        known = [(each, one) for each, one in zip(got, (joules, over, bridged), strict=True) if one is not None]
        assert [each for each, value in known if each != pytest.approx(value)] == [], (name, got)
        assert said == (counter and pytest.approx(counter)), name
    unowned = figures(rec(util=98, **shared))
    assert (unowned.energy_joules, unowned.energy_seconds) == (None, None)


def test_caveats_on_energy() -> None:
    models = {
        "NVIDIA A100-SXM4-80GB": True,
        "NVIDIA H100 80GB HBM3": True,
        "Tesla T4": True,
        "NVIDIA L4": False,
        "A board nobody knows": False,
    }
    for model, is_said in models.items():
        codes = analyze(rec(util=98, power=np.full(120, 60.0), model=model)).limit_codes
        assert ("power_sensor" in codes) == is_said, model
    gap = np.r_[0:100, 199:300].astype(float)
    assert "energy_without_gaps" in analyze(rec(times=gap, util=98, power=np.full(201, 200.0))).limit_codes
    memory, power = np.repeat([20.0, 0.01, 20.0], 300), np.repeat([300.0, 50.0, 300.0], 300)
    jobs = analyze(rec(util=np.repeat([98.0, 0.0, 98.0], 300), memory=memory, power=power))
    assert "energy_without_gaps" not in jobs.limit_codes, "time between two jobs is no log gap"


UTIL = steps((0, 60), (97, 400), (0, 60), (97, 80))
WARM = np.interp(np.arange(600), [0, 60, 200, 599], [35, 35, 68, 70]).round()
DRAWN = np.where(UTIL > 0, 330.0, 62.0) + np.random.default_rng(1).normal(0, 4, 600).round(2)


def powered(**series: Any) -> Analysis:
    return analyze(rec(**({"util": UTIL, "temperature": WARM, "power": DRAWN} | series)))


def test_power_that_cannot_be_right() -> None:
    wrong = {
        "stands still": powered(power=np.full(600, 62.11)),
        "stands still at a whole watt": powered(power=np.full(600, 62.0)),
        "stands still while it warms": powered(util=np.nan, power=np.full(600, 46.19)),
        "less than any GPU": powered(power=DRAWN / 1000),
        "milliwatts": powered(power=DRAWN * 1000),
        "ten times": powered(power=DRAWN * 10),
    }
    for name, analysis in wrong.items():
        one = analysis.statistics[0]
        assert (one.energy_joules, one.metric(POWER), bool(one.power_doubt)) == (None, None, True), name
        assert "implausible_power" in analysis.limit_codes, name
        assert "energy_by_samples" not in analysis.limit_codes, name
    assert [each.code for each in unjudged(wrong["stands still"], "hollow_util")] == ["implausible_readings"]
    first, second = powered(power=[DRAWN, np.full(600, 62.11)]).statistics
    assert (first.energy_joules is None, second.energy_joules is None) == (False, True)


def test_power_that_may_be_right() -> None:
    stray = np.where(np.arange(600) % 60 == 0, 90.0, 0.0)
    part = slice(30, 130)
    table: dict[str, dict[str, Any]] = {
        "sound": {},
        "200 W more": {"power": DRAWN + 200, "power_limit": 400},
        "idle": {"util": 0, "power": 9.0},
        "idle and cool": {"util": 0, "power": 9.0, "temperature": 41},
        "at its limit": {"util": 98.0, "power": 70.0},
        "all still": {"power": 62.11, "temperature": 41},
        "no temperature": {"power": 62.11, "temperature": np.nan},
        "a digit": {"power": np.r_[62.12, np.full(599, 62.11)]},
        "none": {"power": np.nan},
        "a whole watt of a GPU at rest": {"util": stray, "power": 62.0},
        "too short": {"util": UTIL[part], "temperature": WARM[part], "power": np.full(100, 62.11)},
    }
    assert [name for name, series in table.items() if "implausible_power" in powered(**series).limit_codes] == []


STATED = {"currency": "EUR", "date": "2026-03-01"}
PRICE = {"prices": STATED | {"gpu_hour": 2.5}}
RATES = [
    {"model": "A100", "gpu_hour": 2},
    {"model": "A100 80GB", "gpu_hour": 3},
    {"model": "A100", "spot": True, "gpu_hour": 1.5},
    {"model": "A100", "provider": "Acme", "instance": "a8.large", "gpu_hour": 4},
]


def cost(run: Recording, settings: Any) -> Cost:
    priced = gpureport.analyze(run, settings=settings).cost
    assert priced is not None
    return priced


def busy(tags: dict[str, str] | None = None, *, gpus: int = 1, model: str = "NVIDIA A100-SXM4-80GB") -> Recording:
    run = rec(every=10, util=np.full((gpus, 361), 98.0), power=np.full((gpus, 361), 300.0), model=model)
    return replace(run, run=replace(run.run, tags=tuple((tags or {}).items())))


def test_runs_idle_time_and_findings_have_their_price() -> None:
    assert gpureport.analyze(busy()).cost is None, "no price is built in"
    two = cost(busy(gpus=2), PRICE)
    assert (two.total, two.idle) == pytest.approx((5, 0))
    assert (two.currency, two.date) == ("EUR", "2026-03-01")
    assert cost(rec(util=[98.0]), PRICE).total is None, "one sample has no length"
    analysis = gpureport.analyze(rec(util=steps((98, 1800), (0, 360), (98, 1441))), settings=PRICE)
    (gap,) = findings_of(analysis, "idle_gap")
    assert analysis.cost is not None
    assert (analysis.cost.idle, analysis.cost.cost_of(gap)) == pytest.approx((0.25, 0.25), rel=0.01)
    heat = gpureport.analyze(rec(util=98, sw_thermal_slowdown=np.ones(100)), settings=PRICE)
    assert heat.cost is not None
    assert heat.cost.cost_of(findings_of(heat, "thermal_throttle")[0]) is None, "of a loss that is not known"


def test_the_closest_rate_holds() -> None:
    rates = {"prices": STATED | {"rate": RATES}}
    table: list[tuple[dict[str, str], float]] = [
        ({}, 3),
        ({"spot": "yes"}, 1.5),
        ({"spot": "no"}, 3),
        ({"provider": "acme", "instance": "A8.large"}, 4),
        ({"provider": "acme"}, 3),
        ({"provider": "acme", "instance": "a8.large", "spot": "true"}, 4),
    ]
    for tags, amount in table:
        assert cost(busy(tags), rates).total == pytest.approx(amount), tags
    other = cost(busy(model="Tesla T4"), rates)
    assert (other.total, other.idle, other.gpus[0].amount) == (None, None, None)


def test_carbon_is_energy_times_intensity() -> None:
    grid = cost(busy(), {"carbon": {"intensity": 400, "source": "the grid, 2025"}})
    assert grid.carbon_grams == pytest.approx(120)
    assert (grid.carbon_source, grid.counted, grid.total, grid.gpus) == ("the grid, 2025", False, None, ())
    times = np.r_[0:1800, 2400:4200].astype(float)
    for energy, counted, seconds in ((200.0 * times, True, 4199), (200.0 * times % 500_000, False, 3599)):
        run = rec(times=times, util=98, power=np.full(3600, 200.0), energy=energy)
        priced = cost(run, {"carbon": {"intensity": 1000}})
        assert priced.carbon_grams == pytest.approx(200 * seconds / 3.6e6 * 1000)
        assert priced.counted is counted
    assert cost(rec(util=[98.0] * 60), {"carbon": {"intensity": 400}}).carbon_grams is None


TOP = '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\n'


def test_a_mistake_is_named_with_its_line(tmp_path: Path) -> None:
    table = {
        "[prices]\ngpu_hour = 2\n": (2, "incomplete_price"),
        '[prices]\ncurrency = "EUR"\ngpu_hour = 2\n': (3, "incomplete_price"),
        f"{TOP}gpu_hour = -1\n": (4, None),
        f"{TOP}gpu_hour = nan\n": (4, None),
        f'{TOP}gpu_hour = "2"\n': (4, None),
        f"{TOP}gpu_our = 2\n": (4, None),
        '[prices]\ncurrency = "EUR"\ndate = "March"\n': (3, "not_a_date"),
        "[prices]\ncurrency = 7\n": (2, None),
        f"{TOP}[prices.rate]\ngpu_hour = 2\n": (0, None),
        f'{TOP}[[prices.rate]]\nmodel = "A100"\n[[prices.rate]]\nmodel = "T4"\n': (5, "incomplete_price"),
        f'{TOP}[[prices.rate]]\ngpu_hour = 1\nspot = "yes"\n': (6, None),
        "[carbon]\nintensity = -1\n": (2, None),
    }
    path = tmp_path / "gpureport.toml"
    for text, (line, code) in table.items():
        path.write_text(text)
        with pytest.raises(SettingsError) as caught:
            gpureport.analyze(rec(util=[98.0]), settings=path)
        assert not line or caught.value.where.endswith(f":{line}"), text
        assert code is None or caught.value.code == code, text
    path.write_text(f"{TOP}gpu_hour = 2.5\n")
    assert [gpu.source for gpu in cost(busy(), path).gpus] == [f"{path}:4"]
