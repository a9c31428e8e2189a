"""GPUs that are busy in name only."""

from typing import Any

import numpy as np
import pytest

from gpureport.analysis.series import intervals
from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_BUSY = steps((98, 900))
_HUNG = steps((330, 300), (85, 300), (330, 300))
_SLOWED = steps((1410, 300), (525, 300), (1410, 300))
_LIMIT: dict[str, Any] = {"power_limit": 400, "clock": 1410, "clock_max": 1410}


def test_full_utilisation_at_low_power_is_hollow() -> None:
    """The stretch is found with its edges; what was not done counts as lost, at most."""
    (finding,) = found(analyze(recording(util=_BUSY, power=_HUNG, **_LIMIT)), "hollow_util")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=2)
    assert end == pytest.approx(599.5, abs=2)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.HIGH)
    assert finding.lost_gpu_seconds == pytest.approx(300, abs=20)
    assert "GPU 0 looked busy at near-idle power for 5 min; the log doesn't show whether it hung or" in finding.summary


@pytest.mark.parametrize(
    ("seconds", "count"),
    [(25, 0), (45, 1)],
)
def test_half_a_minute_is_the_shortest(seconds: int, count: int) -> None:
    """A shorter stretch is a phase of the job."""
    power = steps((330, 300), (85, seconds), (330, 300))
    run = recording(util=steps((98, len(power))), power=power, **_LIMIT)
    assert len(found(analyze(run), "hollow_util")) == count


@pytest.mark.parametrize(
    "series",
    [
        {"util": _BUSY, "power": 330, **_LIMIT},
        {"util": 60, "power": _HUNG, **_LIMIT},
        {"util": _BUSY, "power": steps((330, 300), (110, 300), (330, 300)), **_LIMIT, "clock": _SLOWED},
        {"util": _BUSY, "power": _HUNG, **_LIMIT, "sw_power_cap": steps((0, 300), (1, 300), (0, 300))},
        {"util": _BUSY, "power": _HUNG, **_LIMIT, "sw_thermal_slowdown": steps((0, 300), (1, 300), (0, 300))},
        {"util": _BUSY, "power": 98, **_LIMIT, "power_limit": 100},
        {"util": _BUSY, "power": _HUNG, **_LIMIT, "dram_active": 70},
        {"util": steps((98, 300), (0, 300), (98, 300)), "power": _HUNG, **_LIMIT},
    ],
    ids=["healthy", "low use", "low clock", "power cap", "throttled", "lowered limit", "memory-bound", "idle"],
)
def test_what_is_not_hollow(series: dict[str, Any]) -> None:
    """Low power has other reasons: a low clock, heat, a lowered limit, work bound by memory."""
    assert found(analyze(recording(**series)), "hollow_util") == []


def test_power_at_idle_is_hollow_at_any_clock() -> None:
    """A low clock does not account for kernels that draw nothing."""
    power = steps((330, 300), (60, 300), (330, 300))
    run = recording(util=_BUSY, power=power, power_limit=400, clock=300, clock_max=1410)
    assert len(found(analyze(run), "hollow_util")) == 1


def test_two_levels_of_power_in_a_few_samples_are_no_mean() -> None:
    """A sensor that sees a moment of each step is given more samples before it counts."""
    power = np.tile([90.0, 90, 90, 330], 3)
    util = np.concatenate([steps((98, 40)), steps((98, 12)), steps((98, 40))])
    series = np.concatenate([steps((330, 40)), power, steps((330, 40))])
    assert found(analyze(recording(util=util, power=series, every=30.0, **_LIMIT)), "hollow_util") == []


