"""What a run cost by stated prices, worked out by hand."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gpureport import settings
from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices, read_prices
from gpureport.errors import SettingsError
from gpureport.testing import Analysis, Cost, Recording, analyze, found, recording, steps

_TOP = '[prices]\ncurrency = "EUR"\ndate = 2026-03-01\n'
_RATES = """
[[prices.rate]]
model = "A100"
gpu_hour = 2

[[prices.rate]]
model = "A100 80GB"
gpu_hour = 3

[[prices.rate]]  # interruptible
model = "A100"
spot = true
gpu_hour = 1.5

[[prices.rate]]
model = "A100"
provider = "Acme"
instance = "a8.large"
gpu_hour = 4
"""


def prices(folder: Path, text: str) -> Prices:
    """Return what a settings file of this text states."""
    path = folder / "gpureport.toml"
    path.write_text(text)
    return read_prices(settings.read_settings(path))


def labelled(run: Recording, **tags: str) -> Recording:
    """Return a run with tags."""
    return replace(run, run=replace(run.run, tags=tuple(tags.items())))


def busy(hours: float = 1.0, *, gpus: int = 1, model: str = "NVIDIA A100-SXM4-80GB") -> Recording:
    """Return a run of busy GPUs at 300 W, sampled every 10 s."""
    rows = round(hours * 360) + 1
    return recording(every=10, util=np.full((gpus, rows), 98.0), power=np.full((gpus, rows), 300.0), model=model)


def of(analysis: Analysis, said: Prices) -> Cost:
    """Return what a run cost, which is known."""
    priced = calculate_cost(analysis, said)
    assert priced is not None
    return priced


def test_nothing_stated_costs_nothing_known() -> None:
    """No price is built in."""
    assert calculate_cost(analyze(busy()), Prices()) is None


def test_the_whole_run_is_paid(tmp_path: Path) -> None:
    """Two GPUs for one hour at 2.50 are 5.00."""
    priced = of(analyze(busy(gpus=2)), prices(tmp_path, f"{_TOP}gpu_hour = 2.5\n"))
    assert priced.total == pytest.approx(5)
    assert (priced.idle, priced.currency, priced.date) == (0, "EUR", "2026-03-01")
    assert [gpu.source for gpu in priced.gpus] == [f"{tmp_path / 'gpureport.toml'}:4"] * 2


def test_idle_time_and_findings_have_their_price() -> None:
    """Of an hour, six minutes idle at 2.50 are 0.25, and so is the gap."""
    analysis = analyze(recording(every=1, util=steps((98, 1800), (0, 360), (98, 1441))))
    priced = of(analysis, Prices().with_overrides(2.5, None))
    (gap,) = found(analysis, "idle_gap")
    assert priced.idle == pytest.approx(0.25, rel=0.01)
    assert priced.cost_of(gap) == pytest.approx((gap.lost_gpu_seconds or 0) / 3600 * 2.5)
    assert priced.cost_of(gap) == pytest.approx(0.25, rel=0.01)


def test_a_finding_of_unknown_loss_has_no_price() -> None:
    """What was lost is not known, so neither is what it cost."""
    analysis = analyze(recording(util=98, sw_thermal_slowdown=np.ones(100), every=1))
    (heat,) = found(analysis, "thermal_throttle")
    assert of(analysis, Prices().with_overrides(2.5, None)).cost_of(heat) is None


@pytest.mark.parametrize(
    ("tags", "amount"),
    [
        ({}, 3),
        ({"spot": "yes"}, 1.5),
        ({"spot": "no"}, 3),
        ({"provider": "acme", "instance": "A8.large"}, 4),
        ({"provider": "acme"}, 3),
        ({"provider": "acme", "instance": "a8.large", "spot": "true"}, 4),
    ],
)
def test_the_closest_rate_holds(tmp_path: Path, tags: dict[str, str], amount: float) -> None:
    """More conditions before fewer, then more words of the model; a condition the run says nothing of does not fit."""
    priced = of(analyze(labelled(busy(), **tags)), prices(tmp_path, _TOP + _RATES))
    assert priced.total == pytest.approx(amount)


def test_a_gpu_without_a_price_leaves_the_sum_unknown(tmp_path: Path) -> None:
    """No rate fits a T4, and there is none for every GPU."""
    priced = of(analyze(busy(model="Tesla T4")), prices(tmp_path, _TOP + _RATES))
    assert (priced.total, priced.idle, priced.gpus[0].amount) == (None, None, None)


def test_the_option_is_the_price_of_every_gpu(tmp_path: Path) -> None:
    """It wins over the settings, keeps their currency, and is not of their date."""
    said = prices(tmp_path, _TOP + _RATES).with_overrides(10, None)
    priced = of(analyze(busy(model="Tesla T4")), said)
    assert priced.total == pytest.approx(10)
    assert (priced.currency, priced.date) == ("EUR", "")
    assert priced.gpus[0].source == "--gpu-hour-price"


def test_one_sample_has_no_length() -> None:
    """What it cost cannot be told."""
    assert of(analyze(recording(util=[98.0])), Prices().with_overrides(2.5, None)).total is None


def test_carbon_is_energy_times_intensity(tmp_path: Path) -> None:
    """300 W for an hour at 400 g/kWh are 120 g."""
    said = prices(tmp_path, '[carbon]\nintensity = 400\nsource = "the grid, 2025"\n')
    priced = of(analyze(busy()), said)
    assert priced.carbon_grams == pytest.approx(120)
    assert (priced.carbon_source, priced.counted, priced.total, priced.gpus) == ("the grid, 2025", False, None, ())


def test_the_counter_goes_before_the_integral() -> None:
    """It covers the log gap, unless it was started anew."""
    times = np.r_[0:1800, 2400:4200].astype(float)
    counted = 200.0 * times
    whole = analyze(recording(times=times, util=98, power=np.full(3600, 200.0), energy=counted))
    anew = analyze(recording(times=times, util=98, power=np.full(3600, 200.0), energy=counted % 500_000))
    said = Prices().with_overrides(None, 1000)
    first, second = of(whole, said), of(anew, said)
    assert (first.counted, second.counted) == (True, False)
    assert first.carbon_grams == pytest.approx(200 * 4199 / 3.6e6 * 1000)
    assert second.carbon_grams == pytest.approx(200 * 3599 / 3.6e6 * 1000)


def test_unknown_energy_emits_nothing_known() -> None:
    """Power was not recorded."""
    assert of(analyze(recording(util=[98.0] * 60)), Prices().with_overrides(None, 400)).carbon_grams is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[prices]\ngpu_hour = 2\n", r":2: prices without a currency"),
        ('[prices]\ncurrency = "EUR"\ngpu_hour = 2\n', r":3: prices without a date"),
        (_TOP + "gpu_hour = -1\n", r":4: gpu_hour must be 0 or more, not -1"),
        (_TOP + "gpu_hour = nan\n", r":4: gpu_hour must be 0 or more, not nan"),
        (_TOP + 'gpu_hour = "2"\n', r":4: gpu_hour must be a number"),
        (_TOP + "gpu_our = 2\n", r":4: unknown key 'gpu_our' in \[prices\]"),
        ('[prices]\ncurrency = "EUR"\ndate = "March"\n', r":3: date must be a day"),
        ("[prices]\ncurrency = 7\n", r":2: currency must be a text"),
        (_TOP + "[prices.rate]\ngpu_hour = 2\n", r"prices.rate must be an array of tables"),
        (_TOP + _RATES + '[[prices.rate]]\nmodle = "T4"\ngpu_hour = 1\n', r":24: unknown key 'modle'"),
        (_TOP + _RATES + '[[prices.rate]]\nmodel = "T4"\n', r":24: a rate without gpu_hour"),
        (_TOP + _RATES + '[[prices.rate]]\ngpu_hour = 1\nspot = "yes"\n', r":25: spot must be true or false"),
        ("[carbon]\nintensity = -1\n", r":2: intensity must be 0 or more"),
    ],
)
def test_a_mistake_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    """The line is that of the key, in its own table of several."""
    with pytest.raises(SettingsError, match=message):
        prices(tmp_path, text)
