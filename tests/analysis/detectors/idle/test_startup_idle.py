"""Time before the first work and after the last."""

import numpy as np
import pytest

from gpureport.analysis.detectors.idle.startup_idle import StartupIdle
from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged, with_training


def test_start_up_and_tail_belong_to_the_job() -> None:
    """One finding each, of no single GPU, costing the time of all."""
    util = steps((0, 40), (97, 2000), (0, 30))
    analysis = analyze(recording(util=[util, util]))
    (startup,), (tail,) = found(analysis, "startup_idle"), found(analysis, "tail_idle")
    assert (startup.devices, spans(startup)) == ((), [(0.0, 39.0)])
    assert (tail.devices, spans(tail)) == ((), [(2039.0, 2069.0)])
    assert startup.lost_gpu_seconds == pytest.approx(78)
    assert startup.severity is Severity.INFO


def test_a_long_start_up_is_a_warning() -> None:
    """More than a twentieth of the recording is worth a change."""
    (startup,) = found(analyze(recording(util=steps((0, 300), (97, 700)))), "startup_idle")
    assert startup.severity is Severity.WARNING


def test_a_short_one_is_silent() -> None:
    """Less than 10 s is nothing."""
    analysis = analyze(recording(util=steps((0, 8), (97, 200), (0, 6))))
    assert found(analysis, "startup_idle") + found(analysis, "tail_idle") == []


def test_a_rank_that_is_late_by_a_good_part_of_a_short_run_is_no_short_pause() -> None:
    """Eight seconds of 20 s are lost, eight of ten minutes are how ranks start; less than 5 s is never told."""
    short = analyze(recording(util=[steps((97, 20)), steps((6, 9), (97, 11))]))
    (late,) = found(short, "startup_idle")
    assert (late.devices, round(late.lost_gpu_seconds or 0)) == (("gpu:1",), 8)
    assert late.evidence[0].threshold == StartupIdle.late
    assert dict(short.gpu_time[1].seconds)["startup"] == pytest.approx(8, abs=0.6)
    assert not found(analyze(recording(util=[steps((97, 600)), steps((6, 9), (97, 591))])), "startup_idle")
    assert not found(analyze(recording(util=[steps((97, 20)), steps((6, 4), (97, 16))])), "startup_idle")


def test_a_late_rank_has_a_start_up_of_its_own() -> None:
    """The GPU that begins 20 s after the first is named."""
    (late,) = found(analyze(recording(util=[steps((97, 300)), steps((0, 20), (97, 280))])), "startup_idle")
    assert late.devices == ("gpu:1",)


@pytest.mark.parametrize(("logged", "expected"), [(2, "startup_idle"), (8, "idle_gap")])
def test_a_gpu_that_rests_while_the_job_trains_does_not_start_up(logged: int, expected: str) -> None:
    """Training metrics say that the job is past its start; a moment or two of them may be settings."""
    run = recording(util=[steps((97, 300)), steps((6, 20), (97, 280))])
    analysis = analyze(with_training(run, [(1.0 + place, "samples_per_second", 500.0) for place in range(logged)]))
    (finding,) = [*found(analysis, "startup_idle"), *found(analysis, "idle_gap")]
    assert (finding.kind, finding.devices, round(finding.lost_gpu_seconds or 0)) == (expected, ("gpu:1",), 19)


def test_a_gpu_at_work_when_the_log_begins_does_not_start_up() -> None:
    """As that of a run that was resumed: the rest after it is a gap, however short the work before it was."""
    for seconds, expected in ((2.0, ["idle_gap"]), (0.5, ["startup_idle"])):
        late = np.concatenate([np.full(int(seconds * 4), 94.0), np.full(40, 3.0), np.full(200, 94.0)])
        analysis = analyze(recording(every=0.25, util=[np.full(len(late), 95.0), late]))
        kinds = [each.kind for each in analysis.findings if each.devices == ("gpu:1",)]
        assert [kind for kind in kinds if kind in {"startup_idle", "idle_gap"}] == expected


def test_a_job_that_never_works_is_named_as_such() -> None:
    """An idle recording is a warning, and no idle gap."""
    analysis = analyze(recording(util=np.zeros(100)))
    (never,) = found(analysis, "startup_idle")
    assert never.severity is Severity.WARNING
    assert never.summary.startswith(
        "No GPU did lasting work in 1 min 39 s; utilisation was 5.0% or less for 100% of it."
    )
    assert never.cause == "no work"
    assert found(analysis, "idle_gap") == []


def test_without_utilisation_it_is_not_judged() -> None:
    """Both kinds say so."""
    analysis = analyze(recording(power=steps((100, 60))))
    assert unjudged(analysis, "startup_idle")
    assert unjudged(analysis, "tail_idle")


@pytest.mark.parametrize("every", [0.0, 1.0])
def test_a_recording_of_a_few_seconds_says_nothing(every: float) -> None:
    """One moment is no proof that a job never worked."""
    assert found(analyze(recording(util=steps((50, 3)), every=every)), "startup_idle") == []


