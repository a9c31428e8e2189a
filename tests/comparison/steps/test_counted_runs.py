"""Which runs of a step count: by the time they hold, and by how many samples stand for it."""

import pytest

from gpureport.comparison.steps.counted_runs import count_runs
from tests.comparison.runs import UTILISATION, level, sampled


@pytest.mark.parametrize(
    ("every", "seconds", "counts"),
    [(1.0, 25, True), (1.0, 15, False), (10.0, 40, False), (10.0, 70, True), (20.0, 80, True)],
)
def test_a_short_run_counts_where_samples_are_dense(every: float, seconds: int, counts: bool) -> None:  # noqa: FBT001 - a parameter
    """Four samples of a tracker that takes one every 10 s are no mean of 40 s; a minute always counts."""
    run = sampled("a", util=level(90, int(seconds / every)), every=every)
    found = count_runs([run], UTILISATION, every)
    assert bool(found.counted) == counts
