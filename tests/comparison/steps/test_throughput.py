"""How fast work went, as training metrics tell."""

import numpy as np
import pytest

from gpureport.comparison.across_runs.across_findings import BATCH_SIZE, SCALING, across_findings
from gpureport.comparison.across_runs.across_runs import BatchDoubt, largest_batch, scaling
from gpureport.comparison.chain.step_summaries import summarize_steps
from gpureport.comparison.steps.batch_size import batch_size
from gpureport.comparison.steps.counted_runs import ShortRun
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.comparison.steps.step_figures import ENERGY_PER_WORK, PER_WORK, WORK_RATE
from gpureport.comparison.steps.steps import build_steps
from gpureport.comparison.steps.throughput import parse_work_unit, throughput
from gpureport.comparison.steps.training_rate import TrainingBasis, TrainingSource
from gpureport.testing import Reason, ReasonKind, Severity, Verdict, Work, recording, with_training
from tests.comparison.runs import Points, compared, delta, level, sampled

RATE = "train/samples_per_second"


def rates(rate: float, seconds: int = 1200, every: int = 5, seed: int = 0, name: str = RATE) -> Points:
    """Return points of a throughput that scatters by two per cent."""
    scatter = np.random.default_rng(seed).normal(1, 0.02, seconds // every)
    return [(k * every + 1.0, k * 10, name, rate * float(by)) for k, by in enumerate(scatter)]


def steps(each_second: float, seconds: int = 1200, every: int = 5) -> Points:
    """Return points of a loss, logged every so many seconds."""
    return [(float(t), round(each_second * t), "loss", 2.0 - t / seconds) for t in range(1, seconds, every)]


def run(name: str, training: Points, **more: object) -> SampledRun:
    """Return a run of twenty minutes with training metrics."""
    return sampled(name, util=level(90, 1200, len(name)), power=300.0, training=training, **more)  # type: ignore[arg-type]  # keywords of several types


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("samples_per_second", ("samples", False)),
        ("train/images/sec", ("samples", False)),
        ("perf/tokens_per_sec", ("tokens", False)),
        ("it/s", ("steps", False)),
        ("throughput", ("samples", False)),
        ("step_time", ("steps", True)),
        ("trainStepTime", ("steps", True)),
        ("sec_per_iter", ("steps", True)),
        ("epoch_time", ("epochs", True)),
        ("train/loss", None),
        ("total_flos", None),
        ("learning_rate", None),
        ("items_seen", None),
    ],
)
def test_names_that_speak_of_throughput(name: str, expected: tuple[str, bool] | None) -> None:
    """What is counted, and whether the value is the time for each."""
    assert parse_work_unit(name) == expected


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("images_per_s", "images"),
        ("train/imgs/sec", "images"),
        ("seqs_per_second", "sequences"),
        ("examplesPerSecond", "examples"),
        ("tokens_per_sec", "tokens"),
        ("samples_per_second", "samples"),
        ("throughput", "samples"),
        ("step_time", "steps"),
    ],
)
def test_work_is_called_what_the_name_of_its_metric_says(name: str, unit: str) -> None:
    """Images stay images."""
    assert run("a", rates(100.0, name=name)).work_unit == unit


def test_images_are_compared_with_samples() -> None:
    """Each is one sample of the data set, so steps count alike."""
    other = run("b", rates(100.0, seed=1, name="samples_per_second"))
    chain = compared(run("a", rates(100.0, name="images_per_s")), other)
    assert [step.work_unit for step in chain.steps] == ["samples", "samples"]


