"""How many GPUs a log holds when no column names them."""

import numpy as np
import pytest

from gpureport.columns import IntArray
from gpureport.importers.logs.nvidia_smi.query.unnamed_gpus.tick_size import Ticks, infer_ticks


def stamps(ticks: int, size: int, *, inside: int = 1, every: int = 1000) -> IntArray:
    """Return stamps in microseconds of ticks of `size` rows that lie `inside` milliseconds apart."""
    return (1000 * (np.arange(ticks)[:, None] * every + np.arange(size) * inside)).reshape(-1).astype(np.int64)


def memory(ticks: int, size: int) -> IntArray:
    """Return a slow column: every GPU holds memory of its own, which grows now and then."""
    return (1000 * np.arange(size) + np.arange(ticks)[:, None] // 50 * 7).reshape(-1).astype(np.int64)


def test_ticks_of_four_rows() -> None:
    """Four GPUs a millisecond apart are seen by the gaps; the last tick may be cut and counts for nothing."""
    used = np.tile([100.0, 200.0, 300.0, 400.0], 98) + np.arange(98 * 4) % 7
    found = infer_ticks(stamps(98, 4)[:-1], [used[:-1]])
    assert found is not None
    assert (found.size, found.confidence, found.evidence) == (4, "high", "97 of 97 ticks hold 4 rows")


def test_bursts_of_one_gpu_are_no_sure_ticks() -> None:
    """Three samples in a burst look like three GPUs; where no column tells the places apart, that is not sure."""
    chance = np.random.default_rng(1)
    found = infer_ticks(stamps(98, 3, inside=50, every=5000), [chance.integers(0, 100, 98 * 3)])
    assert found is not None
    assert (found.size, found.confidence) == (3, "low")


def test_some_ticks_may_lack_a_row() -> None:
    """Three GPUs every 104 ms, 5 ms apart, with a lost row now and then, are three GPUs."""
    found = infer_ticks(np.delete(stamps(3000, 3, inside=5, every=104), [301, 4000, 7001]))
    assert found is not None
    assert (found.size, found.evidence) == (3, "2,996 of 2,999 ticks hold 3 rows")


def test_many_ticks_that_lack_a_row_lower_the_confidence() -> None:
    """Distances still tell the ticks, and most of them how many GPUs there are."""
    times = stamps(500, 4, inside=3, every=200)
    chance = np.random.default_rng(2)
    lacking = np.flatnonzero(chance.random(500) < 0.2) * 4 + 1
    found = infer_ticks(np.delete(times, lacking), [np.delete(np.arange(2000) % 4, lacking)])
    assert found is not None
    assert (found.size, found.confidence) == (4, "low")


def test_bursts_of_any_length_are_no_ticks() -> None:
    """Where ticks hold more rows than usual as often as fewer, nobody knows how many GPUs there are."""
    chance = np.random.default_rng(3)
    lengths = chance.choice([2, 3, 4], 300, p=[0.2, 0.6, 0.2])
    gaps = np.concatenate([np.append([500], np.full(length - 1, 4)) for length in lengths])
    assert infer_ticks(np.cumsum(gaps).astype(np.int64) * 1000) is None


@pytest.mark.parametrize("inside", [3, 12, 17, 22])
def test_ticks_with_100_ms_and_more_between(inside: int) -> None:
    """The limit lies between the distances, however it falls among powers of two."""
    found = infer_ticks(stamps(100, 4, inside=inside, every=100 + 3 * inside))
    assert found is not None
    assert found.size == 4


def test_the_limit_bears_a_stall_within_a_tick() -> None:
    """Rows that come 50 ms apart under load are of the tick they belong to, even where the head shows none."""
    found = infer_ticks(stamps(50, 2))
    assert found is not None
    assert found.gap is not None
    assert 50_000 < found.gap < 500_000


def stretched(ticks: int) -> IntArray:
    """Return stamps of eight GPUs whose rows come up to 290 ms apart, the next tick a second after the last row."""
    chance = np.random.default_rng(4)
    inside = np.where(chance.random((ticks, 7)) < 0.3, chance.integers(100, 290, (ticks, 7)), 1)
    gaps = np.concatenate([np.full((ticks, 1), 1000), inside], axis=1)
    return np.cumsum(gaps.reshape(-1)).astype(np.int64) * 1000


def test_stretched_ticks_are_told_by_a_slow_column() -> None:
    """Where gaps do not part the ticks, memory that repeats itself every eight rows does, with less confidence."""
    times = stretched(200)
    assert infer_ticks(times) is None
    found = infer_ticks(times, [memory(200, 8)])
    assert found == Ticks(size=8, confidence="low", evidence="a column repeats itself after 8 rows, in 98.5% of them")


def test_rows_that_fill_no_ticks_are_not_counted_off() -> None:
    """With a row missing somewhere, counting would give rows to the wrong GPU; at a cut head it does not show."""
    times, column = stretched(200)[:-3], memory(200, 8)[:-3]
    assert infer_ticks(times, [column]) is None
    assert infer_ticks(times, [column], whole=False) is not None


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(stamps(500, 1), id="every second"),
        pytest.param(stamps(500, 1, every=7), id="every 7 ms"),
        pytest.param(np.sort(np.concatenate([stamps(500, 1), stamps(500, 1)[::9]])), id="some rows twice"),
        pytest.param(stamps(500, 1, every=250) // 1_000_000 * 1_000_000, id="four a second, whole seconds"),
        pytest.param(stamps(100, 5, inside=100, every=10_000), id="five in a row every ten seconds"),
        pytest.param(stamps(2, 4), id="too few ticks"),
        pytest.param(stamps(0, 1), id="nothing"),
    ],
)
def test_one_gpu_has_no_ticks(times: IntArray) -> None:
    """No gap structure of one GPU's log looks like several, whatever its column does."""
    assert infer_ticks(times) is None
    assert infer_ticks(times, [np.arange(len(times)) // 20]) is None


def test_a_gpu_written_twice_is_one() -> None:
    """Rows of a tick that never differ, though ticks do, are copies."""
    times, slow = stamps(100, 2, inside=0), np.repeat(np.arange(100) // 3, 2)
    assert infer_ticks(times, [slow]) is None
    found = infer_ticks(times, [slow, np.arange(200) % 2])
    assert found is not None
    assert found.size == 2


def test_a_periodic_workload_is_no_tick() -> None:
    """A column that repeats itself every five samples of an even clock is a workload, not five GPUs."""
    assert infer_ticks(stamps(500, 1), [np.arange(500) % 5 * 100]) is None
