"""Figures of each device, and what a run cost by stated prices, worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import gpureport
from gpureport.testing import GIB, Analysis, Recording, steps
from tests.analysis.tables import Hold, rec


def test_means_and_quantiles_are_weighted_by_time(hold: Hold) -> None:
    dense = [*np.arange(0, 10, 0.1), *range(10, 21)]
    twice = [*np.arange(0, 30, 0.1), *np.arange(30, 60, 0.2)]
    readings = np.repeat(np.random.default_rng(0).integers(90, 99, 300).astype(float), 20)
    table = {
        "dense at first": rec(util=steps((0, 100), (100, 11)), times=dense, every=0.1),
        "three levels": rec(util=steps((10, 30), (50, 30), (90, 40))),
        "two halves": rec(times=twice, util=steps((20, 300), (80, 150)), model=None),
        "no value now and then": rec(util=[50, np.nan, 70]),
        "memory": rec(memory=steps((20, 5), (60, 5)), util=90, reserved=GIB),
        "one sample": rec(util=[50.0], power=100.0, memory=10.0),
        "repeated rows": rec(every=0.01, util=readings),
    }
    hold("figures", table)


def test_the_time_that_samples_own(hold: Hold) -> None:
    table: dict[str, Sequence[float]] = {
        "even": range(10),
        "a late sample": [0, 10, 20, 50, 60, 70],
        "a log gap": [0, 1, 2, 60, 61, 62],
        "a slower stretch": [*range(100), *range(100, 210, 10), 500, *range(510, 630, 10), *range(630, 900)],
        "ends slower": [*range(300), *range(300, 450, 10)],
        "equal stamps": [0, 1, 1, 2, 3],
        "a gap of a minute": [*range(20), *range(100, 120)],
    }
    hold("figures", {name: rec(util=steps((50, len(times))), times=list(times)) for name, times in table.items()})
    idle = rec(util=steps((0, 20), (90, 20)), times=[*range(20), *range(100, 120)])
    hold("figures", {"idle before a gap": idle})


def test_energy(hold: Hold) -> None:
    hour, gap = np.arange(3601), np.r_[0:100, 199:300].astype(float)
    pauses, rising = np.r_[0:50, 53:100, 103:150].astype(float), np.linspace(100.0, 400.0, 5)
    jump, restart = np.r_[0.0, 200.0, 1e6, 1e6 + 200], np.r_[np.full(5, 7000.0), 7400.0, 100.0, 900.0]
    lone = np.full(60, np.nan)
    lone[30] = 200.0
    table: dict[str, dict[str, Any]] = {
        "300 W for an hour": {"power": np.full(3601, 300.0), "energy": 5e6 + 300.0 * hour},
        "a log gap": {"power": np.full(201, 200.0), "energy": 200.0 * gap, "times": gap},
        "a restart": {"power": np.full(8, 200.0), "energy": restart},
        "a jump no board can take": {"power": np.full(4, 200.0), "energy": jump},
        "pauses below a log gap": {"power": np.full(144, 200.0), "times": pauses},
        "a minute": {"power": np.full(60, 200.0)},
        "sampled rarely": {"power": rising, "times": np.r_[0.0, 10.0, 20.0, 46.0, 56.0]},
        "a single value": {"power": lone},
        "of no time": {"power": [np.nan, 200.0, np.nan, np.nan], "times": [0, 0, 0, 1]},
    }
    hold("figures, caveats", {name: rec(util=98, **series) for name, series in table.items()})


def test_caveats_on_energy(hold: Hold) -> None:
    models = ("NVIDIA A100-SXM4-80GB", "NVIDIA H100 80GB HBM3", "Tesla T4", "NVIDIA L4", "A board nobody knows")
    memory, power = np.repeat([20.0, 0.01, 20.0], 300), np.repeat([300.0, 50.0, 300.0], 300)
    table = {model: rec(util=98, power=np.full(120, 60.0), model=model) for model in models}
    # time between two jobs is no log gap
    jobs = {"two jobs": rec(util=np.repeat([98.0, 0.0, 98.0], 300), memory=memory, power=power)}
    hold("caveats", table | jobs)


UTIL = steps((0, 60), (97, 400), (0, 60), (97, 80))
WARM = np.interp(np.arange(600), [0, 60, 200, 599], [35, 35, 68, 70]).round()
DRAWN = np.where(UTIL > 0, 330.0, 62.0) + np.random.default_rng(1).normal(0, 4, 600).round(2)


def test_power_that_cannot_or_may_be_right(hold: Hold) -> None:
    stray, part, still = np.where(np.arange(600) % 60 == 0, 90.0, 0.0), slice(30, 130), np.minimum(np.arange(600), 399)
    frozen: dict[str, Any] = {"util": UTIL[still], "temperature": WARM[still], "power": DRAWN[still]}
    table: dict[str, dict[str, Any]] = {
        "stands still": {"power": np.full(600, 62.11)},
        "stands still at a whole watt": {"power": np.full(600, 62.0)},
        "stands still while it warms": {"util": np.nan, "power": np.full(600, 46.19)},
        "less than any GPU": {"power": DRAWN / 1000},
        "milliwatts": {"power": DRAWN * 1000},
        "ten times": {"power": DRAWN * 10},
        "three times": {"power": DRAWN * 3},
        "one of two": {"power": [DRAWN, np.full(600, 62.11)]},
        "sound": {},
        "200 W more": {"power": DRAWN + 200, "power_limit": 400},
        "idle": {"util": 0, "power": 9.0},
        "idle and cool": {"util": 0, "power": 9.0, "temperature": 41},
        "at its limit": {"util": 98.0, "power": 70.0},
        "all still": {"power": 62.11, "temperature": 41},
        "no temperature": {"power": 62.11, "temperature": np.nan},
        "a digit": {"power": np.r_[62.12, np.full(599, 62.11)]},
        "none": {"power": np.nan},
        "frozen": frozen,
        "frozen, and a gap": frozen | {"times": np.r_[0:500, 560:660]},
        "at rest": {"power": np.where(UTIL > 0, DRAWN / 5, 310.33)},
        "a whole watt of a GPU at rest": {"util": stray, "power": 62.0},
        "too short": {"util": UTIL[part], "temperature": WARM[part], "power": np.full(100, 62.11)},
    }
    usual: dict[str, Any] = {"util": UTIL, "temperature": WARM, "power": DRAWN}
    hold("figures, caveats, hollow_util, log_gap", {name: rec(**usual | series) for name, series in table.items()})


STATED = {"currency": "EUR", "date": "2026-03-01"}
PRICE = {"prices": STATED | {"gpu_hour": 2.5}}
RATES = [
    {"model": "A100", "gpu_hour": 2},
    {"model": "A100 80GB", "gpu_hour": 3},
    {"model": "A100", "spot": True, "gpu_hour": 1.5},
    {"model": "A100", "provider": "Acme", "instance": "a8.large", "gpu_hour": 4},
]


def priced(run: Recording, settings: Any = None) -> Analysis:
    return gpureport.analyze(run, settings=settings)


def busy(tags: dict[str, str] | None = None, *, gpus: int = 1, model: str = "NVIDIA A100-SXM4-80GB") -> Recording:
    run = rec(every=10, util=np.full((gpus, 361), 98.0), power=np.full((gpus, 361), 300.0), model=model)
    return replace(run, run=replace(run.run, tags=tuple((tags or {}).items())))


def test_runs_idle_time_and_findings_have_their_price(hold: Hold) -> None:
    rates, carbon = {"prices": STATED | {"rate": RATES}}, {"carbon": {"intensity": 1000}}
    acme = {"provider": "acme"}
    tags: list[dict[str, str]] = [{}, {"spot": "yes"}, {"spot": "no"}, {**acme, "instance": "A8.large"}, acme]
    tags += [{**acme, "instance": "a8.large", "spot": "true"}]
    times = np.r_[0:1800, 2400:4200].astype(float)
    counter = {"counted": 200.0 * times, "counted anew": 200.0 * times % 500_000}
    table = {
        "no price is built in": priced(busy()),
        "two GPUs": priced(busy(gpus=2), PRICE),
        "one sample has no length": priced(rec(util=[98.0]), PRICE),
        "a gap": priced(rec(util=steps((98, 1800), (0, 360), (98, 1441))), PRICE),
        "a loss that is not known": priced(rec(util=98, sw_thermal_slowdown=np.ones(100)), PRICE),
        **{f"the closest rate of {tag}": priced(busy(tag), rates) for tag in tags},
        "no rate": priced(busy(model="Tesla T4"), rates),
        "carbon": priced(busy(), {"carbon": {"intensity": 400, "source": "the grid, 2025"}}),
        **{
            name: priced(rec(times=times, util=98, power=np.full(3600, 200.0), energy=energy), carbon)
            for name, energy in counter.items()
        },
        "no energy": priced(rec(util=[98.0] * 60), carbon),
    }
    hold("cost", table)


def test_the_price_of_each_gpu_names_its_line(tmp_path: Path) -> None:
    path = tmp_path / "gpureport.toml"
    path.write_text('[prices]\ncurrency = "EUR"\ndate = 2026-03-01\ngpu_hour = 2.5\n')
    said = priced(busy(), path).cost
    assert said is not None
    assert [gpu.source for gpu in said.gpus] == [f"{path}:4"]
