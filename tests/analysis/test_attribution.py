"""Where every second of every GPU went."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.analysis import analyze
from gpureport.analysis.base import GPU_TIME_CLASSES
from tests.builders import recording, steps

_RUNS = st.lists(
    st.tuples(st.sampled_from([0.0, 3.0, 30.0, 97.0, float("nan")]), st.integers(1, 60)), min_size=2, max_size=10
)


@settings(max_examples=60, deadline=None)
@given(_RUNS, _RUNS, st.sampled_from([0.1, 1.0, 5.0, 30.0]), st.integers(0, 200))
def test_classes_add_up_to_the_run(
    one: list[tuple[float, int]], other: list[tuple[float, int]], every: float, hole: int
) -> None:
    """Every second from first to last sample falls into exactly one class, whatever the log holds."""
    length = min(sum(count for _, count in one), sum(count for _, count in other))
    util = np.stack([steps(*one)[:length], steps(*other)[:length]])
    times = np.arange(length) * every
    times[length // 2 :] += hole
    cpu = steps((20, length // 2), (95, length - length // 2))
    bits = np.arange(length) % 50 < 10
    run = recording(util=util, times=times, every=every, cpu=cpu, cpu_every=every, sw_thermal_slowdown=bits)
    for entry in analyze(run).gpu_time:
        assert [name for name, _ in entry.seconds] == list(GPU_TIME_CLASSES)
        assert min(seconds for _, seconds in entry.seconds) >= 0
        assert sum(seconds for _, seconds in entry.seconds) == pytest.approx((run.run.ended - run.run.started) / 1e6)


def test_each_class_gets_its_time() -> None:
    """Start-up, work, a throttled stretch, a gap, a log gap and the tail."""
    util = steps((0, 40), (97, 200), (0, 20), (97, 140), (0, 30))
    bits = steps((0, 100), (1, 50), (0, 280))
    clock = steps((1400, 100), (1120, 50), (1400, 280))
    times = np.arange(430.0)
    times[300:] += 60
    (entry,) = analyze(recording(util=util, times=times, sw_thermal_slowdown=bits, clock=clock)).gpu_time
    got = dict(entry.seconds)
    assert got == pytest.approx(
        {
            "computing": 340 * 0.97 - 10,
            "short_pauses": 340 * 0.03,
            "low_use": 0,
            "throttled": 10,
            "waiting_for_input": 0,
            "idle": 20,
            "startup": 39,
            "tail": 30,
            "no_samples": 60,
        },
        abs=1.5,
    )


def test_only_the_share_without_work_counts_as_waiting() -> None:
    """Of a CPU-bound phase at 30 % utilisation, 70 % is waiting and the rest computing."""
    util, cpu = steps((97, 300), (30, 300), (97, 300)), steps((20, 300), (95, 300), (20, 300))
    (entry,) = analyze(recording(util=util, cpu=cpu)).gpu_time
    assert dict(entry.seconds)["waiting_for_input"] == pytest.approx(210, abs=5)


def test_computing_means_the_same_whatever_was_found() -> None:
    """At one utilisation the same time counts as computing, whether the CPU or nobody is blamed."""
    util = steps((97, 300), (50, 300), (97, 300))
    busy, calm = steps((20, 300), (95, 300), (20, 300)), steps((20, 900))
    runs = [recording(util=util, cpu=cpu) for cpu in (busy, None, calm)]
    found = [dict(analyze(run).gpu_time[0].seconds) for run in runs]
    assert [entry["computing"] for entry in found] == pytest.approx([0.97 * 600 + 150] * 3, abs=3)
    assert [round(entry["waiting_for_input"] / 150) for entry in found] == [1, 0, 0]
    assert [round(entry["low_use"] / 150) for entry in found] == [0, 1, 1]


def test_overlapping_throttles_are_counted_once() -> None:
    """Heat and hardware bits on the same samples cost the clock once; each finding states its own."""
    bits, clock = steps((0, 100), (1, 60), (0, 140)), steps((1400, 100), (700, 60), (1400, 140))
    run = recording(util=98, clock=clock, sw_thermal_slowdown=bits, hw_slowdown=bits, hw_power_brake_slowdown=bits)
    analysis = analyze(run)
    lost = [finding.lost_gpu_seconds for finding in analysis.findings if finding.kind.endswith("throttle")]
    assert lost == pytest.approx([30, 30], abs=1)
    assert dict(analysis.gpu_time[0].seconds)["throttled"] == pytest.approx(30, abs=1)


def test_low_use_has_one_amount_whether_its_cause_is_unknown_or_was_looked_for() -> None:
    """Its class is what either kind says was lost, and only one of them says it."""
    util, cpu = steps((97, 300), (50, 300), (97, 300)), steps((20, 900))
    blind, watched = analyze(recording(util=util)), analyze(recording(util=util, cpu=cpu))
    kinds = {"low_util_cause_unknown", "underutilised"}
    (finding,) = (entry for entry in blind.findings if entry.kind in kinds)
    (other,) = (entry for entry in watched.findings if entry.kind in kinds)
    assert (finding.kind, other.kind) == ("low_util_cause_unknown", "underutilised")
    assert other.lost_gpu_seconds == pytest.approx(finding.lost_gpu_seconds)
    for analysis in (blind, watched):
        assert dict(analysis.gpu_time[0].seconds)["low_use"] == pytest.approx(finding.lost_gpu_seconds)


def test_gaps_within_low_use_are_not_its_loss() -> None:
    """A log gap and an idle gap inside an episode belong to themselves; loss and class are equal."""
    util = steps((97, 60), (50, 200), (0, 30), (50, 200), (97, 60))
    times = np.arange(550.0)
    times[150:] += 100
    analysis = analyze(recording(util=[util, util], times=times))
    (finding,) = (entry for entry in analysis.findings if entry.kind == "low_util_cause_unknown")
    seconds = [dict(entry.seconds) for entry in analysis.gpu_time]
    assert finding.lost_gpu_seconds == pytest.approx(sum(entry["low_use"] for entry in seconds))
    assert finding.lost_gpu_seconds == pytest.approx(400, rel=0.1)
    assert [entry["idle"] for entry in seconds] == pytest.approx([30, 30], abs=2)


def test_still_samples_the_guard_refused_are_low_use() -> None:
    """At 30 s zeros by chance are no gaps, and the loss of the finding is the class."""
    util = np.where(np.random.default_rng(3).random(300) < 0.55, 0, 95)
    analysis = analyze(recording(util=util, every=30.0))
    (finding,) = (entry for entry in analysis.findings if entry.kind == "low_util_cause_unknown")
    seconds = dict(analysis.gpu_time[0].seconds)
    assert finding.lost_gpu_seconds == pytest.approx(seconds["low_use"])
    assert seconds["low_use"] > 0.4 * 9000


def test_time_without_a_utilisation_is_without_samples() -> None:
    """What was not recorded is neither work nor idle."""
    (entry,) = analyze(recording(power=steps((100, 60)))).gpu_time
    assert dict(entry.seconds)["no_samples"] == 59.0
