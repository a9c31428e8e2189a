"""One GPU that works differently from its peers."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpureport.analysis.detectors.balance.peer_differences import find_uneven_bins
from gpureport.columns import FloatArray
from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_BUSY = steps((97, 900))
_LESS = steps((97, 300), (58, 300), (97, 300))


def test_the_gpu_that_differs_is_named() -> None:
    """With its stretch, the figures of both sides, and what the low side was short of."""
    (finding,) = found(analyze(recording(util=[_BUSY, _LESS, _BUSY, _BUSY])), "imbalance")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=5)
    assert end == pytest.approx(599.5, abs=5)
    assert (finding.devices, finding.cause, finding.severity) == (("gpu:1",), "utilisation", Severity.WARNING)
    assert finding.lost_gpu_seconds == pytest.approx(117, abs=6)
    assert "GPU 1 averaged 58% utilisation over 4 min 59 s, the others 97%." in finding.summary


def test_one_rank_that_works_while_the_others_wait() -> None:
    """All that the others were short of counts."""
    (finding,) = found(analyze(recording(util=[_BUSY, _LESS, _LESS, _LESS])), "imbalance")
    assert finding.devices == ("gpu:0",)
    assert finding.lost_gpu_seconds == pytest.approx(3 * 117, abs=20)


@pytest.mark.parametrize("busy", [1, 3])
def test_what_a_gpu_was_short_of_its_peers_is_lost(busy: int) -> None:
    """No finding costs more than the classes of lost time hold: the low side's pauses are low use, not short pauses."""
    analysis = analyze(recording(util=[_BUSY] * busy + [_LESS] * (4 - busy)))
    (finding,) = found(analysis, "imbalance")
    lost = sum(dict(time.seconds)["low_use"] for time in analysis.gpu_time)
    assert finding.lost_gpu_seconds is not None
    assert finding.lost_gpu_seconds <= lost <= finding.lost_gpu_seconds + 0.05 * 300 * (4 - busy)
    parts = [(part.name, part.cause) for time in analysis.gpu_time for part in time.parts]
    assert parts.count(("low_use", "imbalance")) == 4 - busy


def test_of_two_the_lower_is_named() -> None:
    """Nobody else tells which is odd; confidence says so."""
    (finding,) = found(analyze(recording(util=[_BUSY, _LESS])), "imbalance")
    assert (finding.devices, finding.confidence) == (("gpu:1",), Confidence.MEDIUM)
    assert "GPU 1 averaged 58% utilisation over 4 min 59 s, GPU 0 97%." in finding.summary


def test_at_full_utilisation_power_tells_the_straggler() -> None:
    """The one that works draws more; the others wait in a collective."""
    waiting = steps((330, 300), (215, 600))
    run = recording(util=98, power=[waiting, waiting, steps((330, 900)), waiting], power_limit=400)
    (finding,) = found(analyze(run), "imbalance")
    assert (finding.devices, finding.cause, finding.lost_gpu_seconds) == (("gpu:2",), "power", None)
    assert "full utilisation over 9 min 57 s, the others 215 W. The others may be waiting for it." in finding.summary


def test_two_levels_of_power_are_compared_by_their_mean() -> None:
    """A sensor that sees a moment of each step reads high or low by chance; medians would differ."""
    rng = np.random.default_rng(3)
    power = np.where(rng.random((4, 900)) < 0.5, 330.0, 180.0)
    assert found(analyze(recording(util=98, power=power, power_limit=400)), "imbalance") == []


@pytest.mark.parametrize(
    "series",
    [
        {"util": [_BUSY, steps((97, 300), (85, 300), (97, 300)), _BUSY]},
        {"util": [_BUSY, steps((97, 300), (58, 60), (97, 540)), _BUSY]},
        {"util": [_BUSY, steps((97, 300), (0, 300), (97, 300)), _BUSY]},
        {"util": [steps((97, 300), (90, 600)), steps((97, 300), (60, 600)), steps((97, 300), (75, 600))]},
        {"util": [_BUSY, np.zeros(900), _BUSY]},
        {"util": 98, "power": [[330.0] * 900, [280.0] * 900, [330.0] * 900], "power_limit": 400},
    ],
    ids=["a few points", "a minute", "idle", "no agreement", "unused", "boards differ"],
)
def test_what_is_no_imbalance(series: dict[str, Any]) -> None:
    """Small or short differences, peers that differ among themselves, and what other kinds call theirs."""
    assert found(analyze(recording(**series)), "imbalance") == []