def test_the_odd_rank_of_a_hung_collective_is_named() -> None:
    """The GPUs that wait are one finding; the one that never joined is in its sentence."""
    dead = steps((98, 300), (0, 600))
    power = [_HUNG, _HUNG, np.minimum(_HUNG, steps((330, 300), (60, 600)))]
    run = recording(util=[_BUSY, _BUSY, dead], power=power, **_LIMIT)
    (finding,) = found(analyze(run), "hollow_util")
    assert (finding.devices, finding.cause) == (("gpu:0", "gpu:1"), "hang")
    assert finding.severity is Severity.PROBLEM
    assert "GPU 2 did nothing meanwhile" in finding.summary
    assert finding.lost_gpu_seconds == pytest.approx(600, abs=10)


@pytest.mark.parametrize(
    ("series", "cause"),
    [
        ({"power": [_HUNG, _HUNG], "memory_controller": 1, "host": {"core": np.full(900, 100.0)}}, "hang"),
        ({"power": _HUNG, "memory_controller": 1, "host": {"core": np.full(900, 100.0)}}, None),
        ({"power": _HUNG, "memory_controller": 1, "host": {"core": np.full(900, 30.0)}}, None),
        ({"power": [_HUNG, _HUNG], "host": {"core": np.full(900, 100.0)}}, "hang"),
        ({"power": _HUNG, "received": 42.0, "sent": 3.0}, "copying"),
        ({"power": _HUNG, "received": 42.0, "sent": 41.0}, None),
        ({"power": _HUNG, "memory_controller": 9, "host": {"core": np.full(900, 100.0)}}, "launch-bound"),
        ({"power": steps((330, 300), (150, 300), (330, 300)), "host": {"core": np.full(900, 100.0)}}, "launch-bound"),
    ],
    ids=[
        "pegged core, no traffic",
        "the same on a GPU by itself",
        "core free",
        "pegged core, nearly no power",
        "copies from the host",
        "copies both ways",
        "traffic",
        "some power",
    ],
)
def test_a_hang_is_told_from_small_kernels(series: dict[str, Any], cause: str | None) -> None:
    """A spinning rank keeps a core full and moves no data; small kernels move some, copies from the host much."""
    util = [_BUSY, _BUSY] if isinstance(series["power"], list) else _BUSY
    (finding,) = found(analyze(recording(util=util, cpu=np.full(900, 20.0), **_LIMIT, **series)), "hollow_util")
    assert finding.cause == cause


def test_without_a_host_series_ranks_that_are_hollow_together_hang() -> None:
    """One GPU alone may run kernels that do next to nothing; of several at once a collective is the likely reason."""
    one = analyze(recording(util=_BUSY, power=_HUNG, **_LIMIT))
    two = analyze(recording(util=[_BUSY, _BUSY], power=_HUNG, **_LIMIT))
    assert [finding.cause for finding in found(one, "hollow_util")] == [None]
    assert [finding.cause for finding in found(two, "hollow_util")] == ["hang"]


def test_a_wait_for_a_working_peer_names_it() -> None:
    """The GPU that works keeps its power while the others spin."""
    run = recording(util=[_BUSY, _BUSY], power=[_HUNG, steps((330, 900))], **_LIMIT)
    (finding,) = found(analyze(run), "hollow_util")
    assert (finding.devices, finding.cause) == (("gpu:0",), "straggler")
    assert "GPU 1 worked meanwhile" in finding.summary


def test_dcgm_decides_where_it_counted() -> None:
    """Few active multiprocessors are hollow at any power; many are not, unless all only spin."""
    low, high = steps((90, 300), (20, 300), (90, 300)), np.full(900, 90.0)
    few = found(analyze(recording(util=_BUSY, sm_active=low)), "hollow_util")
    many = found(analyze(recording(util=_BUSY, sm_active=high, power=150, **_LIMIT)), "hollow_util")
    spinning = found(analyze(recording(util=_BUSY, sm_active=high, power=_HUNG, **_LIMIT)), "hollow_util")
    assert [(one.confidence, one.evidence[1].metric) for one in few] == [(Confidence.HIGH, "gpu_sm_active_ratio")]
    assert many == []
    assert len(spinning) == 1


