"""Which runs of a step count: by the time they hold, and by how many samples stand for it."""

import numpy as np
import pytest

from gpureport.comparison.steps.counted_runs import count_runs
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.wording.differences.comparison_reasons import describe_left_out
from gpureport.report.wording.display import GAP
from gpureport.testing import Verdict, Work
from tests.comparison.runs import UTILISATION, compared, level, sampled


@pytest.mark.parametrize(
    ("every", "seconds", "counts"),
    [(1.0, 25, True), (1.0, 15, False), (10.0, 40, False), (10.0, 70, True), (20.0, 80, True)],
)
def test_a_short_run_counts_where_samples_are_dense(every: float, seconds: int, counts: bool) -> None:  # noqa: FBT001 - a parameter
    """Four samples of a tracker that takes one every 10 s are no mean of 40 s; a minute always counts."""
    run = sampled("a", util=level(90, int(seconds / every)), every=every)
    found = count_runs([run], UTILISATION, every)
    assert bool(found.counted) == counts


def test_a_run_that_stopped_early_does_not_silence_its_step() -> None:
    """Start-up is most of its 34 s: it is left out of the gain and named; one that did all its work is not."""

    def timed(name: str, step: str, seconds: int, samples: float) -> SampledRun:
        util = np.concatenate([np.zeros(20), level(80, seconds - 20)])
        return sampled(name, step=step, work=Work(amount=samples, unit="samples"), util=util)

    old = [timed(f"old{k}", "old", 600 + 3 * k, 1e5) for k in range(3)]
    new = [timed(f"new{k}", "new", 300 + 3 * k, 1e5) for k in range(2)]
    found = compared(*old, *new, timed("brief", "new", 35, 3000))
    for judged in (found.judged("old", "new"), found.judged_training("old", "new")):
        assert judged is not None
        assert (judged.verdict, judged.runs) == (Verdict.BETTER, (3, 2))
        assert [(run.run, run.stopped) for run in judged.left_out] == [("brief", True)]
        assert judged.after == pytest.approx(found.steps[1].value(judged.metric))
        said = describe_left_out(judged.left_out).replace(GAP, " ")
        assert said == "brief (34 s) did less than a third of the work and was left out."
    fast = compared(*old, *new, timed("brief", "new", 35, 1e5)).judged("old", "new")
    assert fast is not None
    assert (fast.left_out, fast.runs) == ((), (3, 3))
