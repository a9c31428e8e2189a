"""Arrow columns to NumPy and back without pandas."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport import columns

NUMBERS = st.lists(st.none() | st.integers(-100, 100), max_size=40)


KINDS = st.sampled_from([pa.float32(), pa.float64(), pa.int8(), pa.int64()])


@given(values=NUMBERS, cut=st.integers(0, 40), kind=KINDS)
def test_numbers_with_nulls(values: list[int | None], cut: int, kind: pa.DataType) -> None:
    """Sliced, chunked and null-holding columns come out as written, NaN for null."""
    array = pa.chunked_array([pa.array(values, kind), pa.array(values, kind).slice(cut)])
    expected = [np.nan if value is None else float(value) for value in [*values, *values[cut:]]]
    assert np.array_equal(columns.floats(array), expected, equal_nan=True)
    assert columns.integers(array, null=-1).tolist() == [-1 if np.isnan(value) else int(value) for value in expected]


@given(values=st.lists(st.none() | st.booleans(), max_size=40), cut=st.integers(0, 40))
def test_booleans_with_nulls(values: list[bool | None], cut: int) -> None:
    """Bits come out as 0 and 1, NaN for null, whatever their offset."""
    expected = [np.nan if value is None else float(value) for value in values[cut:]]
    assert np.array_equal(columns.floats(pa.array(values, pa.bool_()).slice(cut)), expected, equal_nan=True)


@given(values=NUMBERS)
def test_there_and_back(values: list[int | None]) -> None:
    """NaN becomes null and nothing else does."""
    data = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    assert columns.nan_to_null(data, pa.float32()).to_pylist() == values


@pytest.mark.parametrize("texts", [[], [""], ["a", "", "ümlaut"]])
def test_strings(texts: list[str]) -> None:
    """Texts of any length, empty ones too."""
    assert columns.strings_to_arrow(texts).to_pylist() == texts


def test_categories() -> None:
    """Codes stand for texts, null where nothing is."""
    column = columns.categories(np.array([1, 0, 1]), ["x", "y"], np.array([True, True, False]))
    assert column.to_pylist() == ["y", "x", None]


@pytest.mark.parametrize("length", [0, 1, 2, 3, 1024, 1025])
def test_a_category_is_one_text_in_all_rows(length: int) -> None:
    """As many rows as are asked for, also where more of them share their codes."""
    column = columns.category("gpu:0", length)
    column.validate(full=True)
    assert column.to_pylist() == ["gpu:0"] * length


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int64(), pa.uint64(), pa.bool_()])
def test_one_value_takes_no_memory(kind: pa.DataType) -> None:
    """A column of one value reads as one value; with a null, or another value anywhere, it does not."""
    same = columns.floats(pa.array([1] * 9, pa.int8()).cast(kind).slice(2))
    assert columns.is_constant(same)
    assert same.tolist() == [1.0] * 7
    for place in range(7):
        other: list[int | None] = [1] * 7
        other[place] = 0
        assert columns.floats(pa.array(other, pa.int8()).cast(kind)).tolist() == other
        other[place] = None
        assert np.isnan(columns.floats(pa.array(other, pa.int8()).cast(kind))).tolist() == [
            value is None for value in other
        ]


@given(values=st.lists(st.sampled_from([0.0, 0.97, 1.0, 3.3]) | st.floats(-9, 9), min_size=1, max_size=300))
def test_medians(values: list[float]) -> None:
    """The same as NumPy finds by ordering all of them, whether many are equal or none."""
    data = np.array(values)
    assert columns.median(data) == float(np.median(data))
    assert columns.lower_median(data) == sorted(values)[(len(values) - 1) // 2]
