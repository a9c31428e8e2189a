"""Columns, GPUs, quantities and rates."""

import re
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpureport
from gpureport import columns, number_format
from gpureport.metrics import find_gpu
from gpureport.parsing import parse_quantity, split_numbers
from gpureport.rates import (
    CountedWork,
    SamplingRate,
    SlowStretch,
    count_by_rates,
    count_by_steps,
    distances_inside,
    measure_sampling_rate,
)


def test_a_column_of_one_value_is_told_from_one_with_another() -> None:
    for kind in (pa.float32(), pa.float64(), pa.int64(), pa.uint64(), pa.bool_()):
        same = columns.floats(pa.array([1] * 9, pa.int8()).cast(kind).slice(2))
        assert (columns.is_constant(same), same.tolist()) == (True, [1.0] * 7), kind
        for place in range(7):
            for other, read in ((0, 0.0), (None, np.nan)):
                values: list[int | None] = [1] * 7
                values[place] = other
                expected = [1.0] * place + [read] + [1.0] * (6 - place)
                got = columns.floats(pa.array(values, pa.int8()).cast(kind))
                assert np.array_equal(got, expected, equal_nan=True), (kind, place, other)


TABLE = tomllib.loads((Path(gpureport.__file__).parent / "gpus.toml").read_text(encoding="utf-8"))
NAMES = {
    "NVIDIA A100-SXM4-80GB": "A100 SXM4",
    "NVIDIA A100 80GB PCIe": "A100 80 GB PCIe",
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40 GB",
    "Tesla T4": "T4",
    "Tesla V100-SXM2-16GB": "V100 SXM2",
    "Tesla V100-PCIE-32GB": "V100 PCIe",
    "NVIDIA A10": "A10",
    "NVIDIA A10G": "A10G",
    "NVIDIA H100 80GB HBM3": "H100 SXM",
    "NVIDIA H100 PCIe": "H100 PCIe",
    "NVIDIA H100 NVL": "Hopper",
    "NVIDIA H200": "H200",
    "nvidia geforce rtx 3090": "RTX 3090",
    "NVIDIA GeForce RTX 4090": "RTX 4090",
    "": None,
    "Orin": None,
    "AMD Instinct MI300X": None,
}


def test_a_name_leads_to_its_own_model() -> None:
    found = {name: find_gpu(name) for name in NAMES}
    assert {name: known and known.model for name, known in found.items()} == NAMES
    windows = {"Tesla T4": "instant", "NVIDIA A100-SXM4-80GB": "instant", "NVIDIA A30": "instant", "NVIDIA L4": "1 s"}
    assert {name: (known := find_gpu(name)) and known.power_window for name in windows} == windows
    for name in ("NVIDIA A40", "NVIDIA RTX A6000", "NVIDIA GeForce RTX 4090", "NVIDIA H20", "NVIDIA GH200 480GB"):
        known = find_gpu(name)
        assert known is not None, name
        assert known.memory_total_bytes, name
        assert known.memory_bandwidth_bytes_per_second, name


def test_every_cell_has_a_source_and_no_source_is_a_memory() -> None:
    plain = {"model", "names", "not"}
    cited = {(row["model"], key): cell[1] for row in TABLE["gpu"] for key, cell in row.items() if key not in plain}
    assert {cell: source for cell, source in cited.items() if source not in TABLE["sources"]} == {}
    assert set(cited.values()) == set(TABLE["sources"])
    dumps = {"dump", "dump_margin", "mock", "cc", "dcgm", "refresh", "idle"}
    sources = TABLE["sources"].items()
    assert [name for name, words in sources if name not in dumps and "http" not in words] == []
    assert [name for name, words in sources if "quoted" in words] == []


