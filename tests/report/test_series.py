"""Samples packed into a page, and what a browser reads back from there."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest

import gpureport
from gpureport import testing
from gpureport.cli.main import main
from gpureport.testing import Recording, analyze, build_page, finding
from tests.support.logs import SAMPLES
from tests.support.runs import run, with_run

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


def unpack_page(results: Recording | gpureport.Analysis) -> Packed:
    return unpack_text(build_page(results, "html"))


def unpack_text(page: str) -> Packed:
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
        devices.append(
            {
                metric["title"]: make_decoded(times[-1], metric, part)
                for metric, part in zip(metrics, parts, strict=True)
            }
        )
    return devices


def make_decoded(times: Floats, metric: dict[str, float], part: npt.NDArray[np.uint8]) -> Decoded:
    values = metric["offset"] + metric["step"] * part.astype(np.float64)
    values[part == 255] = np.nan
    return Decoded(times, values[0], values[len(values) // 2], values[-1])


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
    packed = unpack_page(
        testing.recording(
            util=np.clip(busy, 0, 100),
            power=90 + 5.6 * busy + random.normal(0, 8, (8, count)),
            temperature=60 + random.integers(-1, 2, (8, count)),
            clock=np.where(busy > 5, 1980.0, 1410.0),
            memory=41.5 + np.round(random.normal(0, 0.02, (8, count)), 2),
            times=np.arange(count) + random.normal(0, 0.004, count),
        )
    )
    assert packed.characters <= 333_000
    assert packed.contents["runs"][0]["bucket"] == 0


@pytest.mark.parametrize(("detail", "bucket"), [("30", 30), ("3", 0), ("full", 0), ("auto", 0)])
def test_buckets_hold_their_smallest_mean_and_largest_value(tmp_path: Path, detail: str, bucket: int) -> None:
    source, page = SAMPLES / "thermal_throttle", tmp_path / "r.html"
    with pytest.raises(SystemExit):
        main(["report", str(source), "-o", str(page), "--detail", detail])
    packed = unpack_text(page.read_text())
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
    page = json.loads(build_page(testing.recording(util=util), "json"))
    (strip,) = page["timeline"][0]["strips"]
    band = dict(unpack_page(testing.recording(util=util)).contents["runs"][0]["strips"][0]["band"])
    assert list(band) == ["low_use", "computing"]
    assert set(band["low_use"]) == {100}
    assert all(45 <= top <= 65 for top in band["computing"])
    assert len(band["computing"]) * strip["band_seconds"] == pytest.approx(899)
