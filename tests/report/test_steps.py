"""Pages of several runs: steps, repetitions, groups, many comparisons, quality, and what single runs may say."""

import json
from itertools import pairwise
from typing import Any

import pytest

import gpureport
from gpureport.testing import build_page
from tests.support import runs
from tests.support.runs import page_of, plain, run, step, strings, with_run

VERDICTS = {"better", "worse", "no clear change", "not enough data", "unconfirmed (one run each)", "differs"}


def pairs_of(page: Any) -> list[Any]:
    """Return the blocks of one step against another: those with the table of verdicts."""
    tables = [
        block
        for block in page["comparison"]["reference"]
        if "Verdict" in block.get("table", {"columns": ()})["columns"]
    ]
    return [block for block in tables if "Before" in block["table"]["columns"]]


def gains_of(page: Any) -> list[Any]:
    """Return the rows of the table of gains; none where there is none."""
    tables = [block["table"] for block in page["comparison"]["reference"] if block.get("anchor") == "gains"]
    return [row for table in tables for row in table["rows"]]


def test_a_page_says_of_each_step_what_the_comparison_found() -> None:
    analyses = runs.recorded_steps()
    comparison = gpureport.compare(analyses)
    page = page_of(*analyses)
    labels = [each.label for each in comparison.steps]
    links = pairs_of(page)
    assert [link["title"] for link in links] == [f"{a} to {b}" for a, b in pairwise(labels)]
    checked = 0
    for link, (base, last) in zip(links, pairwise(labels), strict=True):
        columns = link["table"]["columns"][1:]
        verdict, difference = columns.index("Verdict"), columns.index("Difference")
        rows = {row["head"]["text"]: row["cells"] for row in link["table"]["rows"]}
        judged = comparison.judged(base, last)
        assert judged is not None
        whole = next(cells for name, cells in rows.items() if "GPU time per" in name)
        assert whole[verdict]["text"] == judged.verdict.value
        assert whole[difference]["value"] == pytest.approx(judged.difference, rel=1e-4)
        for cells in rows.values():
            assert cells[verdict]["text"] in VERDICTS | {""}
            checked += 1
    assert checked >= 4 * len(links)


def test_charts_have_an_interval_a_step_and_a_dot_a_run() -> None:
    page = page_of(*runs.recorded_steps())
    for chart in page["comparison"]["charts"]:
        assert len(chart["rows"]) == 5, chart["title"]
        for row in chart["rows"]:
            assert row["interval"][0] <= row["value"] <= row["interval"][1], row
            dots = [dot["value"] for dot in row["runs"]]
            assert len(dots) == 3
            assert min(dots) <= row["value"] <= max(dots), row
            assert not chart["share"] or (row["interval"][0] >= 0 and row["interval"][1] <= 100), row
    single = page_of(*runs.recorded_steps(repetitions=1))
    assert {len(row["runs"]) for chart in single["comparison"]["charts"] for row in chart["rows"]} <= {0, 1}


def test_a_tile_shows_both_ends_and_the_change_with_its_interval() -> None:
    page = page_of(*runs.recorded_steps())
    first, *_, last = page["steps"]["rows"]
    columns = {name.partition(",")[0]: place for place, name in enumerate(page["steps"]["columns"][1:])}
    for tile in page["tiles"]:
        place = columns.get(tile["label"].partition(" of")[0])
        if place is not None:
            assert (tile["before"], tile["value"]) == (first["cells"][place]["text"], last["cells"][place]["text"])
            assert tile["change"]["arrow"] in {"up", "down"}
    assert sum(tile["label"].partition(" of")[0] in columns for tile in page["tiles"]) >= 2


def test_bars_of_steps_add_up_to_gpu_time_per_work() -> None:
    page = page_of(*runs.recorded_steps())
    (chart,) = [each for each in page["comparison"]["charts"] if each["title"].startswith("GPU time per")]
    bars = page["spent"]["bars"]
    assert [bar["label"] for bar in bars] == [row["label"].partition(" (")[0] for row in chart["rows"]]
    for bar, row in zip(bars, chart["rows"], strict=True):
        assert sum(part["value"] for part in bar["segments"]) == pytest.approx(row["value"], rel=1e-3)
        assert bar["interval"] == pytest.approx(row["interval"], rel=1e-3)
    keys = [part["key"] for part in page["spent"]["legend"]]
    assert {part["key"] for bar in bars for part in bar["segments"]} <= set(keys)


