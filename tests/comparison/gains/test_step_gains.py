"""The table of gains: ratios of each step to the one before and to the first."""

from dataclasses import replace

import pytest

from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.gains.step_gains import RelativeChange, build_gains
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import PER_WORK, WORK_RATE
from gpureport.testing import Verdict, Work
from tests.comparison.configured_runs import advising, compare_configured, configured
from tests.comparison.runs import level, sampled


def runs(step: str, seconds: int, *, gpus: int = 1, power: float = 200.0) -> list[SampledRun]:
    """Return three repetitions that do the same work in about so many seconds."""
    lengths = [seconds + at for at in (-1, 0, 1)]
    return [
        sampled(
            f"{step} {at}",
            step=step,
            work=Work(amount=1000, unit="images"),
            util=[level(90, length, at)] * gpus,
            power=[level(power, length, at)] * gpus,
        )
        for at, length in enumerate(lengths)
    ]


def ratio(change: RelativeChange | None) -> float:
    """Return the ratio of a change that is known."""
    assert change is not None
    return change.ratio


def test_ratios_to_the_step_before_and_to_the_first() -> None:
    """Half the time is twice as fast, with the ends of the interval of the figure that was judged."""
    comparison = compare([*runs("a", 400), *runs("b", 200), *runs("c", 100)])
    first, second, third = build_gains(comparison)
    assert (first.since_before, first.since_first) == (None, None)
    assert second.since_before == second.since_first
    assert third.since_before is not None
    assert third.since_first is not None
    assert (third.since_before.base, third.since_first.base) == ("b", "a")
    assert ratio(third.since_before.whole_job) == pytest.approx(2, rel=0.02)
    assert ratio(third.since_first.whole_job) == pytest.approx(4, rel=0.02)
    assert ratio(third.since_first.gpu_time) == pytest.approx(0.25, rel=0.02)
    assert ratio(third.since_first.energy) == pytest.approx(0.25, rel=0.05)
    judged, speed = comparison.judged("a", "c"), third.since_first.whole_job
    assert judged is not None
    assert judged.interval is not None
    assert judged.before
    assert speed is not None
    assert speed.verdict is judged.verdict is Verdict.BETTER
    assert speed.interval is not None
    assert speed.interval == pytest.approx([1 / (1 + end / judged.before) for end in reversed(judged.interval)])
    assert speed.interval[0] < speed.ratio < speed.interval[1]


def test_without_a_price_there_is_no_cost() -> None:
    """Null, not zero; with prices the cost is that of the GPU time."""
    plain = [*runs("a", 200), *runs("b", 100)]
    since = build_gains(compare(plain))[1].since_before
    assert since is not None
    assert since.cost is None
    priced = build_gains(compare([replace(run, gpu_hour_price=2.0) for run in plain]))[1].since_before
    assert priced is not None
    assert ratio(priced.cost) == pytest.approx(ratio(priced.gpu_time))


def test_more_gpus_are_faster_at_more_gpu_time() -> None:
    """Speed is of the job and not of one GPU: two GPUs in six tenths of the time take more GPU time."""
    since = build_gains(compare([*runs("a", 300), *runs("b", 180, gpus=2)]))[1].since_before
    assert since is not None
    assert ratio(since.whole_job) == pytest.approx(300 / 180, rel=0.03)
    assert ratio(since.gpu_time) == pytest.approx(2 * 180 / 300, rel=0.03)


def test_without_work_nothing_is_said_of_speed() -> None:
    """Utilisation is no gain: figures per unit of work are null."""
    since = build_gains(compare_configured(configured("a"), configured("b")))[1].since_before
    assert since is not None
    assert (since.whole_job, since.gpu_time, since.cost, since.energy) == (None, None, None, None)


def test_a_ratio_without_a_bound_has_no_interval() -> None:
    """The reciprocal of an interval that reaches zero has no upper end."""
    change = RelativeChange(
        metric=PER_WORK, ratio=0.5, interval=(0.0, 1.2), verdict=Verdict.NO_CLEAR_CHANGE, reason=None
    )
    assert (change.inverted(WORK_RATE).ratio, change.inverted(WORK_RATE).interval) == (2.0, None)


def test_changes_advice_and_findings_stand_in_one_row() -> None:
    """What was changed, who advised it, and what became of the finding; ids of runs are left out."""
    before = configured("a", {"workers": "2"}, tags={"sys/id": "X-1"}, findings=[advising("loader_workers")])
    row = build_gains(compare_configured(before, configured("b", {"workers": "14"}, tags={"sys/id": "X-2"})))[1]
    assert row.params_recorded
    assert [(change.key, change.before, change.after) for change in row.changes] == [("workers", "2", "14")]
    assert [change.name for change in row.advised] == ["loader_workers"]
    assert [(change.kind, change.change.value) for change in row.findings] == [("low_util_cause_unknown", "resolved")]
