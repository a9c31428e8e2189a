"""Idle gaps that recur, and what they are told by."""

from dataclasses import replace

import numpy as np
import pytest

from gpureport.columns import FloatArray
from gpureport.testing import (
    Confidence,
    Recording,
    Severity,
    Stage,
    analyze,
    at,
    found,
    recording,
    steps,
    with_host,
    with_training,
)

_EVERY, _PAUSE = 120, 12


def _stalling(times: int, every: int = _EVERY, pause: int = _PAUSE) -> FloatArray:
    """Return a job that pauses `times` times."""
    parts = [part for _ in range(times) for part in ((97.0, every - pause), (0.0, pause))]
    return steps((97, 30), *parts, (97, every))


def _starts(times: int) -> list[float]:
    return [30 + _EVERY - _PAUSE + _EVERY * place for place in range(times)]


def test_the_period_its_cost_and_its_gaps_are_named() -> None:
    """One finding, with the gaps as consequences."""
    analysis = analyze(recording(util=_stalling(8)))
    (stall,), gaps = found(analysis, "periodic_stall"), found(analysis, "idle_gap")
    assert stall.period_seconds == pytest.approx(_EVERY, rel=0.01)
    assert stall.lost_gpu_seconds == pytest.approx(8 * _PAUSE, rel=0.05)
    assert stall.consequences == (gaps[0].fingerprint,)
    assert {gap.cause for gap in gaps} == {"periodic"}
    assert (stall.severity, stall.cause, stall.confidence) == (Severity.WARNING, None, Confidence.MEDIUM)
    assert "GPU 0 stalled every 2 min for about 12 s, 8.7% of the job; the log doesn't show why." in stall.summary
    assert len(stall.intervals) == 8


def test_all_gpus_that_share_a_period_are_one_finding() -> None:
    """Their gaps add up."""
    util = _stalling(6)
    (stall,) = found(analyze(recording(util=[util, util])), "periodic_stall")
    assert stall.devices == ("gpu:0", "gpu:1")
    assert stall.lost_gpu_seconds == pytest.approx(2 * 6 * _PAUSE, rel=0.05)
    assert "Both GPUs stalled every 2 min for about 12 s, 8.3% of the job; the log doesn't show why." in stall.summary


def test_an_event_that_was_missed_is_a_multiple() -> None:
    """A pause too short to be seen leaves a distance of two periods."""
    util = _stalling(8)
    begin = int(_starts(8)[4])
    util[begin : begin + _PAUSE] = 97
    (stall,) = found(analyze(recording(util=util)), "periodic_stall")
    assert stall.period_seconds == pytest.approx(_EVERY, rel=0.02)


def test_other_gaps_between_do_not_hide_a_period() -> None:
    """One in four distances may differ, and its gap keeps its own cause."""
    util = _stalling(12)
    util[400:410] = 0
    analysis = analyze(recording(util=util))
    (stall,) = found(analysis, "periodic_stall")
    assert stall.period_seconds == pytest.approx(_EVERY, rel=0.05)
    assert stall.evidence[1].observed < 1


@pytest.mark.parametrize(
    "util",
    [
        _stalling(3),
        steps(*[part for n in (40, 150, 65, 300, 90, 220, 55) for part in ((97.0, n), (0.0, 10))], (97.0, 100)),
        steps((97, 1200)),
        np.tile(steps((97, 118), (0, 2)), 10),
    ],
    ids=["three", "irregular", "none", "too short"],
)
def test_what_has_no_period(util: FloatArray) -> None:
    """Fewer than four gaps and irregular ones are silent; gaps of two seconds are none."""
    assert found(analyze(recording(util=util)), "periodic_stall") == []


@pytest.mark.parametrize("distances", [(120, 120, 120, 171), (120, 120, 171, 120, 120, 95, 120, 120)])
def test_a_few_gaps_with_other_distances_among_them_may_be_chance(distances: tuple[int, ...]) -> None:
    """Three of four distances agree by chance too often; from ten gaps on they do not."""
    parts = [part for every in distances for part in ((0.0, 10), (97.0, every - 10))]
    few = analyze(recording(util=steps((97, 60), *parts, (0, 10), (97, 60))))
    many = analyze(recording(util=steps((97, 60), *parts * 3, (0, 10), (97, 60))))
    assert found(few, "periodic_stall") == []
    (stall,) = found(many, "periodic_stall")
    assert stall.period_seconds == pytest.approx(120, rel=0.02)
    assert stall.evidence[1].threshold is not None
    assert stall.evidence[1].observed >= stall.evidence[1].threshold.value


