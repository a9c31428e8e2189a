"""What may be said of two steps: interval, verdict, and the code of what stands in its way."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport import Analysis, testing
from gpureport.testing import Device, Verdict, Work, check
from tests.statistics import runs as made_runs
from tests.statistics.processes import autoregressive
from tests.statistics.runs import COST_PER_WORK, IDLE, PER_WORK, POWER, compared, delta, document, level, made, reason

A100 = Device(id="gpu:0", index=0, model="NVIDIA A100-SXM4-80GB", driver="550.54", power_window="instant")


def three(step: str, mean: float, seconds: int = 120, seed: int = 0) -> list[Analysis]:
    return made_runs.thrice(
        lambda _, k: {"util": level(mean + k, seconds, seed + k), "power": 300.0 + mean + k}, {step: None}
    )


def test_repetitions_are_better_or_worse_and_narrow_enough() -> None:
    comparison = compared(*three("old", 60), *three("new", 80))
    found = delta(comparison)
    assert (found.verdict, found.basis, found.runs) == (Verdict.BETTER, "replicates", (3, 3))
    assert delta(comparison, POWER).verdict is Verdict.DIFFERS
    assert delta(compared(*three("old", 80), *three("new", 60))).verdict is Verdict.WORSE
    assert (found.needed.seconds, found.needed.runs) == (None, 4)
    near = made_runs.thrice(lambda mean, k: {"util": level(mean, 300, k, 0.5)}, {"old": 60, "new": 80})
    found = delta(compared(*near))
    assert found.interval[1] - found.interval[0] < 0.04
    assert found.needed is None


def test_no_more_than_a_thousand_runs_are_asked_for() -> None:
    """Runs whose power scatters by 68.4 W have an interval of 6 W, 2 per cent of 300 W, from 1000 a side on."""
    for scatter, runs in ((68.37, 999), (68.4, 1000), (68.5, None)):
        powers = [(step, 300.0 + scatter * k) for step in "ab" for k in (-1, 0, 1)]
        many = [made(f"{watts}", step=step, util=level(80, 60), power=watts) for step, watts in powers]
        assert delta(compared(*many), POWER).needed.runs == runs, scatter
    for scatter, runs in ((0.9, 2), (1.0, 3)):
        few = [
            made(f"{k}", step=s, util=level(80, 60), power=300 + scatter * k)
            for s, k in (("a", -1), ("a", 1), ("b", 0))
        ]
        assert delta(compared(*few), POWER).needed.runs == runs, scatter


def test_single_runs_differ_in_this_pair_at_most() -> None:
    found = delta(compared(made("a", util=level(60, seed=1)), made("b", util=level(90, seed=2))))
    assert (found.verdict, found.basis, found.runs) == (Verdict.UNCONFIRMED, "within-run", (1, 1))
    assert (found.window, found.primary) == ("steady", True)
    assert found.interval[0] < 0.3 < found.interval[1]
    found = delta(compared(made("a", util=level(60, seed=1)), made("b", util=level(61, seed=2))))
    assert found.interval[0] > 0
    assert (found.verdict, reason(found)) == (Verdict.NO_CLEAR_CHANGE, "within_usual_noise")
    found = delta(compared(three("old", 60)[0], *three("new", 80)))
    assert (found.verdict, found.basis, found.runs) == (Verdict.UNCONFIRMED, "replicates", (1, 3))


@pytest.mark.parametrize(
    ("seconds", "every", "code", "amount", "half"),
    [
        (60, 1.0, "short_run", 59.0, 0.42),
        (500, 1.0, "short_run", 499.0, 0.0875),
        (100, 7.0, "few_samples", 100, 0.0875),
    ],
)
def test_a_load_that_changes_slowly_may_differ_in_short_runs(
    seconds: int, every: float, code: str, amount: float, half: float
) -> None:
    """Under ten minutes, or under 120 bins, eight points may be chance, however little the samples scatter."""
    runs = [
        made(name, util=level(mean, seconds, seed), every=every) for name, mean, seed in (("a", 60, 1), ("b", 68, 2))
    ]
    found = delta(compared(*runs))
    assert found.verdict is (Verdict.NOT_ENOUGH_DATA if half > 0.08 else Verdict.UNCONFIRMED)
    most = min(found.difference + half, 1 - found.before)
    assert found.interval == pytest.approx((found.difference - half, most), abs=0.002)
    if half > 0.08:
        assert (found.reason.kind, found.reason.run, found.reason.amount) == (code, "a", amount)
        assert found.needed.seconds == 600
    equal = [made(name, util=level(60, seconds, seed), every=every) for name, seed in (("a", 1), ("b", 2))]
    assert delta(compared(*equal)).verdict is Verdict.NO_CLEAR_CHANGE


def test_two_points_of_a_share_are_usual_between_runs() -> None:
    for count, why in ((22, "within_usual_noise"), (30, "not_repeated")):
        gaps = np.full(1200, 97.0)
        gaps[np.arange(count) * (1200 // count) + 5] = 0
        for sides in ((np.full(1200, 97.0), gaps), (gaps, np.full(1200, 97.0))):
            found = delta(compared(*(made(name, util=util) for name, util in zip("ab", sides, strict=True))), IDLE)
            assert (abs(found.difference), reason(found)) == (pytest.approx(count / 1200), why)
            # an interval of 0.84 points in 20 min gets as wide as two points in 0.84² / 2² of the time
            assert found.needed.half_width == 0.02
            assert found.needed.seconds == pytest.approx(1200 * (0.00835 / 0.02) ** 2, rel=0.001)


def test_a_large_change_is_seen_in_short_runs() -> None:
    """From 43 to 87% in either direction; a change of regime, from 90 to 50%, is no such thing under two minutes."""
    for seconds in (25, 45, 60, 120, 300):
        low, high, regime = (
            np.round(mean + autoregressive(seconds, 0.6, 2.5, np.random.default_rng(seed)))
            for mean, seed in ((43, 1), (87, 2), (50, 3))
        )
        low += 43 - low.mean()
        high += 87 - high.mean()
        regime += 90 - 39 - high.mean() + 87 - regime.mean()
        for before, after in ((low, high), (high, low)):
            found = delta(compared(made("a", util=before), made("b", util=after)))
            assert (found.verdict, found.interval is None) == (Verdict.UNCONFIRMED, False), seconds
            assert found.difference == pytest.approx((after.mean() - before.mean()) / 100, abs=0.002)
        slow = delta(compared(made("a", util=high), made("b", util=regime)))
        assert slow.verdict is (Verdict.NOT_ENOUGH_DATA if seconds <= 120 else Verdict.UNCONFIRMED), seconds


def test_a_repetition_counts_from_a_third_of_the_longest_on() -> None:
    """Three runs of 40 s are three observations; one of 35 s beside two of two minutes is left out and named."""
    old = three("old", 60)
    brief = delta(compared(*old, *three("new", 80, 40)))
    assert (brief.verdict, brief.basis, brief.left_out) == (Verdict.BETTER, "replicates", ())
    like = delta(compared(*old, *three("new", 80)[:2], made("like", step="new", util=level(82, 45))))
    assert (like.verdict, like.left_out) == (Verdict.BETTER, ())
    found = delta(compared(*old, *three("new", 80)[:2], made("brief", step="new", util=level(10, 35))))
    assert found.verdict is Verdict.BETTER
    assert found.after == pytest.approx(0.805, abs=0.003)
    assert [(run.run, run.seconds, run.least) for run in found.left_out] == [("brief", 34.0, 40.0)]


def test_a_short_run_counts_where_samples_are_dense() -> None:
    """Four samples of a tracker that takes one every 10 s are no mean of 40 s; a minute always counts."""
    cases = ((1.0, 25, True), (1.0, 15, False), (10.0, 40, False), (10.0, 70, True), (20.0, 80, True))
    for every, seconds, counts in cases:
        run, other = (made(name, util=level(90, int(seconds / every)), every=every) for name in "ab")
        assert (document(run, other)["groups"][0]["brief"] is None) == counts, (every, seconds)


def test_a_run_that_stopped_early_does_not_silence_its_step() -> None:
    """Start-up is most of its 34 s: it is left out of the gain and named; one that did all its work is not."""

    def timed(name: str, step: str, seconds: int, samples: float) -> Analysis:
        util = np.concatenate([np.zeros(20), level(80, seconds - 20)])
        return made(name, step=step, work=Work(amount=samples, unit="samples"), util=util)

    old = [timed(f"old{k}", "old", 600 + 3 * k, 1e5) for k in range(3)]
    new = [timed(f"new{k}", "new", 300 + 3 * k, 1e5) for k in range(2)]
    found = compared(*old, *new, timed("brief", "new", 35, 3000))
    for one in (found.judged("old", "new"), found.judged_training("old", "new")):
        assert (one.verdict, one.runs) == (Verdict.BETTER, (3, 2))
        assert [(run.run, run.stopped) for run in one.left_out] == [("brief", True)]
        assert one.after == pytest.approx(found.steps[1].value(one.metric))
    unpriced = delta(found, COST_PER_WORK)
    assert (reason(unpriced), unpriced.runs, len(unpriced.left_out)) == ("no_price", (3, 3), 1)
    fast = compared(*old, *new, timed("brief", "new", 35, 1e5)).judged("old", "new")
    assert (fast.left_out, fast.runs) == ((), (3, 3))


def test_what_is_not_of_the_job_is_not_steady() -> None:
    util = np.concatenate([np.zeros(3), np.full(30, 97.0), np.zeros(3)])
    for is_seen in (True, False):
        job = np.full(36, 0.5)
        job[33 if is_seen else 36 :] = np.nan
        ends = {"cpu": np.full(36, 20.0), "host": {"cores_of_job": job}}
        found = delta(compared(*(made(name, util=util, **ends) for name in "ab")), IDLE)  # type: ignore[arg-type]  # of the host
        assert (found.before == 0) == is_seen
    # samples come some milliseconds early or late, and the steady state begins with the first work all the same
    for before in (0, 1, 4):
        for jitter in (-0.01, -0.003, 0.003, 0.01):
            times = np.arange(before + 30.0)
            times[1:] += jitter
            late = made("a", util=np.concatenate([np.zeros(before), np.full(30, 97.0)]), times=times)
            found = delta(compared(late, made("b", util=np.full(30, 97.0))), IDLE)
            assert found.before == 0, (before, jitter)


def test_start_up_and_gaps_are_shown_beside() -> None:
    late = np.concatenate([np.zeros(300), level(90, 1200, 1)])
    found = delta(compared(made("a", util=level(90, 1500, 2)), made("b", util=late)))
    assert found.after == pytest.approx(0.9, abs=0.005)
    assert found.verdict is Verdict.NO_CLEAR_CHANGE
    assert found.whole.difference == pytest.approx(-0.18, abs=0.01)
    gaps = level(90, 1200, 1)
    gaps[300:320] = gaps[700:720] = 0
    quiet = compared(made("a", util=level(90, 1200, 1)), made("b", util=gaps))
    assert delta(quiet).unseen_gap_seconds == pytest.approx(400, abs=1)
    both = compared(made("a", util=gaps), made("b", util=np.roll(gaps, 100)))
    assert delta(both).unseen_gap_seconds is None


def test_a_run_against_itself() -> None:
    run = made("a", util=level(60), power=300.0, clock=1400.0, memory=40.0)
    comparison = compared(run, run)
    recorded = [each for each in comparison.deltas if each.difference is not None]
    assert {(each.verdict, each.difference) for each in recorded} == {(Verdict.NO_CLEAR_CHANGE, 0.0)}
    found = delta(comparison)
    assert found.interval[0] == pytest.approx(-found.interval[1])
    brief = made("a", util=level(60, 10))
    assert {each.verdict for each in compared(brief, brief).deltas} == {Verdict.NOT_ENOUGH_DATA}
    again = [replace(run, run=replace(run.run, step="y")) for run in three("x", 60)]
    steps = compared(*three("x", 60), *again)
    assert {each.verdict for each in steps.deltas if each.difference is not None} == {Verdict.NO_CLEAR_CHANGE}


_OLD, _NEW = three("old", 60, seed=3), three("new", 64, seed=9)


@settings(max_examples=12, deadline=None)
@given(st.permutations(range(3)), st.permutations(range(3)), st.integers(2, 3))
def test_the_order_of_repetitions_changes_nothing_and_that_of_steps_the_sign(
    before: list[int], after: list[int], count: int
) -> None:
    old, new = [_OLD[place] for place in before[:count]], [_NEW[place] for place in after]
    assert compared(*old, *new).deltas == compared(*sorted(old, key=_OLD.index), *_NEW).deltas
    found, turned = delta(compared(*old, *new)), delta(compared(*new, *old))
    assert turned.difference == pytest.approx(-found.difference)
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]))


def test_holm_allows_for_the_number_of_steps() -> None:
    first, second = three("a", 60, seed=1), three("b", 63.6, seed=4)
    assert delta(compared(*first, *second)).verdict is Verdict.BETTER
    chain = compared(*first, *second, *(run for name in "cd" for run in three(name, 63.0, seed=20 + ord(name))))
    assert chain.tested == 5
    found = delta(chain)
    assert found.interval[0] > 0
    assert (found.verdict, reason(found)) == (Verdict.NO_CLEAR_CHANGE, "many_comparisons")
    assert found.reason.amount == 5
    assert delta(chain, between=(0, 3)).base == "a"


def test_runs_too_short_have_no_figure_and_a_gate_bars_what_it_touches() -> None:
    found = delta(compared(made("a", util=level(43, 15)), made("b", util=level(87, 15))))
    assert (found.verdict, found.interval, reason(found)) == (Verdict.NOT_ENOUGH_DATA, None, "observed_time")
    runs = [made(f"new{k}", step="new", util=level(80, 12 + k, k)) for k in range(3)]
    assert delta(compared(*three("old", 60), *runs)).verdict is Verdict.NOT_ENOUGH_DATA
    one, other = (
        made(name, util=level(mean, seed=seed), power=300.0, device=replace(A100, power_window=window))
        for name, mean, seed, window in (("a", 60, 1, "instant"), ("b", 90, 2, "1 s"))
    )
    comparison = compared(one, other)
    power = delta(comparison, POWER)
    assert (power.verdict, reason(power)) == (Verdict.NOT_ENOUGH_DATA, "power_reading")
    assert delta(comparison).verdict is Verdict.UNCONFIRMED


def test_other_gpus_bar_shares_and_not_the_work_done() -> None:
    def work(given: tuple[str, int], k: int) -> dict[str, Any]:
        model, amount = given
        done = Work(amount=amount + k, unit="steps")
        return {"util": level(80, 300, k), "work": done, "device": replace(A100, model=model)}

    comparison = compared(*made_runs.thrice(work, {"a": ("NVIDIA L4", 100), "b": ("NVIDIA H100", 300)}))
    assert (delta(comparison).verdict, reason(delta(comparison))) == (Verdict.NOT_ENOUGH_DATA, "gpu_models")
    found = delta(comparison, PER_WORK)
    assert (found.verdict, found.primary, found.window) == (Verdict.BETTER, True, "whole")
    starts = np.r_[np.zeros(120), level(80, 300)], level(80, 420)
    for models in (("NVIDIA L4", "NVIDIA H100"), ("NVIDIA L4", "NVIDIA L4")):
        pair = zip("ab", starts, models, strict=True)
        steps = [made(name, util=util, device=replace(A100, model=model)) for name, util, model in pair]
        page = testing.build_page(compared(*steps), "md", full=True)
        assert [words in page for words in ("Nothing is left to do", "Repeat e")] == [len({*models}) == 1] * 2


def test_a_finer_log_is_thinned_to_the_coarser() -> None:
    fine = np.tile([90.0, 90.0, 90.0, 0.0, 0.0], 1000)
    coarse = fine[::1][np.arange(1000) * 5 + np.random.default_rng(1).integers(0, 5, 1000)]
    thinned = delta(compared(made("a", util=fine), made("b", util=coarse, every=5.0)), IDLE)
    assert thinned.before in {0.0, 1.0}
    native = delta(compared(made("a", util=fine), made("c", util=np.roll(fine, 2))), IDLE)
    assert native.before == pytest.approx(0.4, abs=0.002)


def test_a_label_makes_a_step_and_a_run_without_one_is_its_own() -> None:
    named = (("a", "x"), ("b", None), ("c", "x"), ("b", None), ("z", None))
    chain = compared(*(made(name, step=step, util=level(60, 60)) for name, step in named))
    names = [(step.label, [entry.run.name for entry in step.analyses]) for step in chain.steps]
    assert names == [("x", ["a", "c"]), ("b", ["b"]), ("b (2)", ["b"]), ("z", ["z"])]
    pairs = dict.fromkeys((each.base, each.step) for each in chain.deltas)
    assert list(pairs) == [("x", "b"), ("b", "b (2)"), ("b (2)", "z"), ("x", "b (2)"), ("x", "z")]


@pytest.mark.parametrize(
    ("celsius", "megahertz", "verdict", "why"),
    [
        pytest.param(69, 1410, Verdict.UNCONFIRMED, "drift", id="warmer and slower"),
        pytest.param(60, 1410, Verdict.UNCONFIRMED, "drift", id="a little warmer and slower"),
        pytest.param(57, 1410, Verdict.WORSE, "", id="as warm, as with a locked clock"),
        pytest.param(69, 1500, Verdict.WORSE, "", id="warmer, but as fast"),
    ],
)
def test_a_machine_that_drifted_confirms_no_change(
    celsius: float, megahertz: float, verdict: Verdict, why: str
) -> None:
    runs = []
    for place in range(6):
        step, rate = ("b", 940.0) if place > 2 else ("a", 1000.0)
        state = (celsius, megahertz) if place > 2 else (57, 1500)
        work = Work(amount=300 * rate * (1 + place % 3 / 1000), unit="samples")
        run = made(f"{place}", step=step, work=work, util=np.full(300, 95.0), temperature=state[0], clock=state[1])
        start, end = (moment + place * 3_600_000_000 for moment in (run.run.started, run.run.ended))
        runs.append(replace(run, run=replace(run.run, started=start, ended=end)))
    found = delta(compared(*runs), PER_WORK)
    assert (found.verdict, reason(found)) == (verdict, why)
    (gate,) = check(f"change {PER_WORK} <= 5%", *runs[3:], baseline=runs[:3])
    assert (gate.outcome.value, gate.reason_code) == (("cannot judge", why) if why else ("broken", "replicates"))


def test_another_program_on_the_gpu_is_said_beside_the_change() -> None:
    """A GPU that is 14% busy before and after the job, where the other step's rested; not where both were used."""

    def run(name: str, other: float, busy: float) -> Analysis:
        outside = testing.steps((other, 120), (busy, 600), (other, 120))
        held = testing.steps((2, 120), (60, 600), (2, 120))
        return made(name, util=outside, memory=held, work=Work(amount=10 * busy, unit="steps"))

    alone, beside, both = run("alone", 0, 96), run("beside", 14, 76), run("both", 20, 76)
    (said,) = [each for each in document(alone, beside)["warnings"] if "busy" in each]
    assert ("GPU 0" in said, "14%" in said, "beside" in said) == (True, True, True)
    assert said.split(":")[0] in testing.build_page(compared(alone, beside), "md").replace("\xa0", " ")
    for pair in ((alone, alone), (beside, both)):
        assert not [each for each in document(*pair)["warnings"] if "busy" in each]
