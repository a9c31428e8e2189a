"""The algebra of stretches of time, which every finding rests on, against walks over single moments and rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.testing import Floats, Interval

HORIZON = 60
PAIRS = st.tuples(st.integers(0, HORIZON), st.integers(0, HORIZON)).map(lambda pair: Interval(min(pair), max(pair)))
SPANS = st.lists(PAIRS, max_size=8).map(intervals.to_spans)
VALUES = st.lists(st.sampled_from([0.0, 0.04, 0.1, 0.5, float("nan")]), max_size=40).map(np.array)
CELLS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=30, max_size=60)
Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def mask(stretches: Spans) -> Mask:
    covered = np.zeros(HORIZON, dtype=np.bool_)
    for start, end in stretches:
        covered[start:end] = True
    return covered


@given(st.lists(PAIRS, max_size=8), SPANS, SPANS, st.integers(0, 10))
def test_sets_of_moments(parts: list[Interval], left: Spans, right: Spans, within: int) -> None:
    """A union holds each moment once; what two sets share and what only one holds are that one; joins close holes."""
    united = intervals.to_spans(parts)
    raw = np.array([(part.start, part.end) for part in parts], dtype=np.int64).reshape(-1, 2)
    assert (united[:, 1] > united[:, 0]).all()
    assert (united[1:, 0] > united[:-1, 1]).all()
    assert mask(united).tolist() == mask(raw).tolist()
    assert intervals.total_seconds(united) * 1e6 == mask(raw).sum()
    assert mask(intervals.intersection(left, right)).tolist() == (mask(left) & mask(right)).tolist()
    assert mask(intervals.difference(left, right)).tolist() == (mask(left) & ~mask(right)).tolist()
    joined = intervals.union(left, within=within)
    assert (joined[1:, 0] - joined[:-1, 1] > within).all()
    assert (mask(joined) | ~mask(left)).all()


@given(SPANS, CELLS, st.lists(st.integers(0, HORIZON - 3), min_size=1, max_size=30))
def test_overlap_of_cells(stretches: Spans, cells: list[tuple[int, int, bool]], starts: list[int]) -> None:
    """The same of cells in any order, many to a stretch or many stretches to a cell, as of each alone."""
    begin = np.array(starts, dtype=np.int64)
    for series in (begin, np.sort(begin)):
        expected = [mask(stretches)[start : start + 3].sum() / 1e6 for start in series]
        assert intervals.overlap_seconds(series, series + 3, stretches).tolist() == pytest.approx(expected)
    width, hole, rows = (np.array(each) for each in zip(*cells, strict=True))
    ends = np.cumsum(width + hole)
    begins = ends - width
    single = [float(intervals.overlap_seconds(begins[[row]], ends[[row]], stretches)[0]) for row in range(len(cells))]
    assert intervals.overlap_seconds(begins, ends, stretches).tolist() == single
    expected_rows = intervals.union(np.column_stack([begins[rows], ends[rows]]))
    assert intervals.rows_to_spans(begins, ends, rows).tolist() == expected_rows.tolist()


def walked(values: Floats, breaks: Mask) -> list[tuple[int, int]]:
    """Return what hysteresis between 0.05 and 0.12 finds, row by row."""
    found: list[tuple[int, int]] = []
    begin: int | None = None
    for row, value in enumerate([*values.tolist(), 1.0]):
        ends = value > 0.12 or (row < len(values) and breaks[row])
        if begin is not None and ends:
            if (values[begin:row] <= 0.05).any():
                found.append((begin, row))
            begin = None
        if begin is None and not value > 0.12:
            begin = row
    return found


@given(VALUES, st.lists(st.booleans(), max_size=40), st.integers(0, 40))
def test_hysteresis(values: Floats, breaks: list[bool], cut: int) -> None:
    """The runs are those that a walk over all rows finds, and those of the two sides of a break."""
    broken = np.array((breaks + [False] * len(values))[: len(values)], dtype=np.bool_)
    first, stop = intervals.find_hysteresis_runs(values, enter=0.05, leave=0.12, breaks=broken)
    assert list(zip(first.tolist(), stop.tolist(), strict=True)) == walked(values, broken)
    first, stop = intervals.find_runs(values <= 0.05, broken)
    low = np.where(values <= 0.05, values, 1.0)
    assert list(zip(first.tolist(), stop.tolist(), strict=True)) == walked(low, broken)
    cut = min(cut, len(values))
    once = np.zeros(len(values), dtype=np.bool_)
    once[cut : cut + 1] = True
    first, stop = intervals.find_hysteresis_runs(values, enter=0.05, leave=0.12, breaks=once)
    left = intervals.find_hysteresis_runs(values[:cut], enter=0.05, leave=0.12)
    right = intervals.find_hysteresis_runs(values[cut:], enter=0.05, leave=0.12)
    assert first.tolist() == [*left[0].tolist(), *(right[0] + cut).tolist()]
    assert stop.tolist() == [*left[1].tolist(), *(right[1] + cut).tolist()]
