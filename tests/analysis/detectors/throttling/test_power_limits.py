"""Clocks set by the power limit."""

import numpy as np

from gpureport.testing import Confidence, Severity, analyze, found, recording, steps, unjudged


def test_the_power_cap_is_information() -> None:
    """It is normal at full load, on any GPU."""
    run = recording(util=98, power=70, power_limit=70, clock=900, sw_power_cap=np.ones(300), model="Tesla T4")
    (finding,) = found(analyze(run), "power_cap")
    assert finding.severity is Severity.INFO
    assert "GPU 0 ran at its power limit throughout, at 57% of its top clock: normal under load." in finding.summary


def test_what_a_stretch_of_bursts_counts_is_said() -> None:
    """Bursts 15 s apart are one stretch: the pauses between them are in it, and the sentence says how much they are."""
    bits = np.tile(np.repeat([1, 0], [5, 15]), 15)
    (finding,) = found(analyze(recording(util=98, power=70, power_limit=70, clock=900, sw_power_cap=bits)), "power_cap")
    (interval,) = finding.intervals
    assert (round(interval.seconds), round(100 * bits.mean())) == (284, 25)
    assert finding.summary.endswith(
        "busy time, at 64% of its top clock. It did so for 1 min 14 s of the 4 min 44 s marked."
    )


def test_a_stretch_without_pauses_needs_no_words() -> None:
    """Where all that is counted was at the limit, nothing is said of bursts."""
    (finding,) = found(analyze(recording(util=98, power=70, power_limit=70, sw_power_cap=np.ones(300))), "power_cap")
    assert "bursts" not in finding.summary


def test_the_cap_is_seen_in_power_where_bits_are_missing() -> None:
    """Power at its limit, with less confidence."""
    (finding,) = found(analyze(recording(util=steps((98, 300)), power=398, power_limit=400)), "power_cap")
    assert finding.confidence is Confidence.MEDIUM


def test_a_moment_at_the_limit_is_silent() -> None:
    """Half a minute is the shortest that sets the speed of a job."""
    bits = steps((0, 100), (1, 10), (0, 190))
    assert found(analyze(recording(util=98, power_limit=400, power=300, sw_power_cap=bits)), "power_cap") == []


def test_a_lowered_limit_that_binds_is_a_warning() -> None:
    """The limit in force is set against the one the board ships with."""
    run = recording(util=steps((98, 300)), power=219, power_limit=220, default_limit=400)
    (finding,) = found(analyze(run), "power_limited")
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert "GPU 0 was capped at 220 W, 55% of its default 400 W, and ran into it." in finding.summary


def test_a_lowered_limit_nobody_reaches_is_information() -> None:
    """It costs nothing."""
    (finding,) = found(analyze(recording(util=steps((98, 300)), power=120, power_limit=220)), "power_limited")
    assert (finding.severity, finding.confidence) == (Severity.INFO, Confidence.LOW)


def test_the_default_limit_is_no_finding() -> None:
    """A board as it ships is not limited."""
    assert found(analyze(recording(util=steps((98, 300)), power=390, power_limit=400)), "power_limited") == []


def test_unknown_limits_are_not_judged() -> None:
    """Neither kind without power limits or bits."""
    analysis = analyze(recording(util=steps((98, 300)), power=390))
    assert "gpu_power_limit_watts" in unjudged(analysis, "power_cap")[0].metrics
    assert "gpu_power_limit_default_watts" in unjudged(analysis, "power_limited")[0].metrics


def test_a_lowered_limit_is_a_choice() -> None:
    """No time is counted lost, the clock is evidence, and the cap is not called normal."""
    run = recording(util=98, power=219, power_limit=220, default_limit=400, clock=900, sw_power_cap=np.ones(300))
    analysis = analyze(run)
    (limited,), (cap,) = found(analysis, "power_limited"), found(analysis, "power_cap")
    assert limited.lost_gpu_seconds is None
    assert limited.evidence[-1].metric == "gpu_sm_clock_hertz"
    assert "not a fault" not in cap.recommendation
    assert cap.severity is Severity.INFO


def test_a_default_limit_that_takes_a_third_of_the_clock_is_a_warning() -> None:
    """On models whose clock events NVIDIA's diagnostics look at."""
    run = recording(util=98, power=400, power_limit=400, clock=900, sw_power_cap=np.ones(300))
    (finding,) = found(analyze(run), "power_cap")
    assert finding.severity is Severity.WARNING
    assert "highest" in finding.recommendation


def test_a_small_share_of_the_busy_time_is_silent() -> None:
    """Half a minute in an hour does not set the speed of a job."""
    bits = steps((0, 1800), (1, 40), (0, 1760))
    assert found(analyze(recording(util=98, power=300, power_limit=400, sw_power_cap=bits)), "power_cap") == []


def test_limits_and_clocks_of_zero_are_not_known() -> None:
    """A recorder that does not know them may write 0."""
    run = recording(util=steps((97, 60)), power=200, power_limit=0, default_limit=400, clock=1000, clock_max=0)
    assert found(analyze(run), "power_limited") == []
    assert unjudged(analyze(run), "power_limited") != []


def test_a_lowered_limit_without_busy_samples_says_nothing_of_power() -> None:
    """Whether a job feels it is not known from a GPU at rest: no 0% of the limit while busy."""
    run = recording(util=np.zeros(60), power=30, power_limit=400, default_limit=450)
    (finding,) = found(analyze(run), "power_limited")
    assert "GPU 0 was capped at 400 W, 89% of its default 450 W; whether that slows the job is not" in finding.summary
    assert not any("busy" in entry.statistic for entry in finding.evidence)
