"""Signals over time: whose, which, with what limit, and where the finding is."""

import numpy as np
import pytest

from gpureport import testing
from gpureport.report.runs.report_run import ReportRun
from gpureport.report.sections.pictures.signal_history import build_finding_history, build_worst_history
from gpureport.testing import analyze
from tests.report import sample_reports


def _run(folder: str) -> ReportRun:
    recording, analysis = sample_reports.runs(folder)[0]
    return ReportRun(label="run", step="run", recording=recording, analysis=analysis)


def test_heat_shows_temperature_and_clock_of_the_hot_gpu() -> None:
    """Only the temperature is alarming; utilisation always near 100% has no panel; the caption names the shade."""
    worst = sample_reports.report_on(("thermal_throttle",)).worst
    assert worst is not None
    assert worst.title == "GPU 2 over time"
    assert [panel.label.partition(",")[0] for panel in worst.panels] == ["Temperature", "Clock"]
    temperature, clock = worst.panels
    assert temperature.limit == pytest.approx(88)
    assert temperature.note == "up to 88\N{NO-BREAK SPACE}°C, limit 88\N{NO-BREAK SPACE}°C"
    assert (temperature.is_alert, temperature.is_limit_reached, clock.is_alert) == (True, True, False)
    assert worst.span_text in worst.caption
    assert [line.is_main for line in temperature.lines].count(False) == 3
    assert clock.note == "1,710 → 1,497\N{NO-BREAK SPACE}MHz while hot"
    assert clock.low == 0
    assert worst.spans[0][1] - worst.spans[0][0] == pytest.approx(454, abs=1)


def test_waiting_shows_the_cpu_below_the_gpu() -> None:
    """GPU utilisation comes first, the CPU directly after it."""
    worst = sample_reports.report_on(("cpu_bound_single",)).worst
    assert worst is not None
    assert [panel.is_of_host for panel in worst.panels] == [False, True, True]


def test_a_healthy_run_shows_its_hottest_gpu() -> None:
    """Two panels; nothing is shaded, nothing is alarming, no limit is reached; the other GPU cannot be seen."""
    history = build_worst_history(_run("healthy"))
    assert history is not None
    assert history.spans == ()
    assert not any(panel.is_alert for panel in history.panels)
    assert history.title == "GPU 1 over time"
    assert len(history.panels) == 2
    assert not any(panel.is_limit_reached for panel in history.panels)
    assert history.caption == "The other GPU lies under the line."


def test_memory_is_held_against_what_a_job_can_get() -> None:
    """The limit is the installed memory less what the driver keeps, as in the headline and the tile."""
    report = sample_reports.report_on(("mem_pressure",))
    assert report.worst is not None
    (memory,) = report.worst.panels
    assert memory.note == "up to 77.2\N{NO-BREAK SPACE}GiB, 79.4\N{NO-BREAK SPACE}GiB usable"
    assert memory.is_alert
    tile = next(tile for tile in report.tiles if tile.label == "Peak memory")
    assert tile.context == "2.2 of 79.4\N{NO-BREAK SPACE}GiB usable left; 80.0 installed"


def test_a_finding_is_cropped_around_its_stretches() -> None:
    """The picture of a short gap does not show the whole run."""
    run = _run("idle_gap")
    gap = next(found for found in run.analysis.findings if found.kind == "idle_gap")
    history = build_finding_history(run, [gap])
    assert history is not None
    start, end = (run.since_start(at) for at in (gap.intervals[0].start, gap.intervals[0].end))
    assert 0 < history.start < start < end < history.end < run.seconds
    assert history.end - history.start < run.seconds / 2


def test_every_kind_of_finding_can_be_drawn() -> None:
    """Findings without stretches show the whole run."""
    for folder in ("mem_pressure", "hollow_util", "imbalance", "io_bound", "gpu_lost", "power_limited"):
        run = _run(folder)
        for found in run.analysis.findings:
            assert build_finding_history(run, [found]) is not None


def test_a_single_row_has_no_history() -> None:
    """Nothing happens over time in one moment."""
    recording = testing.recording(util=[50.0])
    run = ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording))
    assert build_worst_history(run) is None


def test_a_level_meanwhile_is_that_of_the_samples_in_the_stretch() -> None:
    """Every sample of the gap is 5%; what comes before and after does not raise it, however few buckets there are."""
    util = testing.steps((95, 200), (5, 17), (95, 220))
    recording = testing.recording(util=util, every=0.6)
    run = ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording))
    history = build_worst_history(run, run.analysis.findings)
    assert history is not None
    assert history.panels[0].note == "5% while idle"


def test_rows_without_values_interrupt_a_line() -> None:
    """NaN is not zero; a quantity that is never there has no panel."""
    util = np.full(300, 90.0)
    util[100:150] = np.nan
    recording = testing.recording(util=util, temperature=np.full(300, np.nan))
    history = build_worst_history(ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording)))
    assert history is not None
    (panel,) = history.panels
    assert np.isnan(panel.lines[0].mean).any()
    assert np.nanmin(panel.lines[0].mean) == pytest.approx(90)


def test_a_gpu_without_values_has_no_words_beside_its_panel() -> None:
    """Where only the other GPU reports a quantity near the finding, nothing is said of the one shown."""
    busy = np.full(3000, 90.0)
    partly = np.where(np.arange(3000) < 100, busy, np.nan)
    recording = testing.recording(util=[partly, busy], temperature=[partly - 20, busy - 20])
    run = ReportRun(label="run", step="run", recording=recording, analysis=analyze(recording))
    history = build_finding_history(run, [testing.finding("thermal_throttle", (2000, 2100))])
    assert history is not None
    assert history.start > 100
    assert history.panels
    # a limit is known all the same
    assert {panel.note for panel in history.panels} <= {"", *(panel.limit_text for panel in history.panels)}
