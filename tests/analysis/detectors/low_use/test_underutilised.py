"""GPUs that work only part of the time beside a machine that is not full."""

import numpy as np
import pytest

from gpureport.analysis.detectors.low_use.underutilised import Underutilised
from gpureport.analysis.job.phases import find_activities, find_job_window
from gpureport.analysis.rules.rule import Context
from gpureport.analysis.series.device_series import series_by_device
from gpureport.columns import FloatArray
from gpureport.testing import (
    Confidence,
    Finding,
    Interval,
    Severity,
    analyze,
    at,
    found,
    recording,
    spans,
    steps,
    unjudged,
)

_PHASES = steps((97, 300), (42, 300), (97, 300))
_CALM = steps((9, 900))
_WATCHED = {"core": steps((45, 900)), "iowait": steps((1, 900))}


def test_low_gpu_beside_a_calm_machine_is_underutilised() -> None:
    """The phase is found with its edges and its cost; what was looked at is said with its level."""
    analysis = analyze(recording(util=_PHASES, cpu=_CALM, host=_WATCHED))
    (finding,) = found(analysis, "underutilised")
    ((start, end),) = spans(finding)
    assert start == pytest.approx(299.5, abs=10)
    assert end == pytest.approx(599.5, abs=10)
    assert finding.lost_gpu_seconds == pytest.approx(0.58 * 300, abs=8)
    assert (finding.severity, finding.confidence) == (Severity.WARNING, Confidence.MEDIUM)
    assert "GPU 0 averaged 44% utilisation over 5 min 11 s; neither CPU nor storage was the" in finding.summary
    assert "waiting for one core" in finding.ruled_out
    assert dict(analysis.gpu_time[0].seconds)["low_use"] == pytest.approx(finding.lost_gpu_seconds)


def test_what_was_not_recorded_is_not_ruled_out() -> None:
    """With the CPU as a whole alone, one core and storage stay open, and what to record is said."""
    (finding,) = found(analyze(recording(util=_PHASES, cpu=_CALM)), "underutilised")
    assert finding.confidence == Confidence.LOW
    assert "CPU as a whole was not the bottleneck; whether one core or storage was is not known." in finding.summary
    (kind,) = Underutilised.descriptions
    assert kind.title == "Low use, CPU not full", "true of what the log leaves open, the loader above all"
    assert "whether one core or storage was the bottleneck: gpureport record" in finding.recommendation
    assert not any("storage" in said for said in finding.ruled_out)


@pytest.mark.parametrize(
    "util",
    [
        steps((97, 900)),
        np.tile(steps((97, 60), (0, 30)), 10),
        steps((97, 600), (40, 60), (97, 240)),
        steps((4, 900)),
        steps((68, 900)),
    ],
    ids=["healthy", "idle gaps", "evaluation", "unused", "nearly well used"],
)
def test_what_is_not_underutilised(util: FloatArray) -> None:
    """Busy GPUs, gaps, a minute of evaluation, a GPU that does nothing."""
    assert found(analyze(recording(util=util, cpu=_CALM, host=_WATCHED)), "underutilised") == []


@pytest.mark.parametrize("begin", [0, 250, 400, 700])
def test_time_is_claimed_by_one_kind(begin: int) -> None:
    """Wherever the CPU series begins, low use is either watched or of unknown cause, never both."""
    cpu = np.where(np.arange(900) < begin, np.nan, 9)
    analysis = analyze(recording(util=_PHASES, cpu=cpu))
    both = found(analysis, "underutilised") + found(analysis, "low_util_cause_unknown")
    assert [finding.kind for finding in both] == ["underutilised" if begin < 450 else "low_util_cause_unknown"]


def test_what_waits_is_left_out() -> None:
    """Of two low phases, the one beside a full CPU belongs to that."""
    util = steps((97, 200), (40, 200), (97, 200), (40, 200), (97, 200))
    analysis = analyze(recording(util=util, cpu=steps((9, 200), (95, 200), (9, 600)), host=None))
    (waits,), (finding,) = found(analysis, "cpu_bound"), found(analysis, "underutilised")
    assert waits.intervals[-1].end < finding.intervals[0].start
    assert finding.lost_gpu_seconds == pytest.approx(0.6 * 200, abs=8)


