"""What series keep, up to a limit."""

from dataclasses import dataclass

import numpy as np
import pytest

from gpureport import columns
from gpureport.analysis.series import array_cache
from gpureport.analysis.series.array_cache import ArrayCache, Memo
from gpureport.columns import FloatArray
from gpureport.testing import analyze, recording, steps


@dataclass(frozen=True)
class Signals:
    """What holds an array among others."""

    power: FloatArray
    limit: float


def test_the_oldest_arrays_go_first_whichever_series_made_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In tuples and dataclasses as well; what takes no memory stays."""
    monkeypatch.setattr(array_cache, "MOST_BYTES", 2_000)
    cache, memos = ArrayCache(), (Memo(), Memo())
    cache.keep(memos[0], "a number", 3.0)
    cache.keep(memos[0], "one value", columns.repeat_value(1.0, 10**9))
    cache.keep(memos[0], "an array", np.zeros(100))
    cache.keep(memos[1], "another array", np.zeros(50))
    cache.keep(memos[1], "a tuple", (np.zeros(50), slice(3)))
    assert [*memos[0]] == ["a number", "one value", "an array"]
    cache.keep(memos[0], "a dataclass", Signals(np.zeros(100), 1.0))
    assert [*memos[0]] == ["a number", "one value", "a dataclass"]
    assert [*memos[1]] == ["another array", "a tuple"]
    cache.keep(memos[1], "too large alone", np.zeros(10_000))
    assert [*memos[1]] == ["too large alone"]
    del memos
    cache.keep(Memo(), "of a series that is gone", np.zeros(100))


def test_an_analysis_is_the_same_however_little_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is made again when it is needed again."""
    busy = steps((0, 60), (97, 300), (0, 90), (97, 300))
    run = recording(util=[busy, np.full(len(busy), 97.0)], power=[60 + 3 * busy, 350.0 + busy], memory=40, clock=1410)
    expected = analyze(run)
    monkeypatch.setattr(array_cache, "MOST_BYTES", 1)
    assert analyze(run) == expected
