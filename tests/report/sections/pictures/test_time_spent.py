"""Bars of GPU time: of steps per unit of work, of GPUs by their own length."""

from math import fsum

import numpy as np
import pytest

from gpureport import testing
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.model.pictures import SpentBar, TimeSpent
from gpureport.report.runs.gpu_time import seconds_by_class
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.time_spent import build_time_spent
from gpureport.testing import Work, analyze
from tests.comparison.runs import level, sampled
from tests.report import sample_reports

SAMPLES = ("healthy", "thermal_throttle", "gpu_lost", "hollow_util", "unused_gpu", "log_gap", "idle_gap", "cpu_bound")


def _steps(*runs: SampledRun) -> TimeSpent:
    found = build_time_spent(compare(runs), [_report_run(run) for run in runs])
    assert found is not None
    return found


def _report_run(run: SampledRun) -> ReportRun:
    step = run.analysis.run.step or run.analysis.run.name
    return ReportRun(
        label=run.analysis.run.name, step=step, recording=testing.recording(util=[0.0]), analysis=run.analysis
    )


def _single(**series: object) -> TimeSpent | None:
    recording = testing.recording(**series)  # type: ignore[arg-type]  # series are arrays
    run = ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording))
    return build_time_spent(compare([SampledRun(analysis=run.analysis)]), [run])


def _length(bar: SpentBar) -> float:
    return fsum(part.value for part in bar.segments)


@pytest.mark.parametrize("folder", SAMPLES)
def test_bars_of_gpus_are_their_gpu_time(folder: str) -> None:
    """Each segment is the time of its class, and a bar spans the time of the job."""
    report = sample_reports.report_on((folder,))
    (_, analysis) = sample_reports.runs(folder)[0]
    assert report.spent is not None
    assert len(report.spent.bars) == len(analysis.gpu_time)
    for bar, time in zip(report.spent.bars, analysis.gpu_time, strict=True):
        assert {part.key: part.value for part in bar.segments} == pytest.approx(
            {name: amount for name, amount in time.seconds if amount and name != "no_job"}
        )
        assert _length(bar) == pytest.approx(time.job_seconds)
        assert _length(bar) <= report.spent.end * (1 + 1e-9)


def test_bars_of_steps_are_gpu_time_per_work() -> None:
    """One row a step; its length is the figure that is quoted, its classes share it as they share GPU time."""
    runs = [
        sampled("a", step="slow", work=Work(amount=1000, unit="images"), util=level(40)),
        sampled("b", step="fast", work=Work(amount=2000, unit="images"), util=level(80, seed=1)),
    ]
    spent = _steps(*runs)
    assert [bar.label for bar in spent.bars] == ["slow", "fast"]
    assert spent.columns == ("GPU-s per 1,000 images", "Training alone")
    lengths = [_length(bar) for bar in spent.bars]
    assert lengths == pytest.approx(
        [run.analysis.job_gpu_seconds / work for run, work in zip(runs, (1, 2), strict=True)]
    )
    assert lengths[1] == pytest.approx(lengths[0] / 2, rel=0.01)
    for bar, run, length in zip(spent.bars, runs, lengths, strict=True):
        held = seconds_by_class(run.analysis.gpu_time)
        shares = {part.key: part.value / length for part in bar.segments}
        assert shares == pytest.approx({key: amount / run.analysis.job_gpu_seconds for key, amount in held.items()})
    assert spent.bars[0].change is None
    assert spent.bars[0].note == "first step"
    assert spent.bars[1].change is not None
    assert spent.bars[1].change.arrow == "down"


def test_repetitions_have_an_interval_and_their_mean() -> None:
    """The interval holds the total; of few runs it may lie beyond the axis, which no interval stretches far."""
    work = Work(amount=1000, unit="images")
    runs = [
        sampled(name, step=step, work=work, util=level(mean, count, seed))
        for seed, (name, step, mean, count) in enumerate(
            (("a", "one", 40, 1200), ("b", "one", 40, 1500), ("c", "two", 80, 700), ("d", "two", 80, 720))
        )
    ]
    spent = _steps(*runs)
    longest = max(_length(bar) for bar in spent.bars)
    assert longest <= spent.end <= 1.25 * longest
    for bar in spent.bars:
        assert bar.interval is not None
        assert bar.interval[0] < _length(bar) < bar.interval[1]
        assert bar.interval_text
        assert not bar.small


def test_without_work_bars_are_gpu_time_a_run() -> None:
    """No change of GPU time is told, for a shorter run may have done less; the caption says so."""
    spent = _steps(sampled("a", util=level(40)), sampled("b", util=level(80, seed=1)))
    assert spent.columns == ("GPU-min a run", "GPU utilisation, whole run")
    assert [bar.beside_change for bar in spent.bars] == [None, None]  # a change of settled time is of another figure
    assert "Without the work done, a faster run can look worse." in spent.caption
    assert [bar.change for bar in spent.bars] == [None, None]
    assert _length(spent.bars[0]) == pytest.approx(1199 / 60)


def test_the_worst_of_many_gpus_are_drawn_and_the_others_share_a_bar() -> None:
    """64 GPUs of which one idles: its bar, flagged, and one for the 63 others."""
    util = np.full((64, 600), 95.0)
    util[5, 100:500] = 0
    spent = _single(util=util)
    assert spent is not None
    assert [bar.label for bar in spent.bars] == ["GPU 5", "63 other GPUs"]
    assert [bar.is_bad for bar in spent.bars] == [True, False]
    assert "computing" in spent.bars[1].small


def test_equal_gpus_are_one_bar() -> None:
    """64 GPUs that do the same need no 64 bars."""
    spent = _single(util=np.full((64, 600), 95.0))
    assert spent is not None
    assert [bar.label for bar in spent.bars] == ["All 64 GPUs"]
    assert not spent.bars[0].is_bad


def test_nothing_to_divide_has_no_bars() -> None:
    """A single row spans no time."""
    assert _single(util=[50.0]) is None


def test_no_utilisation_is_no_data() -> None:
    """A run without a utilisation, or with NaN alone, is one segment without data."""
    spent = _single(util=[float("nan")] * 60, power=[100.0] * 60)
    assert spent is not None
    assert [part.key for part in spent.bars[0].segments] == ["no_samples"]
    assert [entry.key for entry in spent.legend] == ["no_samples"]


def test_slowed_time_is_named_by_its_cause() -> None:
    """All of it is due to heat, so the legend says so."""
    report = sample_reports.report_on(("thermal_throttle",))
    assert report.spent is not None
    labels = {entry.key: entry.label for entry in report.spent.legend}
    assert labels["throttled"] == "Slowed by heat"
    (flagged,) = [bar for bar in report.spent.bars if bar.is_bad]
    assert flagged.label == "GPU 2"
    assert flagged.note.endswith("slowed by heat")