def test_a_limit_from_the_table_lowers_confidence() -> None:
    """The board may have been set to less."""
    (finding,) = found(analyze(recording(util=_BUSY, power=_HUNG)), "hollow_util")
    assert finding.confidence is Confidence.LOW


def test_an_unknown_gpu_without_a_limit_is_not_judged() -> None:
    """It is said what is not known, and what to record."""
    analysis = analyze(recording(util=_BUSY, power=_HUNG, model="Some GPU"))
    (entry,) = unjudged(analysis, "hollow_util")
    assert "not known for Some GPU" in entry.reason
    assert "gpu_power_limit_watts" in entry.metrics
    assert found(analysis, "hollow_util") == []


def test_without_power_and_without_dcgm_it_is_not_judged() -> None:
    """Utilisation alone calls a hang busy."""
    (entry,) = unjudged(analyze(recording(util=_BUSY)), "hollow_util")
    assert "gpu_power_watts" in entry.metrics


def test_a_short_recording_is_not_judged() -> None:
    """Five samples of a minute are needed at one a minute."""
    analysis = analyze(recording(util=steps((98, 4)), power=85, every=60.0, **_LIMIT))
    assert [entry.recording for entry in unjudged(analysis, "hollow_util")] == ["a log of at least 5 min"]


def test_a_run_that_was_never_idle_is_not_hollow_by_itself() -> None:
    """Its own load does not pass for idle power."""
    run = recording(util=_BUSY, power=330, power_limit=400, model="Some GPU")
    assert found(analyze(run), "hollow_util") == []


def test_when_each_gpu_was_hollow_is_had_from_the_findings() -> None:
    """Only the GPUs a finding names."""
    run = recording(util=[_BUSY, _BUSY], power=[_HUNG, steps((330, 900))], **_LIMIT)
    findings = analyze(run).findings
    own = [intervals.collect_finding_spans(findings, device, {"hollow_util"}) for device in ("gpu:0", "gpu:1")]
    assert [round(intervals.total_seconds(one), -1) for one in own] == [300, 0]


def test_hollow_time_is_not_low_use() -> None:
    """Stretches of low use around it do not reach into it."""
    util = steps((40, 300), (98, 300), (40, 300))
    power = steps((200, 300), (85, 300), (200, 300))
    analysis = analyze(recording(util=util, power=power, **_LIMIT))
    hollow = intervals.collect_finding_spans(analysis.findings, "gpu:0", {"hollow_util"})
    low = intervals.collect_finding_spans(analysis.findings, "gpu:0", {"low_util_cause_unknown"})
    assert min(len(hollow), len(low)) > 0
    assert intervals.total_seconds(intervals.intersection(hollow, low)) == 0


def test_where_utilisation_was_never_read_nothing_is_hollow() -> None:
    """Between a throttled stretch and busy samples of high power, the samples without utilisation claim nothing."""
    util = steps((98, 36), (np.nan, 10), (98, 40))
    throttled = steps((0, 34), (1, 2), (0, 50))
    power = steps((85, 46), (330, 40))
    run = recording(util=util, power=power, every=30.0, sw_thermal_slowdown=throttled, **_LIMIT)
    (finding,) = found(analyze(run), "hollow_util")
    ((_, end),) = spans(finding)
    assert end == pytest.approx(34 * 30, abs=60)


def test_a_gpu_that_joins_another_one_the_second_time_only() -> None:
    """What it was hollow with is found among several stretches of the other one."""
    twice, once = (
        steps((330, 300), (85, 100), (330, 300), (85, 100), (330, 100)),
        steps((330, 700), (85, 100), (330, 100)),
    )
    run = recording(util=steps((98, 900)), power=[twice, once], **_LIMIT)
    assert [each.devices for each in found(analyze(run), "hollow_util")] == [("gpu:0",), ("gpu:0", "gpu:1")]
