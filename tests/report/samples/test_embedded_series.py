"""Samples packed into a page, and what is read back from there."""

import json
import re
import zlib
from base64 import b64decode
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpureport import testing
from gpureport.columns import FloatArray
from gpureport.metrics import METRICS
from gpureport.report import build
from gpureport.report.charts import plotted_metrics
from gpureport.report.formats import html
from gpureport.report.model.time_charts import Timeline
from gpureport.report.samples import embedded_series, quantisation, time_buckets, time_encoding
from gpureport.testing import Interval, Recording
from tests.report import examples

_PLAIN: Any = {"title": None, "command": "", "gpu_hour_price": None, "version": "0"}


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """One metric of one device as a browser gets it: smallest, mean and largest values are the same without buckets."""

    times: FloatArray
    low: FloatArray
    mean: FloatArray
    high: FloatArray


def timeline(run: Recording) -> tuple[Timeline, ...]:
    """Return the timeline of a recording without findings."""
    return build([(run, examples.analysis(run.run))], **_PLAIN).timeline


def unpacked(raw: bytes) -> list[int]:
    """Return the numbers that `time_encoding.encode_varints` wrote."""
    numbers, shift, number = [], 0, 0
    for byte in raw:
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            numbers.append(number)
            shift = number = 0
    return numbers


def decoded(found: embedded_series.EmbeddedSeries, run: int = 0) -> list[dict[str, Decoded]]:
    """Return what the page holds of each device of a run, by title, written apart from the code that packs it."""
    index = json.loads(found.index)["runs"][run]
    blobs = {blob.id: zlib.decompress(b64decode(blob.text)) for blob in found.blobs}
    times: list[FloatArray] = []
    devices = []
    for device in index["devices"]:
        raw = blobs[device["blob"]]
        own = device["origin"] + np.cumsum(unpacked(raw[: device["times"]])) * device["unit"]
        times.append(own if device["like"] is None else times[device["like"]])
        each = 3 if index["bucket"] else 1
        body = np.frombuffer(raw[device["times"] :], dtype=np.uint8).reshape(-1, each, device["count"])
        devices.append(
            {
                index["metrics"][number]["title"]: _decoded(times[-1], index["metrics"][number], part)
                for number, part in zip(device["metrics"], body, strict=True)
            }
        )
    return devices


def _decoded(times: FloatArray, metric: dict[str, float], part: quantisation.Codes) -> Decoded:
    values = metric["offset"] + metric["step"] * part.astype(np.float64)
    values[part == quantisation.NO_VALUE] = np.nan
    return Decoded(times=times, low=values[0], mean=values[len(values) // 2], high=values[-1])


def embedded(run: Recording, budget: int = embedded_series.BUDGET) -> embedded_series.EmbeddedSeries:
    """Return what a page holds of a recording."""
    found = embedded_series.embed_series(timeline(run), budget)
    assert found is not None
    return found


@pytest.mark.parametrize(("detail", "bucket"), [(0, 0), (30, 30), (7, 7), (3, 0), (None, 3600)])
def test_detail_goes_before_the_budget(detail: int | None, bucket: int) -> None:
    """What was asked for stays however large, but for buckets of too few samples; else the smallest that fits."""
    found = embedded_series.embed_series(timeline(testing.recording(util=np.arange(600) % 97)), 1, detail)
    assert found is not None
    assert [run["bucket"] for run in json.loads(found.index)["runs"]] == [bucket]
    assert ("as asked" in found.note) == bool(detail and bucket)
    assert ("more than" in found.note) == (detail is None)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=1, max_size=300), st.sampled_from([1e-3, 0.1, 1.0])
)
def test_codes_are_near_their_values(values: list[float], grid: float) -> None:
    """No value is off by more than 1/508 of the range, and none is lost or made up."""
    array = np.array(values)
    found = quantisation.fit_scale([array], grid)
    if np.isnan(array).all():
        assert found is None
        return
    assert found is not None
    back = found.decode(found.encode(array))
    assert (np.isnan(back) == np.isnan(array)).all()
    span = np.nanmax(array) - np.nanmin(array)
    assert np.nanmax(np.abs(back - array)) <= span / 508 + 0.02 * grid + 1e-9 * np.nanmax(np.abs(array))


@given(st.lists(st.integers(-127, 127), min_size=1), st.integers(1, 1000))
def test_whole_numbers_are_exact(values: list[int], step: int) -> None:
    """Up to 255 even steps are told apart, whatever a step is."""
    array = np.array(values, dtype=np.float64) * step
    found = quantisation.fit_scale([array[:1], array], 1.0)
    assert found is not None
    assert found.exact
    assert (found.decode(found.encode(array)) == array).all()