@pytest.mark.parametrize(("seconds", "count"), [((290, 610), 0), ((290, 320), 1)])
def test_uneven_gpus_are_another_kind(seconds: tuple[int, int], count: int) -> None:
    """A job whose GPUs differ for most of the time waits for the slowest: its peers are not underused besides."""
    run = recording(util=[_PHASES, _PHASES], cpu=_CALM)
    context = Context(
        recording=run,
        series=(series := series_by_device(run)),
        active=(active := find_activities(series)),
        window=find_job_window(run.run, active.values()),
        earlier_findings=(
            Finding(
                kind="imbalance",
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                devices=("gpu:1",),
                intervals=(Interval(at(seconds[0]), at(seconds[1])),),
                evidence=(),
                lost_gpu_seconds=None,
                summary="",
                recommendation="",
            ),
        ),
    )
    assert len(tuple(Underutilised().find(context))) == count


def test_gpus_beside_the_same_machine_are_one_finding() -> None:
    """Both GPUs are named, and both count."""
    (finding,) = found(analyze(recording(util=[_PHASES, _PHASES], cpu=_CALM)), "underutilised")
    assert finding.devices == ("gpu:0", "gpu:1")
    assert finding.lost_gpu_seconds == pytest.approx(2 * 0.58 * 300, abs=16)


def test_point_samples_of_a_job_that_is_used_well_say_nothing() -> None:
    """At 30 s a job that is busy for three quarters of the time looks low for a quarter of an hour by chance."""
    for seed in range(10):
        util = np.where(np.random.default_rng(seed).random(2000) < 0.8, 95, 0)
        run = recording(util=util, every=30, cpu=np.full(2000, 9), cpu_every=30)
        assert found(analyze(run), "underutilised") == []
        blind = recording(util=util, every=30)
        assert found(analyze(blind), "low_util_cause_unknown") == []


def test_without_a_host_log_or_too_short_it_is_not_judged() -> None:
    """Without a CPU series the cause is unknown, and half a minute is needed in any case."""
    (entry,) = unjudged(analyze(recording(util=_PHASES)), "underutilised")
    assert "cpu_utilization_ratio" in entry.metrics
    (entry,) = unjudged(analyze(recording(util=_PHASES[:25], cpu=_CALM[:25])), "underutilised")
    assert entry.recording == "a log of at least 30 s"


def badly_fed(
    seconds: int, pauses: tuple[float, float] = (0.5, 1.5), bursts: tuple[float, float] = (0.2, 0.9)
) -> FloatArray:
    """Return the utilisation of a loop that works in bursts with pauses between them, a mean over each second."""
    rng = np.random.default_rng(seconds)
    edges = np.cumsum(np.column_stack([rng.uniform(*bursts, 4 * seconds), rng.uniform(*pauses, 4 * seconds)]).ravel())
    moments = np.arange(100 * seconds) / 100
    busy: FloatArray = 100.0 * np.mean(
        (np.searchsorted(edges, moments, side="right") % 2 == 0).reshape(seconds, 100), axis=1
    )
    return busy