def test_throughput_tells_both_rates() -> None:
    """A tenth more samples a second are a tenth fewer GPU-seconds for each; that of training alone has an interval."""
    comparison = compared(run("a", rates(100.0, seed=1)), run("b", rates(110.0, seed=2)))
    found = delta(comparison, PER_WORK)
    assert comparison.primary == PER_WORK
    assert (found.verdict, found.interval, found.window) == (Verdict.UNCONFIRMED, None, "whole")
    assert found.before == pytest.approx(10.0, rel=0.01)
    assert delta(comparison, WORK_RATE).difference == pytest.approx(10, abs=0.5)
    training = comparison.judged_training("a", "b")
    assert training is not None
    assert (training.verdict, training.basis, training.window) == (Verdict.UNCONFIRMED, "within-run", "training")
    assert training.interval is not None
    assert 0 < training.interval[0] < 10 < training.interval[1]
    assert [step.training_source for step in comparison.steps] == [
        TrainingSource(basis=TrainingBasis.SERIES, names=(RATE,))
    ] * 2
    assert delta(comparison, "energy_joules_per_1000_work").difference == pytest.approx(-3000 * (1 - 1 / 1.1), rel=0.05)


def test_repetitions_by_throughput_are_better() -> None:
    """Ratios of runs on the logarithmic scale."""
    old, new = (
        [run(f"{s}{k}", rates(r + k, seed=k), step=s) for k in range(3)] for s, r in (("old", 100.0), ("new", 150.0))
    )
    found = delta(compared(*old, *new), PER_WORK)
    assert (found.verdict, found.basis) == (Verdict.BETTER, "replicates")
    assert found.difference == pytest.approx(10 / 1.5 - 10, rel=0.05)


def test_the_step_counter_tells_when_nothing_else_does() -> None:
    """Two steps a second; points are five seconds apart."""
    found = run("a", steps(2.0)).throughput
    assert found is not None
    assert (found.unit, found.width) == ("steps", 5.0)
    assert float(np.nanmean(found.rates)) == pytest.approx(2.0, rel=0.01)


def test_steps_of_another_batch_are_counted_in_samples() -> None:
    """Half as many steps of twice the size are the same work."""
    small = run("a", steps(4.0), params=[("batch_size", "32")])
    large = run("b", steps(2.0), params=[("batch_size", "64")])
    comparison = compared(small, large)
    assert [step.work_unit for step in comparison.steps] == ["samples", "samples"]
    assert delta(comparison, WORK_RATE).before == pytest.approx(128, rel=0.01)
    assert delta(comparison, PER_WORK).verdict is Verdict.NO_CLEAR_CHANGE
    assert batch_size(run("c", [], params=[("per_device_train_batch_size", "8")]).analysis.run) == 8
    assert batch_size(run("d", [], params=[("eval_batch_size", "8")]).analysis.run) is None


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("batch", 64),
        ("parameters/batch", 64),
        ("args.batch", 64),
        ("train/global_batch", 64),
        ("total_train_batch", 64),
        ("val/eval_batch", None),
        ("log_every_batch", None),
        ("num_batches", None),
    ],
)
def test_a_batch_is_known_without_the_word_size(name: str, size: float | None) -> None:
    """Neptune's recorded runs call it `parameters/batch`, and a step of 256 was set against one of 64."""
    assert batch_size(run("a", [], params=[(name, "64")]).analysis.run) == size


def test_other_units_of_work_are_not_compared() -> None:
    """Tokens are not samples."""
    comparison = compared(run("a", rates(100.0)), run("b", rates(100.0, name="tokens_per_second")))
    found = delta(comparison, PER_WORK)
    assert (found.verdict, found.primary) == (Verdict.NOT_ENOUGH_DATA, False)


def scaled(gpus: int, amount: float, k: int, seconds: int = 300) -> SampledRun:
    """Return a run on some GPUs that did some work."""
    series = np.stack([level(90, seconds, seed) for seed in range(gpus)])
    return sampled(f"{gpus}-{k}", step=f"{gpus} GPUs", util=series, work=Work(amount=amount + k, unit="steps"))


def test_a_start_up_is_no_bad_scaling() -> None:
    """A minute of it before two minutes of work on one GPU, and one minute on two."""
    runs = [
        sampled(
            f"{gpus}",
            util=np.stack([np.concatenate([np.zeros(60), level(90, seconds, k)]) for k in range(gpus)]),
            work=Work(amount=1200, unit="steps"),
        )
        for gpus, seconds in ((1, 120), (2, 60))
    ]
    (found,) = scaling(list(build_steps(runs)))
    assert found.efficiency == pytest.approx(1.0, abs=0.03)