def test_two_samples_an_hour_apart_have_no_tail() -> None:
    """What a tail must be is not made up by the time after the last sample."""
    assert found(analyze(recording(util=steps((97, 2)), every=3600.0)), "tail_idle") == []


def test_light_work_is_no_start_up() -> None:
    """A job at 8% lost what it did not use, and its time is not start-up."""
    analysis = analyze(recording(util=steps((8, 100), (0, 100))))
    (never,), seconds = found(analysis, "startup_idle"), dict(analysis.gpu_time[0].seconds)
    assert seconds["startup"] == 0
    assert seconds["idle"] == pytest.approx(100, abs=1)
    assert never.lost_gpu_seconds == pytest.approx(seconds["idle"] + seconds["low_use"], abs=1)
    assert never.cause == "no work"
    assert "utilisation was 5.0% or less for 50% of it" in never.summary
    assert seconds["computing"] == pytest.approx(8, abs=1)


def test_a_gpu_that_does_a_little_all_along_is_at_work() -> None:
    """Its kernels are small, or the CPU does the rest; a GPU beside it that never works makes both unused."""
    (little,) = found(analyze(recording(util=steps((0, 15), (8, 85)))), "startup_idle")
    assert little.cause == "little work"
    assert little.summary == (
        "GPU 0 did a little work all along: utilisation averaged 6.9% over 1 min 39 s, never above 12% for long."
    )
    (other,) = found(analyze(recording(util=[np.full(100, 8.0), np.zeros(100)])), "startup_idle")
    assert other.cause == "no work"


def test_work_within_start_up_and_tail_is_not_lost() -> None:
    """An evaluation of two seconds after the end is work; loss and class agree."""
    util = steps((0, 40), (97, 200), (0, 20), (97, 2), (0, 20))
    analysis = analyze(recording(util=util))
    (tail,), seconds = found(analysis, "tail_idle"), dict(analysis.gpu_time[0].seconds)
    assert tail.lost_gpu_seconds == pytest.approx(40, abs=1)
    assert tail.lost_gpu_seconds == pytest.approx(seconds["tail"])


def test_a_tail_prints_the_length_that_was_compared() -> None:
    """The log may have ended an interval late, and evidence holds to its own limit."""
    (tail,) = found(analyze(recording(util=steps((97, 200), (0, 9)), every=1.2)), "tail_idle")
    assert tail.intervals[0].seconds < 11
    assert tail.evidence[0].threshold is not None
    assert tail.evidence[0].observed >= tail.evidence[0].threshold.value


def test_coarse_samples_say_the_range() -> None:
    """Ten minutes between samples: a start-up is known to ten minutes, with low confidence."""
    (startup,) = found(analyze(recording(util=steps((0, 3), (97, 20)), every=600.0)), "startup_idle")
    assert startup.confidence is Confidence.LOW
    assert startup.summary.startswith("The first work came after 20 to 30 min, 11% of the run.")
    assert [entry.observed for entry in startup.evidence[2:]] == [1200.0, 1800.0]


def test_a_coarse_tail_says_the_range() -> None:
    """From the first reading at rest or the last at work to the end."""
    (tail,) = found(analyze(recording(util=steps((97, 20), (0, 3)), every=600.0)), "tail_idle")
    assert tail.confidence is Confidence.LOW
    assert tail.summary.startswith("The GPU sat idle for 20 to 30 min after the last work, 11% of the run.")


@pytest.mark.parametrize("every", [30.0, 60.0, 1000.0])
def test_a_single_reading_is_no_finding(every: float) -> None:
    """Neither at the beginning nor at the end; what to record is said."""
    analysis = analyze(recording(util=steps((0, 1), (97, 20), (0, 1)), every=every))
    assert found(analysis, "startup_idle") + found(analysis, "tail_idle") == []
    for kind in ("startup_idle", "tail_idle"):
        (entry,) = unjudged(analysis, kind)
        assert "only one reading" in entry.reason
        assert "5 s" in entry.recording


@pytest.mark.parametrize(
    ("every", "readings", "sure"),
    [(1.0, 40, Confidence.HIGH), (5.0, 10, Confidence.HIGH), (20.0, 3, Confidence.MEDIUM), (60.0, 30, Confidence.LOW)],
)
def test_confidence_follows_the_readings(every: float, readings: int, sure: Confidence) -> None:
    """Five are sure, two to four less, and a minute between samples never."""
    (startup,) = found(analyze(recording(util=steps((0, readings), (97, 300)), every=every)), "startup_idle")
    assert startup.confidence is sure


def test_several_gpus_at_a_time_are_no_more_readings() -> None:
    """Eight GPUs read three times tell no more of how long it was."""
    util = steps((0, 3), (97, 100))
    (startup,) = found(analyze(recording(util=[util] * 8, every=20.0)), "startup_idle")
    assert startup.confidence is Confidence.MEDIUM


