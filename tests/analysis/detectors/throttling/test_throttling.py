"""Clocks held down by heat or by hardware."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gpureport.analysis import build_context
from gpureport.analysis.detectors.throttling.throttling import Throttling
from gpureport.testing import Confidence, Severity, analyze, found, recording, spans, steps, unjudged

_BUSY: dict[str, Any] = {"util": steps((98, 300)), "power": 300.0, "power_limit": 400.0}
_ON = steps((0, 100), (1, 60), (0, 140))
_OFF = np.zeros(300)


def test_a_thermal_bit_is_throttling() -> None:
    """Bits are direct evidence; the lost time is what the clock fell short."""
    clock = steps((1400, 100), (1120, 60), (1400, 140))
    run = recording(**_BUSY, clock=clock, temperature=86, sw_thermal_slowdown=_ON, hw_thermal_slowdown=_OFF)
    (finding,) = found(analyze(run), "thermal_throttle")
    assert spans(finding) == [(99.5, 159.5)]
    assert (finding.confidence, finding.cause) == (Confidence.HIGH, "heat")
    assert finding.lost_gpu_seconds == pytest.approx(12)
    assert "GPU 0 reached 86 °C; its clock fell 20% for 1 min." in finding.summary


def test_a_controller_that_lets_go_for_a_moment_is_one_episode() -> None:
    """Bits 8 s apart belong together, 40 s apart they do not once the GPU has cooled."""
    near = steps((0, 100), (1, 10), (0, 7), (1, 10), (0, 173))
    far = steps((0, 100), (1, 10), (0, 40), (1, 10), (0, 140))
    temperature = np.where(far > 0, 86, 70)
    close = recording(**_BUSY, sw_thermal_slowdown=near)
    apart = recording(**_BUSY, sw_thermal_slowdown=far, temperature=temperature)
    assert len(found(analyze(close), "thermal_throttle")[0].intervals) == 1
    assert len(found(analyze(apart), "thermal_throttle")[0].intervals) == 2


def test_the_drivers_counters_tell_as_bits_do() -> None:
    """Time the driver counted is direct evidence; it lies between the rows the counter rose between."""
    counted = np.concatenate([np.zeros(100), np.arange(60) * 0.5, np.full(140, 29.5)])
    (finding,) = found(analyze(recording(**_BUSY, sw_thermal_slowdown_seconds_total=counted)), "thermal_throttle")
    assert spans(finding) == [(100.0, 159.0)]
    assert finding.confidence is Confidence.HIGH


def test_a_counter_that_starts_anew_is_no_throttling() -> None:
    """A driver that was loaded again counts from 0."""
    counted = np.concatenate([np.full(100, 500.0), np.zeros(200)])
    assert found(analyze(recording(**_BUSY, sw_thermal_slowdown_seconds_total=counted)), "thermal_throttle") == []


def test_the_power_cap_and_idle_bits_are_no_throttling() -> None:
    """Reasons that are normal at full load or at rest are left alone."""
    run = recording(**_BUSY, sw_power_cap=np.ones(300), gpu_idle=_ON, sw_thermal_slowdown=_OFF, hw_slowdown=_OFF)
    analysis = analyze(run)
    assert found(analysis, "thermal_throttle") + found(analysis, "hw_throttle") == []


def test_a_power_brake_is_a_hardware_throttle() -> None:
    """External power assertion is a problem, and not one of cooling."""
    run = recording(**_BUSY, hw_power_brake_slowdown=_ON, hw_slowdown=_ON, sw_thermal_slowdown=_OFF)
    (finding,) = found(analyze(run), "hw_throttle")
    assert (finding.severity, finding.cause) == (Severity.PROBLEM, "power brake")
    assert "not cooling" in finding.recommendation


@pytest.mark.parametrize(("util", "clock"), [(2.0, 210.0), (98.0, 1300.0)], ids=["idle", "full clock"])
def test_a_hardware_bit_at_rest_or_at_full_clock_is_an_artefact(util: float, clock: float) -> None:
    """The bit also shows while the performance state changes."""
    values = steps((98, 100), (util, 60), (98, 140))
    clocks = steps((1400, 100), (clock, 60), (1400, 140))
    run = recording(util=values, clock=clocks, clock_max=1410, hw_slowdown=_ON, sw_thermal_slowdown=_OFF)
    assert found(analyze(run), "hw_throttle") == []


def test_heat_is_inferred_without_bits() -> None:
    """A low clock at the temperature limit, below the power limit, on a busy GPU."""
    clock, heat = steps((1400, 100), (1200, 60), (1400, 140)), steps((70, 100), (85, 60), (70, 140))
    (finding,) = found(analyze(recording(**_BUSY, clock=clock, temperature=heat)), "thermal_throttle")
    assert (spans(finding), finding.confidence) == ([(99.5, 159.5)], Confidence.MEDIUM)
    assert any("power cap" in reason for reason in finding.ruled_out)


@pytest.mark.parametrize(
    "series",
    [
        {"clock": 1400.0, "temperature": 84.0, "power": 300.0},
        {"clock": steps((1400, 100), (1200, 200)), "temperature": steps((70, 100), (84, 200)), "power": 398.0},
        {"clock": steps((1400, 100), (1200, 200)), "temperature": 70.0, "power": 300.0},
    ],
    ids=["hot at full clock", "power-capped", "cool"],
)
def test_hot_or_slow_alone_is_not_throttled(series: dict[str, Any]) -> None:
    """All signs together are needed."""
    run = recording(util=steps((98, 300)), power_limit=400, **series)
    assert found(analyze(run), "thermal_throttle") == []


def _waver(count: int, size: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return a factor around 1 that repeats every 7 samples, as load does."""
    return 1 + size * np.tile([-1.0, 0.6, -0.2, 1.0, -0.6, 0.4, -0.2], count // 7 + 1)[:count]


@pytest.mark.parametrize(
    ("watts", "expected"),
    [(386.0, [(99.5, 199.5)]), (397.0, [])],
    ids=["below the limit on the mean", "at it on the mean"],
)
def test_near_the_power_limit_the_means_tell_what_holds_the_clock(
    watts: float, expected: list[tuple[float, float]]
) -> None:
    """A cap keeps the power at its limit while the load wavers; heat leaves some of it unused."""
    power = np.concatenate([np.full(100, 397.0), np.full(100, watts), np.full(100, 397.0)]) * _waver(300, 0.03)
    clock, heat = steps((1410, 100), (1380, 100), (1410, 100)), steps((70, 100), (85, 100), (70, 100))
    run = recording(util=98, power=power, power_limit=400, clock=clock, temperature=heat)
    told = [span for finding in found(analyze(run), "thermal_throttle") for span in spans(finding)]
    assert told == [pytest.approx(span, abs=5) for span in expected]


@pytest.mark.parametrize(("back", "episodes"), [(5, 1), (40, 2)], ids=["for a moment", "for good"])
def test_without_bits_an_episode_ends_where_the_clock_is_back(back: int, episodes: int) -> None:
    """A clock that rises for less time than the means resolve was never let go, however hot the GPU stays."""
    clock = steps((1400, 100), (1200, 60), (1395, back), (1200, 60), (1400, 100))
    heat = steps((70, 100), (85, 120 + back), (70, 100))
    run = recording(util=98, power=300, power_limit=400, clock=clock, temperature=heat)
    (finding,) = found(analyze(run), "thermal_throttle")
    assert len(finding.intervals) == episodes


def test_the_margin_in_the_log_wins_over_the_table() -> None:
    """A board that gives its margin is judged by it, known model or not."""
    clock, heat = steps((1400, 100), (1200, 60), (1400, 140)), steps((70, 100), (94, 60), (70, 140))
    run = recording(**_BUSY, clock=clock, temperature=heat, margin=95 - heat, model="Some GPU")
    assert len(found(analyze(run), "thermal_throttle")) == 1


def test_a_hardware_cut_is_inferred_without_bits() -> None:
    """Half the clock on a cool GPU far from its power limit."""
    power, clock = steps((300, 100), (150, 60), (300, 140)), steps((1400, 100), (560, 60), (1400, 140))
    run = recording(util=steps((98, 300)), power=power, power_limit=400, clock=clock, temperature=60)
    (finding,) = found(analyze(run), "hw_throttle")
    assert finding.confidence is Confidence.MEDIUM


def test_a_gpu_hotter_than_its_peers_is_said_to_be() -> None:
    """Cooling of one slot."""
    bits = [_OFF, _OFF, _ON]
    heat = [steps((70, 300)), steps((71, 300)), steps((70, 100), (86, 60), (70, 140))]
    (finding,) = found(analyze(recording(**_BUSY, temperature=heat, sw_thermal_slowdown=bits)), "thermal_throttle")
    assert "hotter than the other GPUs" in finding.summary


def test_of_many_peers_it_is_said_how_many_were_compared() -> None:
    """Sixty-four stand for all."""
    heat = [steps((70, 300))] * 65 + [steps((70, 100), (86, 60), (70, 140))]
    bits = [_OFF] * 65 + [_ON]
    (finding,) = found(analyze(recording(**_BUSY, temperature=heat, sw_thermal_slowdown=bits)), "thermal_throttle")
    assert "It was 16 °C hotter than 64 of the other GPUs." in finding.summary


def test_gpus_that_draw_less_while_one_is_hot_may_have_waited_for_it() -> None:
    """All others do, by 6%; nothing is said where one of them does not, or where all are hot."""
    bits, clock = [_OFF, _OFF, _ON], [steps((1700, 300))] * 2 + [steps((1700, 100), (1500, 60), (1700, 140))]
    less, same = steps((280, 100), (263, 60), (280, 140)), steps((280, 300))
    util = [steps((98, 300))] * 3

    def summary(power: list[Any], slowed: list[Any]) -> str:
        run = recording(
            util=util, power=power, power_limit=400, clock=clock, temperature=70, sw_thermal_slowdown=slowed
        )
        return found(analyze(run), "thermal_throttle")[-1].summary

    assert summary([less] * 3, bits).endswith(" If the others waited in step, up to 14.1 GPU-s more was lost.")
    assert "in step" not in summary([less, same, less], bits)
    assert "in step" not in summary([less] * 3, [_OFF, _ON, _ON])


def test_the_throttled_time_of_a_gpu_is_measured_once() -> None:
    """Every finding asks for that of every other GPU."""
    run = recording(**_BUSY, clock=1200, clock_max=1410, temperature=87, sw_thermal_slowdown=np.ones(300))
    context = build_context(run)
    series, rule = context.series["gpu:0"], Throttling()
    first = rule.measure_throttled_time(series, context.whole)
    assert first.rows.any()
    assert rule.measure_throttled_time(series, context.whole) is first
    other = replace(rule, shortest=replace(rule.shortest, value=1e6))
    assert not other.measure_throttled_time(series, context.whole).rows.any()


def test_without_clocks_it_is_not_judged() -> None:
    """Heat alone is never called throttling; that it ran near its limit is said."""
    analysis = analyze(recording(**_BUSY, temperature=84))
    (entry,) = unjudged(analysis, "thermal_throttle")
    assert "within 3 °C of its limit" in entry.reason
    assert "clock_event_hw_slowdown" in entry.metrics
    assert unjudged(analysis, "hw_throttle")


def test_an_unknown_gpu_without_bits_is_not_judged() -> None:
    """No temperature limit, no inference."""
    analysis = analyze(recording(**_BUSY, clock=1400, temperature=84, model="Some GPU"))
    assert "temperature limit is not known" in unjudged(analysis, "thermal_throttle")[0].reason


def test_throttling_all_along_is_a_problem_whatever_it_cost() -> None:
    """Without a sample at full clock, the highest clock of the log is the reference."""
    run = recording(**_BUSY, clock=1200, clock_max=1410, temperature=87, sw_thermal_slowdown=np.ones(300))
    (finding,) = found(analyze(run), "thermal_throttle")
    assert finding.severity is Severity.PROBLEM
    assert finding.lost_gpu_seconds == pytest.approx(299 * 210 / 1410, abs=1)
    assert "GPU 0 reached 87 °C; its clock fell 15% for 4 min 59 s." in finding.summary


def test_an_unknown_loss_is_said_to_be_unknown() -> None:
    """No clock, no figure; the summary and the limits say so, and no time is classed as throttled."""
    analysis = analyze(recording(**_BUSY, sw_thermal_slowdown=_ON))
    (finding,) = found(analysis, "thermal_throttle")
    assert finding.lost_gpu_seconds is None
    assert "the time lost is not known" in finding.summary
    assert "Time lost to throttling is not known: no clock was recorded." in analysis.limits
    assert dict(analysis.gpu_time[0].seconds)["throttled"] == 0


@pytest.mark.parametrize(
    ("series", "cause"),
    [
        ({"temperature": 60.0}, "hardware slowdown, reason not recorded"),
        ({"temperature": 84.0, "sw_thermal_slowdown": _OFF}, "hardware slowdown, reason not recorded"),
        ({"temperature": 60.0, "sw_thermal_slowdown": _OFF}, "hardware"),
    ],
    ids=["no thermal bits", "hot", "cool"],
)
def test_a_hardware_bit_alone_is_no_power_brake(series: dict[str, Any], cause: str) -> None:
    """Only its own bit names the brake; else both cooling and power are advised."""
    clock = steps((1400, 100), (700, 60), (1400, 140))
    run = recording(**_BUSY, **series, clock=clock, clock_max=1410, hw_slowdown=_ON)
    (finding,) = found(analyze(run), "hw_throttle")
    assert finding.cause == cause
    unexplained = cause != "hardware"
    assert (finding.confidence is Confidence.MEDIUM) == unexplained
    assert ("both cooling" in finding.recommendation) == unexplained


@pytest.mark.parametrize(("clock", "missing"), [(np.nan, "the clock"), (700.0, "the highest clock")])
def test_a_hardware_bit_without_clocks_is_not_judged(clock: float, missing: str) -> None:
    """Whether it was a cut cannot be told, and is not passed over."""
    run = recording(**_BUSY, clock=clock, hw_slowdown=_ON, sw_thermal_slowdown=_OFF, model="Some GPU")
    (entry,) = unjudged(analyze(run), "hw_throttle")
    assert f"without {missing} a cut" in entry.reason
    assert "gpu_sm_clock_max_hertz" in entry.metrics


def test_episodes_end_with_the_recording() -> None:
    """No interval reaches beyond the first and the last sample."""
    (finding,) = found(analyze(recording(**_BUSY, sw_thermal_slowdown=np.ones(300))), "thermal_throttle")
    assert spans(finding) == [(0.0, 299.0)]


def test_a_power_limit_of_nothing_is_none() -> None:
    """A recorder that knows no limit may write 0; heat is told as where none was recorded."""
    clock = steps((1400, 100), (1000, 60), (1400, 140))
    hot = steps((60, 90), (92, 80), (60, 130))
    runs = [
        recording(util=_BUSY["util"], power=300.0, clock=clock, temperature=hot, power_limit=limit)
        for limit in (0.0, np.nan)
    ]
    assert [found(analyze(run), "thermal_throttle") for run in runs] == [[], []]


def test_a_clock_that_is_no_lower_in_the_mean_did_not_fall() -> None:
    """A bit may be set while the clock is that of other busy samples."""
    run = recording(**_BUSY, clock=1400, temperature=60, hw_slowdown=_ON, hw_power_brake_slowdown=_ON)
    (finding,) = found(analyze(run), "hw_throttle")
    assert "A power brake slowed GPU 0 for 1 min; its mean clock did not fall." in finding.summary