def test_scaling_is_work_per_gpu_second_against_the_fewest() -> None:
    """Four GPUs that do three times the work of one are at 75%."""
    found = list(
        build_steps([scaled(gpus, amount, k) for gpus, amount in ((1, 1000.0), (4, 3000.0)) for k in range(3)])
    )
    (four,) = scaling(found)
    assert four.gpus == (1, 4)
    assert four.efficiency == pytest.approx(0.75, rel=0.01)
    assert four.interval is not None
    assert four.interval[0] < 0.75 < four.interval[1]
    assert scaling(found[:1]) == ()


@pytest.mark.parametrize(("seconds", "known"), [(50, False), (70, True)])
def test_scaling_takes_a_minute_of_each_step(seconds: int, known: bool) -> None:  # noqa: FBT001 - a parameter
    """What 20 s of start-up came to on one GPU says nothing of four."""
    found = list(build_steps([scaled(1, 1000.0, 0, seconds), scaled(4, 3000.0, 0)]))
    assert bool(scaling(found)) == known


def test_groups_have_means_with_intervals() -> None:
    """Work of a GPU in an hour over three runs: 1001 steps in 300 s."""
    (group,) = summarize_steps(list(build_steps([scaled(1, 1000.0, k) for k in range(3)])))
    assert group.work_per_gpu_hour is not None
    assert group.work_per_gpu_hour.value == pytest.approx(1001 * 12, rel=0.01)
    assert (group.work_per_gpu_hour.basis, group.gpus, group.work_unit) == ("replicates", 1, "steps")
    assert group.utilisation is not None
    assert group.utilisation.interval is not None


def test_a_group_that_recorded_too_little_says_so() -> None:
    """Utilisation of 15 s is recorded, but too short to judge; a group without any says no more than that."""
    short, long, none = summarize_steps(
        list(
            build_steps(
                [
                    sampled("a", step="short", util=level(90, 15)),
                    sampled("b", step="short", util=level(90, 12)),
                    sampled("c", step="long", util=level(90, 300)),
                    sampled("d", step="none", memory=np.full(45, 10.0)),
                ]
            )
        )
    )
    assert short.utilisation is None
    assert short.too_short_run == ShortRun(run="a", seconds=14.0, least=20.0)
    assert (long.utilisation is None, long.too_short_run) == (False, None)
    assert (none.utilisation, none.too_short_run) == (None, None)


def test_the_largest_batch_that_fits() -> None:
    """Peaks of 10 + 0.5 GiB a sample on 80 GiB: 5% free leave room for 132."""
    runs = [
        sampled(
            str(size), step=str(size), util=level(90, 120), memory=10 + 0.5 * size, params=[("batch_size", str(size))]
        )
        for size in (8, 16, 32)
    ]
    found = largest_batch(list(build_steps(runs)))
    assert found is not None
    assert (found.sizes, found.max_batch, found.reason) == ((8, 16, 32), 132, None)
    huge = [
        sampled(
            size,
            step=size,
            util=level(90, 120),
            memory=20.0,
            params=[("per_device_train_batch_size", size), ("grad_accum", "1e300")],
        )
        for size in ("1e300", "2e300")
    ]
    assert largest_batch(list(build_steps(huge))) is None
    flat = [sampled(s, util=level(90, 120), memory=70.0, params=[("batch_size", s)]) for s in ("8", "16")]
    held = largest_batch(list(build_steps(flat)))
    assert held is not None
    assert (held.max_batch, held.reason) == (None, BatchDoubt.NO_GROWTH)
    assert largest_batch(list(build_steps(runs[:1]))) is None