def test_clocks_are_exact_though_their_range_is_wide() -> None:
    """They move by 15 MHz, so 1800 MHz are 120 steps."""
    clocks = np.array([210.0, 1980.0, 1410.0, 1395.0]) * 1e6
    found = quantisation.fit_scale([clocks], 1e6)
    assert found == quantisation.CodeScale(offset=210e6, step=15e6, exact=True)


def test_too_many_steps_are_rounded() -> None:
    """256 values have no code each, and the scale says so."""
    values = np.arange(256.0)
    found = quantisation.fit_scale([values], 1.0)
    assert found is not None
    assert not found.exact
    assert found.error == pytest.approx(255 / 508)


@given(st.lists(st.integers(0, 2**50)))
def test_numbers_come_back(numbers: list[int]) -> None:
    """Of any size, in as many bytes as they need."""
    assert unpacked(time_encoding.encode_varints(np.array(numbers, dtype=np.int64))) == numbers


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=200), st.integers(1, 10**6))
def test_errors_of_times_do_not_add_up(times: list[int], unit: int) -> None:
    """Every time is within half a unit, the last as well as the first."""
    array = np.array(sorted(times))
    back = array[0] + np.cumsum(time_encoding.time_deltas(array, unit)) * unit
    assert np.abs(back - array).max() <= unit / 2 + 1


def test_every_sample_is_there() -> None:
    """Each GPU's values come back at their times, the host's too; what was not recorded stays absent."""
    random = np.random.default_rng(1)
    util = random.integers(0, 101, (2, 500)).astype(float)
    util[0, 100:140] = np.nan
    power = random.uniform(90, 700, (2, 500))
    times = np.cumsum(random.uniform(0.9, 1.1, 500))
    times[300:] += 100
    cpu = random.integers(0, 101, 400).astype(float)
    run = testing.recording(util=util, power=power, times=times, cpu=cpu)
    first, second, host = decoded(embedded(run))
    for number, gpu in enumerate((first, second)):
        assert gpu["GPU utilisation"].mean == pytest.approx(util[number], abs=1e-6, nan_ok=True)
        assert np.abs(gpu["Power"].mean - power[number]).max() <= np.ptp(power) / 508 * 1.001
        assert gpu["Power"].times == pytest.approx(times - times[0], abs=0.051)
    assert host["CPU utilisation"].mean == pytest.approx(cpu, abs=1e-6)
    assert host["CPU utilisation"].times[-1] == pytest.approx(399 - times[0], abs=0.051)


def test_the_note_counts_values_and_names_what_is_rounded() -> None:
    """Whole per cents are exact, power is not."""
    run = testing.recording(util=np.arange(100.0), power=np.linspace(100, 608, 100))
    note = embedded(run).note.replace("\N{NO-BREAK SPACE}", " ")
    assert "every sample: 200 values, rounded for the charts: Power (by up to 1 W)" in note


def test_above_the_budget_buckets_are_kept_and_named() -> None:
    """Smallest, mean and largest of every 5 s; the page says that it is not every sample."""
    values = np.random.default_rng(2).integers(0, 101, 4000).astype(float)
    full, small = embedded(testing.recording(util=values)), embedded(testing.recording(util=values), 3400)
    size = [sum(len(blob.text) for blob in found.blobs) for found in (full, small)]
    assert size[1] <= 3400 < size[0]
    assert "smallest, mean and largest value of every 5\N{NO-BREAK SPACE}s" in small.note
    assert "every sample" not in small.note
    (gpu,) = decoded(small)
    groups = values.reshape(-1, 5)
    found = gpu["GPU utilisation"]
    for got, expected in ((found.low, groups.min(1)), (found.mean, groups.mean(1)), (found.high, groups.max(1))):
        assert np.abs(got - expected).max() <= 100 / 508 + 1e-6
    assert found.times == pytest.approx(np.arange(800) * 5 + 2.5, abs=0.5)


def test_buckets_without_a_value_are_absent() -> None:
    """A bucket of nulls is no zero, and one without samples is not there at all."""
    times = np.array([0, 1, 5, 6, 20]) * 1_000_000
    found = time_buckets.group_into_buckets(times, 0, 5)
    low, mean, high = found.aggregate(np.array([1.0, 3.0, np.nan, np.nan, 7.0]))
    assert (found.times / 1e6).tolist() == [2.5, 7.5, 22.5]
    assert low == pytest.approx([1, np.nan, 7], nan_ok=True)
    assert mean == pytest.approx([2, np.nan, 7], nan_ok=True)
    assert high == pytest.approx([3, np.nan, 7], nan_ok=True)