def test_a_throttled_gpu_is_not_called_different() -> None:
    """Heat is the finding then."""
    hot = [np.zeros(900), np.ones(900), np.zeros(900)]
    power = [steps((330, 900)), steps((200, 900)), steps((330, 900))]
    run = recording(util=98, power=power, power_limit=400, sw_thermal_slowdown=hot, clock=1200)
    analysis = analyze(run)
    assert found(analysis, "thermal_throttle") != []
    assert found(analysis, "imbalance") == []


def test_a_hollow_gpu_is_not_called_different() -> None:
    """Busy in name only is the finding then."""
    power = [steps((330, 900)), steps((70, 900)), steps((330, 900))]
    analysis = analyze(recording(util=98, power=power, power_limit=400))
    assert found(analysis, "hollow_util") != []
    assert found(analysis, "imbalance") == []


def test_a_single_gpu_has_no_peers() -> None:
    """Nothing to say, and nothing missing."""
    analysis = analyze(recording(util=_BUSY))
    assert found(analysis, "imbalance") == []
    assert unjudged(analysis, "imbalance") == []


def test_a_short_recording_of_several_gpus_is_not_judged() -> None:
    """Three means of 30 s are needed."""
    (entry,) = unjudged(analyze(recording(util=[steps((97, 60)), steps((50, 60))])), "imbalance")
    assert entry.recording == "a log of at least 1 min 30 s"


def _waiting(rows: int, share: float, seed: int) -> FloatArray:
    """Return point samples of a GPU that works some share of the time: all or nothing."""
    return np.where(np.random.default_rng(seed).random(rows) < share, 97.0, 0.0)


def test_point_samples_of_waits_differ_by_chance() -> None:
    """Two GPUs that each work four tenths of the time, seen every 5 s: no stretch of any of ten hours counts."""
    for seed in range(10):
        util = [_waiting(720, 0.4, 2 * seed), _waiting(720, 0.4, 2 * seed + 1)]
        assert found(analyze(recording(util=util, every=5.0)), "imbalance") == []


def test_point_samples_show_a_rank_that_waits_in_one_piece() -> None:
    """A few rows in which it happens to work end no episode."""
    util = [steps((97, 600)), steps((97, 600)), np.concatenate([steps((97, 120)), _waiting(480, 0.5, 3)])]
    (finding,) = found(analyze(recording(util=util, every=5.0)), "imbalance")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(600, abs=60)
    assert end == pytest.approx(3000, abs=60)


def test_a_peer_without_a_value_meanwhile_is_left_out_of_the_comparison() -> None:
    """The others tell what is usual."""
    silent = np.where(_LESS < 97, np.nan, _BUSY)
    (finding,) = found(analyze(recording(util=[silent, _LESS, _BUSY, _BUSY])), "imbalance")
    assert finding.devices == ("gpu:1",)
    assert finding.lost_gpu_seconds == pytest.approx(117, abs=6)


@given(st.integers(0, 2**32), st.sampled_from([2, 3, 4, 7]), st.booleans())
def test_each_gpu_is_set_against_the_median_of_the_others(seed: int, count: int, relative: bool) -> None:  # noqa: FBT001 - given by Hypothesis
    """However many there are, as if the others were ordered anew for each."""
    chance = np.random.default_rng(seed)
    means = chance.choice([0.2, 0.5, 0.55, 0.6, 0.9, np.nan], (count, 30))
    means[:, means.shape[1] // 2 :] = np.where(chance.random((count, 15)) < 0.8, 0.55, means[:, :15])
    named = {str(place): row for place, row in enumerate(means)}
    uneven = find_uneven_bins(named, 0.2, 0.12, relative=relative)
    for place, column in np.ndindex(means.shape):
        own, others = means[place, column], np.delete(means[:, column], place)
        known = others[~np.isnan(others)]
        expected = False
        if len(known) and 2 * len(known) >= count - 1:
            usual = float(np.median(known))
            scale = usual if relative else 1.0
            is_far = own - usual < -0.2 * scale if count == 2 else abs(own - usual) > 0.2 * scale
            expected = bool(is_far and np.ptp(known) < 0.12 * scale)
        assert uneven[str(place)][column] == expected
