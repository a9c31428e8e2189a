"""Stretches in which a GPU did nothing while the job was running."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import (
    Confidence,
    Recording,
    Severity,
    analyze,
    found,
    recording,
    spans,
    steps,
    unjudged,
    with_host,
    with_training,
)


def test_a_gap_within_the_job_is_one_finding() -> None:
    """Where, how long, how sure, and what it costs."""
    gaps = found(analyze(recording(util=steps((97, 100), (0, 20), (97, 380)))), "idle_gap")
    assert [spans(gap) for gap in gaps] == [[(99.0, 119.0)]]
    assert gaps[0].lost_gpu_seconds == pytest.approx(20)
    assert (gaps[0].confidence, gaps[0].cause, gaps[0].severity) == (Confidence.HIGH, "unknown", Severity.WARNING)
    assert gaps[0].summary.startswith("GPU 0 sat idle for 20 s mid-job.")


def test_edges_are_found_between_samples() -> None:
    """A sample that is partly idle moves the edge into its window."""
    gap = found(analyze(recording(util=steps((96, 100), (24, 1), (0, 20), (96, 300)))), "idle_gap")[0]
    assert 98.5 < spans(gap)[0][0] < 99.5


def test_each_gap_and_gpu_has_its_own_finding() -> None:
    """Two gaps of two GPUs are four findings."""
    util = steps((97, 60), (0, 15), (97, 60), (0, 15), (97, 60))
    assert len(found(analyze(recording(util=[util, util])), "idle_gap")) == 4


@pytest.mark.parametrize(
    "util",
    [
        steps((97, 100), (0, 4), (97, 100)),
        steps((97, 100), (20, 60), (97, 100)),
        steps((0, 60), (97, 200), (0, 60)),
        np.tile(steps((97, 2), (0, 3)), 60),
    ],
    ids=["short", "slow", "start-up and tail", "micro-stalls"],
)
def test_what_is_no_gap(util: FloatArray) -> None:
    """Short waits, low load, and time outside the job are something else."""
    assert found(analyze(recording(util=util)), "idle_gap") == []


def test_a_stray_kernel_does_not_end_a_gap() -> None:
    """One sample of little work is bridged."""
    gaps = found(analyze(recording(util=steps((97, 60), (0, 10), (18, 1), (0, 10), (97, 120)))), "idle_gap")
    assert [round(gap.intervals[0].seconds) for gap in gaps] == [21]


def test_a_stray_kernel_in_half_a_second_does_not_either() -> None:
    """A kernel of 0.16 s reads 31% there."""
    gaps = found(analyze(recording(util=steps((97, 60), (0, 10), (31, 1), (0, 10), (97, 120)))), "idle_gap")
    assert [round(gap.intervals[0].seconds) for gap in gaps] == [21]


def test_a_gap_never_spans_a_log_gap() -> None:
    """What happened without samples is not known to be idle."""
    times = [*range(70), *range(200, 290)]
    gaps = found(analyze(recording(util=steps((97, 60), (0, 20), (97, 80)), times=times)), "idle_gap")
    assert [round(gap.intervals[0].seconds) for gap in gaps] == [10, 10]


def test_nulls_of_a_few_seconds_are_bridged_and_longer_ones_are_not() -> None:
    """N/A for a moment leaves one gap, half a minute of it two."""
    brief = steps((97, 60), (0, 10), (np.nan, 5), (0, 10), (97, 60))
    long = steps((97, 60), (0, 10), (np.nan, 30), (0, 10), (97, 60))
    assert len(found(analyze(recording(util=brief)), "idle_gap")) == 1
    assert len(found(analyze(recording(util=long)), "idle_gap")) == 2


def test_a_gap_loses_what_samples_show() -> None:
    """A bridged stretch without values is part of the gap, and its time is not known."""
    analysis = analyze(recording(util=steps((97, 60), (0, 10), (np.nan, 5), (0, 10), (97, 60))))
    (gap,) = found(analysis, "idle_gap")
    assert gap.intervals[0].seconds - (gap.lost_gpu_seconds or 0) == pytest.approx(5, abs=1)
    (gpu,) = analysis.gpu_time
    assert gap.lost_gpu_seconds == pytest.approx(dict(gpu.seconds)["idle"], abs=0.5)


def test_chance_runs_of_point_samples_are_no_gaps() -> None:
    """At 5 s a job that waits half of each second shows runs of zeros, none of which is idle time."""
    util = np.where(np.random.default_rng(3).random(600) < 0.45, 0, 95)
    assert found(analyze(recording(util=util, every=5.0)), "idle_gap") == []


def test_a_surprising_run_of_point_samples_is_a_gap() -> None:
    """Two idle samples in a row are a gap where all others are busy."""
    gaps = found(analyze(recording(util=steps((97, 60), (0, 2), (97, 60)), every=30.0)), "idle_gap")
    assert [round(gap.intervals[0].seconds) for gap in gaps] == [60]
    assert gaps[0].confidence is Confidence.MEDIUM


def test_a_job_visibly_off_and_on_is_readable() -> None:
    """Long gaps do not count against each other as texture."""
    util = np.tile(steps((97, 9), (0, 7)), 20)
    assert len(found(analyze(recording(util=util, every=5.0)), "idle_gap")) == 19


def test_power_that_stays_high_denies_a_gap() -> None:
    """Where power is averaged over a second, it sees the work between point samples."""
    util = steps((97, 60), (0, 8), (97, 60))
    power = steps((250, 60), (250, 8), (250, 60))
    power[0] = 60
    run = recording(util=util, power=power, every=5.0, model="NVIDIA L4")
    assert found(analyze(run), "idle_gap") == []


@pytest.mark.parametrize("absent", [False, True], ids=["all recorded", "one not"])
def test_momentary_power_that_is_high_denies_a_gap(absent: bool) -> None:  # noqa: FBT001 - a parameter
    """Where nothing runs no reading of power is high, over whatever it averages; a missing one changes nothing."""
    util = steps((97, 60), (0, 8), (97, 60))
    power = steps((250, 60), (250, 8), (250, 60))
    power[60:68:3] = power[0] = 60
    power[100] = np.nan if absent else 250
    work = recording(util=util, power=power, every=5.0, model="NVIDIA A100-SXM4-80GB")
    power[60:68] = 60
    rest = recording(util=util, power=power, every=5.0, model="NVIDIA A100-SXM4-80GB")
    assert [len(found(analyze(run), "idle_gap")) for run in (work, rest)] == [0, 1]


def _starved(power: FloatArray | None = None) -> Recording:
    """Return a job that waits for its data, at 5 s, and 20 s of rest in the midst of that."""
    texture = np.where(np.random.default_rng(5).random(80) < 0.3, 0, 50)
    util = np.concatenate([steps((97, 100)), texture, steps((50, 1), (0, 8), (50, 1)), texture, steps((97, 100))])
    watts = np.full(len(util), np.nan) if power is None else power
    return recording(util=util, cpu=steps((20, 500), (95, 850), (20, 500)), power=watts, every=5.0)


def test_a_surprising_run_within_a_wait_is_a_gap_of_its_own() -> None:
    """Samples 5 s apart tell eight zeros in a row from the texture around them; two or three they do not."""
    (gap,) = found(analyze(_starved()), "idle_gap")
    assert spans(gap)[0] == pytest.approx((905, 945), abs=5)
    assert gap.cause == "data"


@pytest.mark.parametrize(("watts", "gaps"), [(90.0, 1), (280.0, 0)], ids=["at rest", "at work"])
def test_a_run_within_a_wait_that_draws_power_is_no_gap(watts: float, gaps: int) -> None:
    """Readings at the power of work show that the zeros beside them are the texture of the wait."""
    rest = ((90, 2), (watts, 1), (90, 3), (watts, 1), (90, 1))
    power = steps((300, 100), (90, 20), (200, 61), *rest, (200, 81), (300, 100))
    assert len(found(analyze(_starved(power)), "idle_gap")) == gaps


def _bursts() -> FloatArray:
    """Return a job of which every other run of a few samples is low, and nine low ones in a row in its midst."""
    rng = np.random.default_rng(2)
    parts = [(level, int(rng.integers(1, 4))) for _ in range(60) for level in (95.0, 0.0)]
    return steps((97, 60), *parts, (95, 3), (0, 9), (95, 3), *parts, (97, 60))


@pytest.mark.parametrize(
    ("model", "gaps"), [("NVIDIA L4", 1), ("Tesla T4", 0), (None, 0)], ids=["average", "of a moment", "not known"]
)
def test_low_power_at_one_second_confirms_a_gap(model: str | None, gaps: int) -> None:
    """Averaged over a second it sees what utilisation of a fifth of one misses; that of a moment does not."""
    util = _bursts()
    power = np.where(util > 0, 70.0, 27.0)
    found_gaps = found(analyze(recording(util=util, power=power, model=model)), "idle_gap")
    assert [round(gap.intervals[0].seconds) for gap in found_gaps] == [9] * gaps


def test_what_confirms_a_gap_is_its_evidence() -> None:
    """The power is said, and nothing of how many samples would surprise."""
    util = _bursts()
    (gap,) = found(analyze(recording(util=util, power=np.where(util > 0, 70.0, 27.0), model="NVIDIA L4")), "idle_gap")
    assert any(each.threshold and each.metric == "gpu_power_watts" for each in gap.evidence)
    assert "power was that of a GPU at rest at every sample" in " ".join(gap.ruled_out)


@pytest.mark.parametrize(
    "watts",
    [steps((70, 2), (27, 4), (38, 1), (27, 4), (70, 2)), steps((np.nan, 2), (27, 9), (70, 2)), steps((27, 13))],
    ids=["work once", "neighbour not known", "never changes"],
)
def test_power_that_is_not_at_rest_confirms_nothing(watts: FloatArray) -> None:
    """Nor where it is not known beside the run, or does not tell work from rest."""
    util = _bursts()
    power = np.where(util > 0, 70.0, 27.0) if watts[0] != watts[2] else np.full(len(util), 27.0)
    middle = int(np.flatnonzero(np.convolve(util == 0, np.ones(9), "valid") == 9)[0])
    power[middle - 2 : middle + 11] = watts
    assert found(analyze(recording(util=util, power=power, model="NVIDIA L4")), "idle_gap") == []


def test_requests_that_recur_are_no_stray_kernels() -> None:
    """Work for a tenth of each half second, at ten samples a second, is not bridged into one long gap."""
    util = np.concatenate([steps((97, 300)), np.tile(steps((95, 1), (0, 4)), 60), steps((97, 300))])
    assert found(analyze(recording(util=util, every=0.1)), "idle_gap") == []


def test_a_rank_that_starts_late_is_starting_up() -> None:
    """Ranks begin seconds apart; minutes apart is idle time."""
    first, soon, late = steps((97, 300)), steps((0, 20), (97, 280)), steps((0, 120), (97, 180))
    gaps = found(analyze(recording(util=[first, soon, late])), "idle_gap")
    assert [gap.devices for gap in gaps] == [("gpu:2",)]


@pytest.mark.parametrize("rest", [0, 8])
def test_a_later_rest_of_a_late_gpu_is_judged_as_any_other(rest: int) -> None:
    """Only before its first work need it not come down to 5%, and no gap is told twice."""
    late = steps((8, 100), (97, 300), (rest, 60), (97, 440))
    gaps = found(analyze(recording(util=[steps((97, 900)), late], power=300.0)), "idle_gap")
    later = [] if rest else [(399, 459)]
    assert [tuple(map(round, spans(gap)[0])) for gap in gaps] == [(0, 99), *later]


def test_a_gap_of_one_job_stays_beside_the_late_start_of_the_next() -> None:
    """Each job has a GPU that begins late, and the first a gap besides."""
    first, second = steps((8, 100), (97, 150), (0, 50), (97, 300)), steps((8, 100), (97, 500))
    util = [steps((97, 600), (0, 200), (97, 600)), np.concatenate([first, steps((0, 200)), second])]
    gaps = found(analyze(recording(util=util, memory=steps((20, 600), (0, 200), (20, 600)), power=300.0)), "idle_gap")
    assert [tuple(map(round, spans(gap)[0])) for gap in gaps] == [(0, 99), (249, 299), (800, 899)]


def test_gaps_weigh_by_their_share_of_the_job() -> None:
    """One gap in an hour is information, a fifth of the job is a problem."""
    little = found(analyze(recording(util=steps((97, 1800), (0, 10), (97, 1790)))), "idle_gap")
    much = found(analyze(recording(util=steps((97, 100), (0, 60), (97, 100)))), "idle_gap")
    assert [little[0].severity, much[0].severity] == [Severity.INFO, Severity.PROBLEM]


def test_without_utilisation_it_is_not_judged() -> None:
    """The answer names the field to record."""
    (entry,) = unjudged(analyze(recording(power=steps((100, 60)))), "idle_gap")
    assert "gpu_utilization_ratio" in entry.metrics
    assert entry.recording == "gpureport record -- COMMAND"


def test_a_gpu_without_utilisation_beside_others_is_named() -> None:
    """A split GPU gives no utilisation; the others are judged."""
    util = steps((97, 60), (0, 20), (97, 60))
    analysis = analyze(recording(util=[util, np.full(140, np.nan)]))
    assert [entry.device for entry in unjudged(analysis, "idle_gap")] == ["gpu:1"]
    assert len(found(analysis, "idle_gap")) == 1


def test_a_gap_is_as_long_at_fine_sampling() -> None:
    """At 0.1 s utilisation falls and rises over its window of a second; the gap ends half-way."""
    work = steps((97, 300), (0, 53), (97, 300))
    util = np.convolve(np.concatenate([np.full(9, 97.0), work]), np.ones(10) / 10, "valid")
    (gap,) = found(analyze(recording(util=util, every=0.1)), "idle_gap")
    assert gap.intervals[0].seconds == pytest.approx(5.3, abs=0.2)


def test_a_gpu_that_never_worked_is_to_be_released() -> None:
    """No advice on checkpoints for a GPU the job does not see."""
    (gap,) = found(analyze(recording(util=[steps((97, 200)), np.zeros(200)])), "idle_gap")
    assert (gap.devices, gap.cause) == (("gpu:1",), "unused")
    assert "CUDA_VISIBLE_DEVICES" in gap.recommendation


def test_a_gpu_that_stops_while_others_go_on_waits_or_is_dead() -> None:
    """Two minutes beside busy GPUs; when all stop together, the cause is not known."""
    busy, stopped = steps((97, 400)), steps((97, 100), (0, 120), (97, 180))
    alone = found(analyze(recording(util=[busy, stopped])), "idle_gap")
    together = found(analyze(recording(util=[stopped, stopped])), "idle_gap")
    assert [gap.cause for gap in alone] == ["peers busy"]
    assert "dead or waiting rank" in alone[0].recommendation
    assert {gap.cause for gap in together} == {"unknown"}


@pytest.mark.parametrize(
    ("used", "power", "cause"),
    [
        (100, steps((300, 100), (110, 120), (300, 180)), "hang"),
        (100, steps((300, 400)), "peers busy"),
        (100, steps((np.nan, 400)), "hang"),
        (95, steps((np.nan, 400)), "peers busy"),
        (95, steps((300, 100), (110, 120), (300, 180)), "peers busy"),
        (100, steps((0, 400)), "hang"),
    ],
    ids=["spinning", "working", "spinning, power unknown", "working, power unknown", "not spinning", "power of 0"],
)
def test_peers_that_spin_are_a_hang(used: float, power: FloatArray, cause: str) -> None:
    """Waiting in a collective is 100% at little power; with the power of work it is work."""
    stopped = steps((97, 100), (0, 120), (97, 180))
    others = np.full(400, float(used))
    run = recording(util=[others, stopped, others], power=[power, np.full(400, 80.0), power])
    (gap,) = found(analyze(run), "idle_gap")
    assert (gap.devices, gap.cause) == (("gpu:1",), cause)


def test_a_short_gap_beside_spinning_peers_is_no_hang() -> None:
    """Ranks wait for each other for seconds."""
    stopped = steps((97, 100), (0, 30), (97, 180))
    (gap,) = found(analyze(recording(util=[np.full(310, 100.0), stopped])), "idle_gap")
    assert gap.cause == "unknown"


def _requests(*, load: float) -> FloatArray:
    """Return an hour of a service: busy stretches of short requests, and quiet ones of half a minute."""
    rng = np.random.default_rng(7)
    busy = np.where(rng.random((20, 120)) < load, rng.uniform(30, 100, (20, 120)), 0)
    return np.concatenate([np.append(each, np.zeros(45)) for each in busy] + [np.full(5, 90.0)])


def test_quiet_hours_of_a_service_are_no_problem() -> None:
    """Gaps take a fifth of the time, but the GPU has little to do between them either, and nobody knows of a cause."""
    gaps = found(analyze(recording(util=_requests(load=0.5))), "idle_gap")
    assert sum(gap.lost_gpu_seconds or 0 for gap in gaps) > 0.2 * 3300
    assert {gap.severity for gap in gaps} == {Severity.WARNING}
    assert any("between the gaps" in entry.statistic for entry in gaps[0].evidence)


def test_gaps_of_a_job_at_work_are_a_problem() -> None:
    """The same pauses of a GPU that is busy otherwise decide the cost of the job."""
    gaps = found(analyze(recording(util=np.tile(steps((97, 120), (0, 45)), 20))), "idle_gap")
    assert {gap.severity for gap in gaps} == {Severity.PROBLEM}


def _answered() -> FloatArray:
    """Return a service: requests that keep the GPU busy for seconds, and come as they come."""
    rng = np.random.default_rng(4)
    lengths = [(int(rng.integers(6, 40)), int(rng.exponential(25)) + 6) for _ in range(40)]
    return steps(*[part for work, rest in lengths for part in ((95.0, work), (0.0, rest))], (95, 30))


def test_rare_requests_are_no_problem_of_the_code() -> None:
    """Without a sign of training nobody is told of checkpoints and loaders, nor that it is a problem."""
    gaps = found(analyze(recording(util=_answered())), "idle_gap")
    assert sum(gap.lost_gpu_seconds or 0 for gap in gaps) > 0.2 * 1900
    assert {gap.cause for gap in gaps} == {"requests or input"}
    assert {gap.severity for gap in gaps} == {Severity.WARNING}
    said = " ".join([gaps[0].recommendation, *(step.name for step in gaps[0].steps)])
    assert not any(word in said for word in ("checkpoint", "loader", "epoch", "persistent", "evaluation"))


@pytest.mark.parametrize("sign", ["params", "tags", "metrics"])
def test_the_same_load_of_a_training_run_is_a_problem(sign: str) -> None:
    """Its params, its tags or its metrics say that it trains."""
    run = recording(util=_answered())
    if sign == "metrics":
        run = with_training(run, [(5.0, "train_loss", 1.0), (9.0, "train_loss", 0.9)])
    else:
        labels = (("learning_rate", "0.1"),)
        changed = replace(run.run, params=labels) if sign == "params" else replace(run.run, tags=labels)
        run = replace(run, run=changed)
    assert {gap.severity for gap in found(analyze(run), "idle_gap")} == {Severity.PROBLEM}


@pytest.mark.parametrize("work", [(20, 200), (200, 200)], ids=["every other long", "all long"])
def test_long_work_between_gaps_is_no_load_of_requests(work: tuple[int, int]) -> None:
    """A job that stops for checkpoints works for minutes between them."""
    rng = np.random.default_rng(8)
    parts = [
        (level, int(rng.uniform(0.6, 1.4) * n))
        for _ in range(8)
        for each in work
        for level, n in ((97.0, each), (0.0, 70))
    ]
    gaps = found(analyze(recording(util=steps((97, 60), *parts, (97, 60)))), "idle_gap")
    assert {gap.cause for gap in gaps} == {"unknown"}
    assert {gap.severity for gap in gaps} == {Severity.PROBLEM}


def test_gaps_beside_a_wait_for_data_are_no_requests() -> None:
    """Where the cause of one gap is known, the job is known to be none of requests."""
    util = np.concatenate([_answered(), np.full(300, 97.0)])
    cpu = np.where(np.arange(len(util)) < len(util) - 300, 95.0, 20.0)
    causes = {gap.cause for gap in found(analyze(recording(util=util, cpu=cpu)), "idle_gap")}
    assert "data" in causes
    assert "requests or input" not in causes


def test_a_beat_of_steps_and_samples_is_no_pause() -> None:
    """Steps of 1.1 s, sampled once a second, read low for some samples every eleven; no pause is that long."""
    busy = np.append(0.0, np.cumsum(np.arange(60_000) / 100 % 1.1 < 0.4)) / 25
    util = np.round(100 * (busy[100::100] - busy[75:-25:100]))
    analysis = analyze(recording(util=util, model="NVIDIA A100-SXM4-80GB"))
    assert found(analysis, "idle_gap") == found(analysis, "periodic_stall") == []
    assert found(analysis, "low_util_cause_unknown")


def test_a_beat_of_steps_that_vary_is_no_pause() -> None:
    """A twentieth of jitter moves where the low samples are, and makes none of them a pause of 5 s."""
    begins = np.cumsum(1.1 * (1 + 0.05 * np.random.default_rng(1).standard_normal(900)))
    fine = np.arange(0, begins[-1], 0.01)
    busy = np.append(0.0, np.cumsum(fine - begins[np.searchsorted(begins, fine, side="right") - 1] < 0.4)) / 25
    ends = np.arange(200, len(busy), 100)
    log = recording(util=np.round(100 * (busy[ends] - busy[ends - 25])), model="NVIDIA A100-SXM4-80GB")
    assert found(analyze(log), "idle_gap") == []


def test_short_pauses_that_recur_are_no_beat() -> None:
    """They begin and end at once."""
    util = np.tile(steps((97, 10), (0, 7)), 30)
    assert len(found(analyze(recording(util=util, model="NVIDIA A100-SXM4-80GB")), "periodic_stall")) == 1


def test_work_at_one_pace_that_rests_most_of_the_time_is_no_stall_of_training() -> None:
    """Checkpoints take less time than the work between them; nobody is told of them without a sign of training."""
    analysis = analyze(recording(util=np.tile(steps((95, 6), (0, 24)), 20)))
    gaps = {(gap.cause, gap.severity) for gap in found(analysis, "idle_gap")}
    assert (gaps, found(analysis, "periodic_stall")) == ({("requests or input", Severity.WARNING)}, [])


def test_little_work_between_gaps_gets_no_advice_on_training() -> None:
    """Nor does the low use between them."""
    rng = np.random.default_rng(6)
    util = steps(*[part for _ in range(400) for part in ((95.0, 2), (0.0, int(rng.exponential(4))))], (95, 5))
    low, gap = (found(analyze(recording(util=util)), kind)[0] for kind in ("low_util_cause_unknown", "idle_gap"))
    assert low.cause == gap.cause == "requests or input"
    assert [step.name for step in low.steps] == ["record_more", "profile_step"]


def test_a_gap_with_empty_memory_is_between_processes() -> None:
    """Half a minute between two runs is no pause of a running job, and calls for no checkpoints."""
    util = steps((97, 300), (0, 40), (97, 300))
    memory = steps((20.0, 300), (0.01, 30), (1.0, 10), (20.0, 300))
    (gap,) = found(analyze(recording(util=util, memory=memory)), "idle_gap")
    assert (gap.cause, "running" in gap.summary, "checkpoint" in gap.recommendation) == ("no process", False, False)


def test_a_gap_of_a_log_without_memory_may_lie_between_jobs() -> None:
    """Nothing tells whether a job held the GPU meanwhile."""
    (gap,) = found(analyze(recording(util=steps((97, 300), (0, 600), (97, 300)))), "idle_gap")
    assert gap.summary.endswith(
        "sat idle for 10 min between two stretches of work; whether a job used it is not known."
    )


@pytest.mark.parametrize(
    ("parts", "where"),
    [
        (((97, 200), (0, 100)), "to the last sample, while other GPUs worked."),
        (((0, 100), (97, 200)), "from the first sample on, while other GPUs worked."),
        (((97, 150), (0, 20), (97, 130)), "mid-job."),
    ],
)
def test_a_gap_that_reaches_an_end_of_the_log_is_none_between_work(
    parts: tuple[tuple[float, int], ...], where: str
) -> None:
    """The GPU begins to work later than others, or never works again."""
    (gap,) = found(analyze(recording(util=[steps((97, 300)), steps(*parts)])), "idle_gap")
    assert gap.summary.endswith(f" s {where}")


@pytest.mark.parametrize(("after", "cause"), [(0, "unknown"), (97, "io")], ids=["never came back", "came back"])
def test_the_host_explains_no_gap_from_which_a_gpu_never_came_back(after: float, cause: str) -> None:
    """Reading holds a GPU up for a while; what ends its work for good is something else."""
    util = [steps((97, 100), (0, 20), (after, 30)), steps((97, 150))]
    reads = np.where(np.arange(150) >= 100, 9e8, 1e6)
    run = with_host(recording(util=util), np.arange(150), host_disk_read_bytes_per_second=reads)
    (gap,) = found(analyze(run), "idle_gap")
    assert gap.cause == cause
