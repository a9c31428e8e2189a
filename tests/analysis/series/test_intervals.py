"""The algebra of stretches of time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.series import intervals
from gpureport.analysis.series.intervals import Spans
from gpureport.columns import BoolArray, FloatArray
from gpureport.testing import Interval

_HORIZON = 60


def _mask(stretches: Spans) -> BoolArray:
    mask = np.zeros(_HORIZON, dtype=np.bool_)
    for start, end in stretches:
        mask[start:end] = True
    return mask


def _disjoint(stretches: Spans) -> bool:
    return bool((stretches[:, 1] > stretches[:, 0]).all() and (stretches[1:, 0] > stretches[:-1, 1]).all())


_pairs = st.tuples(st.integers(0, _HORIZON), st.integers(0, _HORIZON)).map(lambda pair: Interval(min(pair), max(pair)))
_spans = st.lists(_pairs, max_size=8).map(intervals.to_spans)
_values = st.lists(st.sampled_from([0.0, 0.04, 0.1, 0.5, float("nan")]), max_size=40).map(np.array)


@given(st.lists(_pairs, max_size=8))
def test_union_is_sorted_disjoint_and_covers_the_same_time(parts: list[Interval]) -> None:
    """A union holds each moment that any part holds, once."""
    united = intervals.to_spans(parts)
    raw = np.array([(part.start, part.end) for part in parts], dtype=np.int64).reshape(-1, 2)
    assert _disjoint(united)
    assert _mask(united).tolist() == _mask(raw).tolist()
    assert intervals.total_seconds(united) * 1e6 == _mask(raw).sum()


@given(_spans, _spans)
def test_intersection_and_difference_split_a_set(left: Spans, right: Spans) -> None:
    """What two sets share and what only the first holds are the first, without overlap."""
    shared, own = intervals.intersection(left, right), intervals.difference(left, right)
    assert _mask(shared).tolist() == (_mask(left) & _mask(right)).tolist()
    assert _mask(own).tolist() == (_mask(left) & ~_mask(right)).tolist()
    assert _mask(shared).sum() + _mask(own).sum() == _mask(left).sum()


@given(_spans, st.integers(0, 10))
def test_joining_closes_the_holes_that_are_narrow_enough(stretches: Spans, within: int) -> None:
    """After joining, every hole is wider than the limit and no covered moment is lost."""
    joined = intervals.union(stretches, within=within)
    assert (joined[1:, 0] - joined[:-1, 1] > within).all()
    assert (_mask(joined) | ~_mask(stretches)).all()


@given(_spans, st.lists(st.integers(0, _HORIZON), min_size=2, max_size=9).map(sorted))
def test_overlap_of_cells_adds_up_to_the_intersection(stretches: Spans, edges: list[int]) -> None:
    """Cells that tile a stretch are covered, together, for as long as the stretch is."""
    cuts = np.array(edges, dtype=np.int64)
    covered = intervals.overlap_seconds(cuts[:-1], cuts[1:], stretches)
    whole = intervals.intersection(stretches, intervals.to_spans([Interval(edges[0], edges[-1])]))
    assert np.isclose(covered.sum(), intervals.total_seconds(whole))


@given(_spans, st.lists(st.integers(0, _HORIZON - 3), min_size=1, max_size=30))
def test_overlap_is_the_same_of_cells_in_any_order(stretches: Spans, starts: list[int]) -> None:
    """In order they are counted, else looked up; many cells to a stretch, or many stretches to a cell."""
    begin = np.array(starts, dtype=np.int64)
    for series in (begin, np.sort(begin)):
        expected = [_mask(stretches)[start : start + 3].sum() / 1e6 for start in series]
        assert intervals.overlap_seconds(series, series + 3, stretches).tolist() == pytest.approx(expected)


@given(_values, st.integers(0, 40))
def test_hysteresis_is_the_same_on_a_recording_in_two_parts(values: FloatArray, cut: int) -> None:
    """Runs found on both sides of a break are the runs found on each side alone."""
    cut = min(cut, len(values))
    breaks = np.zeros(len(values), dtype=np.bool_)
    breaks[cut : cut + 1] = True
    first, stop = intervals.find_hysteresis_runs(values, enter=0.05, leave=0.12, breaks=breaks)
    left = intervals.find_hysteresis_runs(values[:cut], enter=0.05, leave=0.12)
    right = intervals.find_hysteresis_runs(values[cut:], enter=0.05, leave=0.12)
    assert first.tolist() == [*left[0].tolist(), *(right[0] + cut).tolist()]
    assert stop.tolist() == [*left[1].tolist(), *(right[1] + cut).tolist()]


def test_hysteresis_needs_one_low_value_and_keeps_its_state_over_nulls() -> None:
    """A run goes on at middling values and nulls, but does not consist of them."""
    values = np.array([0.9, 0.1, 0.04, np.nan, 0.1, 0.9, 0.1, np.nan, 0.9])
    first, stop = intervals.find_hysteresis_runs(values, enter=0.05, leave=0.12)
    assert (first.tolist(), stop.tolist()) == ([1], [5])


@given(_values, st.lists(st.booleans(), max_size=40))
def test_hysteresis_finds_the_same_row_by_row(values: FloatArray, breaks: list[bool]) -> None:
    """The runs are those that a walk over all rows finds."""
    cut = np.array((breaks + [False] * len(values))[: len(values)], dtype=np.bool_)
    first, stop = intervals.find_hysteresis_runs(values, enter=0.05, leave=0.12, breaks=cut)
    all_first, all_stop = intervals.find_runs(values <= 0.05, cut)
    assert list(zip(first.tolist(), stop.tolist(), strict=True)) == _walked(values, cut)
    low = np.where(values <= 0.05, values, 1.0)
    assert list(zip(all_first.tolist(), all_stop.tolist(), strict=True)) == _walked(low, cut)


def _walked(values: FloatArray, breaks: BoolArray) -> list[tuple[int, int]]:
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


@given(widths=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.booleans()), min_size=1, max_size=40))
def test_cells_in_order_cover_what_their_union_covers(widths: list[tuple[int, int, bool]]) -> None:
    """Rows of cells that touch, lie apart or have no width at all give the union of those cells."""
    width, hole, rows = (np.array(each) for each in zip(*widths, strict=True))
    ends = np.cumsum(width + hole)
    starts = ends - width
    expected = intervals.union(np.column_stack([starts[rows], ends[rows]]))
    assert intervals.rows_to_spans(starts, ends, rows).tolist() == expected.tolist()


@given(
    stretches=_spans,
    widths=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=30, max_size=60),
)
def test_overlap_is_the_same_cell_by_cell(stretches: Spans, widths: list[tuple[int, int]]) -> None:
    """Cells beside fewer stretches are not looked at one by one, and count as if they were."""
    width, hole = (np.array(each, dtype=np.int64) for each in zip(*widths, strict=True))
    ends = np.cumsum(width + hole)
    starts = ends - width
    single = [float(intervals.overlap_seconds(starts[[row]], ends[[row]], stretches)[0]) for row in range(len(widths))]
    assert intervals.overlap_seconds(starts, ends, stretches).tolist() == single