@pytest.mark.parametrize("seconds", [35, 60, 97, 121, 130, 150, 300])
@pytest.mark.parametrize("begun", [0, 17])
@pytest.mark.parametrize("cpu", [None, 12.0])
def test_a_badly_fed_loop_is_the_same_finding_at_any_length(seconds: int, begun: int, cpu: float | None) -> None:
    """Three in five seconds lost to pauses of a second: with and without a start-up, less sure where it is short."""
    util = np.concatenate([np.zeros(begun), badly_fed(seconds)])
    watched = None if cpu is None else {"core": np.full(len(util), 45.0), "iowait": np.full(len(util), 1.0)}
    series = None if cpu is None else np.full(len(util), cpu)
    analysis = analyze(recording(util=util, cpu=series, host=watched))
    (finding,) = found(analysis, "low_util_cause_unknown" if cpu is None else "underutilised")
    lost = float((100 - util[begun:]).sum()) / 100
    assert finding.lost_gpu_seconds == pytest.approx(lost, abs=3)
    assert (finding.confidence is Confidence.LOW) == (seconds < 120)
    levels = {each.statistic: each.observed for each in finding.evidence}
    assert levels["share of that time below 50%"] == pytest.approx(float((util[begun:] < 50).mean()), abs=0.04)
    assert dict(analysis.gpu_time[0].seconds)["short_pauses"] == pytest.approx(0, abs=3)


@pytest.mark.parametrize("seconds", [35, 60, 97, 121, 130, 150, 300])
def test_short_pauses_of_a_job_that_is_used_well_are_no_finding(seconds: int) -> None:
    """A tenth to six tenths of a second between bursts of some seconds."""
    util = badly_fed(seconds, pauses=(0.1, 0.6), bursts=(2, 6))
    assert found(analyze(recording(util=util)), "low_util_cause_unknown") == []


def test_few_samples_of_a_short_job_must_be_certain() -> None:
    """Twenty samples at 5 s: readings about 30% are low for certain, as many that happen to be 0 or 100% are not."""
    even, torn = np.tile([25.0, 35.0], 10), np.tile([0.0, 100.0, 100.0, 0.0], 5)
    assert len(found(analyze(recording(util=even, every=5)), "low_util_cause_unknown")) == 1
    analysis = analyze(recording(util=torn, every=5))
    assert found(analysis, "low_util_cause_unknown") == []
    assert unjudged(analysis, "low_util_cause_unknown")[0].recording == "a log of at least 2 min 30 s"


def test_what_is_left_of_a_job_beside_its_gaps_is_not_judged_by_itself() -> None:
    """Of ten minutes idle gaps take all but one, whose mean is no more than what lies between them."""
    util = np.concatenate([badly_fed(30), np.zeros(540), badly_fed(30)])
    assert found(analyze(recording(util=util)), "low_util_cause_unknown") == []


@pytest.mark.parametrize("seconds", [45, 100])
def test_one_full_core_explains_a_short_job(seconds: int) -> None:
    """From half a minute on where the job lasts less than a minute."""
    host = {"core": np.full(seconds, 100.0), "iowait": np.zeros(seconds)}
    analysis = analyze(recording(util=badly_fed(seconds), cpu=np.full(seconds, 15.0), host=host))
    assert found(analysis, "cpu_bound_single")
    assert not found(analysis, "underutilised")


def test_a_core_that_was_full_for_less_than_it_takes_is_not_ruled_out() -> None:
    """Beside a gap too little is left of a minute to tell: the core is named, and neither blamed nor ruled out."""
    util = np.concatenate([badly_fed(28), np.zeros(8), badly_fed(28)])
    host = {"core": np.repeat([100.0, 20.0], [40, 24]), "iowait": np.zeros(64)}
    analysis = analyze(recording(util=util, cpu=np.full(64, 15.0), host=host))
    assert not found(analysis, "cpu_bound_single")
    (finding,) = found(analysis, "underutilised")
    assert "neither the CPU as a whole nor storage was the bottleneck" in finding.summary
    assert "whether one core was is not known" in finding.summary
    assert "waiting for one core" not in finding.ruled_out


def test_a_handful_of_samples_over_half_a_day_tells_no_mean() -> None:
    """A long log of which nearly all is a gap is as short as what it holds."""
    run = recording(util=[80, 30, 28, 30, 16], times=[0, 6815, 7041, 7918, 48745], every=877.0)
    analysis = analyze(run)
    assert found(analysis, "low_util_cause_unknown") == []
    assert "samples cover only" in unjudged(analysis, "low_util_cause_unknown")[0].reason
