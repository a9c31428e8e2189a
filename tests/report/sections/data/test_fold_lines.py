"""The line of each fold says what is in it."""

from dataclasses import replace

import pytest

from gpureport.report.model.report_content import Report
from gpureport.report.sections.data.fold_lines import build_fold_lines
from tests.report import sample_reports


def _lines(content: Report) -> dict[str, str]:
    return {fold.name: fold.text.replace("\N{NO-BREAK SPACE}", " ") for fold in content.folds}


def test_one_run() -> None:
    """What was found, which GPU stands apart, and how complete the data is."""
    lines = _lines(sample_reports.report_on(["thermal_throttle"]))
    assert lines["Findings"] == "1 problem, 1 info"
    assert lines["Per GPU"] == "GPU 2 differs from the others"
    assert lines["Data quality"] == "a sample every 3 s, no gap, no line lost"
    assert lines["Not assessed"] == "12 of 33 checks"
    assert lines["Energy and cost"].startswith("211 Wh")
    assert not {"Gains", "Changes between steps", "Policy"} & set(lines)


def test_steps(steps: Report) -> None:
    """How many runs there are, and how many pairs of steps."""
    lines = _lines(steps)
    assert lines["Every run"] == "3 runs, 10 min"
    assert lines["Changes between steps"] == "every figure before and after, in 2 comparisons"
    assert lines["Timeline"] == "every sample of 3 runs, to zoom into"


@pytest.mark.parametrize("content", ["report", "steps", "many", "clean", "hostile"])
def test_every_fold_has_one_line(content: str, request: pytest.FixtureRequest) -> None:
    """Each name once, each text on one line and short."""
    folds = request.getfixturevalue(content).folds
    assert len({fold.name for fold in folds}) == len(folds)
    assert [fold for fold in folds if not fold.text or "\n" in fold.text or len(fold.text) > 120] == []


@pytest.mark.parametrize(
    ("missing", "partly", "line"),
    [
        (11, 0, "11 of 33 checks"),
        (11, 1, "11 of 33 checks, 1 more in part"),
        (0, 1, "1 of 33 checks in part"),
        (0, 0, "all 33 assessed"),
    ],
)
def test_checks_not_assessed_are_counted_as_in_the_fold(missing: int, partly: int, line: str) -> None:
    """Those that no run of a step could assess, and those that some run could not."""
    report = sample_reports.report_on(["thermal_throttle"])
    judgement = replace(report.judgement, checks=33, missing=missing, partly=partly)
    lines = {fold.name: fold.text for fold in build_fold_lines(replace(report, judgement=judgement))}
    assert lines["Not assessed"] == line