READ = {
    ("97 %", "", "1"): 0.97,
    ("97%", "", "1"): 0.97,
    ("97", "%", "1"): 0.97,
    ("8192 MiB", "MiB", "By"): 8192 * 2**20,
    ("2117MB", "", "By"): 2117 * 2**20,
    ("945", "MB/s", "By/s"): 945e6,
    ("945 MB", "MB/s", "By/s"): None,
    ("58.52 W", "W", "W"): 58.52,
    ("58520 mW", "W", "W"): 58.52,
    ("1410", "MHz", "Hz"): 1.41e9,
    ("38 °C", "C", "Cel"): 38,
    ("+27.0", "C", "Cel"): 27,
    ("15820333506", "us", "s"): 15820.333506,
    ("58.52 W", "%", "1"): None,
    ("12025/06/12", "%", "1"): None,
    ("", "W", "W"): None,
    ("1e5", "W", "W"): None,
    ("٣", "W", "W"): 3,
    **{(f"{percent} %", "", "1"): percent / 100 for percent in range(101)},
}
SHOWN = {
    number_format.format_gpu_time(2994): "49.9 GPU-min",
    number_format.format_gpu_time(3.484): "3.48 GPU-s",
    number_format.format_duration(0.005): "5 ms",
    number_format.format_duration(4.2): "4.2 s",
    number_format.format_duration(125): "2 min 5 s",
    number_format.format_duration(3599.6): "1 h",
    number_format.format_duration(8000): "2 h 13 min",
    number_format.format_duration(3 * 86_400 + 4 * 3600): "3 days 4 h",
    number_format.format_memory(19.6 * 2**30): "19.6 GiB",
    number_format.format_clock(1.71e9): "1,710 MHz",
    number_format.format_percent(0.0996): "10%",
    number_format.format_percent(1e-12): "<0.1%",
    number_format.format_percent(0.019): "1.9%",
    number_format.format_percent(0.004): "0.4%",
    number_format.format_percent(0.325): "32%",
    number_format.format_percent(0.325000003): "32%",
    number_format.format_money(1.148, "USD"): "$1.15",
    number_format.format_money(-1.148, "EUR"): "−€1.15",
    number_format.format_money(12_345.6, "GBP"): "£12,346",
    number_format.format_money(1.148, "CHF"): "1.15 CHF",
    number_format.format_money(0.00242): "0.0024",
    number_format.format_signed(1372.0): "+1,372",
    number_format.format_signed(-0.18): "−0.180",
    number_format.format_number(99.96): "100",
    number_format.format_number(432.5): "432",
    number_format.format_number(432.5000025): "432",
}
SCALED = [number_format.GPU_TIME, number_format.ENERGY, number_format.THROUGHPUT, number_format.MASS]


def read(text: str) -> float:
    found = re.match(r"[−\d,.]+", text)
    assert found, text
    return float(found[0].replace(",", "").replace("−", "-"))


@given(st.floats(1e-6, 1e9), st.floats(1e-3, 1e9), st.sampled_from(SCALED), st.integers(0, 2))
def test_figures_keep_three_digits_and_their_order(
    value: float, other: float, units: number_format.Units, place: int
) -> None:
    assert read(number_format.format_number(value)) == pytest.approx(value, rel=0.00501)
    low, high = sorted((max(value, 1e-3), other))
    for shown in (number_format.format_number, number_format.format_money, number_format.format_integer):
        assert read(shown(low)) <= read(shown(high))
    amount = min(max(other, 1.0), 9_999.0)
    assert 1 <= read(number_format.format_scaled(amount * units[place + 1][1], units)) < 10_000


def test_quantities_are_written_and_numbers_in_names_sort() -> None:
    assert {key: parse_quantity(*key) for key in READ} == READ
    assert {shown: expected for shown, expected in SHOWN.items() if shown.replace("\xa0", " ") != expected} == {}
    wanted = ["gpu", "gpu:0", "gpu:2", "gpu:010", "gpu:11", f"gpu:{'9' * 5000}", "node_1/gpu:3", "node_2/gpu:0"]
    assert sorted(set(wanted), key=split_numbers) == wanted


Stamps = np.ndarray[tuple[int], np.dtype[np.int64]]


def stamps(*parts: tuple[int, float]) -> Stamps:
    """Return stamps from 0 on, so many distances of so many seconds, one part after the other."""
    steps = np.concatenate([np.full(count, round(seconds * 1e6)) for count, seconds in parts])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def test_the_pace_of_a_log() -> None:
    slow = SlowStretch(600_000_000, 900_000_000, 10.0)
    pairs = np.sort(np.concatenate([stamps((300, 1)), stamps((300, 1)) + 20_000]))
    table = {
        "one": (stamps((100, 1), (1, 600), (100, 1), (1, 30)), SamplingRate(1.0)),
        "one sample": (stamps((0, 1)), None),
        "equal stamps": (np.array([5, 5, 5]), None),
        "a slower stretch": (stamps((600, 1), (30, 10), (300, 1)), SamplingRate(1.0, (slow,))),
        "nine gaps": (stamps((600, 1), (9, 10), (300, 1)), SamplingRate(1.0)),
        "slow for most of the time": (stamps((600, 1), (120, 10)), SamplingRate(10.0, denser=1.0)),
        "two recorders just behind each other": (pairs, SamplingRate(1.0)),
        "some of their rows missing": (np.delete(pairs, [100, 101, 201]), SamplingRate(1.0)),
        "late every other time": (np.sort(np.r_[stamps((300, 1)), stamps((300, 1)) + 400_000]), SamplingRate(0.4)),
    }
    assert {name: got for name, (times, rate) in table.items() if (got := measure_sampling_rate(times)) != rate} == {}
    three = measure_sampling_rate(stamps((5000, 1), (40, 10), (20, 60), (1000, 1)))
    assert three is not None
    assert [each.interval for each in three.slow] == [10.0, 60.0]


