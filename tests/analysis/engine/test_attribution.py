"""Where every second of every GPU went."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpureport.analysis import RULES
from gpureport.analysis.engine import attribution
from gpureport.analysis.job.phases import find_activities, find_job_window
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series import intervals
from gpureport.analysis.series.device_series import series_by_device
from gpureport.testing import GPU_TIME_CLASSES, Finding, GpuTime, Recording, analyze, finding, recording, steps

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
        _whole(entry, run)


_STRETCHES = st.tuples(st.integers(0, 300), st.integers(1, 200)).map(lambda pair: (pair[0], pair[0] + pair[1]))
_FOUND = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *("cpu_bound", "cpu_bound_single", "io_bound", "transfer_bound", "idle_gap", "hollow_util"),
                *("underutilised", "startup_idle", "tail_idle", "unused_gpu", "imbalance"),
            ]
        ),
        st.sampled_from(["checkpoint", "data", "io", "hang", "unused", "unknown", None]),
        st.lists(_STRETCHES, max_size=3),
        st.booleans(),
    ),
    max_size=8,
)


@settings(max_examples=80, deadline=None)
@given(_RUNS, _FOUND, st.sampled_from([0.1, 1.0, 5.0]), st.booleans())
def test_whatever_is_found_every_microsecond_is_counted_once(
    parts: list[tuple[float, int]],
    found: list[tuple[str, str | None, list[tuple[int, int]], bool]],
    every: float,
    slow: bool,  # noqa: FBT001 - hypothesis gives it by place
) -> None:
    """Findings may overlap in any way: classes add up to the run, and causes to their class, to the microsecond."""
    util = steps(*parts)
    bits = np.full(len(util), float(slow))
    run = recording(util=util, every=every, sw_thermal_slowdown=bits, clock=1400 - 700 * bits)
    findings = [
        finding(kind, *stretches, cause=cause, devices=() if everywhere else ("gpu:0",))
        for kind, cause, stretches, everywhere in found
    ]
    entry = _time(run, findings)
    _whole(entry, run)
    for name in ("idle", "waiting_for_input"):
        told = sum(round(part.seconds * 1e6) for part in entry.parts if part.name == name)
        assert told == round(dict(entry.seconds)[name] * 1e6)


def _time(run: Recording, findings: list[Finding]) -> GpuTime:
    """Return where the time of the first GPU went, with findings made by hand."""
    series = series_by_device(run)
    active = find_activities(series)
    context = Context(recording=run, series=series, active=active, window=find_job_window(run.run, active.values()))
    judged = replace(context, earlier_findings=tuple(findings))
    return attribution.attribute_gpu_time(judged, RULES, "gpu:0", low=intervals.NO_SPANS, throttled=None)


def _whole(entry: GpuTime, run: Recording) -> None:
    assert [name for name, _ in entry.seconds] == list(GPU_TIME_CLASSES)
    assert min(seconds for _, seconds in entry.seconds) >= 0
    assert sum(round(seconds * 1e6) for _, seconds in entry.seconds) == run.run.ended - run.run.started


def test_idle_time_is_told_by_cause() -> None:
    """Gaps by their own cause, one without as unknown, and rest before the job apart."""
    util = steps((0, 4), (97, 96), (0, 20), (97, 100), (0, 30), (97, 200))
    gaps = [
        finding("idle_gap", (99, 119), cause="checkpoint"),
        finding("idle_gap", (219, 249)),
    ]
    entry = _time(recording(util=util), gaps)
    told = {part.cause: part.seconds for part in entry.parts if part.name == "idle"}
    assert told == pytest.approx({"checkpoint": 20, "unknown": 30, "outside gaps": 3.5}, abs=0.6)


@pytest.mark.parametrize("level", [0.0, 4.0, 6.0, 11.0])
def test_a_pause_too_short_for_a_gap_is_a_short_pause(level: float) -> None:
    """Whether its samples lie just below or just above 5% makes no difference: there is no cliff between both."""
    (entry,) = analyze(recording(util=np.append(np.tile(steps((97, 17), (level, 3)), 20), np.full(9, 97)))).gpu_time
    seconds = dict(entry.seconds)
    assert seconds["idle"] == 0
    assert seconds["short_pauses"] == pytest.approx(60 * (1 - level / 100) + 349 * 0.03, abs=2)


def test_waiting_is_told_by_kind_and_counted_once() -> None:
    """Where two kinds of waiting overlap the time is that of the first; a gap inside is part of the wait."""
    util = steps((97, 100), (40, 300), (0, 20), (97, 100))
    found = [
        finding("io_bound", (200, 420)),
        finding("cpu_bound", (100, 300)),
        finding("idle_gap", (399, 419), cause="io"),
    ]
    entry = _time(recording(util=util), found)
    told = {part.cause: part.seconds for part in entry.parts if part.name == "waiting_for_input"}
    assert told == pytest.approx({"cpu_bound": 120, "io_bound": 80}, abs=1.5)
    assert dict(entry.seconds)["idle"] == 0


@pytest.mark.parametrize(("lost", "hollow"), [(None, 200), (200, 200), (150, 150), (0, 0)])
def test_hollow_time_is_what_was_lost_of_it(lost: float | None, hollow: float) -> None:
    """Kernels ran, but did little: what that cost is no computing; all of it where nobody says how much."""
    found = finding("hollow_util", (100, 300), lost=lost)
    entry = _time(recording(util=steps((97, 100), (90, 200), (97, 100))), [found])
    seconds = dict(entry.seconds)
    assert seconds["hollow"] == pytest.approx(hollow, abs=1)
    assert seconds["computing"] == pytest.approx(199 * 0.97 + (200 - hollow) * 0.9, abs=1)


@pytest.mark.parametrize("kind", ["unused_gpu", "idle_gap"])
def test_a_gpu_that_was_never_used_is_not_idle(kind: str) -> None:
    """Its time is a class of its own, whoever found it, and the peer keeps its idle time."""
    run = recording(util=[steps((0, 300)), steps((97, 100), (0, 20), (97, 180))])
    series = series_by_device(run)
    active = find_activities(series)
    context = Context(recording=run, series=series, active=active, window=find_job_window(run.run, active.values()))
    found = [finding(kind, cause="unused") if kind == "unused_gpu" else finding(kind, (0, 299), cause="unused")]
    found.append(finding("idle_gap", (99, 119), devices=("gpu:1",)))
    context = replace(context, earlier_findings=tuple(found))
    times = [
        attribution.attribute_gpu_time(context, RULES, name, low=intervals.NO_SPANS, throttled=None)
        for name in ("gpu:0", "gpu:1")
    ]
    both = [dict(time.seconds) for time in times]
    assert [entry["unused"] for entry in both] == [299, 0]
    assert [round(entry["idle"]) for entry in both] == [0, 20]


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
            "hollow": 0,
            "low_use": 0,
            "throttled": 10,
            "waiting_for_input": 0,
            "idle": 20,
            "unused": 0,
            "startup": 39,
            "tail": 30,
            "gpu_lost": 0,
            "no_samples": 60,
            "no_job": 0,
        },
        abs=1.5,
    )


def test_only_the_share_without_work_counts_as_waiting() -> None:
    """Of a CPU-bound phase at 30% utilisation, 70% is waiting and the rest computing."""
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


def test_the_time_of_a_lost_gpu_is_lost_with_it() -> None:
    """What follows on its last answer is a class of its own, and no gap of the log; its peer works on."""
    gone = np.concatenate([np.full(200, 95.0), np.full(100, np.nan)])
    run = recording(util=[np.full(300, 95.0), gone], power=[np.full(300, 300.0), np.where(np.isnan(gone), gone, 300)])
    analysis = analyze(run)
    (finding,) = (entry for entry in analysis.findings if entry.kind == "gpu_lost")
    peer, lost = (dict(entry.seconds) for entry in analysis.gpu_time)
    assert lost["gpu_lost"] == pytest.approx(finding.lost_gpu_seconds, abs=1)
    assert lost["no_samples"] == pytest.approx(0, abs=1)
    assert peer["gpu_lost"] == 0
    assert sum(lost.values()) == pytest.approx(sum(peer.values()))


def test_time_without_a_utilisation_is_without_samples() -> None:
    """What was not recorded is neither work nor idle."""
    (entry,) = analyze(recording(power=steps((100, 60)))).gpu_time
    assert dict(entry.seconds)["no_samples"] == 59.0


@pytest.mark.parametrize("is_seen", [True, False], ids=["job seen", "job not seen"])
def test_short_edges_are_start_up_and_tail_where_the_job_was_seen(*, is_seen: bool) -> None:
    """A part of a job may begin or end with a pause; a whole one loads first and ends last."""
    util = steps((0, 4), (97, 60), (0, 2))
    job = np.where(np.isin(np.arange(66), [0, 65]), np.nan, 0.5) if is_seen else np.full(66, 0.5)
    (entry,) = analyze(recording(util=util, cpu=steps((20, 66)), host={"cores_of_job": job})).gpu_time
    seconds = dict(entry.seconds)
    edges = seconds["startup"], seconds["tail"], seconds["idle"]
    assert edges == pytest.approx((3.5, 1.5, 0) if is_seen else (0, 0, 5), abs=0.6)
