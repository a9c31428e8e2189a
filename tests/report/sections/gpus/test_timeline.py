"""Buckets of utilisation, gaps and marks."""

import numpy as np
import pytest

from gpureport.report import build
from gpureport.report.formats import html, picture_svg
from gpureport.report.formats.text import terminal
from gpureport.report.model.report_content import Report
from gpureport.report.model.time_charts import Timeline
from gpureport.report.runs.bucket_means import accumulate
from gpureport.report.samples import embedded_series
from tests.report import examples


def test_bucket_means_keep_shares_true() -> None:
    """Edges cut through values, and the mean over the buckets is the mean over time."""
    starts, ends = np.arange(10.0), np.arange(1.0, 11.0)
    values = np.array([1, 0, 0, 1, 1, 0, 1, 0, 0, 0], dtype=float)
    means = accumulate(starts, ends, values).means(np.linspace(0, 10, 5))
    assert means == pytest.approx([0.4, 0.8, 0.4, 0.0])
    assert means.mean() == pytest.approx(values.mean())


def test_a_bucket_without_values_is_not_zero() -> None:
    """Absent values and holes between stretches give NaN."""
    starts, ends = np.array([0.0, 1.0, 8.0]), np.array([1.0, 2.0, 10.0])
    means = accumulate(starts, ends, np.array([0.5, np.nan, 1.0])).means(np.array([0.0, 2.0, 4.0, 10.0]))
    assert means[[0, 2]] == pytest.approx([0.5, 1.0])
    assert np.isnan(means[1])


def test_no_value_at_all() -> None:
    """A metric that was never recorded gives NaN throughout."""
    assert np.isnan(accumulate(np.zeros(0), np.zeros(0), np.zeros(0)).means(np.array([0.0, 1.0, 2.0]))).all()


def timeline(utilisation: list[np.ndarray] | None = None, seconds: int = 600) -> Timeline:
    """Return the timeline of two GPUs with an idle gap on the first."""
    info = examples.run(seconds=seconds)
    gap = examples.idle_gap("gpu:0", 100, 130)
    runs = [(examples.recording(info, utilisation), examples.analysis(info, findings=(gap,)))]
    return build(runs, title=None, command="", gpu_hour_price=None, version="0").timeline[0]


def test_strips_show_the_share_of_time() -> None:
    """An alternation faster than a column shows its mean, not its extremes."""
    flicker = np.tile([0.0, 1.0], 3601)[:7201]
    strip = timeline([flicker, np.full(7201, 0.25)], seconds=7200).strips[0]
    assert len(strip.mean) == 600
    assert strip.mean[1:-1] == pytest.approx(0.5, abs=0.05)
    assert strip.coarse == pytest.approx(0.5, abs=0.02)


def test_marks_come_from_findings() -> None:
    """Only the device concerned is marked, at the finding's own times."""
    strips = timeline().strips
    assert [(mark.card, mark.start, mark.end) for mark in strips[0].marks] == [("F1", 100.0, 130.0)]
    assert strips[1].marks == ()


def test_a_stretch_without_samples_is_a_gap() -> None:
    """A device whose samples begin late has none before."""
    strips = timeline([np.full(601, 0.9), np.full(301, 0.9)]).strips
    assert strips[0].gaps == ()
    start, end = strips[1].gaps[0]
    assert start == pytest.approx(300, abs=2)
    assert end == 600


def test_the_recording_travels_along() -> None:
    """Renderers that show more than buckets find every sample."""
    assert len(timeline().recording.series) == 1202


def test_samples_without_a_utilisation_are_a_gap() -> None:
    """Absent values are hatched like absent samples, not drawn like 0%."""
    values = np.full(601, 0.9)
    values[200:300] = np.nan
    ((start, end),) = timeline([values, np.full(601, 0.9)]).strips[0].gaps
    assert (start, end) == pytest.approx((200, 300), abs=2)


def test_a_finding_on_the_whole_run_is_a_thin_mark() -> None:
    """Nothing that lost time goes without a mark."""
    info = examples.run()
    runs = [(examples.recording(info), examples.analysis(info, findings=(examples.throttling("gpu:0", 0, 595),)))]
    strip = build(runs, title=None, command="", gpu_hour_price=None, version="0").timeline[0].strips[0]
    assert [(mark.start, mark.end, mark.whole) for mark in strip.marks] == [(0.0, 600.0, True)]


def sampled(*runs: tuple[int, int]) -> Report:
    """Return a report of runs, each of so many GPUs and as long as said."""
    pairs = [
        examples.pair(examples.run(f"run {number}", gpus=gpus, seconds=seconds), idle=0.0)
        for number, (gpus, seconds) in enumerate(runs)
    ]
    return build(pairs, title=None, command="", gpu_hour_price=None, version="0")


@pytest.mark.parametrize(
    ("gpus", "said"),
    [
        (1, "One sample was read, so there is nothing to draw over time."),
        (2, "One sample of each GPU was read, so there is nothing to draw over time."),
        (0, "No GPU was recorded in this run."),
    ],
)
def test_a_moment_is_no_axis(gpus: int, said: str) -> None:
    """Every format says that and why nothing is drawn, and explains no sign that is not there."""
    content = sampled((gpus, 0))
    (run,) = content.timeline
    assert (run.strips, run.absent) == ((), said)
    page, text, picture = html.render(content), terminal.render(content), picture_svg.render(content)
    assert f'<p class="warn">{said}</p>' in page
    assert said in " ".join(text.split())
    assert said[1:] in picture
    assert "The height of" not in page
    assert "Height: " not in text
    assert embedded_series.embed_series(content.timeline) is None


def test_a_moment_beside_a_run() -> None:
    """The run is drawn on its own axis, and the moment has none; no GPU of it can be chosen."""
    moment, run = sampled((1, 0), (2, 60)).timeline
    assert (moment.strips, run.absent, len(run.strips)) == ((), "", 2)
    page = html.render(sampled((1, 0), (2, 60)))
    assert ('id="chart0"' in page, 'id="chart1"' in page) == (False, True)
    assert ('<optgroup label="run 0">' in page, '<option value="1:0"' in page) == (False, True)