def test_waits_of_a_starved_job_are_no_period_of_their_own() -> None:
    """They belong to the CPU-bound episode."""
    burst = np.tile(steps((95, 10), (0, 10)), 20)
    util = np.concatenate([steps((97, 300)), burst, steps((97, 300))])
    analysis = analyze(recording(util=util, cpu=steps((20, 300), (95, 400), (20, 300))))
    assert found(analysis, "periodic_stall") == []


def _named(run: Recording, name: str, offset: float = _PAUSE - 1.0) -> Recording:
    return with_training(run, [(start + offset, name, float(place)) for place, start in enumerate(_starts(8))])


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("checkpoint_seconds", "checkpoint"),
        ("epoch", "epoch"),
        ("time/epoch_time", "epoch"),
        ("val_loss", "epoch"),
        ("train_loss", "periodic"),
    ],
)
def test_training_metrics_at_these_moments_tell_the_cause(name: str, cause: str) -> None:
    """A metric on saving, epochs or evaluation that is written in the gaps; a loss tells nothing."""
    analysis = analyze(_named(recording(util=_stalling(8)), name))
    # the first value of a count begins an epoch, it ends none
    assert {gap.cause for gap in found(analysis, "idle_gap")[1:]} == {cause}
    (stall,) = found(analysis, "periodic_stall")
    assert stall.cause == (None if cause == "periodic" else cause)


def test_a_metric_that_is_written_all_the_time_tells_nothing() -> None:
    """Most of its moments must lie in gaps."""
    run = recording(util=_stalling(8))
    points: list[tuple[float | None, str, float | None]] = [(float(s), "val_loss", 1.0) for s in range(5, 1000, 5)]
    assert {gap.cause for gap in found(analyze(with_training(run, points)), "idle_gap")} == {"periodic"}


def test_stages_tell_the_cause() -> None:
    """Stages named after saving."""
    run = recording(util=_stalling(8))
    stages = tuple(Stage(name="save_checkpoint", start=at(s), end=at(s + _PAUSE)) for s in _starts(8))
    analysis = analyze(replace(run, run=replace(run.run, stages=stages)))
    assert {gap.cause for gap in found(analysis, "idle_gap")} == {"checkpoint"}


def _host(metric: str, inside: float, outside: float) -> dict[str, FloatArray]:
    seconds = np.arange(1000)
    busy = np.isin(seconds, [int(start) + step for start in _starts(8) for step in range(1, _PAUSE + 1)])
    return {metric: np.where(busy, inside, outside)}


@pytest.mark.parametrize(
    ("metric", "inside", "outside", "cause"),
    [
        ("host_disk_write_bytes_per_second", 9e8, 1e6, "checkpoint"),
        ("host_disk_write_bytes_per_second", 9e8, 8e8, "periodic"),
        ("host_disk_write_bytes_per_second", 2e6, 0.0, "periodic"),
        ("host_disk_read_bytes_per_second", 9e8, 1e6, "io"),
        ("cpu_iowait_ratio", 0.3, 0.01, "io"),
        ("cpu_iowait_ratio", 0.06, 0.01, "periodic"),
    ],
)
def test_the_host_tells_the_cause(metric: str, inside: float, outside: float, cause: str) -> None:
    """Writing is a checkpoint, reading and waiting is storage; what goes on all the time tells nothing."""
    run = with_host(recording(util=_stalling(8)), np.arange(1000), **_host(metric, inside, outside))
    assert {gap.cause for gap in found(analyze(run), "idle_gap")} == {cause}


def test_a_period_is_a_problem_where_it_decides_the_cost() -> None:
    """A fifth of the job."""
    (stall,) = found(analyze(recording(util=_stalling(8, every=60, pause=20))), "periodic_stall")
    assert stall.severity is Severity.PROBLEM


def test_coarse_samples_are_of_low_confidence() -> None:
    """A minute between samples blurs every edge."""
    util = np.tile(steps((97, 20), (0, 10)), 8)
    (stall,) = found(analyze(recording(util=np.append(util, steps((97, 20))), every=60.0)), "periodic_stall")
    assert stall.confidence is Confidence.LOW
    assert stall.period_seconds == pytest.approx(1800, rel=0.05)
