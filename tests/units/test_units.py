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
    count_by_rates,
    count_by_steps,
    distances_inside,
    measure_sampling_rate,
)
from tests.readers.pairs import hold
from tests.support.tables import read_table

NUMBERS = st.lists(st.none() | st.integers(-100, 100), max_size=40)
KINDS = st.sampled_from([pa.float32(), pa.float64(), pa.int8(), pa.int64()])


@given(NUMBERS, st.integers(0, 40), KINDS, st.lists(st.none() | st.booleans(), max_size=40))
def test_columns_come_out_as_written(
    values: list[int | None], cut: int, kind: pa.DataType, bits: list[bool | None]
) -> None:
    array = pa.chunked_array([pa.array(values, kind), pa.array(values, kind).slice(cut)])
    expected = [np.nan if value is None else float(value) for value in [*values, *values[cut:]]]
    assert np.array_equal(columns.floats(array), expected, equal_nan=True)
    assert columns.integers(array, null=-1).tolist() == [-1 if np.isnan(value) else int(value) for value in expected]
    data = np.array(expected[: len(values)], dtype=np.float64)
    assert columns.nan_to_null(data, pa.float32()).to_pylist() == values
    flags = [np.nan if bit is None else float(bit) for bit in bits[cut:]]
    assert np.array_equal(columns.floats(pa.array(bits, pa.bool_()).slice(cut)), flags, equal_nan=True)


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
NAMES = (
    *("NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "NVIDIA A100-PCIE-40GB", "Tesla T4", "Tesla V100-SXM2-16GB"),
    *("Tesla V100-PCIE-32GB", "NVIDIA A10", "NVIDIA A10G", "NVIDIA A30", "NVIDIA L4", "NVIDIA H100 80GB HBM3"),
    *("NVIDIA H100 PCIe", "NVIDIA H100 NVL", "NVIDIA H200", "NVIDIA H20", "NVIDIA A40", "NVIDIA RTX A6000"),
    *("nvidia geforce rtx 3090", "NVIDIA GeForce RTX 4090", "NVIDIA GH200 480GB", "", "Orin", "AMD Instinct MI300X"),
)
EXPECTED = Path(__file__).with_name("expected")


def test_a_name_leads_to_its_own_model(*, update_golden: bool) -> None:
    found = {name: find_gpu(name) for name in NAMES}
    facts = ("model", "power_window", "memory_total_bytes", "memory_bandwidth_bytes_per_second")
    # a cell of the table has a value and its source
    values = {name: known and [getattr(known, fact) for fact in facts] for name, known in found.items()}
    said = {name: of and ", ".join(f"{getattr(each, 'value', each)}" for each in of) for name, of in values.items()}
    hold(EXPECTED / "models.json", said, update=update_golden)


def test_every_cell_has_a_source_and_no_source_is_a_memory() -> None:
    plain = {"model", "names", "not"}
    cited = {(row["model"], key): cell[1] for row in TABLE["gpu"] for key, cell in row.items() if key not in plain}
    assert {cell: source for cell, source in cited.items() if source not in TABLE["sources"]} == {}
    assert set(cited.values()) == set(TABLE["sources"])
    dumps = {"dump", "dump_margin", "mock", "cc", "dcgm", "refresh", "idle"}
    sources = TABLE["sources"].items()
    assert [name for name, words in sources if name not in dumps and "http" not in words] == []
    assert [name for name, words in sources if "quoted" in words] == []


READ = (
    *("97 %||1", "97%||1", "97|%|1", "8192 MiB|MiB|By", "2117MB||By", "945|MB/s|By/s", "945 MB|MB/s|By/s"),
    *("58.52 W|W|W", "58520 mW|W|W", "1410|MHz|Hz", "38 °C|C|Cel", "+27.0|C|Cel", "15820333506|us|s", "58.52 W|%|1"),
    *("12025/06/12|%|1", "|W|W", "1e5|W|W", "٣|W|W", *(f"{percent} %||1" for percent in range(101))),
)
"""Cell, unit of its column, and the unit wanted."""
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


def test_quantities_are_written_and_numbers_in_names_sort(*, update_golden: bool) -> None:
    said = {text: parse_quantity(*text.split("|")) for text in READ}
    hold(EXPECTED / "quantities.json", said, update=update_golden)
    for name, number, expected, *currency in read_table(EXPECTED.with_name("shown.tsv")):
        shown = getattr(number_format, name)(float(number), *currency)
        assert shown.replace("\xa0", " ") == expected, (name, number)
    wanted = ["gpu", "gpu:0", "gpu:2", "gpu:010", "gpu:11", f"gpu:{'9' * 5000}", "node_1/gpu:3", "node_2/gpu:0"]
    assert sorted(set(wanted), key=split_numbers) == wanted


Stamps = np.ndarray[tuple[int], np.dtype[np.int64]]


def stamps(*parts: tuple[int, float]) -> Stamps:
    """Return stamps from 0 on, so many distances of so many seconds, one part after the other."""
    steps = np.concatenate([np.full(count, round(seconds * 1e6)) for count, seconds in parts])
    return np.concatenate([[0], np.cumsum(steps)]).astype(np.int64)


def test_the_pace_of_a_log(*, update_golden: bool) -> None:
    pairs = np.sort(np.concatenate([stamps((300, 1)), stamps((300, 1)) + 20_000]))
    table = {
        "one": stamps((100, 1), (1, 600), (100, 1), (1, 30)),
        "one sample": stamps((0, 1)),
        "equal stamps": np.array([5, 5, 5]),
        "a slower stretch": stamps((600, 1), (30, 10), (300, 1)),
        "two slower ones": stamps((5000, 1), (40, 10), (20, 60), (1000, 1)),
        "nine gaps": stamps((600, 1), (9, 10), (300, 1)),
        "slow for most of the time": stamps((600, 1), (120, 10)),
        "two recorders just behind each other": pairs,
        "some of their rows missing": np.delete(pairs, [100, 101, 201]),
        "late every other time": np.sort(np.r_[stamps((300, 1)), stamps((300, 1)) + 400_000]),
    }
    said = {name: repr(measure_sampling_rate(times)) for name, times in table.items()}
    hold(EXPECTED / "paces.json", said, update=update_golden)


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


def test_work_by_rates_and_by_steps(*, update_golden: bool) -> None:
    slow, first = [20.0, 25.0, 30.0, 35.0], [50.0, 200.0, 200.0, 200.0]
    pause, even, counter = [5.0, 10.0, 15.0, 320.0, 325.0], [200.0] * 5, [10.0, 20.0, 30.0, 40.0, 50.0]
    table = {
        "a slow first batch took as long as its rate says": by_rates(slow, first, [10, 20, 30, 40]),
        "without steps the first point speaks for a usual distance": by_rates(slow, first),
        "a pause does no work": by_rates(pause, even, counter),
        "five usual distances bound it": by_rates(pause, even),
        "a resumed counter": by_rates([5, 10, 15], [200] * 3, [5010, 5020, 5030]),
        "a counter that starts anew": by_rates([5, 10, 15, 20], [200] * 4, [5010, 5020, 10, 20]),
        "nothing before the recording": by_rates([20, 25, 30], first[:3], [10, 20, 30], earliest=15),
        "rates of zero": by_rates([5, 10, 15], [0, 0, 0], [10, 20, 30]),
        "steps from where training began": by_steps([20, 25, 30], [10, 20, 30], 0),
        "steps from the first point": by_steps([20, 25, 30], [10, 20, 30]),
        "steps of a resumed run": by_steps([20, 25, 30], [5010, 5020, 5030], 0),
        "steps that start anew": by_steps([5, 10, 15, 20], [10, 20, 5, 15], 0),
        "steps that go back": by_steps([5, 10, 15, 20], [10, 20, 15, 25], 0),
    }
    said = {
        name: work and f"{work.amount:.9g} at {work.rate and round(work.rate, 9)} from {float(work.times[0]):.9g}"
        for name, work in table.items()
    }
    hold(EXPECTED / "work.json", said, update=update_golden)


def test_a_part_of_the_time_holds_a_part_of_the_work_and_what_counts_none() -> None:
    work = by_rates([5, 10, 15], [200, 200, 100], [10, 20, 30])
    assert work is not None
    assert work.within(5 * SECOND, round(12.5 * SECOND)) == pytest.approx(1000 + 250)
    assert (work.within(-10 * SECOND, 100 * SECOND), work.within(20 * SECOND, 30 * SECOND)) == (work.amount, 0)
    assert (by_rates([5], [200]), by_steps([5], [10])) == (None, None)
    for rates in ([1e308] * 4, [1e-308, 100.0, 100.0, 100.0]):
        assert by_rates([0, 1, 2, 3], rates, [0, 1, 2, 3]) is None, rates