def test_a_day_of_eight_gpus_fits() -> None:
    """24 h at 1 Hz with eight metrics, noise as genuine logs have it, takes less than 4 MB."""
    random = np.random.default_rng(3)
    count = 86_400
    busy = np.where(np.arange(count) % 12 < 3, 0.0, 97.0) + random.integers(-3, 4, (8, count))
    run = testing.recording(
        util=np.clip(busy, 0, 100),
        power=90 + 5.6 * busy + random.normal(0, 8, (8, count)),
        temperature=60 + random.integers(-1, 2, (8, count)),
        clock=np.where(busy > 5, 1980.0, 1410.0),
        memory=41.5 + np.round(random.normal(0, 0.02, (8, count)), 2),
        memory_controller=np.clip(np.round(busy * 0.45), 0, 100),
        received=np.round(np.abs(random.normal(2, 0.3, (8, count))), 1),
        sent=np.round(np.abs(random.normal(1, 0.3, (8, count))), 1),
        times=np.arange(count) + random.normal(0, 0.004, count),
    )
    found = embedded(run)
    assert sum(len(blob.text) for blob in found.blobs) <= 4_000_000
    assert "every sample: 5,529,600 values" in found.note


def test_marks_and_gaps_are_those_of_the_strips() -> None:
    """The script draws findings where the figures do."""
    run = testing.recording(util=np.full((2, 600), 90.0))
    finding = examples.idle_gap("gpu:1", 0, 30)
    moved = Interval(testing.at(100), testing.at(130))
    analysis = examples.analysis(run.run, findings=(replace(finding, intervals=(moved,)),))
    found = embedded_series.embed_series(build([(run, analysis)], **_PLAIN).timeline)
    assert found is not None
    strips = json.loads(found.index)["runs"][0]["strips"]
    assert [strip["marks"] for strip in strips] == [[], [["F1", "note", 100.0, 130.0, 0]]]


def test_nothing_to_look_at_is_not_embedded() -> None:
    """A single sample has no length."""
    assert embedded_series.embed_series(timeline(testing.recording(util=[50.0]))) is None


def test_names_cannot_end_the_element() -> None:
    """The index is text in a script element, where only < could do harm."""
    info = examples.run("</script><b>", gpus=1)
    found = embedded_series.embed_series(build([examples.pair(info)], **_PLAIN).timeline)
    assert found is not None
    assert "<" not in found.index
    assert json.loads(found.index)["runs"][0]["label"] == "</script><b>"


def test_same_samples_same_bytes() -> None:
    """Threads that deflate change nothing, and the page holds the blobs in the order of devices."""
    run = testing.recording(util=np.random.default_rng(4).uniform(0, 100, (8, 2000)))
    assert embedded(run) == embedded(run)
    page = html.render(build([(run, examples.analysis(run.run))], **_PLAIN))
    assert re.findall(r'octet-stream" id="([^"]+)"', page) == [f"run0-series{number}" for number in range(8)]


def test_every_plotted_metric_exists_and_has_a_unit() -> None:
    """The table names columns of METRICS, each once."""
    names = [entry.metric for entry in plotted_metrics.PLOTTED_METRICS]
    assert set(names) <= {metric.name for metric in METRICS}
    assert len(names) == len(set(names))
    assert all(entry.unit.factor > 0 for entry in plotted_metrics.PLOTTED_METRICS)


@pytest.mark.parametrize(
    ("unit", "low", "high", "expected"),
    [
        ("1", 3, 60, (0, 100)),
        ("1", 0, 140, (0, 140)),
        ("W", 90, 612, (0, 700)),
        ("Hz", 1410, 1980, (1400, 2000)),
        ("Cel", 65, 65, (60, 70)),
        ("By", 0, 0, (0, 0.2)),
    ],
)
def test_axes_end_at_round_values(unit: str, low: float, high: float, expected: tuple[float, float]) -> None:
    """Amounts begin at 0, shares reach 100%, and an axis is never empty."""
    assert plotted_metrics.round_axis_ends(plotted_metrics.DISPLAY_UNITS[unit], low, high) == pytest.approx(expected)


def test_values_too_large_for_their_grid_are_packed_by_their_range() -> None:
    """A recorder may write any number; a grid cannot tell the neighbours of such values apart."""
    found = quantisation.fit_scale([np.array([0.0, 4e18, 1e15])], 0.01)
    assert found is not None
    assert (found.offset, found.step * quantisation.HIGHEST_CODE) == (0.0, 4e18)
