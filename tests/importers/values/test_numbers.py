"""Columns of numbers read at once mean what their cells mean one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.columns import strings_to_arrow
from gpureport.importers.values.numbers import Number, read_all

WATTS = Number(unit="W", base="W")
SHARE = Number(unit="%", base="1", part=True)
BYTES = Number(unit="MiB", base="By", whole=True)
DEGREES = Number(unit="C", base="Cel")

cell = st.one_of(
    st.decimals(min_value=-200, max_value=2000, places=2).map(str),
    st.integers(min_value=-5, max_value=10**17).map(str),
    st.sampled_from(["[N/A]", "", "1.", ".5", "1e3", "٣", "inf", "0x10", "--1", "+5", "1 2"]),
)
unit = st.sampled_from(["", " W", " %", " MiB", "MiB", " kW", " C", " parsec"])


@pytest.mark.parametrize("number", [WATTS, SHARE, BYTES, DEGREES], ids=["watts", "share", "bytes", "degrees"])
@given(cells=st.lists(st.tuples(cell, unit).map("".join), max_size=12), times=st.sampled_from([1, 9]))
def test_a_column_at_once_equals_cell_by_cell(number: Number, cells: list[str], times: int) -> None:
    """Whatever is read at once has exactly the value of its cell read alone; the rest is left to that."""
    texts = [f" {text}" for text in cells] * times
    values, known, bare = read_all(strings_to_arrow(texts), number)
    for text, value, sure, alone in zip(texts, values.tolist(), known.tolist(), bare.tolist(), strict=True):
        if sure:
            assert value == number.read(text.strip())
            assert alone == text.strip()[-1:].isdigit()


def test_cells_of_one_pattern_are_read_at_once() -> None:
    """Readings of two decimals and one unit need no closer look; one without the unit does."""
    values, known, _ = read_all(
        strings_to_arrow([f" {watts:.2f} W" for watts in np.arange(100, 200, 0.37)] + [" 150.37"]), WATTS
    )
    assert known[:-1].all()
    assert not known[-1]
    assert values[1] == 100.37


def test_a_part_above_the_whole_is_not_read() -> None:
    """A utilisation of 909 % is no share."""
    assert not read_all(strings_to_arrow(["909 %"] * 20), SHARE)[1].any()
