"""Columns, GPUs, quantities and rates."""

import json
import re
import tomllib
from collections.abc import Sequence
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
from gpureport.rates import CountedWork, count_by_rates, count_by_steps, distances_inside, measure_sampling_rate
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
        assert (same.strides, same.tolist()) == ((0,), [1.0] * 7), kind
        for place in range(7):
            for other, read in ((0, 0.0), (None, np.nan)):
                values: list[int | None] = [1] * 7
                values[place] = other
                expected = [1.0] * place + [read] + [1.0] * (6 - place)
                got = columns.floats(pa.array(values, pa.int8()).cast(kind))
                assert np.array_equal(got, expected, equal_nan=True), (kind, place, other)


TABLE = tomllib.loads((Path(gpureport.__file__).parent / "gpus.toml").read_text(encoding="utf-8"))
EXPECTED = Path(__file__).with_name("expected")


def asked(name: str) -> list[str]:
    """Return the keys of an expected file: names of GPUs, or a cell, the unit of its column and the unit wanted."""
    return [*json.loads((EXPECTED / f"{name}.json").read_text(encoding="utf-8"))]


def test_a_name_leads_to_its_own_model(*, update_golden: bool) -> None:
    found = {name: find_gpu(name) for name in asked("models")}
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
    said = {text: parse_quantity(*text.split("|")) for text in asked("quantities")}
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


def count_work(
    seconds: list[float], rates: list[float], steps: Sequence[float] = (), began: float | None = None
) -> CountedWork | None:
    """Return the work that rates tell, or steps where there are no rates."""
    times, start = (np.array(seconds) * SECOND).astype(np.int64), None if began is None else round(began * SECOND)
    counted = np.array(steps, dtype=np.float64)
    if not rates:
        return count_by_steps(times, counted, start)
    return count_by_rates(times, np.array(rates, dtype=np.float64), counted if steps else None, start)


def test_work_by_rates_and_by_steps(*, update_golden: bool) -> None:
    table = {}
    for name, *cells in read_table(EXPECTED.with_name("work.tsv")):
        seconds, rates, steps, began = ([*map(float, cell.split())] if cell != "-" else [] for cell in cells)
        table[name] = count_work(seconds, rates, steps, began[0] if began else None)
    said = {
        name: work and f"{work.amount:.9g} at {work.rate and round(work.rate, 9)} from {float(work.times[0]):.9g}"
        for name, work in table.items()
    }
    hold(EXPECTED / "work.json", said, update=update_golden)


def test_a_part_of_the_time_holds_a_part_of_the_work_and_what_counts_none() -> None:
    work = count_work([5, 10, 15], [200, 200, 100], [10, 20, 30])
    assert work is not None
    assert work.within(5 * SECOND, round(12.5 * SECOND)) == pytest.approx(1000 + 250)
    assert (work.within(-10 * SECOND, 100 * SECOND), work.within(20 * SECOND, 30 * SECOND)) == (work.amount, 0)
    assert (count_work([5], [200]), count_work([5], [], [10])) == (None, None)
    for rates in ([1e308] * 4, [1e-308, 100.0, 100.0, 100.0]):
        assert count_work([0, 1, 2, 3], rates, [0, 1, 2, 3]) is None, rates