def test_batches_of_different_precision_tell_nothing_of_what_a_sample_takes() -> None:
    """As recorded on an H100: 64 samples take 10.7 GiB at 32 bits and 6.3 at 16, 256 take 20.1 GiB at 16."""
    recorded = (("64", "false", 10.7), ("64", "true", 6.3), ("256", "true", 20.1))
    runs = [
        sampled(
            f"{size} {amp}",
            step=f"{size} {amp}",
            util=level(90, 120),
            memory=peak,
            params=[("parameters/batch", size), ("parameters/amp", amp)],
        )
        for size, amp, peak in recorded
    ]
    found = largest_batch(list(build_steps(runs)))
    assert found is not None
    assert (found.max_batch, found.reason) == (None, BatchDoubt.PRECISION_DIFFERS)
    alike = largest_batch(list(build_steps(runs[1:])))
    assert alike is not None
    assert (alike.max_batch, alike.reason) == (1033, None)


def test_batches_of_different_numbers_of_gpus_tell_nothing_of_memory() -> None:
    """A batch of 64 on two GPUs takes of each what one of 32 takes on one."""
    pair = np.stack([level(90, 120)] * 2)
    runs = [
        sampled("32", step="32", util=level(90, 120), memory=20.0, params=[("batch_size", "32")]),
        sampled("64", step="64", util=pair, memory=26.0, params=[("batch_size", "64")]),
    ]
    assert largest_batch(list(build_steps(runs))) is None


def test_findings_over_several_runs_have_the_form_of_others() -> None:
    """Information with evidence: the efficiency with its interval, and the largest batch with the room it leaves."""
    scaling_steps = list(
        build_steps([scaled(gpus, amount, k) for gpus, amount in ((1, 1000.0), (4, 3000.0)) for k in range(3)])
    )
    (found,) = [each for each in across_findings(scaling_steps) if each.finding.kind == SCALING]
    assert (found.steps, found.finding.severity, found.finding.devices) == (("1 GPUs", "4 GPUs"), Severity.INFO, ())
    low, high = (each.observed for each in found.finding.evidence[1:])
    assert low < found.finding.evidence[0].observed < high
    assert "do 75% of the work per GPU-second" in found.finding.summary
    rising = np.linspace(0.5, 1.0, 120)
    runs = [
        sampled(str(size), util=level(90, 120), memory=rising * (10 + 0.5 * size), params=[("batch_size", str(size))])
        for size in (8, 16, 32)
    ]
    (batch,) = [each for each in across_findings(list(build_steps(runs))) if each.finding.kind == BATCH_SIZE]
    largest = batch.finding.evidence[0]
    assert (largest.metric, largest.observed, batch.steps) == ("max_batch", 132.0, ("8", "16", "32"))
    assert largest.threshold is not None
    assert largest.threshold.source
    assert batch.finding.recommendation


def test_points_years_apart_make_no_more_bins_than_points() -> None:
    """Two points of a clock that was not set yet, and twenty minutes of others."""
    training = [(float(at), 0, RATE, 100.0) for at in (0, 1, *range(600_000_000, 600_001_200, 5))]
    found = throughput(with_training(recording(util=90), [(each[0], each[2], each[3]) for each in training]).training)
    assert found is not None
    assert len(found.rates) <= 1000 * len(training)


def test_a_name_that_counts_work_without_a_point_counts_none() -> None:
    """No value of it can be used, so nothing is told of it."""
    training = with_training(recording(util=90), [(1.0, RATE, 0.0), (None, RATE, 5.0)]).training
    assert throughput(training) is None


def test_a_run_that_took_no_energy_makes_no_ratio() -> None:
    """Nothing can be told as a ratio to 0, of one run or of a repetition."""
    work = Work(amount=100.0, unit="steps")
    runs = [sampled(name, step=name[0], work=work, util=level(90), power=watts) for name, watts in _WATTS]
    found = delta(compared(*runs), ENERGY_PER_WORK)
    assert (found.verdict, found.reason) == (Verdict.NOT_ENOUGH_DATA, Reason(kind=ReasonKind.ZERO))


_WATTS = (("a1", 0.0), ("a2", 300.0), ("b1", 300.0))
