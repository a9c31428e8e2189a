"""The report as OpenMetrics text."""

from collections import Counter
from dataclasses import replace

import pytest

from gpureport.report.formats import openmetrics
from gpureport.report.model.report_content import Report
from tests.report import sample_reports
from tests.report.openmetrics_text import read


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_values_are_those_of_the_model(name: str) -> None:
    """Shares, times and intervals to nine digits; what was not recorded is left out and is not 0."""
    content = sample_reports.report_on(sample_reports.SETS[name])
    found = read(openmetrics.render(content))
    shares = found.get("gpureport_gpu_time_ratio", {})
    expected = {(("of", bar.label), ("class", part.key)): part.ratio for bar in content.gpu_time for part in bar.parts}
    assert shares == pytest.approx(expected, abs=1e-9)
    lost = [card.lost_seconds for card in content.findings if card.lost_seconds is not None]
    assert list(found.get("gpureport_finding_lost_seconds", {}).values()) == pytest.approx(lost, abs=1e-9)
    cells = [cell.value for run in content.gpus for row in run.table.rows for cell in row.cells]
    written = [value for family, values in found.items() if family.startswith("gpureport_gpu_") for value in values]
    assert len(written) - 2 * len(expected) == sum(value is not None for value in cells)


@pytest.mark.parametrize("name", sample_reports.SETS)
def test_counts_are_those_of_the_model(name: str) -> None:
    """Every finding and every answer is counted once."""
    content = sample_reports.report_on(sample_reports.SETS[name])
    found = read(openmetrics.render(content))
    assert sum(found["gpureport_findings"].values()) == len(content.findings)
    outcomes = Counter(line.outcome for run in content.answers for line in run.lines)
    for outcome, count in outcomes.items():
        told = (value for labels, value in found["gpureport_answers"].items() if ("outcome", outcome) in labels)
        assert sum(told) == count


def test_intervals_of_steps_stand_beside_their_means() -> None:
    """Each end is a series of its own, on the right side of the mean."""
    found = read(openmetrics.render(sample_reports.report_on(sample_reports.SETS["five steps"])))
    means = found["gpureport_step_figure"]
    assert found["gpureport_step_figure_low"]
    for labels, low in found["gpureport_step_figure_low"].items():
        assert low <= means[labels] <= found["gpureport_step_figure_high"][labels]


def test_every_figure_of_a_gpu_has_a_name() -> None:
    """No column of the table of GPUs is left out in silence."""
    for name in sample_reports.SETS.values():
        for run in sample_reports.report_on(name).gpus:
            assert set(run.table.columns[1:]) <= set(openmetrics._GPU_FIGURES)  # noqa: SLF001 - the table meant


def test_names_that_become_the_same_stay_apart(report: Report) -> None:
    """Two bars of one name are two series."""
    twice = replace(report, gpu_time=(report.gpu_time[0], report.gpu_time[0]))
    shares = read(openmetrics.render(twice))["gpureport_gpu_time_ratio"]
    assert len(shares) == 2 * len(report.gpu_time[0].parts)