def test_a_job_that_never_works_by_coarse_readings_is_less_sure() -> None:
    """Readings ten minutes apart prove little."""
    (never,) = found(analyze(recording(util=steps((0, 6)), every=600.0)), "startup_idle")
    assert never.confidence is Confidence.LOW


@pytest.mark.parametrize(("samples", "every"), [(2, 14.0), (2, 600.0), (4, 60.0)])
def test_a_few_readings_do_not_tell_that_a_job_never_works(samples: int, every: float) -> None:
    """What the report calls too short to judge makes no finding, and no kind counts as judged by it."""
    analysis = analyze(recording(util=steps((0, samples)), every=every))
    assert analysis.findings == ()
    (entry,) = unjudged(analysis, "startup_idle")
    assert f"only {samples} samples" in entry.reason
    assert {answer.outcome.value for answer in analysis.answers if answer.kind in {"idle_gap", "hollow_util"}} == {
        "cannot judge"
    }


def test_two_moments_with_a_gap_between_do_not_either() -> None:
    """Of fourteen seconds of fifteen nothing is known."""
    times = [0.0, 0.2, 0.4, 0.6, 0.8, 15.0, 15.2, 15.4, 15.6]
    analysis = analyze(recording(util=steps((8, 9)), times=times, every=0.2))
    assert found(analysis, "startup_idle") == []
    assert "samples cover only" in unjudged(analysis, "startup_idle")[0].reason


def test_light_work_all_along_is_not_told_to_use_the_gpu() -> None:
    """A job at 8% does use it, so the advice is another."""
    (light,), (never,) = (found(analyze(recording(util=steps((level, 100)))), "startup_idle") for level in (8, 0))
    assert "does a little all along" in light.recommendation
    assert "uses the GPU at all" in never.recommendation


def test_a_job_of_bursts_has_no_long_start_up() -> None:
    """Where work comes in single samples all along, the first two in a row are not its beginning."""
    burst = np.tile(steps((0, 6), (90, 1)), 60)
    work = np.tile(np.concatenate([burst[:140], steps((0, 6), (90, 4))]), 3)
    util = np.concatenate([np.zeros(30), burst, work, burst, np.zeros(30)])
    analysis = analyze(recording(util=util, every=2.0))
    (startup,), (tail,) = found(analysis, "startup_idle"), found(analysis, "tail_idle")
    assert startup.intervals[0].seconds == pytest.approx(72, abs=8)
    assert tail.intervals[0].seconds == pytest.approx(60, abs=8)


def test_autotuning_before_steady_work_is_start_up() -> None:
    """A job that works all the time does not begin with three kernels a minute before."""
    util = np.concatenate([np.tile(steps((0, 12), (90, 1)), 4), np.zeros(20), np.full(400, 97.0)])
    (startup,) = found(analyze(recording(util=util)), "startup_idle")
    assert startup.intervals[0].seconds == pytest.approx(71, abs=3)


def test_light_work_after_the_last_sustained_work_is_said() -> None:
    """A GPU that still works at 7% every other second may not be done: the tail is no sure thing."""
    util = np.concatenate([np.zeros(5), np.full(60, 90.0), np.tile(steps((0, 1), (7, 1)), 60)])
    (tail,) = found(analyze(recording(util=util)), "tail_idle")
    assert tail.confidence is Confidence.LOW
    assert "The GPU sat idle for 2 min after the last work, 65% of the run. Light work may fill 50%" in tail.summary


def test_power_of_work_ends_a_start_up_that_utilisation_does_not_see() -> None:
    """Samples 10 s apart fall into the pauses of a job that waits for half of each second."""
    util = np.concatenate([np.zeros(20), steps((0, 3)), np.tile(steps((95, 1), (0, 1)), 60)])
    power = steps((60, 20), (300, 123))
    (startup,) = found(analyze(recording(util=util, power=power, every=10.0)), "startup_idle")
    assert spans(startup)[0] == pytest.approx((0.0, 195), abs=5)


@pytest.mark.parametrize(("watts", "seconds"), [(62.0, 245.0), (180.0, 95.0), (np.nan, 95.0)])
def test_kernels_of_an_import_end_no_start_up(watts: float, seconds: float) -> None:
    """Two samples of 15% at the power of rest are no work; with power in between, or none recorded, they may be."""
    util = steps((0, 10), (15, 2), (0, 13), (97, 100))
    power = steps((60, 10), (watts, 2), (60, 13), (300, 100))
    (startup,) = found(analyze(recording(util=util, power=power, every=10.0)), "startup_idle")
    assert spans(startup)[0] == pytest.approx((0.0, seconds), abs=5)


def test_light_work_before_full_work_is_no_start_up() -> None:
    """Ten minutes at 20% are a job that does a little, whatever it draws."""
    util, power = steps((0, 10), (20, 60), (97, 100)), steps((60, 10), (65, 60), (300, 100))
    (startup,) = found(analyze(recording(util=util, power=power, every=10.0)), "startup_idle")
    assert spans(startup)[0] == pytest.approx((0.0, 95), abs=11)