def test_bars_and_use_over_time_are_those_of_the_run() -> None:
    for name in ("thermal_throttle", "healthy", "faulty_hardware", "unused_gpu"):
        page = runs.sample_page(name)
        each = {bar["label"]: {part["key"]: part["ratio"] for part in bar["parts"]} for bar in page["gpu_time"]}
        for bar in page["spent"]["bars"]:
            ratios = each.get(bar["label"], {})
            whole = sum(part["value"] for part in bar["segments"])
            shares = [(part["value"] / whole, ratios[part["key"]]) for part in bar["segments"] if ratios]
            assert [pair for pair in shares if abs(pair[0] - pair[1]) > 0.02] == [], (name, bar["label"])
    for name in ("thermal_throttle", "idle_gap", "startup_idle"):
        page = runs.sample_page(name)
        table = page["gpus"][0]["table"]
        place = table["columns"].index("Utilisation mean") - 1
        means = {row["head"]["text"]: row["cells"][place]["value"] for row in table["rows"]}
        for strip in page["timeline"][0]["strips"]:
            known = [value for value in strip["mean"] if value is not None]
            assert sum(known) / len(known) == pytest.approx(means[strip["label"]], abs=0.01), (name, strip["label"])


def test_single_runs_are_called_neither_better_nor_worse() -> None:
    for page in (page_of(*step("a"), *step("b", 2000)), page_of(*runs.recorded_steps(repetitions=1))):
        changes = [cell["change"] for row in page["steps"]["rows"] for cell in row["cells"]]
        changes += [tile["change"] for tile in page["tiles"]]
        found = {change["verdict"] for change in changes if change}
        assert found & {"better", "worse"} == set()
        assert "unconfirmed (one run each)" in found


def test_a_faster_step_that_trains_worse_is_flagged_beside_its_speed() -> None:
    page = page_of(*runs.trained("a", 0.79, 1000), *runs.trained("b", 0.61, 2000))
    assert page["steps"]["columns"][2] == "val_accuracy at the end"
    assert [row["cells"][1]["text"] for row in page["steps"]["rows"]] == ["0.78", "0.60"]
    assert [row["cells"][1]["flagged"] for row in page["steps"]["rows"]] == [False, True]
    (link,) = pairs_of(page)
    rows = {row["head"]["text"]: [plain(cell["text"]) for cell in row["cells"]] for row in link["table"]["rows"]}
    assert rows["val_accuracy at the end"] == ["0.78", "0.60", "−0.180", "worse"]
    same = page_of(*runs.trained("a", 0.79, 1000), *runs.trained("b", 0.79, 2000))
    assert "val_accuracy" not in " ".join([same["verdict"]["sentence"], *same["verdict"]["details"]])


def test_a_chain_has_gains_adjusted_for_many_comparisons() -> None:
    page = page_of(*runs.recorded_steps())
    changes = [cell["change"] for row in gains_of(page) for cell in row["cells"] if cell["change"]]
    counts = {change["comparisons"] for change in changes} - {None}
    assert counts
    count = counts.pop()
    for form in ("txt", "html", "md"):
        assert f"one of {count} comparisons" in plain(build_page(runs.recorded_steps(), form, full=True)), form
    page = page_of(*runs.recorded_steps())
    rows = gains_of(page)
    labels = [row["head"]["text"] for row in rows]
    assert labels[:5] == list(runs.STEPS)
    assert {cell["change"]["verdict"] for cell in rows[1]["cells"]} == {"better"}


def test_groups_have_a_best_one_and_no_gains() -> None:
    comparison = runs.groups(1000, 3000, 2000)
    page = json.loads(build_page(comparison, "json"))
    assert gains_of(page) == []
    assert page["comparison"]["grouped"]
    assert page["verdict"]["code"] == "best_group"
    assert page["spent"] is not None
    assert len(page["steps"]["rows"]) == 3
    assert "batch 1" in page["verdict"]["sentence"].replace("=", " ")
    two = runs.groups(1000, 3000, 2000, 2500, by="param:batch,param:workers", workers=["2", "2", "8", "8"])
    sections = json.loads(build_page(two, "json"))["comparison"]["study"]
    assert any("workers" in text for text in strings(sections))


def test_costs_units_and_names_suit_the_steps() -> None:
    settings = {"prices": {"gpu_hour": 2.5, "currency": "USD", "date": "2026-03-01"}}
    for work, priced in ((1000.0, True), (1000.0, False), (None, True)):
        made = [*step("a", work, runs=2), *step("b", work and work * 2, runs=2)]
        page = page_of(*(gpureport.analyze(one, settings=settings if priced else None) for one in made))
        costs = [name for name in page["steps"]["columns"] if name.startswith("Cost")]
        assert bool(costs) == bool(work and priced), (work, priced)
    for work, unit in ((1000.0, "GPU-s"), (10.0, "GPU-min"), (0.1, "GPU-h")):
        page = page_of(*step("a", work), *step("b", work))
        (title,) = [name for name in page["steps"]["columns"] if name.startswith("GPU time per")]
        cells = page["steps"]["rows"][0]["cells"]
        place = page["steps"]["columns"].index(title) - 1
        assert 0.1 <= float(cells[place]["text"].replace(",", "")) < 10_000, (work, unit, title)
    made = [with_run(run(f"{'x' * 200}{place}"), step=f"{'y' * 200}{place}") for place in range(2)]
    page = page_of(*made)
    labels = [bar["label"] for bar in page["gpu_time"]]
    assert len(set(labels)) == 2
    assert max(map(len, labels)) < 70
