"""Which place in its tick a row has, however the log is cut into sections."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpureport.columns import IntArray
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_positions import TickPositions, assign_positions
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_size import Ticks

BY_GAPS = Ticks(size=3, confidence="high", evidence="made up", gap=100_000)
BY_COUNT = Ticks(size=3, confidence="low", evidence="made up")


def stamps(sizes: list[int]) -> IntArray:
    """Return stamps of ticks of these sizes, a second apart, their rows 2 ms apart."""
    return np.array([1_000_000 * tick + 2000 * row for tick, size in enumerate(sizes) for row in range(size)], np.int64)


def expected(sizes: list[int]) -> list[int]:
    """Return the positions of rows of ticks of these sizes."""
    return [row if size == 3 else -1 for size in sizes for row in range(size)]


@given(st.lists(st.integers(1, 9), max_size=12), st.lists(st.integers(0, 60), max_size=8))
def test_cuts_change_nothing(sizes: list[int], cuts: list[int]) -> None:
    """Sections cut anywhere, some of them empty, get the positions of the whole, each those of its own rows."""
    parts = np.split(stamps(sizes), sorted(min(cut, sum(sizes)) for cut in cuts))
    positions = TickPositions(BY_GAPS)
    found = list(assign_positions(positions, parts, lambda part: part))
    assert [len(part) for part, _ in found] == [len(part) for part in parts]
    assert all(len(part) == len(places) for part, places in found)
    assert [place for _, places in found for place in places.tolist()] == expected(sizes)
    assert (positions.fitting, positions.unfitting) == (sizes.count(3), len(sizes) - sizes.count(3))


@given(st.lists(st.integers(1, 9), max_size=12), st.lists(st.integers(0, 60), max_size=8))
def test_no_more_rows_are_held_back_than_a_tick_has(sizes: list[int], cuts: list[int]) -> None:
    """What is not told yet is at most one tick, however long the log goes on without a gap."""
    positions = TickPositions(BY_GAPS)
    given_rows = told = 0
    for part in np.split(stamps(sizes), sorted(min(cut, sum(sizes)) for cut in cuts)):
        given_rows += len(part)
        told += len(positions.assign(part))
        assert given_rows - told == positions.pending <= 3
    assert told + len(positions.finish()) == given_rows


def test_a_clock_set_back_ends_a_tick() -> None:
    """A log that was started anew begins a tick, though its stamps are earlier."""
    times = np.concatenate([stamps([3, 2]) + 10**9, stamps([3, 3])])
    positions = TickPositions(BY_GAPS)
    assert [*positions.assign(times), *positions.finish()] == [0, 1, 2, -1, -1, 0, 1, 2, 0, 1, 2]


@given(st.lists(st.integers(0, 20), max_size=6))
def test_without_gaps_rows_are_counted_off(sections: list[int]) -> None:
    """Where gaps tell nothing, the number of the row does; a last tick that is short does not fit."""
    positions = TickPositions(BY_COUNT)
    found = [place for rows in sections for place in positions.assign(np.zeros(rows, np.int64)).tolist()]
    assert positions.finish().tolist() == []
    assert found == [row % 3 for row in range(sum(sections))]
    assert (positions.fitting, positions.unfitting) == (sum(sections) // 3, int(sum(sections) % 3 > 0))
