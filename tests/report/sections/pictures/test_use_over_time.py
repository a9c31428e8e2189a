"""Utilisation over time with the classes of GPU time, whose bands add up to the GPU time."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gpureport import testing
from gpureport.analysis import trace_gpu_time
from gpureport.comparison.chain.step_comparison import compare
from gpureport.comparison.steps.sampled_run import SampledRun
from gpureport.report.model.pictures import ClassStretch
from gpureport.report.runs.class_history import trace_classes
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.use_over_time import build_use_over_time
from gpureport.testing import analyze
from tests.report import sample_reports

FOLDERS = (
    "cpu_bound",
    "faulty_hardware",
    "hollow_util",
    "hw_throttle",
    "idle_gap",
    "imbalance",
    "log_gap",
    "low_util_cause_unknown",
    "tail_idle",
    "thermal_throttle",
    "unused_gpu",
)


def _sum_band(band: tuple[ClassStretch, ...]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for stretch in band:
        sums[stretch.key] = sums.get(stretch.key, 0.0) + stretch.end - stretch.start
    return sums


@pytest.mark.parametrize("folder", FOLDERS)
def test_bands_add_up_to_gpu_time(folder: str) -> None:
    """The band of each GPU holds the seconds of each class, without a hole from first to last sample."""
    recording, analysis = sample_reports.runs(folder)[0]
    run = ReportRun(label="run", step="run", recording=recording, analysis=analysis)
    history = trace_classes(run)
    for time in analysis.gpu_time:
        band = history.list_stretches([time.device])
        expected = {name: amount for name, amount in time.seconds if amount > 0.01}
        found = {name: amount for name, amount in _sum_band(band).items() if amount > 0.01}
        assert found == pytest.approx(expected, abs=0.01)
        assert band[0].start == 0
        assert band[-1].end == pytest.approx(run.seconds)
        assert all(one.end == pytest.approx(other.start) for one, other in pairwise(band))


def test_time_without_a_job_and_of_gaps_has_its_place() -> None:
    """A gap in the log is no data where it is, not anywhere else."""
    times = [*range(100), *range(160, 260)]
    recording = testing.recording(times=times, util=np.full(200, 90.0))
    (traced,) = trace_gpu_time(recording, analyze(recording), 26).values()
    unseen = np.flatnonzero(traced["no_samples"] > 1) * 259 / 26
    assert unseen.min() >= 90
    assert unseen.max() <= 160


def test_a_single_row_has_no_band() -> None:
    """It spans no time."""
    recording = testing.recording(util=[50.0])
    run = ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording))
    assert trace_classes(run).list_stretches(["gpu:0"]) == ()


def test_one_row_a_step_on_one_axis() -> None:
    """The axis is as long as the longest run; each row says how busy its GPUs were."""
    report = sample_reports.report_on(sample_reports.CHAIN)
    assert report.use is not None
    assert [row.label for row in report.use.rows] == [bar.label for bar in report.spent.bars] if report.spent else False
    assert report.use.caption == "Each step. The band has the colours from above, striped where they mix."
    longest = max(run.seconds for run in report.timeline)
    assert report.use.seconds == longest
    for row in report.use.rows:
        assert len(row.mean) * row.bucket_seconds <= longest * (1 + 1e-9)
        assert "busy in" in row.text


def test_a_curve_ends_with_its_run() -> None:
    """Where the last sample comes less than an interval after the one before, too."""
    times = [*np.arange(18) * 10.0, 173.0]
    made = [testing.recording(times=times, every=10.0, util=np.full(19, used)) for used in (50.0, 90.0)]
    runs = [
        ReportRun(label=name, step=name, recording=each, analysis=analyze(each))
        for name, each in zip("ab", made, strict=True)
    ]
    histories = {place: trace_classes(run) for place, run in enumerate(runs)}
    named = [replace(run.analysis, run=replace(run.run, id=run.step, step=run.step)) for run in runs]
    chained = [replace(run, analysis=each) for run, each in zip(runs, named, strict=True)]
    use = build_use_over_time(compare([SampledRun(analysis=each) for each in named]), chained, histories)
    assert use is not None
    assert use.caption == "Each step. The band has the colours from above."
    for row in use.rows:
        assert len(row.mean) * row.bucket_seconds == pytest.approx(173.0)


def test_a_single_run_shows_its_signals_instead() -> None:
    """The signals of its worst GPU say more than one curve."""
    report = sample_reports.report_on(("thermal_throttle",))
    assert report.use is None
    assert report.worst is not None
