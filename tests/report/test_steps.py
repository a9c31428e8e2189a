"""Pages of several runs: steps, repetitions, groups, quality; and samples packed into a page."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import gpureport
from gpureport import testing
from gpureport.cli.main import main
from gpureport.testing import Recording, Verdict, analyze, build_page, finding
from tests.support import runs
from tests.support.logs import SAMPLES
from tests.support.runs import page_of, plain, run, step, with_run

VERDICTS = {each.value for each in Verdict}


def pairs_of(page: Any) -> list[Any]:
    """Return the blocks of one step against another: those with the table of verdicts."""
    blocks = [block for block in page["comparison"]["reference"] if "table" in block]
    return [block for block in blocks if {"Verdict", "Before"} <= {*block["table"]["columns"]}]


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
    mixed = with_run(*step("b"), work=testing.Work(amount=9.0, unit="steps"))
    assert "different units" in page_of(*step("a"), mixed)["tiles"][0]["context"]


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


def test_single_runs_are_called_neither_and_a_step_that_trains_worse_is_flagged() -> None:
    for page in (page_of(*step("a"), *step("b", 2000)), page_of(*runs.recorded_steps(repetitions=1))):
        changes = [cell["change"] for row in page["steps"]["rows"] for cell in row["cells"]]
        changes += [tile["change"] for tile in page["tiles"]]
        found = {change["verdict"] for change in changes if change}
        assert found & {"better", "worse"} == set()
        assert "unconfirmed (one run each)" in found
    page = page_of(*runs.trained("a", 0.79, 1000), *runs.trained("b", 0.61, 2000))
    assert page["steps"]["columns"][2] == "val_accuracy, mean of the last values"
    assert [row["cells"][1]["text"] for row in page["steps"]["rows"]] == ["0.78", "0.60"]
    assert [row["cells"][1]["flagged"] for row in page["steps"]["rows"]] == [False, True]
    (link,) = pairs_of(page)
    rows = {row["head"]["text"]: [plain(cell["text"]) for cell in row["cells"]] for row in link["table"]["rows"]}
    assert rows["val_accuracy, mean of the last values"] == ["0.78", "0.60", "−0.180", "worse"]


def test_groups_have_a_best_one_and_no_gains() -> None:
    page = json.loads(build_page(runs.groups(1000, 3000, 2000), "json"))
    gains = [block for block in page["comparison"]["reference"] if block.get("anchor") == "gains"]
    assert [row for block in gains for row in block["table"]["rows"]] == []
    assert (page["comparison"]["grouped"], page["spent"] is None, len(page["steps"]["rows"])) == ("lr", False, 3)


def test_costs_units_and_names_suit_the_steps() -> None:
    settings = {"prices": {"gpu_hour": 2.5, "currency": "USD", "date": "2026-03-01"}}
    for work, priced in ((1000.0, True), (1000.0, False), (None, True)):
        made = [*step("a", work, runs=2), *step("b", work and work * 2, runs=2)]
        page = page_of(*(gpureport.analyze(one, settings=settings if priced else None) for one in made))
        costs = [name for name in page["steps"]["columns"] if name.startswith("Cost")]
        assert bool(costs) == bool(work and priced), (work, priced)
    for work in (1000.0, 10.0, 0.1):
        steps = page_of(*step("a", work), *step("b", work))["steps"]
        (place,) = [at for at, name in enumerate(steps["columns"], -1) if name.startswith("GPU time per")]
        assert 0.1 <= float(steps["rows"][0]["cells"][place]["text"].replace(",", "")) < 10_000, work
    made = [with_run(run(f"{'x' * 200}{place}"), step=f"{'y' * 200}{place}") for place in range(2)]
    page = page_of(*made)
    labels = [bar["label"] for bar in page["gpu_time"]]
    assert len(set(labels)) == 2
    assert max(map(len, labels)) < 70


Floats = npt.NDArray[np.float64]


class Decoded(NamedTuple):
    """One metric of one device: smallest, mean and largest values, which are the same without buckets."""

    times: Floats
    low: Floats
    mean: Floats
    high: Floats


class Packed(NamedTuple):
    contents: dict[str, Any]
    blobs: dict[str, bytes]
    characters: int


def unpack_page(results: Recording | gpureport.Analysis | str) -> Packed:
    page = results if isinstance(results, str) else build_page(results, "html")
    (index,) = re.findall(r'<script type="application/json" id="series">(.*?)</script>', page, re.DOTALL)
    blobs = dict(re.findall(r'octet-stream" id="([^"]+)">(.*?)</script>', page, re.DOTALL))
    raw = {name: zlib.decompress(b64decode(text)) for name, text in blobs.items()}
    return Packed(json.loads(index), raw, sum(map(len, blobs.values())))


def numbers(raw: bytes) -> list[int]:
    found, shift, number = [], 0, 0
    for byte in raw:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(number)
            shift = number = 0
    return found


def decode(packed: Packed) -> list[dict[str, Decoded]]:
    """Return the metrics of each device by title, read apart from the code that packs them."""
    (index,) = packed.contents["runs"]
    times: list[Floats] = []
    devices = []
    for device in index["devices"]:
        raw = packed.blobs[device["blob"]]
        own = device["origin"] + np.cumsum(numbers(raw[: device["times"]])) * device["unit"]
        times.append(own if device["like"] is None else times[device["like"]])
        body = np.frombuffer(raw[device["times"] :], dtype=np.uint8)
        parts = body.reshape(-1, 3 if index["bucket"] else 1, device["count"])
        metrics = [index["metrics"][number] for number in device["metrics"]]
        found = {}
        for metric, part in zip(metrics, parts, strict=True):
            values = metric["offset"] + metric["step"] * part.astype(np.float64)
            values[part == 255] = np.nan
            found[metric["title"]] = Decoded(times[-1], values[0], values[len(values) // 2], values[-1])
        devices.append(found)
    return devices


def test_every_sample_is_there() -> None:
    """Whole per cents and clocks are exact, power is within 1/508 of its range, absent values stay absent."""
    random = np.random.default_rng(1)
    util = random.integers(0, 101, (2, 500)).astype(float)
    util[0, 100:140] = np.nan
    power = random.uniform(90, 700, (2, 500))
    clock = random.choice([210.0, 1980.0, 1410.0, 1395.0], (2, 500))
    times = np.cumsum(random.uniform(0.9, 1.1, 500))
    times[300:] += 100
    cpu = random.integers(0, 101, 400).astype(float)
    packed = unpack_page(testing.recording(util=util, power=power, clock=clock, times=times, cpu=cpu))
    first, second, host = decode(packed)
    for number, gpu in enumerate((first, second)):
        assert gpu["GPU utilisation"].mean == pytest.approx(util[number], abs=1e-6, nan_ok=True)
        assert gpu["SM clock"].mean == pytest.approx(clock[number], abs=1e-6)
        assert np.abs(gpu["Power"].mean - power[number]).max() <= np.ptp(power) / 508 * 1.001
        assert gpu["Power"].times == pytest.approx(times - times[0], abs=0.051)
    assert host["CPU utilisation"].mean == pytest.approx(cpu, abs=1e-6)
    assert host["CPU utilisation"].times[-1] == pytest.approx(399 - times[0], abs=0.051)


def test_two_hours_of_eight_gpus_take_a_third_of_a_megabyte() -> None:
    random = np.random.default_rng(3)
    count = 7_200
    busy = np.where(np.arange(count) % 12 < 3, 0.0, 97.0) + random.integers(-3, 4, (8, count))
    made = testing.recording(
        util=np.clip(busy, 0, 100),
        power=90 + 5.6 * busy + random.normal(0, 8, (8, count)),
        temperature=60 + random.integers(-1, 2, (8, count)),
        clock=np.where(busy > 5, 1980.0, 1410.0),
        memory=41.5 + np.round(random.normal(0, 0.02, (8, count)), 2),
        times=np.arange(count) + random.normal(0, 0.004, count),
    )
    packed = unpack_page(made)
    assert packed.characters <= 333_000
    assert packed.contents["runs"][0]["bucket"] == 0


@pytest.mark.parametrize(("detail", "bucket"), [("30", 30), ("3", 0), ("full", 0), ("auto", 0)])
def test_buckets_hold_their_smallest_mean_and_largest_value(tmp_path: Path, detail: str, bucket: int) -> None:
    source, page = SAMPLES / "thermal_throttle", tmp_path / "r.html"
    with pytest.raises(SystemExit):
        main(["report", str(source), "-o", str(page), "--detail", detail])
    packed = unpack_page(page.read_text())
    assert packed.contents["runs"][0]["bucket"] == bucket
    (recording,) = gpureport.read(source)
    rows = [row for row in recording.series.to_pylist() if row["device"] == "gpu:2"]
    power = decode(packed)[2]["Power"]
    groups: dict[int, list[float]] = {}
    for row in rows:
        seconds = (row["timestamp"] - recording.series["timestamp"][0].as_py()).total_seconds()
        groups.setdefault(int(seconds // bucket) if bucket else len(groups), []).append(row["gpu_power_watts"])
    wanted = [(min(each), sum(each) / len(each), max(each)) for each in groups.values()]
    assert len(power.mean) == len(wanted)
    found = np.array(list(zip(power.low, power.mean, power.high, strict=True)))
    assert np.abs(found - np.array(wanted)).max() <= 1.05


def test_marks_are_those_of_the_findings_and_names_cannot_end_the_element() -> None:
    made = analyze(with_run(run(), name="</script><b>"))
    page = replace(made, findings=(finding("idle_gap", (100, 130), devices=("gpu:1",), lost=30.0),))
    index = unpack_page(page).contents
    assert [strip["marks"] for strip in index["runs"][0]["strips"]] == [[], [["F1", "note", 100.0, 130.0, 0]]]
    assert index["runs"][0]["label"] == "</script><b>"


def test_classes_of_a_column_are_stacked() -> None:
    """A steady 55% is two layers that fill each column, and no pieces side by side."""
    util = 55 + np.random.default_rng(5).integers(-2, 3, (1, 900)).astype(float)
    made = testing.recording(util=util)
    (strip,) = page_of(made)["timeline"][0]["strips"]
    band = dict(unpack_page(made).contents["runs"][0]["strips"][0]["band"])
    assert list(band) == ["low_use", "computing"]
    assert set(band["low_use"]) == {100}
    assert all(45 <= top <= 65 for top in band["computing"])
    assert len(band["computing"]) * strip["band_seconds"] == pytest.approx(899)
