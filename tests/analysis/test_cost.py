"""What a run cost by stated prices, worked out by hand."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpureport
from gpureport.errors import SettingsError
from gpureport.testing import Cost, Recording, findings_of, steps
from tests.analysis.tables import rec

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


def test_the_whole_run_is_paid() -> None:
    assert gpureport.analyze(busy()).cost is None, "no price is built in"
    two = cost(busy(gpus=2), PRICE)
    assert (two.total, two.idle) == pytest.approx((5, 0))
    assert (two.currency, two.date) == ("EUR", "2026-03-01")
    assert cost(rec(util=[98.0]), PRICE).total is None, "one sample has no length"


def test_idle_time_and_findings_have_their_price() -> None:
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