@given(st.lists(st.tuples(st.integers(1, 30), st.sampled_from([0.0, 0.1, 1, 4, 10, 61, 900])), min_size=1, max_size=12))
def test_slow_stretches_lie_in_the_log(parts: list[tuple[int, float]]) -> None:
    times = stamps(*parts)
    found = measure_sampling_rate(times)
    assert (found is None) == (times[0] == times[-1])
    for each in () if found is None else found.slow:
        assert {each.start, each.end} <= set(times.tolist())
        assert each.start < each.end
        assert found is not None
        assert each.interval > found.interval
        assert (np.diff(times)[distances_inside(times, each)] >= 0).all()


SECOND = 1_000_000
Numbers = list[float]


def by_rates(
    seconds: Numbers, rates: Numbers, steps: Numbers | None = None, earliest: float | None = None
) -> CountedWork | None:
    return count_by_rates(
        (np.array(seconds) * SECOND).astype(np.int64),
        np.array(rates, dtype=np.float64),
        None if steps is None else np.array(steps, dtype=np.float64),
        None if earliest is None else round(earliest * SECOND),
    )


def by_steps(seconds: Numbers, steps: Numbers, began: float | None = None) -> CountedWork | None:
    start = None if began is None else round(began * SECOND)
    return count_by_steps((np.array(seconds) * SECOND).astype(np.int64), np.array(steps, dtype=np.float64), start)


def test_work_by_rates_and_by_steps() -> None:
    slow, first = [20.0, 25.0, 30.0, 35.0], [50.0, 200.0, 200.0, 200.0]
    pause, even, counter = [5.0, 10.0, 15.0, 320.0, 325.0], [200.0] * 5, [10.0, 20.0, 30.0, 40.0, 50.0]
    table: dict[str, tuple[CountedWork | None, dict[str, float | None]]] = {
        "a slow first batch took as long as its rate says": (
            by_rates(slow, first, [10, 20, 30, 40]),
            {"amount": 4000, "rate": 4000 / 35, "begin": 0},
        ),
        "without steps the first point speaks for a usual distance": (
            by_rates(slow, first),
            {"amount": 50 * 5 + 3 * 1000, "begin": 15 * SECOND},
        ),
        "a pause does no work": (by_rates(pause, even, counter), {"amount": 5000, "rate": 5000 / 325}),
        "five usual distances bound it": (by_rates(pause, even), {"amount": 200 * (4 * 5 + 5 * 5)}),
        "a resumed counter": (by_rates([5, 10, 15], [200] * 3, [5010, 5020, 5030]), {"amount": 3000}),
        "a counter that starts anew": (by_rates([5, 10, 15, 20], [200] * 4, [5010, 5020, 10, 20]), {"amount": 4000}),
        "nothing before the recording": (
            by_rates([20, 25, 30], first[:3], [10, 20, 30], earliest=15),
            {"amount": 250 + 2000, "begin": 15 * SECOND},
        ),
        "rates of zero": (by_rates([5, 10, 15], [0, 0, 0], [10, 20, 30]), {"amount": 0, "rate": None}),
        "steps from where training began": (by_steps([20, 25, 30], [10, 20, 30], 0), {"amount": 30, "rate": 1}),
        "steps from the first point": (by_steps([20, 25, 30], [10, 20, 30]), {"amount": 20, "rate": 2}),
        "steps of a resumed run": (by_steps([20, 25, 30], [5010, 5020, 5030], 0), {"amount": 30}),
        "steps that start anew": (by_steps([5, 10, 15, 20], [10, 20, 5, 15], 0), {"amount": 35}),
        "steps that go back": (by_steps([5, 10, 15, 20], [10, 20, 15, 25], 0), {"amount": 30}),
    }
    wrong = {}
    for name, (work, expected) in table.items():
        assert work is not None, name
        got = {"amount": work.amount, "rate": work.rate, "begin": float(work.times[0])}
        if {key: got[key] for key in expected} != pytest.approx(expected):
            wrong[name] = got
    assert not wrong, wrong


def test_a_part_of_the_time_holds_a_part_of_the_work_and_what_counts_none() -> None:
    work = by_rates([5, 10, 15], [200, 200, 100], [10, 20, 30])
    assert work is not None
    assert work.within(5 * SECOND, round(12.5 * SECOND)) == pytest.approx(1000 + 250)
    assert (work.within(-10 * SECOND, 100 * SECOND), work.within(20 * SECOND, 30 * SECOND)) == (work.amount, 0)
    assert (by_rates([5], [200]), by_steps([5], [10])) == (None, None)
    for rates in ([1e308] * 4, [1e-308, 100.0, 100.0, 100.0]):
        assert by_rates([0, 1, 2, 3], rates, [0, 1, 2, 3]) is None, rates
