"""What may be said of steps: intervals, verdicts, and what stands in their way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.comparison.chain.step_summaries import summarize_steps
from gpureport.comparison.steps.counted_runs import ShortRun
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.verdicts.repetition_noise import Noise, pool_noise
from gpureport.report.wording.differences.comparison_reasons import describe_reason
from gpureport.testing import Analysis, Device, Reason, ReasonKind, Verdict, Work
from tests.comparison.processes import autoregressive
from tests.comparison.runs import IDLE, POWER, UTILISATION, compared, delta, level, sampled

A100 = Device(id="gpu:0", index=0, model="NVIDIA A100-SXM4-80GB", driver="550.54", power_window="instant")


def three(step: str, mean: float, seconds: int = 120, seed: int = 0) -> list[SampledRun]:
    """Return three runs of a step whose means lie a point apart."""
    return [
        sampled(f"{step}{k}", step=step, util=level(mean + k, seconds, seed + k), power=300.0 + mean + k)
        for k in range(3)
    ]


def test_one_run_against_one_differs_in_this_pair_at_most() -> None:
    """Thirty points are far outside the interval, and yet no repetition confirms them."""
    found = delta(compared(sampled("a", util=level(60, seed=1)), sampled("b", util=level(90, seed=2))))
    assert (found.verdict, found.basis, found.runs, found.window) == (
        Verdict.UNCONFIRMED,
        "within-run",
        (1, 1),
        "steady",
    )
    assert found.interval is not None
    assert found.interval[0] < 0.3 < found.interval[1]
    assert found.primary


def test_a_pair_within_what_repeating_changes_is_no_difference() -> None:
    """A point outside the interval is not two points."""
    found = delta(compared(sampled("a", util=level(60, seed=1)), sampled("b", util=level(61, seed=2))))
    assert found.interval is not None
    assert found.interval[0] > 0
    assert (found.verdict, found.reason) == (Verdict.NO_CLEAR_CHANGE, Reason(kind=ReasonKind.WITHIN_USUAL_NOISE))


def test_noise_that_was_measured_stands_in_for_the_usual() -> None:
    """A quiet store tells a point apart, a loud one not even twenty."""
    runs = sampled("a", util=level(60, seed=1)), sampled("b", util=level(61, seed=2))
    quiet, loud = (pool_noise(UTILISATION, [[0.5, 0.5 + by]] * 20, relative=False) for by in (0.001, 0.2))
    assert quiet is not None
    assert loud is not None
    assert delta(compared(*runs, noise=Noise(metrics=(quiet,)))).verdict is Verdict.UNCONFIRMED
    wide = sampled("a", util=level(60, seed=1)), sampled("b", util=level(80, seed=2))
    assert delta(compared(*wide, noise=Noise(metrics=(loud,)))).verdict is Verdict.NO_CLEAR_CHANGE


def test_three_runs_a_side_are_better_or_worse() -> None:
    """The run is the unit: two minutes each will do. Power is neither good nor bad by itself."""
    comparison = compared(*three("old", 60), *three("new", 80))
    found = delta(comparison)
    assert (found.verdict, found.basis, found.runs) == (Verdict.BETTER, "replicates", (3, 3))
    assert delta(comparison, POWER).verdict is Verdict.DIFFERS
    assert delta(compared(*three("old", 80), *three("new", 60))).verdict is Verdict.WORSE
    assert found.needed is not None
    assert (found.needed.seconds, found.needed.runs) == (None, 4)


def test_an_interval_that_is_narrow_already_takes_nothing_more() -> None:
    """Two points either way are within reach of two runs, but the three that were made are surer than that."""
    near = [
        sampled(f"{step}{k}", step=step, util=level(mean, 300, k, 0.5))
        for step, mean in (("old", 60), ("new", 80))
        for k in range(3)
    ]
    found = delta(compared(*near))
    assert found.interval is not None
    assert found.interval[1] - found.interval[0] < 0.04
    assert found.needed is None


def test_one_run_against_several_is_not_confirmed() -> None:
    """Its scatter is taken from the other side."""
    found = delta(compared(three("old", 60)[0], *three("new", 80)))
    assert (found.verdict, found.basis, found.runs) == (Verdict.UNCONFIRMED, "replicates", (1, 3))


@pytest.mark.parametrize(
    ("seconds", "every", "kind", "amount", "half"),
    [
        (60, 1.0, ReasonKind.SHORT_RUN, 59.0, 0.42),
        (500, 1.0, ReasonKind.SHORT_RUN, 499.0, 0.0875),
        (100, 7.0, ReasonKind.FEW_SAMPLES, 100, 0.0875),
    ],
)
def test_a_load_that_changes_slowly_may_differ_in_short_runs(
    seconds: int, every: float, kind: ReasonKind, amount: float, half: float
) -> None:
    """Under ten minutes, or under 120 bins, eight points may be chance, however little the samples scatter."""
    runs = [
        sampled(name, util=level(mean, seconds, seed), every=every) for name, mean, seed in (("a", 60, 1), ("b", 68, 2))
    ]
    found = delta(compared(*runs))
    assert found.verdict is (Verdict.NOT_ENOUGH_DATA if half > 0.08 else Verdict.UNCONFIRMED)
    assert found.interval is not None
    assert found.difference is not None
    assert found.before is not None
    most = min(found.difference + half, 1 - found.before)
    assert found.interval == pytest.approx((found.difference - half, most), abs=0.002)
    if half > 0.08:
        assert found.reason is not None
        assert (found.reason.kind, found.reason.run, found.reason.amount) == (kind, "a", amount)
        assert found.needed is not None
        assert found.needed.seconds == 600
    equal = [sampled(name, util=level(60, seconds, seed), every=every) for name, seed in (("a", 1), ("b", 2))]
    assert delta(compared(*equal)).verdict is Verdict.NO_CLEAR_CHANGE


@pytest.mark.parametrize("seconds", [25, 45, 60, 120, 300])
def test_a_large_change_is_seen_in_short_runs(seconds: int) -> None:
    """From 43 to 87% in either direction; a change of regime, from 90 to 50%, is no such thing under two minutes."""
    low, high, regime = (
        np.round(mean + autoregressive(seconds, 0.6, 2.5, np.random.default_rng(seed)))
        for mean, seed in ((43, 1), (87, 2), (50, 3))
    )
    low += 43 - low.mean()
    high += 87 - high.mean()
    regime += 90 - 39 - high.mean() + 87 - regime.mean()
    for before, after in ((low, high), (high, low)):
        found = delta(compared(sampled("a", util=before), sampled("b", util=after)))
        assert found.verdict is Verdict.UNCONFIRMED
        assert found.difference == pytest.approx((after.mean() - before.mean()) / 100, abs=0.002)
        assert found.interval is not None
    slow = delta(compared(sampled("a", util=high), sampled("b", util=regime)))
    assert slow.verdict is (Verdict.NOT_ENOUGH_DATA if seconds <= 120 else Verdict.UNCONFIRMED)


def test_fifteen_seconds_are_no_run() -> None:
    """Both values are shown, without an interval."""
    found = delta(compared(sampled("a", util=level(43, 15)), sampled("b", util=level(87, 15))))
    assert (found.verdict, found.interval) == (Verdict.NOT_ENOUGH_DATA, None)
    assert found.reason == Reason(kind=ReasonKind.NOT_COMPARABLE, check="observed_time")


def test_a_repetition_counts_from_a_third_of_the_longest_on() -> None:
    """Three runs of 40 s are three observations; one of 35 s beside two of two minutes is left out and named."""
    old = three("old", 60)
    brief = delta(compared(*old, *three("new", 80, 40)))
    assert (brief.verdict, brief.basis, brief.left_out) == (Verdict.BETTER, "replicates", ())
    like = delta(compared(*old, *three("new", 80)[:2], sampled("like", step="new", util=level(82, 45))))
    assert (like.verdict, like.left_out) == (Verdict.BETTER, ())
    short = sampled("brief", step="new", util=level(10, 35))
    found = delta(compared(*old, *three("new", 80)[:2], short))
    assert found.verdict is Verdict.BETTER
    assert found.after == pytest.approx(0.805, abs=0.003)
    assert found.left_out == (ShortRun(run="brief", seconds=34.0, least=40.0),)


def test_a_step_whose_runs_are_all_too_short_has_no_figure() -> None:
    """Its longest run is named."""
    runs = [sampled(f"new{k}", step="new", util=level(80, 12 + k, k)) for k in range(3)]
    found = delta(compared(*three("old", 60), *runs))
    assert found.verdict is Verdict.NOT_ENOUGH_DATA


def test_start_up_is_left_out_and_shown_beside() -> None:
    """Five idle minutes at the beginning lower the whole recording, not what had settled."""
    late = np.concatenate([np.zeros(300), level(90, 1200, 1)])
    found = delta(compared(sampled("a", util=level(90, 1500, 2)), sampled("b", util=late)))
    assert found.after == pytest.approx(0.9, abs=0.005)
    assert found.verdict is Verdict.NO_CLEAR_CHANGE
    assert found.whole.difference == pytest.approx(-0.18, abs=0.01)


def test_a_run_without_gaps_says_how_rare_they_may_be() -> None:
    """A third of twenty minutes; with gaps on both sides there is nothing to say."""
    gaps = level(90, 1200, 1)
    gaps[300:320] = gaps[700:720] = 0
    quiet = compared(sampled("a", util=level(90, 1200, 1)), sampled("b", util=gaps))
    assert delta(quiet).unseen_gap_seconds == pytest.approx(400, abs=1)
    both = compared(sampled("a", util=gaps), sampled("b", util=np.roll(gaps, 100)))
    assert delta(both).unseen_gap_seconds is None


def test_a_run_against_itself() -> None:
    """No clear change in anything that was recorded, and an interval around zero; unless it is too short to compare."""
    run = sampled("a", util=level(60), power=300.0, clock=1400.0, memory=40.0)
    comparison = compared(run, run)
    recorded = [each for each in comparison.deltas if each.difference is not None]
    assert {each.verdict for each in recorded} == {Verdict.NO_CLEAR_CHANGE}
    assert {each.difference for each in recorded} == {0.0}
    found = delta(comparison)
    assert found.interval is not None
    assert found.interval[0] == pytest.approx(-found.interval[1])
    brief = sampled("a", util=level(60, 10))
    assert {each.verdict for each in compared(brief, brief).deltas} == {Verdict.NOT_ENOUGH_DATA}
    steps = compared(*three("x", 60), *[replace(run, analysis=_as_step(run, "y")) for run in three("x", 60)])
    assert {each.verdict for each in steps.deltas if each.difference is not None} == {Verdict.NO_CLEAR_CHANGE}


def _as_step(run: SampledRun, step: str) -> Analysis:
    return replace(run.analysis, run=replace(run.analysis.run, step=step))


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(3)), st.permutations(range(3)))
def test_the_order_of_repetitions_changes_nothing(before: list[int], after: list[int]) -> None:
    """Every figure, interval and verdict is the same to the bit."""
    old, new = _OLD, _NEW
    shuffled = compared(*(old[place] for place in before), *(new[place] for place in after))
    assert shuffled.deltas == compared(*old, *new).deltas


_OLD, _NEW = three("old", 60, seed=3), three("new", 64, seed=9)


def test_holm_allows_for_the_number_of_steps() -> None:
    """A difference that holds alone need not hold among six comparisons; each row is held against the first as well."""
    first, second = three("a", 60, seed=1), three("b", 63.6, seed=4)
    assert delta(compared(*first, *second)).verdict is Verdict.BETTER
    others = [run for name in "cd" for run in three(name, 63.0, seed=20 + ord(name))]
    chain = compared(*first, *second, *others)
    assert chain.tested == 5
    found = delta(chain)
    assert found.interval is not None
    assert found.interval[0] > 0
    assert (found.verdict, found.reason) == (
        Verdict.NO_CLEAR_CHANGE,
        Reason(kind=ReasonKind.MANY_COMPARISONS, amount=5),
    )
    assert delta(chain, between=(0, 3)).base == "a"


def test_a_gate_bars_what_it_touches_only() -> None:
    """Power read in another way bars power; utilisation is judged."""
    one, other = (
        sampled(name, util=level(mean, seed=seed), power=300.0, device=replace(A100, power_window=window))
        for name, mean, seed, window in (("a", 60, 1, "instant"), ("b", 90, 2, "1 s"))
    )
    comparison = compared(one, other)
    assert delta(comparison, POWER).verdict is Verdict.NOT_ENOUGH_DATA
    assert delta(comparison, POWER).reason == Reason(kind=ReasonKind.NOT_COMPARABLE, check="power_reading")
    assert delta(comparison).verdict is Verdict.UNCONFIRMED


def test_other_gpus_bar_shares_and_not_the_work_done() -> None:
    """Work per GPU-hour is what moving to another GPU is for."""
    runs = [
        sampled(
            f"{model}{k}",
            step=model,
            util=level(80, 300, k),
            work=Work(amount=amount + k, unit="steps"),
            device=replace(A100, model=model),
        )
        for model, amount in (("NVIDIA L4", 100), ("NVIDIA H100", 300))
        for k in range(3)
    ]
    comparison = compared(*runs)
    assert delta(comparison).verdict is Verdict.NOT_ENOUGH_DATA
    found = delta(comparison, "gpu_seconds_per_1000_work")
    assert (found.verdict, found.primary, found.window) == (Verdict.BETTER, True, "whole")


def test_a_finer_log_is_thinned_to_the_coarser() -> None:
    """Every fifth second of the finer one: a pause of two seconds in five is seen as often as it is there."""
    fine = np.tile([90.0, 90.0, 90.0, 0.0, 0.0], 1000)
    coarse = fine[::1][np.arange(1000) * 5 + np.random.default_rng(1).integers(0, 5, 1000)]
    comparison = compared(sampled("a", util=fine), sampled("b", util=coarse, every=5.0))
    found = delta(comparison, IDLE)
    assert found.before in {0.0, 1.0}
    native = delta(compared(sampled("a", util=fine), sampled("c", util=np.roll(fine, 2))), IDLE)
    assert native.before == pytest.approx(0.4, abs=0.002)


def test_totals_need_the_same_work() -> None:
    """GPU-hours of runs that did who knows what say nothing."""
    works = {"none": (None, None), "other": (5.0, 6.0), "same": (5.0, 5.0)}
    found = {}
    for name, amounts in works.items():
        given = [None if amount is None else Work(amount=amount, unit="epochs") for amount in amounts]
        runs = [sampled(f"{name}{k}", util=level(80, 300 + 90 * k, k), work=work) for k, work in enumerate(given)]
        found[name] = delta(compared(*runs), "gpu_seconds")
    assert [found[name].verdict for name in works] == [Verdict.NOT_ENOUGH_DATA] * 2 + [Verdict.UNCONFIRMED]
    assert found["none"].reason == Reason(kind=ReasonKind.UNKNOWN_WORK)
    unequal = found["other"].reason
    assert unequal is not None
    assert unequal.kind is ReasonKind.UNEQUAL_WORK
    assert unequal.amount == pytest.approx(0.2)
    assert "not known" in describe_reason(found["none"].reason)
    assert describe_reason(unequal).endswith("the work of these runs differs by 20%.")


def test_peak_memory_of_a_pair_is_held_against_what_repeating_changes() -> None:
    """It has no scatter within a run, so there is no interval; ten per cent are beyond the margin."""
    comparison = compared(
        sampled("a", util=90.0 + np.zeros(120), memory=40.0), sampled("b", util=90.0 + np.zeros(120), memory=44.0)
    )
    found = delta(comparison, "gpu_memory_used_bytes")
    assert (found.verdict, found.interval) == (Verdict.UNCONFIRMED, None)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [40, 600])
def test_repetitions_of_any_length_keep_their_promise(seconds: int) -> None:
    """Three runs a side that differ by two points among themselves: 95% of 80 intervals hold six points, or none."""
    rng = np.random.default_rng([12, seconds])
    for gain in (0.0, 6.0):
        inside = claimed = 0
        for trial in range(80):
            runs = [
                sampled(
                    f"{step}{k}-{trial}",
                    step=step,
                    util=np.round(mean + rng.normal(0, 2) + autoregressive(seconds, 0.9, 3.0, rng)),
                )
                for step, mean in (("a", 70.0), ("b", 70.0 + gain))
                for k in range(3)
            ]
            found = delta(compared(*runs))
            assert found.interval is not None
            inside += found.interval[0] <= gain / 100 <= found.interval[1]
            claimed += found.verdict in {Verdict.BETTER, Verdict.WORSE}
        # three standard errors below and above what is promised
        assert inside >= 70
        assert gain > 0 or claimed <= 10


def test_false_claims_on_equal_steps_stay_rare() -> None:
    """A/A at an autocorrelation of 0.9, pairs of twenty minutes: verdicts on at most 7% of them."""
    rng = np.random.default_rng(11)
    false = 0
    for trial in range(60):
        sides = []
        for name in "ab":
            noise = rng.standard_normal(1200)
            for place in range(1, 1200):
                noise[place] = 0.9 * noise[place - 1] + 0.436 * noise[place]
            sides.append(sampled(f"{name}{trial}", util=np.round(np.clip(80 + 3 * noise, 0, 100))))
        false += delta(compared(*sides)).verdict is not Verdict.NO_CLEAR_CHANGE
    assert false <= 4


def test_a_step_with_one_long_run_left_has_no_interval_of_repetitions() -> None:
    """A repetition of 40 s beside one of 20 min is left out, and one run has no scatter."""
    runs = [
        sampled(f"{step}{seconds}", step=step, util=level(mean, seconds), work=Work(amount=seconds, unit="steps"))
        for step, mean in (("old", 60), ("new", 80))
        for seconds in (1200, 40)
    ]
    (summary, _) = summarize_steps(compared(*runs).steps)
    assert summary.work_per_gpu_hour is not None
    assert summary.work_per_gpu_hour.interval is None
