"""Energy, cost and carbon, and what held the clocks, in every format."""

import json
from dataclasses import replace
from typing import Any

import numpy as np

from gpureport.analysis.cost.cost import calculate_cost
from gpureport.analysis.cost.prices import Prices, Rate
from gpureport.report import build
from gpureport.report.formats import html
from gpureport.report.formats.json import analysis_json
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.report.sections.merging import shared_facts
from gpureport.report.wording.display import GAP
from gpureport.testing import Recording, analyze, recording, steps

_HOUR = 3600


def hour(**series: Any) -> Recording:  # noqa: ANN401 - as the builder takes them
    """Return an hour of one GPU at 300 W, a tenth of it idle."""
    rows = _HOUR + 1
    return recording(util=steps((98, 1800), (0, 360), (98, 1441)), power=np.full(rows, 300.0), **series)


def report(run: Recording, prices: Prices | None = None, *, copies: int = 1) -> Report:
    """Return the report of a run, or of several like it."""
    analysis = analyze(run)
    analysis = replace(analysis, cost=calculate_cost(analysis, prices or Prices()))
    return build([(run, analysis)] * copies, title=None, command="", gpu_hour_price=None, version="0")


def facts(content: Report) -> dict[str, str]:
    """Return the statements of the only run."""
    (entry,) = content.spending
    return {fact.name: fact.text.replace(GAP, " ") for fact in entry.facts}


PRICES = Prices(
    currency="EUR",
    date="2026-03-01",
    rates=(Rate(amount=2.5, source="gpureport.toml:4"),),
    carbon_intensity=400,
    carbon_source="the grid",
)


def test_one_line_says_how_to_state_a_price() -> None:
    """Without one nothing else is said of money."""
    said = facts(report(hour()))
    assert said["Cost"] == "no price is stated: give --gpu-hour-price PRICE, or [prices] in gpureport.toml"
    assert set(said) == {"Energy", "Cost"}
    assert shared_facts.list_facts(report(hour(), copies=3).spending) == report(hour()).spending[0].facts


def test_cost_energy_and_carbon_are_said_with_where_they_come_from() -> None:
    """2.50 for an hour, a tenth of it idle; 300 Wh at 400 g/kWh."""
    assert facts(report(hour(), PRICES)) == {
        "Energy": "300 Wh by the integral of sampled power",
        "Cost": "€2.50 for 1.00 GPU-h, idle: €0.25 (idle gaps, idle samples outside the job, and unused GPUs)",
        "GPU-hour": "€2.50 (gpureport.toml:4); prices of 2026-03-01",
        "Carbon": (
            "120 g of CO2 equivalent for the GPUs alone, by the integral of sampled power, at 400 g/kWh (the grid)"
        ),
    }


def test_both_energies_are_shown() -> None:
    """What the driver counted stands beside the integral, in the list and for each GPU."""
    content = report(hour(energy=250.0 * np.arange(_HOUR + 1)))
    assert facts(content)["Energy"] == "300 Wh by the integral of sampled power; 250 Wh by the driver's counter"
    assert content.gpus[0].table.columns[-1] == "Energy counted"
    assert "Energy counted" not in report(hour()).gpus[0].table.columns


def test_gpus_of_different_price_are_named() -> None:
    """A rate that fits one of two GPUs leaves the other without a price, and the sum unknown."""
    run = recording(util=np.full((2, 600), 98.0))
    devices = (run.run.devices[0], replace(run.run.devices[1], model="Tesla T4"))
    mixed = replace(run, run=replace(run.run, devices=devices))
    said = facts(report(mixed, replace(PRICES, rates=(Rate(amount=2.5, source="x", model="A100"),))))
    assert said["GPU-hour"] == "€2.50 for GPU 0 (x); no price for GPU 1; prices of 2026-03-01"
    assert said["Cost"].startswith("not known")


def test_a_finding_says_what_it_cost() -> None:
    """Its card holds the amount, and so does the analysis."""
    content = report(hour(), PRICES)
    (card,) = [card for card in content.findings if card.kind == "idle_gap"]
    assert card.lost.replace(GAP, " ") == "up to 6.00 GPU-min (10% of the run, costs €0.25)"
    assert card.lost_cost is not None
    assert round(card.lost_cost, 2) == 0.25


def test_every_format_shows_cost_and_clocks() -> None:
    """Text, Markdown and HTML hold both sections; a reason without a name stays hex."""
    bits = steps((1, 60), (0, _HOUR - 59))
    clock = np.where(bits > 0, 1120.0, 1400.0)
    content = report(
        hour(clock=clock, hw_thermal_slowdown=bits, hw_slowdown=bits * 0, unknown_bits=bits * 2048), PRICES
    )
    (clocks,) = content.clocks
    assert [row.head.text for row in clocks.table.rows] == ["hw thermal slowdown, GPU 0", "0x800, GPU 0"]
    assert "Recorded and never seen: hw slowdown." in clocks.table.note
    assert clocks.table.columns == (
        "Reason",
        "Kind",
        "Busy samples",
        "Median clock",
        "Unthrottled clock",
        "Busy time lost",
    )
    assert {len(row.cells) for row in clocks.table.rows} == {len(clocks.table.numeric)} == {5}
    assert "Not recorded: the driver's own counters of each reason." in clocks.table.note
    assert "by the driver" not in clocks.table.note
    for page in (terminal.render(content), html.render(content)):
        flat = " ".join(page.upper().replace(GAP.upper(), " ").replace("&NBSP;", " ").split())
        assert "WHAT HELD THE CLOCKS" in flat
        assert "0X800" in flat
        assert "€2.50 FOR 1.00 GPU-H" in flat


def test_a_run_without_reasons_has_no_such_section() -> None:
    """Nothing was recorded, which is said where kinds could not be judged."""
    content = report(hour())
    assert content.clocks == ()
    assert "WHAT HELD THE CLOCKS" not in terminal.render(content)


def test_the_json_holds_ledger_counter_and_cost() -> None:
    """As values, in base units, with the unit in the name."""
    run = hour(sw_thermal_slowdown_seconds_total=np.arange(_HOUR + 1) * 0.01, energy=300.0 * np.arange(_HOUR + 1))
    analysis = analyze(run)
    priced = replace(analysis, cost=calculate_cost(analysis, PRICES))
    (entry,) = json.loads(analysis_json.render([priced]))["runs"]
    (ledger,) = entry["throttle_ledger"]
    assert (ledger["reason"], ledger["effect"], ledger["busy_seconds"]) == ("sw_thermal_slowdown", "harmful", None)
    assert round(ledger["counted"]["seconds"], 6) == 36
    assert round(entry["statistics"]["gpu:0"]["energy_counter"]["joules"]) == 1_080_000
    assert {name: entry["cost"][name] for name in ("currency", "price", "date")} == {
        "currency": "EUR",
        "price": 2.5,
        "date": "2026-03-01",
    }
    assert (round(entry["cost"]["total"], 6), round(entry["cost"]["carbon_grams"], 6)) == (2.5, 120)
    assert [each["cost"] is None for each in entry["findings"]] == [
        each["lost_gpu_seconds"] is None for each in entry["findings"]
    ]


def test_without_prices_the_json_has_no_cost() -> None:
    """Neither the run nor a finding."""
    (entry,) = json.loads(analysis_json.render([analyze(hour())]))["runs"]
    assert "cost" not in entry
    assert all("cost" not in each for each in entry["findings"])
