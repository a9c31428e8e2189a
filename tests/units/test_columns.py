"""Arrow columns to NumPy and back: null is NaN and nothing else is, however a column is cut."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gpureport import columns

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
